"""What the ranks of the collectives' tests do. Each function runs in a process of its own (`ranks.run`)."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from flydsl.errors import ArgumentError, DeviceError
from flydsl.simulator import tracing
from flydsl.simulator.memory.allocations import allocations
from flydsl.simulator.memory.peers import PeerLost
from kernels import custom_all_reduce_kernel as kernel
from kernels.custom_all_reduce import FlyDSLAllreduce
from kernels.dispatch_combine_intranode_op import DispatchCombine
from tests.kernels.rows import TYPES


def make(rank: int, world: int, max_size: int = 1 << 16) -> FlyDSLAllreduce:
    return FlyDSLAllreduce(
        group=dist.group.WORLD, device="cpu", max_size=max_size, world_size=world, rank=rank, full_nvlink=True
    )


def inputs(world: int, elements: int, dtype: str, seed: int = 0) -> torch.Tensor:
    """The inputs of all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(world, elements, generator=generator).to(TYPES[dtype])


def sums(rank: int, world: int, cases: list[tuple[int, str]], max_size: int = 1 << 16) -> list[Any]:
    """The cases whose sum is not the reference's, to the bit. A rank comes late, another one each time."""
    reduce, wrong = make(rank, world, max_size), []
    for number, (elements, dtype) in enumerate(cases):
        given = inputs(world, elements, dtype, number)
        if number % world == rank:
            time.sleep(0.01)
        result = reduce.custom_all_reduce(given[rank].clone())
        if result is None or not torch.equal(result, kernel.reference(given)):
            wrong.append((elements, dtype))
    reduce.close()
    return wrong


def every_launcher(rank: int, world: int) -> list[str]:
    """The launchers that give wrong results where sizes do not choose them."""
    reduce, wrong = make(rank, world), []
    for choice in ("run_1stage_arr", "run_2stage_arr", "run_2stage_write_mode"):
        reduce._choice = lambda size, choice=choice: choice  # type: ignore[method-assign]
        for elements in (24, 4104):
            given = inputs(world, elements, "f16", elements)
            result = reduce.custom_all_reduce(given[rank])
            if not torch.equal(result, kernel.reference(given)):
                wrong.append(f"{choice} of {elements}")
    reduce.close()
    return wrong


def parts(rank: int, world: int) -> list[str]:
    """What is wrong with registered tensors, all-gather and reduce-scatter."""
    reduce, wrong = make(rank, world), []
    given = inputs(world, 64 * world, "f32")
    mine = given[rank].clone().share_memory_()
    total = kernel.reference(given)
    results = {
        "all-reduce": (reduce.all_reduce_reg(mine), total),
        "all-gather": (reduce.all_gather_reg(mine), given),
        "reduce-scatter": (reduce.reduce_scatter_reg(mine), total.view(world, -1)[rank]),
    }
    wrong += [name for name, (found, wanted) in results.items() if not torch.equal(found, wanted)]
    wrong += [name for name in ("all_reduce_reg", "all_gather_reg") if not _is_refused(reduce, name, given[rank])]
    reduce.close()
    return wrong


def _is_refused(reduce: FlyDSLAllreduce, name: str, tensor: torch.Tensor) -> bool:
    """True for an error before anything was exchanged: the tensor is this process's own."""
    try:
        getattr(reduce, name)(tensor)
    except DeviceError as error:
        return "share_memory_()" in str(error)
    return False


def captured(rank: int, world: int) -> list[str]:
    """What is wrong with two replays of captured calls, of a tensor that is shared and one that is not."""
    reduce, wrong = make(rank, world), []
    shared, own = (torch.zeros(256, dtype=torch.bfloat16) for _ in range(2))
    if rank != 1:
        shared.share_memory_()
    with reduce.capture() as recording:
        results = [reduce.custom_all_reduce(tensor) for tensor in (shared, own)]
    for seed in (1, 2):
        given = [inputs(world, 256, "bf16", seed), inputs(world, 256, "bf16", -seed)]
        for tensor, values in zip((shared, own), given, strict=True):
            tensor.copy_(values[rank])
        recording.replay()
        wanted = [kernel.reference(values) for values in given]
        wrong += [f"replay {seed}" for x, y in zip(results, wanted, strict=True) if not torch.equal(x, y)]
    reduce.close()
    return wrong


def timed(rank: int, world: int) -> list[str]:
    """The launchers that change memory of any rank when one of them times its launch."""
    reduce, changed = make(rank, world), []
    given = inputs(world, 4104, "f16")[rank]
    for choice in ("run_1stage_arr", "run_2stage_arr", "run_2stage_write_mode"):
        reduce._choice = lambda size, choice=choice: choice  # type: ignore[method-assign]
        reduce.custom_all_reduce(given)
        dist.barrier()
        before = _shared()
        dist.barrier()
        if rank == 0:
            with tracing() as traced:
                reduce.custom_all_reduce(given)
            changed += [] if traced.launches[0].time_us > 0 else [f"{choice} has no time"]
        dist.barrier()
        changed += [] if before == _shared() else [choice]
        dist.barrier()
    reduce.close()
    return changed


def _shared() -> list[bytes]:
    """What all ranks have in the memory that this one shares with them and opened."""
    return [ctypes.string_at(buffer.base, buffer.size_bytes) for buffer in allocations.memory().in_place]


def refusals(rank: int, world: int) -> list[str]:
    """Calls that should be refused, and are not."""
    reduce = make(rank, world)
    fits = torch.zeros(64)
    not_taken = {
        "type": torch.zeros(64, dtype=torch.int32),
        "strides": torch.zeros(64, 2)[:, 0],
        "size": torch.zeros((1 << 13) + 1),
    }
    wrong = [name for name, tensor in not_taken.items() if reduce.custom_all_reduce(tensor) is not None]
    if reduce.custom_all_reduce(fits, open_fp8_quant=True) is not None:
        wrong.append("fp8")
    for name, call in {
        "out": lambda: reduce.custom_all_reduce(fits, out=torch.zeros(63)),
        "packs": lambda: reduce.all_gather_reg(torch.zeros(63)),
    }.items():
        try:
            call()
        except ArgumentError:
            continue
        wrong.append(name)
    assert reduce.custom_all_reduce(torch.zeros(0)).numel() == 0
    reduce.close()
    return wrong


def everything(rank: int, world: int, cases: list[tuple[int, str]]) -> dict[str, list[Any]]:
    """What is wrong, by subject."""
    return {
        "sums": sums(rank, world, cases),
        "launchers": every_launcher(rank, world),
        "parts": parts(rank, world),
        "captured": captured(rank, world),
        "timed": timed(rank, world),
        "refusals": refusals(rank, world),
    }


def killed(rank: int, world: int, victim: int, folder: str) -> None:
    """The victim kills itself between two calls; the others write down the error, and wait until all have."""
    reduce = make(rank, world)
    given = torch.zeros(64)
    reduce.custom_all_reduce(given)
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        reduce.custom_all_reduce(given)
    except PeerLost as error:
        (Path(folder) / str(rank)).write_text(f"{error.ranks} {time.monotonic() - start}")
    time.sleep(600)  # until the test ends this process


def experts(rank: int, world: int, seeds: list[int], blocks: int | None = 8) -> list[str]:
    """What is wrong with dispatch and combine, of other numbers of tokens each time, and none on a rank."""
    tokens_of = [[0, 7, 3, 8], [5, 5, 5, 5], [8, 1, 0, 2]]
    op = DispatchCombine(
        group=dist.group.WORLD, device="cpu", world_size=world, rank=rank, max_tokens=8, experts=2 * world, topk=4,
        hidden=136, dtype=torch.bfloat16, scale_bytes=16, result_dtype=torch.float32,
        blocks=blocks,
    )  # fmt: skip
    wrong = [name for seed in seeds for name in _round(op, rank, world, tokens_of[seed % 3], seed)]
    op.close()
    return wrong


def _round(op: DispatchCombine, rank: int, world: int, tokens_of: list[int], seed: int) -> list[str]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(world, 8, 136, generator=generator).bfloat16()
    indices = torch.stack([torch.randperm(2 * world, generator=generator)[:4] for _ in range(world * 8)])
    indices = indices.view(world, 8, 4).int()
    indices[:, 1] = -1  # nobody's
    indices[0, 0, 2] = 2 * world
    if seed == 3:  # all tokens choose one expert
        indices[:, :, 0], indices[:, :, 1:] = 1, -1
    weights = torch.rand(world, 8, 4, generator=generator)
    scales = torch.rand(world, 8, 4, generator=generator)
    n = tokens_of[rank]
    received = op.dispatch(*(t[rank, :n].contiguous() for t in (tokens, indices, weights, scales)))

    sources = received.sources.long()
    here = [r * 8 + t for r in range(world) for t in range(tokens_of[r]) if _is_for(indices[r, t], rank)]
    wrong = [] if sorted(sources.tolist()) == here else [f"rows of seed {seed}: {sources.tolist()}, not {here}"]
    for name, sent in {"tokens": tokens, "indices": indices, "weights": weights, "scales": scales}.items():
        if not torch.equal(getattr(received, name), sent.flatten(0, 1)[sources]):
            wrong.append(f"{name} of seed {seed}")

    out = op.combine(received.tokens.float() * (rank + 1))
    factors = [sum(other + 1 for other in range(world) if _is_for(indices[rank, t], other)) for t in range(n)]
    wanted = tokens[rank, :n].float() * torch.tensor(factors, dtype=torch.float32).view(n, 1)
    return wrong if torch.allclose(out, wanted, rtol=1e-6) else [*wrong, f"sums of seed {seed}"]


def _is_for(indices: torch.Tensor, rank: int) -> bool:
    """True for a token that has one of a rank's two experts."""
    return bool(((indices == 2 * rank) | (indices == 2 * rank + 1)).any())
