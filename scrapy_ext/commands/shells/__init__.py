"""Names of the project for completion in shells."""
