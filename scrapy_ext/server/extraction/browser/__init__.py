"""Pages that are rendered in Chromium."""
