"""`python -m tests.simulator.conformance` counts the cases, and writes what COVERAGE.md says about them."""

from __future__ import annotations

import re

from flydsl.simulator.isa.coverage import TEMPLATE
from tests.simulator.conformance.registry import table

_TABLE = re.compile(r"\| GPU \| cases \|.*\n(\|.*\n)+")

if __name__ == "__main__":
    TEMPLATE.write_text(_TABLE.sub(lambda _: table() + "\n", TEMPLATE.read_text()))
