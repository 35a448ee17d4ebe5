"""Text of PDFs: its lines as they are printed, the paragraphs that they make, and the items of a document."""
