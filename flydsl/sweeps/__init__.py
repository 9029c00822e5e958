"""Searches: every launcher with every configuration, shape and architecture, here or on the workers of an executor.

    table = flydsl.sweep(scale, {"block": [64, 128, 256]}, [{"n": 1000}, {"n": 4096}], arguments=tensors)
    table.best(n=4096)

How to read this package: `space` lists the points, `point` runs one and says what is measured, `bench` measures and
estimates times, `workers` gives work to any `concurrent.futures.Executor` and does again what dying workers leave
undone, `sending` is what goes to a worker, `journal` the file that keeps results, `table` what users read, `searching`
has the function that puts these together. `flydsl.autotune` searches with the same parts.
"""

from typing import TYPE_CHECKING

from flydsl.sweeps.config import Config
from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.sweeps.row import Row
    from flydsl.sweeps.searching import show_progress_with, sweep
    from flydsl.sweeps.table import Table

_NAMES = {
    "flydsl.sweeps.row": "Row",
    "flydsl.sweeps.searching": "show_progress_with sweep",
    "flydsl.sweeps.table": "Table",
}

__all__ = ["Config", "Row", "Table", "show_progress_with", "sweep"]

__getattr__ = lazy_names(__name__, _NAMES)  # most programs search for nothing
