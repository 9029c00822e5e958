"""Time: the cycles of a launch, estimated from the instructions that its waves execute.

How to read this package: `trace` is what users read.
"""

from flydsl.simulator.timing.trace import EVENT, WAVE, Stall, Trace, TracedInstruction, Unit

__all__ = ["EVENT", "WAVE", "Stall", "Trace", "TracedInstruction", "Unit"]
