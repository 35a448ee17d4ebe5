"""A soak: everything at work for long, harmed at random, and a referee who compares what was acknowledged with what is
there. ``python -m tests.soak --help``."""
