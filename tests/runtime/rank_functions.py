"""What the ranks of `test_ranks` do, each in a process of its own."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist


def ports(rank: int, factor: int) -> tuple[int, list[str]]:
    """A number that takes all ranks, and the addresses at which this process listens, in /proc's notation."""
    number = torch.tensor([rank * factor])
    dist.all_reduce(number)
    listening = []
    own = {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if _is_link(entry)}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in own:
                listening.append(local.split(":")[0])
    return int(number), listening


def _is_link(entry: Path) -> bool:
    try:
        entry.readlink()
    except OSError:  # the listing's own descriptor
        return False
    return True


def fails(rank: int) -> None:
    """Rank 1 fails, the other one waits for it."""
    if rank == 1:
        raise ValueError("this rank is wrong")
    dist.barrier()
