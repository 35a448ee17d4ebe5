"""The page as every kind reads it: its elements, text and structured data, its looks, and which part it is about."""
