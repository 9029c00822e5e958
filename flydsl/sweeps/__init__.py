"""Searches: every launcher with every configuration, shape and architecture, here or on the workers of an executor.

    table = flydsl.sweep(scale, {"block": [64, 128, 256]}, [{"n": 1000}, {"n": 4096}], arguments=tensors)
    table.best(n=4096)

How to read this package: `space` lists the points, `point` runs one and says what is measured, `bench` measures and
estimates times, `workers` gives work to any `concurrent.futures.Executor` and does again what dying workers leave
undone, `sending` is what goes to a worker, `journal` the file that keeps results, `table` what users read, `sweep` the
function that puts these together. `flydsl.autotune` searches with the same parts.
"""

from flydsl.sweeps.config import Config
from flydsl.sweeps.row import Row
from flydsl.sweeps.sweep import show_progress_with, sweep
from flydsl.sweeps.table import Table

__all__ = ["Config", "Row", "Table", "show_progress_with", "sweep"]
