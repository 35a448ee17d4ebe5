"""Tests. A package, because some distributions install a ``tests`` of their own, which would be found instead."""
