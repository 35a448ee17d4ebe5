"""The text of an article: the box that holds it, the lines of that box, and which of them are of the text."""
