"""Machine code as its author reads it: instructions with the registers they use, blocks, loops, liveness, waits."""

from flydsl.hsaco.register_uses import RegisterSet, registers_of
from workbench.machine_code.blocks import Block, blocks
from workbench.machine_code.instructions import KINDS, MachineInstruction, read_function
from workbench.machine_code.liveness import Pressure, pressures
from workbench.machine_code.waits import Outstanding, Wait, outstanding

__all__ = [
    "KINDS", "Block", "MachineInstruction", "Outstanding", "Pressure", "RegisterSet", "Wait", "blocks", "outstanding",
    "pressures", "read_function", "registers_of",
]  # fmt: skip
