"""SQLite in WAL mode: one writing thread, several reading ones."""
