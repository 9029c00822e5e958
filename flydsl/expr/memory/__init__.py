"""Tensors, pointers, shared memory, atomics, and values of structs."""
