"""Shared parts of the benchmarks: a site, services, crawls as processes, rounds."""
