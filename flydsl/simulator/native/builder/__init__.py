"""The builder of the native backend: LLVM IR for the semantics of instructions.

How to read this package: `ir` is the text of LLVM IR. `values`, `floats`, `lanes`, `memory` and `matrix` are parts of
one class, each based on the one before; `handler` is its last, the function around them with its control flow.
`reading` and `writing` bind the operands of an instruction to it.
"""
