"""Workers that are killed while they work."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from contextlib import suppress

from flydsl.sweeps import Table


class Killer:
    """The progress of a sweep, which ends one of this process's workers now and then. killed: how many so far."""

    def __init__(self, seed: int, rows_between_deaths: int) -> None:
        self._chance, self._rows = random.Random(seed), rows_between_deaths
        self.killed = 0

    def __call__(self, table: Table) -> None:
        workers = [worker.pid for worker in multiprocessing.active_children() if worker.pid is not None]
        if workers and self._chance.randrange(self._rows) == 0:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(workers), signal.SIGKILL)
                self.killed += 1
