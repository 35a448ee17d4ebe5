"""The kinds of items: functions that take a page model and return the item."""
