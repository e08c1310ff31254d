"""A folder per store."""
