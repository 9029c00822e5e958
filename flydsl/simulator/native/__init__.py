"""The native backend: the table of semantics as machine code of the host.

Every instruction is a record with the address of a handler and its numbers, and every handler ends by calling the next
record's (threaded code). A handler belongs to a *shape*, an instruction without its numbers; it is generated from the
same table as the lock-step machine executes, compiled by LLVM, and kept on disk for every later kernel. What many
handlers do, such as the sums of a matrix product, is a function that they share.

How to read this package: `layout` says where things lie. `shape` takes an instruction apart. `builder/` writes LLVM IR;
with it, `generate` puts a handler together. `runtime` has the functions that handlers call and the scheduler, in C.
`host` compiles and loads, `cache` stores, `library` finds handlers, `bound_program` makes records. `group`,
`launch_block` and `machine` run a launch, `idle_launches` keeps it for the next one, `counting` counts what it does,
`races` proves that its waves do not race.

Native code leaves what it cannot do to the lock-step machine, one instruction of one wave at a time: the wave returns
with FALL_BACK before the instruction has had any effect, and continues after it. This is how every error is raised, and
how `v_div_fmas_f64` computes results that are denormal. Every entry of the table has a handler; a test checks it.

All bits are those of the lock-step machine, on every host: `host` says how.
"""
