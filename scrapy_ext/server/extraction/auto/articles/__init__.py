"""Text of an article: the box that contains it, the lines of that box, and which of them are of the text."""
