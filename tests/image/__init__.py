"""The container image, built from the packages of this machine's Debian, and run: ``make test-image``."""
