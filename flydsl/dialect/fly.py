"""The module that MLIR's bindings import for operations of the fly dialect.

It registers no operation classes: fly operations are plain `ir.Operation`s. Without it the bindings would search the
import path anew at every operation that a walk visits.
"""
