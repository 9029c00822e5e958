"""The native backend: the table of semantics as machine code of the host.

Every instruction is a record with the address of a handler and its numbers, and every handler ends by calling the next
record's (threaded code). A handler belongs to a *shape*, an instruction without its numbers; it is generated from the
same table as the lock-step machine executes, compiled by LLVM, and kept on disk for every later kernel.

How to read this package: `layout` says where things lie. `shape` takes an instruction apart. `builder/` writes LLVM IR;
with it, `generate` puts a handler together. `runtime` has the functions that handlers call and the scheduler, in C.
`host` compiles and loads, `cache` keeps, `library` finds handlers, `bound_program` makes records. `group`,
`launch_block` and `machine` run a launch, `counting` counts what it does.

What native code cannot or may not do, it leaves to the lock-step machine, one instruction of one wave at a time: the
wave returns with FALL_BACK before the instruction has had any effect, and goes on after it. That is how every error is
found and worded, and how `v_div_fmas_f64` treats results that are denormal. The test of the table lists the entries
that have no handler at all: none.

All bits are those of the lock-step machine, on every host: `host` says how.
"""
