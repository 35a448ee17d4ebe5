"""Items, requests, logs and samples of jobs, in compressed chunks."""
