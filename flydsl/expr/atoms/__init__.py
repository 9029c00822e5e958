"""Copies and matrix products: instructions as atoms, tilings of them, and what they do with tensors."""
