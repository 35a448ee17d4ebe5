"""What a person sees in a terminal, and a program in a pipe."""
