"""Operations that a wave has under way at each instruction, and uses that come too early.

How to read this package: `instructions` gives the facts of each instruction of a listing, `flow` carries what is under
way along every path, `hazards` the wait states that the hardware does not count itself, `scalar_reads` what RDNA 4's
vector ALU keeps, and `missing` makes findings of all: uses that some path reaches too early, which `grouping` counts
by the wait that they miss. All of it works on the text of a listing, of any GPU, without running it. The run-time check
is in `lockstep/checked`, and asks `suspects` which instructions it needs to look at.

The facts are tables: `isa.operations`, `arch.wait_counters` and `arch.wait_states`.
"""
