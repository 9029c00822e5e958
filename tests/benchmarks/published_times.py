"""The model of time against times that were published of the same operation, of other kernels than ours.

python -m tests.benchmarks.published_times [rmsnorm, sorting or attention ...]

Unlike the rows of `timing_accuracy` these are of kernels whose tiles are not known, or which the library has otherwise:
the fastest of those that were compared is taken, and an error is that of the model and of the choice together.

- rmsnorm: ROCm/FlyDSL, pull request 848, comments of August and September 2026: bf16, on an MI308X and an MI350X; the
  fastest of FlyDSL's, aiter's in HIP and Triton's. Rows with an addition: ROCm/aiter, pull request 3747, June 2026, on
  an MI308X; of Composable Kernel's, too.
- sorting: ROCm/FlyDSL, pull request 540, May 2026: FlyDSL's sorting of a mixture's tokens, 9 of 257 experts each,
  in units of 32, on an MI350X; a graph that is replayed, so with what a launch of a graph costs.
- attention: ROCm/FlyDSL, pull requests 225 (`flash_attn_generic`, March 2026) and 629 (June 2026), and ROCm/aiter, pull
  request 3390 (May 2026, written in assembly), on an MI355X; head size 128, bf16.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from flydsl import env
from flydsl.arch.products import product_of
from flydsl.simulator import tracing
from flydsl.simulator.timing.session import Tracing
from flydsl.simulator.timing.trace import Unit
from flydsl.simulator.timing.utilisation import utilisation
from tests.benchmarks import amd_times
from tests.benchmarks.amd_times import Launch

SHOWN_UNITS = (Unit.MATRIX, Unit.VALU, Unit.TRANSCENDENTAL, Unit.LDS, Unit.VECTOR_MEMORY)


@dataclass(frozen=True)
class Published:
    """A published time. gpu: a name of `flydsl.arch.products`. execute: later launches need what earlier ones write."""

    family: str
    gpu: str
    size: str
    us: float
    make: Callable[[], Launch]
    execute: bool = False

    def modelled(self) -> Tracing:
        """The model's launches."""
        arch = product_of(self.gpu).arch
        with env.replaced({"ARCH": arch, "FLYDSL_GPU_ARCH": arch}):
            launch, arguments = self.make()
            with tracing(gpu=self.gpu, execute=self.execute) as traced:
                launch(*arguments)
        return traced


def tera_us(tera: float, batch: int, length: int, heads: int, causal: bool) -> float:
    """The time of an attention of so many TFLOPS, as they are counted: half as many operations with a causal mask."""
    return 4 * batch * heads * length**2 * 128 * (0.5 if causal else 1) / tera * 1e-6


def _norms() -> Iterator[Published]:
    times = {
        "MI350X": {
            512: {1: 1.91, 16: 2.67, 128: 2.72, 1024: 2.90, 8192: 5.52, 8193: 4.65, 32768: 11.44},
            1024: {1: 1.89, 16: 2.72, 128: 2.75},
        },
        "MI308X": {
            512: {1: 1.71, 16: 2.26, 128: 2.53, 1024: 3.26, 8192: 10.45, 8193: 10.34, 32768: 28.05},
            1024: {1: 1.83, 16: 2.43, 128: 2.63, 1024: 4.02, 8192: 17.43, 8193: 16.45, 32768: 51.05},
        },
    }
    for gpu, of_columns in times.items():
        for columns, of_rows in of_columns.items():
            for rows, us in of_rows.items():
                make = partial(amd_times.norm, rows, columns, "bf16", False, False)
                yield Published("rmsnorm", gpu, f"{rows} x {columns}", us, make)
    for columns, us in ((256, 2.72), (512, 2.70)):
        make = partial(amd_times.norm, 16, columns, "bf16", False, True)
        yield Published("rmsnorm", "MI308X", f"16 x {columns}, with an addition", us, make)


def _sorting() -> Iterator[Published]:
    for tokens, us in ((1, 9.7), (8, 9.8), (16, 10.7), (32, 13.5), (128, 13.5), (256, 13.8)):
        make = partial(amd_times.moe_sorting, tokens, 257, 9)
        yield Published("sorting", "MI350X", f"{tokens} tokens", us, make, execute=True)


def _attention() -> Iterator[Published]:
    def row(source: str, us: float, batch: int, length: int, heads: int, kv_heads: int, causal: bool) -> Published:
        size = f"{batch} x {length}, {heads}/{kv_heads} heads{', causal' if causal else ''} ({source})"
        make = partial(amd_times.attention, batch, length, heads, kv_heads, 128, "bf16", causal)
        return Published("attention", "MI355X", size, us, make)

    for length, us in ((128, 18.6), (256, 38.4), (512, 80.1)):
        yield row("FlyDSL", us, 8, length, 64, 64, True)
    yield row("FlyDSL", 10.1, 1, 128, 64, 64, True)
    for tera, batch, heads in ((928.4, 16, 16), (928.3, 4, 64)):
        yield row("FlyDSL's generic", tera_us(tera, batch, 8192, heads, True), batch, 8192, heads, heads, True)
    for tera, batch, length, heads, kv_heads, causal in (
        (1278, 4, 8192, 64, 8, True), (1390, 4, 8192, 64, 8, False),
        (1231, 1, 16384, 16, 16, True), (1333, 1, 16384, 16, 16, False),
    ):  # fmt: skip
        yield row("assembly", tera_us(tera, batch, length, heads, causal), batch, length, heads, kv_heads, causal)


FAMILIES: dict[str, Callable[[], Iterator[Published]]] = {
    "rmsnorm": _norms, "sorting": _sorting, "attention": _attention,
}  # fmt: skip


def shares(traced: Tracing) -> str:
    """How busy the units are in the launch that takes longest, of the time in which its first compute unit works."""
    longest = max(traced.launches, key=lambda launched: launched.time_us)
    busy = utilisation(longest.trace).busy
    return ", ".join(f"{unit.name.lower()} {busy.get(unit, 0.0):.0%}" for unit in SHOWN_UNITS)


def main(families: Sequence[str]) -> None:
    """Print each row, and of each family and GPU the median error, what 9 of 10 are within, and the bias."""
    for family in families or FAMILIES:
        found: dict[str, list[tuple[float, bool]]] = {}
        for row in FAMILIES[family]():
            traced = row.modelled()
            estimate, said = traced.estimate, traced.estimate.error_percent
            error = estimate.time_us / row.us - 1
            found.setdefault(row.gpu, []).append((error, said is not None and 100 * abs(error) <= said))
            print(f"{family}, {row.gpu}, {row.size}: {row.us:.2f} us, model {estimate} ({error:+.0%})", end="; ")
            print(shares(traced), flush=True)
        for gpu, pairs in found.items():
            errors, within = np.array(pairs).T
            parts = (np.median(abs(errors)), np.quantile(abs(errors), 0.9), np.median(errors), np.mean(within))
            print("|", " | ".join([family, gpu, str(len(pairs)), *(f"{part:+.0%}" for part in parts)]), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
