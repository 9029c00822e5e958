"""Compiled artifacts that are found again: their keys, the surroundings that they depend on, and their files."""
