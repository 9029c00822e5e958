"""Whether this machine has POSIX shared memory (/dev/shm), for torch's tensors and the locks of pools of processes."""

from __future__ import annotations

import multiprocessing

import pytest


def _is_there() -> bool:
    try:
        multiprocessing.Lock()
    except OSError:
        return False
    return True


needs_shared_memory = pytest.mark.skipif(not _is_there(), reason="this machine has no POSIX shared memory")
