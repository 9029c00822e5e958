"""The GPUs that fuzzers are for: those that the simulator executes, or what the environment names."""

from __future__ import annotations

import os

from flydsl.arch import get_arch

EXECUTED = "gfx942,gfx950,gfx1100,gfx1151,gfx1201,gfx1250,gfx90a"
ARCHS = tuple(map(get_arch, os.environ.get("FUZZED_ARCHS", EXECUTED).split(",")))
"""Such as FUZZED_ARCHS=gfx1250,gfx1201. ARCH itself is a name of the compiler's, for one GPU."""
