"""Execute AMD GPU machine code on the CPU.

    program = Program.load(hsaco, listing)
    memory = Memory()
    address = memory.map_array(array, name="A")
    launch(program, "kernel", grid=(4, 1, 1), block=(256, 1, 1), kernarg=struct.pack("<Q", address), memory=memory)

How to read this package: `listing` and `program` decode, `isa/` is the table of semantics (COVERAGE.md lists it),
`builder` its vocabulary, `memory` the address space, `dispatch` what a launch gives its waves, `launch` the entrance.

Two backends execute the table. The lock-step one is a machine of numpy arrays, slow and easy to follow; it is the
oracle of the other and steps through programs: `waves` is the state; `numpy_values` (with `exact`, `rounding`,
`elementary` and `modes`), `numpy_lanes`, `numpy_matrix`, `numpy_memory` and `lockstep` together are its builder;
`registers`, `reading` (with `dpp`) and `writing` bind an instruction to it. The native one, in `native/`, is what
`launch` uses by default.
"""

from flydsl.simulator.dispatch import LaunchStatistics
from flydsl.simulator.errors import (
    BarrierDeadlock,
    InstructionLimit,
    ListingError,
    MemoryFault,
    MisalignedAccess,
    Trap,
    UnknownInstruction,
    UnsupportedMode,
)
from flydsl.simulator.launch import launch
from flydsl.simulator.memory import Memory
from flydsl.simulator.program import Program

__all__ = [
    "BarrierDeadlock",
    "InstructionLimit",
    "LaunchStatistics",
    "ListingError",
    "Memory",
    "MemoryFault",
    "MisalignedAccess",
    "Program",
    "Trap",
    "UnknownInstruction",
    "UnsupportedMode",
    "launch",
]
