"""A causal convolution, a step or whole prompts: each channel of a sequence is a weighted sum of its last tokens.

    causal_conv1d(x, state, weight, bias, indices, out)
    causal_conv1d_prefill(x, state, weight, bias, indices, starts, initial, out, longest)

x, out: (B, L, D), L new tokens; state: (pool, W - 1, D), the tokens before them, which the last ones replace; weight:
(D, W); bias: (D), all of bf16 or f16. Channels lie side by side. Sequence i has row indices[i] (i32) of the pool, no
two the same one; where that is below 0, nothing happens. For each channel, with S the state and then the new tokens:

    y = bias + sum over i < W of weight[i] S[t + i],    out[t] = y / (1 + exp(-y)), or y with silu=False

Prompts lie one after the other: x, out are (T, D), sequence i has the rows starts[i] to starts[i + 1] (i32), and a
state of zeros where initial[i] (i32) is 0. A workgroup has CHUNK tokens of a sequence; the first of it alone reads and
replaces the state. What lies before or behind a sequence is out of range of its buffer, which reads 0 and is not
written: there is no branch for it.

This comes before the gated delta rule (`gdr_decode`) and state space models. A lane has neighbouring channels, whose
weights it reads at once; there is no shared memory and no barrier. W = 4, one token, two channels: about 110
instructions, 27 VGPRs, eight waves per SIMD; the time is that of a launch and one trip to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import dtype_str, element_type, require, require_array
from kernels.launches import launch_some, launcher, tuned
from kernels.mfma_epilogues import activated
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor

THREADS = 256
TENSORS = "x state weight bias indices out"
OF_PROMPTS = "x state weight bias indices starts initial out"
CHUNK = 16
WIDTHS = (2, 3, 4)
SHARINGS = (1, 2, 4)
# (B, L, D, W)
SHAPES = ((3, 1, 130, 4), (2, 3, 1024, 4), (1, 2, 62, 2))


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """The values known at compile time. tokens: of a sequence, or of prompts that a workgroup has. width: tokens of a
    sum; each: neighbouring channels of a lane. Raises ArgumentError where they do not fit."""

    dtype: str
    tokens: int
    channels: int
    width: int
    each: int
    silu: bool

    @property
    def history(self) -> int:
        """Tokens of a state."""
        return self.width - 1

    def __post_init__(self) -> None:
        require(self.dtype in ("bf16", "f16"), f"operands of {self.dtype}", "bf16 or f16")
        require(self.width in WIDTHS, f"sums of {self.width} tokens", "2 to 4")
        require(self.each in SHARINGS and self.channels % self.each == 0,
                f"{self.channels} channels, {self.each} of a lane", "1, 2 or 4, which divide them")  # fmt: skip


@flyc.kernel
def causal_conv1d_kernel(tensors: Any, spec: fx.Constexpr[Convolution]) -> None:
    """Some channels of a sequence. The grid: parts of the channels, sequences."""
    sequence = fx.block_idx.y
    channel = (fx.block_idx.x * THREADS + fx.thread_idx.x) * spec.each
    number = fx.rocdl.readfirstlane(tensors["indices"][sequence])
    if (number >= 0) & (channel < spec.channels):
        convolve(tensors, sequence, number, channel, spec)


def convolve(tensors: Any, sequence: Any, number: Any, channel: Any, spec: Convolution) -> None:
    """Take the tokens of a lane's channels. number: of the state in the pool."""
    kind = element_type(spec.dtype)
    state_bytes = spec.history * spec.channels * (kind.width // 8)
    begin = fx.Int64(number) * state_bytes
    state = GTensor(tensors["state"], kind, (-1, spec.channels), base_byte_offset=begin, num_records_bytes=state_bytes)
    x, out = (GTensor(tensors[name], kind, (-1, spec.channels)) for name in ("x", "out"))
    first = sequence * spec.tokens
    window = [values(state, (i, channel), spec.each) for i in range(spec.history)]
    window += [values(x, (first + t, channel), spec.each) for t in range(spec.tokens)]
    convolve_window(tensors, window, lambda t: (first + t, channel), channel, out, spec)
    for i in range(spec.history):
        state.vec_store((i, channel), stored(window[spec.tokens + i], spec))


@flyc.kernel
def causal_conv1d_prefill_kernel(tensors: Any, spec: fx.Constexpr[Convolution]) -> None:
    """Some channels of a part of a prompt. The grid: parts of the channels, parts of the tokens, sequences."""
    sequence, first = fx.block_idx.z, fx.block_idx.y * spec.tokens
    channel = (fx.block_idx.x * THREADS + fx.thread_idx.x) * spec.each
    names = ("indices", "starts", "initial")
    number, start, initial = (fx.rocdl.readfirstlane(tensors[name][sequence]) for name in names)
    length = fx.rocdl.readfirstlane(tensors["starts"][sequence + 1]) - start
    if (number >= 0) & (channel < spec.channels) & (first < length):
        convolve_part(tensors, (number, initial), (start, length, first), channel, spec)


@flyc.jit
def convolve_part(tensors: Any, of_state: Any, place: Any, channel: Any, spec: Convolution) -> None:
    """Take some tokens of a lane's channels. of_state: its number in the pool, and whether it counts; place: the first
    row of the sequence, how many it has, and the first of them that is taken."""
    kind, (number, initial), (start, length, first) = element_type(spec.dtype), of_state, place
    row_bytes, history = spec.channels * (kind.width // 8), fx.Int32(spec.history)

    def rows_of(name: str, row: Any, rows: Any) -> GTensor:
        size = {"base_byte_offset": fx.Int64(row) * row_bytes, "num_records_bytes": rows * row_bytes}
        return GTensor(tensors[name], kind, (-1, spec.channels), **size)

    def rows_at(memory: GTensor, row: Any, count: int) -> list[Any]:
        return [values(memory, (row + t, channel), spec.each) for t in range(count)]

    is_first, here = first == 0, fx.min(length - first, fx.Int32(spec.tokens))
    x, out = rows_of("x", start + first, here), rows_of("out", start + first, here)
    pool = fx.Int64(number) * spec.history
    state = rows_of("state", pool, (is_first & (initial != 0)).select(history, 0))
    before = rows_of("x", start + is_first.select(0, first - history), is_first.select(0, history))
    pairs = zip(rows_at(state, 0, spec.history), rows_at(before, 0, spec.history), strict=True)
    window = [is_first.select(old, near) for old, near in pairs] + rows_at(x, 0, spec.tokens)
    convolve_window(tensors, window, lambda t: (t, channel), channel, out, spec)
    if is_first:
        count = fx.min(length, history)
        end = rows_of("x", start + (length - count), count)
        pairs = zip(rows_at(state, length, spec.history), rows_at(end, count - history, spec.history), strict=True)
        last = [(length + i < history).select(old, new) for i, (old, new) in enumerate(pairs)]
        new_state = rows_of("state", pool, history)
        for i, value in enumerate(last):
            new_state.vec_store((i, channel), stored(value, spec))


def convolve_window(
    tensors: Any, window: list[Any], place: Callable[[int], Any], channel: Any, out: GTensor, spec: Convolution
) -> None:
    """Write the sums of a lane's channels. window: their tokens, from the first sum's on; place(t): in out."""
    factors = taps(tensors["weight"], channel, spec)
    begins = values(GTensor(tensors["bias"], element_type(spec.dtype)), channel, spec.each)
    for t in range(spec.tokens):
        sums = begins
        for i in range(spec.width):
            sums = fx.fma(window[t + i], factors[i], sums)
        out.vec_store(place(t), stored(activated(sums, "silu" if spec.silu else "none"), spec))


def values(memory: GTensor, place: Any, count: int) -> Any:
    """A vector of neighbours, in f32."""
    found = memory.vec_load(place, count)
    return (fx.Vector.filled(1, found, memory.dtype) if count == 1 else found).to(fx.Float32)


def stored(values: Any, spec: Convolution) -> Any:
    """A lane's channels, rounded, as `vec_store` takes them."""
    rounded = values.to(element_type(spec.dtype))
    return rounded[0] if spec.each == 1 else rounded


def taps(weight: Any, channel: Any, spec: Convolution) -> list[Any]:
    """[token of the sum]: the weights of a lane's channels."""
    rows = GTensor(weight, element_type(spec.dtype), (-1, spec.width))
    each = 1 if spec.width == 3 else spec.width  # no instruction reads three
    of_channel = [
        [values(rows, (channel + i, first), each) for first in range(0, spec.width, each)] for i in range(spec.each)
    ]
    return [
        fx.Vector.from_elements([row[i // each][i % each] for row in of_channel], fx.Float32) for i in range(spec.width)
    ]


@cache
def build_causal_conv1d_module(
    channels: int, width: int = 4, *, dtype: str = "bf16", tokens: int = 1, silu: bool = True, each: int | None = None
) -> Any:
    """The launcher (x, state, weight, bias, indices, out, batch, stream), tensors flattened to one dimension.

    tokens: L, of each sequence. width: W, 2 to 4. each: channels of a lane, 1, 2 or 4; by default 2, or 1 where their
    number is odd. Raises ArgumentError where sizes do not fit.
    """
    each = each or (1 if channels % 2 else 2)
    spec = Convolution(dtype=dtype, tokens=tokens, channels=channels, width=width, each=each, silu=silu)
    return launcher("launch_causal_conv1d", TENSORS, partial(launch_channels, spec), batch=fx.Int32)


def launch_channels(spec: Convolution, tensors: dict[str, Any], batch: Any, stream: Any) -> None:
    """Launch the workgroups of each sequence, inside a launcher."""
    kind, rows = element_type(spec.dtype), batch * (spec.tokens * spec.channels)
    sizes = {"x": rows, "out": rows, "weight": spec.channels * spec.width, "bias": spec.channels}
    for name, count in sizes.items():
        require_elements(name, tensors[name], count, kind)
    require_elements("indices", tensors["indices"], batch, fx.Int32)
    require_rows("state", tensors["state"], 1, spec.history * spec.channels, kind)
    groups = -(-spec.channels // (THREADS * spec.each))
    launch_some(causal_conv1d_kernel(tensors, spec), batch, (groups, batch), THREADS, stream)


def launch_prompts(spec: Convolution, tensors: dict[str, Any], batch: Any, longest: Any, stream: Any) -> None:
    """Launch the workgroups of each part of a prompt, inside a launcher."""
    kind = element_type(spec.dtype)
    require_elements("weight", tensors["weight"], spec.channels * spec.width, kind)
    require_elements("bias", tensors["bias"], spec.channels, kind)
    require_rows("state", tensors["state"], 1, spec.history * spec.channels, kind)
    for name, count in (("indices", batch), ("initial", batch), ("starts", batch + 1)):
        require_elements(name, tensors[name], count, fx.Int32)
    groups, parts = -(-spec.channels // (THREADS * spec.each)), (longest + (spec.tokens - 1)) // spec.tokens
    kernel = causal_conv1d_prefill_kernel(tensors, spec)
    launch_some(kernel, batch * longest, (groups, parts, batch), THREADS, stream)


def launch_shared(tensors: dict[str, Any], batch: Any, spec: Convolution, each: int, stream: Any) -> None:
    """Launch with as many channels of a lane as are found to be the fastest."""
    launch_channels(replace(spec, each=each), tensors, batch, stream)


causal_conv1d_step = tuned(
    "causal_conv1d_step", TENSORS, launch_shared, ["spec"], [{"each": each} for each in SHARINGS], restore=["state"],
    batch=fx.Int32, spec=object,
)  # fmt: skip


def causal_conv1d(
    x: Any, state: Any, weight: Any, bias: Any, indices: Any, out: Any, *, stream: Any = None, **options: Any
) -> Any:
    """out, after each sequence's state has taken its tokens. options: of `build_causal_conv1d_module`."""
    require(x.ndim == 3 and weight.ndim == 2, f"x {tuple(x.shape)}, weight {tuple(weight.shape)}", "(B, L, D), (D, W)")
    batch, tokens, channels = x.shape
    require_operands(x, state, weight, bias, out)
    launch = build_causal_conv1d_module(channels, weight.shape[1], dtype=dtype_str(x), tokens=tokens, **options)
    launch(*(t.view(-1) for t in (x, state, weight, bias, indices, out)), batch, stream)
    return out


def require_operands(x: Any, state: Any, weight: Any, bias: Any, out: Any) -> None:
    """Refuse arrays of other types and shapes than x asks for."""
    channels, width = x.shape[-1], weight.shape[1]
    given = {"x": (x, x.shape), "out": (out, x.shape), "weight": (weight, (channels, width))}
    given |= {"bias": (bias, (channels,)), "state": (state, (state.shape[0], width - 1, channels))}
    for name, (tensor, shape) in given.items():
        require_array(name, tensor, x.dtype, tuple(shape))


@cache
def build_causal_conv1d_prefill_module(
    channels: int, width: int = 4, *, dtype: str = "bf16", tokens: int = CHUNK, silu: bool = True,
    each: int | None = None,
) -> Any:  # fmt: skip
    """The launcher (x, state, weight, bias, indices, starts, initial, out, batch, longest, stream), tensors flattened.

    longest: tokens of the longest prompt, or more. tokens: of a workgroup. The others, and what is raised, are as of
    `build_causal_conv1d_module`.
    """
    each = each or (1 if channels % 2 else 2)
    require(tokens >= width - 1, f"{tokens} tokens of a workgroup", f"as many as a state has, {width - 1}, or more")
    spec = Convolution(dtype=dtype, tokens=tokens, channels=channels, width=width, each=each, silu=silu)
    sizes = {"batch": fx.Int32, "longest": fx.Int32}
    return launcher("launch_causal_conv1d_prefill", OF_PROMPTS, partial(launch_prompts, spec), **sizes)


def causal_conv1d_prefill(
    x: Any, state: Any, weight: Any, bias: Any, indices: Any, starts: Any, initial: Any, out: Any, longest: int, *,
    stream: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """out, after each prompt's state has taken its tokens. options: of `build_causal_conv1d_prefill_module`."""
    require(x.ndim == weight.ndim == 2, f"x {tuple(x.shape)}, weight {tuple(weight.shape)}", "(T, D), (D, W)")
    require_operands(x, state, weight, bias, out)
    launch = build_causal_conv1d_prefill_module(x.shape[1], weight.shape[1], dtype=dtype_str(x), **options)
    launch(
        *(t.view(-1) for t in (x, state, weight, bias, indices, starts, initial, out)), len(indices), longest, stream
    )
    return out


def reference(x: Any, state: Any, weight: Any, bias: Any, indices: Any, silu: bool = True) -> tuple[Any, Any]:
    """(out, state), in torch and f32; rows of out of a sequence without a state are 0."""
    import torch

    new, out, width = state.float().clone(), torch.zeros_like(x, dtype=torch.float32), weight.shape[1]
    for i, number in enumerate(indices.tolist()):
        if number >= 0:
            window = torch.cat([new[number], x[i].float()])
            y = torch.stack([(row * weight.float().T).sum(0) for row in window.unfold(0, width, 1).transpose(1, 2)])
            y = y + bias.float()
            out[i] = y * y.sigmoid() if silu else y
            new[number] = window[-(width - 1) :]
    return out, new


def reference_prefill(
    x: Any, state: Any, weight: Any, bias: Any, indices: Any, starts: Any, initial: Any, silu: bool = True
) -> tuple[Any, Any]:
    """The same of prompts one after the other."""
    import torch

    new, out = state.float().clone(), torch.zeros_like(x, dtype=torch.float32)
    for i, (first, last) in enumerate(zip(starts.tolist(), starts.tolist()[1:], strict=False)):
        if indices[i] >= 0 and first < last:
            new[indices[i]] *= initial[i] != 0
            found, new = reference(x[None, first:last], new, weight, bias, indices[i : i + 1], silu)
            out[first:last] = found[0]
    return out, new
