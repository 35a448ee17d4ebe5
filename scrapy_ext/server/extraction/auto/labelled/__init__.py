"""Values that stand by a label, in tables, lists and lines, and what shops call things."""
