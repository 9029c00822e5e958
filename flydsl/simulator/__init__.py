"""Execute AMD GPU machine code on the CPU.

    module = load("vector_add.hsaco")  # and vector_add.s beside it
    module.kernel("vector_add_kernel").launch(grid=(4, 1, 1), block=(256, 1, 1), args=[a, b, c, len(a)])

Kernels take numpy arrays and numbers here; neither MLIR nor torch is needed. What lies below:

    program = Program.load(hsaco, listing)
    memory = Memory()
    address = memory.map_array(array, name="A")
    launch(program, "kernel", grid=(4, 1, 1), block=(256, 1, 1), kernarg=struct.pack("<Q", address), memory=memory)

`checks.checking` turns more checks on; `stepper.Simulation` runs a launch instruction by instruction.

How to read this package: `flydsl.hsaco` reads code object and listing, `program` decodes, `admission` says which
operands an instruction may have, `isa/` is the table of semantics (COVERAGE.md lists it), `builder` its vocabulary, `memory` the address space,
`dispatch` what a launch gives its waves, `launch` the entrance.

Two backends execute the table. The lock-step one is a machine of numpy arrays, slow and easy to follow; it is the
oracle of the other and steps through programs: `waves` is the state; `numpy_values` (with `exact`, `rounding`,
`elementary` and `modes`), `numpy_lanes`, `numpy_matrix`, `numpy_memory` and `lockstep` together are its builder;
`registers`, `reading` (with `dpp`) and `writing` bind an instruction to it. The native one, in `native/`, is what
`launch` uses by default.

`checked` is the lock-step machine with the checks of `checks`, `threefold` the part of it that finds undefined
registers (`lds_history` and `register_history` remember who did what); `stepper` (with `places` and `wave_state`) stops
a machine where one wants to look. `counters` is what launches inside `with counting()` leave behind.
"""

from flydsl.hsaco.listing import ListingError
from flydsl.simulator.checks import checking, limited
from flydsl.simulator.counters import counting
from flydsl.simulator.dispatch import LaunchStatistics
from flydsl.simulator.errors import (
    BarrierDeadlock,
    GlobalRace,
    InstructionLimit,
    LdsRace,
    MemoryFault,
    MisalignedAccess,
    Race,
    RegisterFault,
    Trap,
    UninitializedLds,
    UninitializedRegister,
    UnknownInstruction,
    UnsupportedMode,
)
from flydsl.simulator.launch import launch, prepare
from flydsl.simulator.loading import LoadedKernel, LoadedModule, Struct, load
from flydsl.simulator.memory import Memory
from flydsl.simulator.program import Program
from flydsl.simulator.stepper import Simulation

__all__ = [
    "BarrierDeadlock",
    "GlobalRace",
    "InstructionLimit",
    "LaunchStatistics",
    "LdsRace",
    "ListingError",
    "LoadedKernel",
    "LoadedModule",
    "Memory",
    "MemoryFault",
    "MisalignedAccess",
    "Program",
    "Race",
    "RegisterFault",
    "Simulation",
    "Struct",
    "Trap",
    "UninitializedLds",
    "UninitializedRegister",
    "UnknownInstruction",
    "UnsupportedMode",
    "checking",
    "counting",
    "launch",
    "limited",
    "load",
    "prepare",
]
