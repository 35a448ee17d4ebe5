"""Fuzzing guided by coverage: every parser of input that is not trusted, with what must hold of it.

``python -m tests.fuzz`` runs it, ``tests/integration/fuzz/test_corpus.py`` runs what was found before once more.
"""
