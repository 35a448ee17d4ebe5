"""A node: who is there, which jobs it has, and that none runs twice when it is not."""
