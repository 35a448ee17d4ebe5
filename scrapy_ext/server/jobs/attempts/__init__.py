"""One attempt at a job: its plan, its process, what it writes, and how it ends."""
