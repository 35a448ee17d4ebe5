"""Configuration of the server and of workers, from the command line, the environment and settings."""
