"""Run a launch instruction by instruction, and inspect its waves.

How to read this package: `simulation` is what users step, `places` says where it can stop, and `wave_state` is what
they see of a wave.
"""

from flydsl.simulator.stepping.simulation import Simulation

__all__ = ["Simulation"]
