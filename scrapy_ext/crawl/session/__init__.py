"""The session of a crawl: services, job record and writers, opened once and closed last."""
