"""The fly dialect: layout algebra, tensors and atoms as MLIR types and operations.

`types` holds the types as Python values and `elements` the scalar types in them, `ops` the table of operations,
`inference` their result types and the checks of their operands, `definition` the dialect as MLIR reads it, `context`
the one MLIR context, `text` the printed form and its reader, `location` the user's place that every operation carries.
"""

from flydsl.dialect import definition as definition
