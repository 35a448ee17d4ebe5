"""Rules about finished jobs: their rows, the jobs that match them, and previews."""
