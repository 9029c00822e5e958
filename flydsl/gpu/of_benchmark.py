"""`torch.utils.benchmark` while a GPU poses: a statement that works on the GPU takes the time of the GPU's clock.

That time does not vary, so the statement runs once, however often it is to be timed. One that only works on the host
takes the host's time, as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.gpu.import_hook import Replacements
from flydsl.gpu.streams import CLOCK, benchmark


def read_the_clock(replaced: Replacements) -> Callable[[Any], None]:
    """The change to the module of `torch.utils.benchmark.Timer`."""

    def change(module: Any) -> None:
        time_of = module.Timer._timeit

        def time_s(timer: Any, number: int) -> float:
            statement = timer._timer
            if number == 0 or getattr(statement, "timer", None) is not module.timer:  # of C++, or of the program
                return float(time_of(timer, number))
            found = _on_the_gpu(statement)
            return number * found if found else float(time_of(timer, number))

        replaced.replace(module.Timer, "_timeit", time_s)

    return change


def _on_the_gpu(statement: Any) -> float:
    """The seconds that a statement takes by the GPU's clock; 0 if it does nothing there."""

    def now_s() -> float:
        CLOCK.synchronize()
        return CLOCK.host_us / 1e6

    timer, statement.timer = statement.timer, now_s
    try:
        with benchmark():
            return float(statement.timeit(1))
    finally:
        statement.timer = timer
