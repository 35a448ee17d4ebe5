"""Running jobs: the code that they run, and who runs it."""
