"""A sweep: its progress, its table, and pictures of it."""
