"""The page model: elements, text, structured data, labels, computed styles, and the part that the page is about."""
