"""Kernels to use and to learn from: one module per operation, with its torch reference and its shapes."""
