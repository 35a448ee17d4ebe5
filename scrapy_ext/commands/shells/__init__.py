"""Completion in shells: what can be completed (``tree``), a module for each shell, and the names that depend on the
project (``words``)."""
