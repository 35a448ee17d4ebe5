"""The list that a page is about: what repeats on it, what each entry shows, and which kind of thing that is."""
