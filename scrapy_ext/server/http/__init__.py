"""Requests and answers, whatever the resource: middleware, bodies, formats, compression and limits."""
