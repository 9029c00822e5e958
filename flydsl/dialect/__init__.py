"""The fly dialect: layout algebra, tensors and atoms as MLIR types and operations.

`types` holds the types as Python values, `ops` the table of operations with their result-type inference, `context`
the one MLIR context with the dialect registered, `text` the printed form and its reader, `location` the user's place
that every operation carries.
"""
