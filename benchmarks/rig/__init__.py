"""What the benchmarks share: a site, services, crawls as processes, rounds."""
