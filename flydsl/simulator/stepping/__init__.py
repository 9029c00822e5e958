"""Run a launch instruction by instruction, and inspect its waves.

How to read this package: `simulation` is what users step, `recording` keeps its past, `places` says where it can stop,
`wave_state` is what they see of a wave, and `description` what they read of where it stands.
"""

from flydsl.simulator.stepping.recording import Moment, Recording
from flydsl.simulator.stepping.simulation import Simulation

__all__ = ["Moment", "Recording", "Simulation"]
