"""The process of one job: how it is started, watched, confined and ended."""
