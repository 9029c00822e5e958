"""Tests of kernels with pytest, on every GPU that the simulator executes: a plugin that pytest loads by itself.

How to read this package: `plugin` is what pytest calls, `reuse` what it calls with `--reuse`; `gpus` knows GPUs by
name. `figures` measures a call, `code` is its machine code, `baseline` keeps both in files beside the test,
`tolerances` says by how much they may differ, and `difference` tells how they do. `failures` is what a failure begins
with; `remembered` has the results of tests that need not run again. `check` checks modules without tests, by their
`cases`. The guide's page "Test kernels without a GPU" says how to use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.testing.cases import Case
    from flydsl.testing.check import Checker

__all__ = ["Case", "Checker"]

__getattr__ = lazy_names(__name__, {"flydsl.testing.cases": "Case", "flydsl.testing.check": "Checker"})
