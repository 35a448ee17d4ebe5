"""Running the server: what every request goes through, how it is measured and told of, and what it may cost."""
