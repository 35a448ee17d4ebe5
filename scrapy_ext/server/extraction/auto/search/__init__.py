"""What results pages of search engines are made of."""
