"""The common parts of layernorm and rmsnorm: one kernel for both, with an optional addition before and 8 bits after.

    a = x + residual, rounded, which is stored too          fused add
    y = (a - mean(a)) / sqrt(var(a) + 1e-5) * gamma + beta  layernorm
    y = a / sqrt(mean(a^2) + 1e-5) * gamma                  rmsnorm
    q = y [* x_scale] / s, s = max |y| / largest            quantised, one s per row

A row stays in registers from the addition to the quantisation (`kernels.rows`), so each variant reads its operands
once, and has one barrier for each of mean, variance and maximum. The variance is that of the differences to the mean:
no digits are lost where the mean is large. Between a rounded `a` and the result, everything is f32. gamma, beta and
x_scale come from the cache, a tile ahead of the stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import FLOATS, element_type, require, rounded
from kernels.launches import launcher, tuned
from kernels.quant import quantised, require_codes, store_scale
from kernels.rows import THREADS, Row, RowMemory, Tiling
from kernels.sizes import require_elements, require_rows

DTYPES = ("f32", "f16", "bf16")
# (M, N): a wave for each row, one element, partial vectors, one row, a tail in a block, a whole block.
SHAPES = ((5, 256), (3, 1), (4, 7), (33, 100), (1, 2000), (2, 4099), (2, 8192))
EPSILON = 1e-5
QUANTS = (None, "i8", "fp8")
MATRICES = ("Input", "ResidualIn", "Output", "ResidualOut")


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A variant.

    dtype: of the matrices, a type or its short name. mean: layernorm. residual: with the fused addition. smooth: with
    x_scale. quant: None, "i8" or "fp8". threads: of a row, by default as `Tiling.of` chooses them.
    """

    columns: int
    dtype: Any
    mean: bool
    residual: bool = False
    smooth: bool = False
    quant: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        require(self.quant in QUANTS, f"quantisation to {self.quant!r}", 'quant_dtype_str is "i8" or "fp8"')

    @property
    def element(self) -> Any:
        """The type of the matrices, but for a quantised result."""
        return element_type(self.dtype) if isinstance(self.dtype, str) else self.dtype

    @property
    def tiling(self) -> Tiling:
        return Tiling.of(self.columns, self.element, self.threads)

    @property
    def name(self) -> str:
        """The name of the kernel: fused_add_rmsnorm_smoothquant, ..."""
        quant = f"_{'smooth' if self.smooth else 'dynamic'}quant" if self.quant else ""
        return f"{'fused_add_' * self.residual}{'layer' if self.mean else 'rms'}norm{quant}"

    def tensors(self) -> Iterator[str]:
        """The launcher's tensors in their order."""
        yield "Input"
        yield from ("ResidualIn",) * self.residual
        yield "Gamma"
        yield from ("Beta",) * self.mean
        yield from ("XScale",) * self.smooth
        yield "Output"
        yield from ("ResidualOut",) * self.residual
        yield from ("YScale",) * bool(self.quant)


@flyc.kernel
def norm_kernel(tensors: Any, m: fx.Int32, norm: fx.Constexpr[Norm]) -> None:
    """The rows below m. tensors: by the names of `Norm.tensors`."""
    tiling = norm.tiling
    if norm.quant:
        require_codes(tensors["Output"], norm.quant, tensors["YScale"])
    row, _ = tiling.place()
    if tiling.rows == 1 or row < m:
        memory = {name: RowMemory(t, tiling, row if name in MATRICES else None) for name, t in tensors.items()}
        x = memory["Input"].row()
        if norm.residual:
            total = x.map(lambda a, b: rounded(a + b, norm.element), memory["ResidualIn"].row())
            x = total.store(memory["ResidualOut"]).map(lambda v: v.to(fx.Float32))
        y = normalised(x, memory, norm)
        if norm.quant:
            y, scale = quantised(y, norm.quant)
            store_scale(tensors["YScale"], row, scale, tiling)
        y.store(memory["Output"])


def normalised(x: Row, memory: dict[str, RowMemory], norm: Norm) -> Row:
    """The normalised row in f32, with gamma, beta and x_scale."""
    if norm.mean:
        mean = x.fold("add") * (1 / norm.columns)
        x = x.map(lambda v: v - mean).filled(0.0)
    squares = x.fold("add", lambda total, v: fx.fma(v, v, total))
    factor = fx.rocdl.rsq(squares * (1 / norm.columns) + EPSILON)
    if norm.mean:
        y = x.map(lambda v, g, b: fx.fma(v * factor, g, b), memory["Gamma"].row(), memory["Beta"].row())
    else:
        y = x.map(lambda v, gamma: v * factor * gamma, memory["Gamma"].row())
    return y.map(lambda v, scale: v * scale, memory["XScale"].row()) if norm.smooth else y


@cache
def build(norm: Norm) -> Any:
    """The launcher of a variant: its tensors in the order of `Norm.tensors`, m_in, stream."""
    norm.tiling  # noqa: B018 - raises where rows are too long
    return launcher(f"launch_{norm.name}", " ".join(norm.tensors()), partial(launch_norm, norm), m_in=fx.Int32)


def builder(mean: bool, residual: bool = False, quant: str = "") -> Any:
    """The function (M, N, dtype_str) that builds a variant; quant: dynamic or smooth, with quant_dtype_str."""

    def plain(M: int, N: int, dtype_str: str) -> Any:
        return build(Norm(columns=N, dtype=dtype_str, mean=mean, residual=residual))

    def quantising(M: int, N: int, dtype_str: str, quant_dtype_str: str = "i8") -> Any:
        smooth = quant == "smooth"
        return build(
            Norm(columns=N, dtype=dtype_str, mean=mean, residual=residual, smooth=smooth, quant=quant_dtype_str)
        )

    tensors = Norm(
        columns=1, dtype="f32", mean=mean, residual=residual, smooth=quant == "smooth", quant="i8" if quant else None
    ).tensors()
    function = quantising if quant else plain
    function.__doc__ = f"The launcher ({', '.join(tensors)}, m_in, stream). M: rows that are expected; m_in counts."
    return function


def launch_norm(norm: Norm, tensors: dict[str, Any], m: Any, stream: Any) -> None:
    """Launch the kernel for m rows, inside a launcher."""
    for name, tensor in tensors.items():
        if name in MATRICES:
            is_code = norm.quant and name == "Output"
            require_rows(name, tensor, m, norm.columns, *(() if is_code else (norm.element,)), apart=True)
        elif name == "YScale":
            require_elements(name, tensor, m, or_more=True)
        else:
            require_elements(name, tensor, norm.columns, *FLOATS)
    norm.tiling.launch(norm_kernel(tensors, m, norm), m, stream)


def tuned_norm(name: str, mean: bool) -> Any:
    """The launcher (tensors ..., columns, stream), with the number of threads of a row chosen by measurement."""

    def launch(tensors: dict[str, Any], columns: int, threads: int, stream: Any) -> None:
        x = tensors["Input"]
        launch_norm(
            Norm(columns=columns, dtype=x.dtype, mean=mean, threads=threads), tensors, fx.get_scalar(x.shape[0]), stream
        )

    tensors = " ".join(Norm(columns=1, dtype="f32", mean=mean).tensors())
    return tuned(name, tensors, launch, ["columns"], [{"threads": n} for n in THREADS], columns=int)


def reference(norm: Norm, x: Any, gamma: Any, beta: Any = None, residual: Any = None, x_scale: Any = None) -> Any:
    """(y in f32, a): what torch's operations give before the result is rounded or quantised."""
    a = x if residual is None else (x.float() + residual.float()).to(x.dtype)
    v = a.double() - (a.double().mean(-1, keepdim=True) if norm.mean else 0)
    y = v * (v.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * gamma.double()
    if beta is not None:
        y = y + beta.double()
    return (y if x_scale is None else y * x_scale.double()).float(), a
