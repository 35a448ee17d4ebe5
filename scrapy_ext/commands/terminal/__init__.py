"""Output of the commands to terminals and pipes."""
