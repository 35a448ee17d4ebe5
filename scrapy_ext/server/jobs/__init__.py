"""Running jobs: one job is one process, on a node with room for it."""
