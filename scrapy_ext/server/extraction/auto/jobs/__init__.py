"""What a page tells of the job that it offers."""
