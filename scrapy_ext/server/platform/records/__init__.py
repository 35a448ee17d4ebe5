"""The records of jobs: items, requests, logs and samples."""
