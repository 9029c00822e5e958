"""The meaning of each operation on arrays of lanes: one module per dialect."""

from flydsl.interpreter.meanings import arith, copies, fly, gpu, llvm, math, products, rocdl, tensor, vector

__all__ = ["arith", "copies", "fly", "gpu", "llvm", "math", "products", "rocdl", "tensor", "vector"]
