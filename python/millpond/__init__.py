"""Millpond's stores in Python: the operations of contract/operations.md on SQLite, PostgreSQL and Redis."""
