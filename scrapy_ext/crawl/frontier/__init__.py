"""The queue of a crawl: requests go to the platform's frontier and come back in batches."""
