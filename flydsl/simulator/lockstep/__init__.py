"""The lock-step backend: a machine of numpy arrays, slow and easy to follow. It is the oracle of the native backend.

How to read this package: `bind` makes one callable of each instruction, with `reading` for its operands and `writing`
for its results; `machine` runs them, all waves at the same pc together; `run` runs the workgroups of a launch, in
batches. The machine is also the builder in whose vocabulary the table of semantics is written: `values` (with `exact`
and `rounding`), `lanes`, `matrix` and `memory` are its parts. `counting` is a machine that counts, and `checked/` one
that checks."""
