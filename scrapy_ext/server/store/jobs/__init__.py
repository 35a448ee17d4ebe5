"""Jobs: their rows, states, attempts and nodes."""
