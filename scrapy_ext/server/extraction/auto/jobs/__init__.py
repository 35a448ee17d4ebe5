"""Parts of job postings: title and company, place of work, description."""
