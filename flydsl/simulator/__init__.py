"""Execute AMD GPU machine code on the CPU.

    module = load("vector_add.hsaco")  # and vector_add.s beside it
    module.kernel("vector_add_kernel").launch(grid=(4, 1, 1), block=(256, 1, 1), args=[a, b, c, len(a)])

Kernels take numpy arrays and numbers here; neither MLIR nor torch is needed. The level below:

    program = Program.load(hsaco, listing)
    memory = Memory()
    address = memory.map_array(array, name="A")
    launch(program, "kernel", grid=(4, 1, 1), block=(256, 1, 1), kernarg=struct.pack("<Q", address), memory=memory)

`checks.checking` turns more checks on; `Simulation` runs a launch instruction by instruction, `Recording` also back.

How to read this package: `flydsl.hsaco` reads the code object and its listing; `decoding/` makes a `Program` of it and
says what operands and modifiers an instruction may have; `isa/` is the table of semantics (listed in COVERAGE.md).
`memory/` is the address space, `waves` the state of waves (with `modes`), `dispatch` their first state. Launches enter
at `launching`, files at `loading`.

Two backends execute the table: `lockstep/`, a machine of numpy arrays, and `native/`, host code, which `launch` uses by
default. `checks` turns further checks on, and `lockstep/checked/` performs them. `stepping/` runs a lock-step machine
instruction by instruction. `counters/` holds the results of `with counting()`, `timing/` those of `with tracing()`, and
`observers` tells Python functions of what launches do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.hsaco.listing import ListingError
    from flydsl.simulator.checks import checking, limited
    from flydsl.simulator.counters import counting
    from flydsl.simulator.decoding.program import Program
    from flydsl.simulator.dispatch import LaunchStatistics
    from flydsl.simulator.errors import (
        BarrierDeadlock,
        GlobalRace,
        InstructionLimit,
        LdsRace,
        MemoryFault,
        MisalignedAccess,
        MissingWait,
        Race,
        RegisterFault,
        Trap,
        UninitializedLds,
        UninitializedRegister,
        UnknownInstruction,
        UnsupportedMode,
    )
    from flydsl.simulator.launching import launch, prepare
    from flydsl.simulator.loading import LoadedKernel, LoadedModule, Struct, load
    from flydsl.simulator.memory.buffers import Memory
    from flydsl.simulator.observers import Observer, observing
    from flydsl.simulator.stepping import Recording, Simulation
    from flydsl.simulator.timing import tracing

_NAMES = {
    "flydsl.hsaco.listing": "ListingError",
    "flydsl.simulator.checks": "checking limited",
    "flydsl.simulator.counters": "counting",
    "flydsl.simulator.dispatch": "LaunchStatistics",
    "flydsl.simulator.errors": (
        "BarrierDeadlock GlobalRace InstructionLimit LdsRace MemoryFault MisalignedAccess MissingWait Race "
        "RegisterFault Trap UninitializedLds UninitializedRegister UnknownInstruction UnsupportedMode"
    ),
    "flydsl.simulator.launching": "launch prepare",
    "flydsl.simulator.loading": "LoadedKernel LoadedModule Struct load",
    "flydsl.simulator.memory.buffers": "Memory",
    "flydsl.simulator.observers": "Observer observing",
    "flydsl.simulator.decoding.program": "Program",
    "flydsl.simulator.stepping": "Recording Simulation",
    "flydsl.simulator.timing": "tracing",
}

__all__ = [
    "BarrierDeadlock", "GlobalRace", "InstructionLimit", "LaunchStatistics", "LdsRace", "ListingError", "LoadedKernel",
    "LoadedModule", "Memory", "MemoryFault", "MisalignedAccess", "MissingWait", "Observer", "Program", "Race",
    "Recording", "RegisterFault", "Simulation", "Struct", "Trap", "UninitializedLds", "UninitializedRegister",
    "UnknownInstruction", "UnsupportedMode", "checking", "counting", "launch", "limited", "load", "observing",
    "prepare", "tracing",
]  # fmt: skip


__getattr__ = lazy_names(__name__, _NAMES)  # compiling needs the memory of tensors alone
