"""Databases behind one interface: SQLite and PostgreSQL."""
