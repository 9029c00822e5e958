"""C = A B^T with B shuffled beforehand, for every element type that the matrix instructions have.

    launch = compile_preshuffle_gemm_a8(K=8192, tile_m=64, tile_n=256, tile_k=128, in_dtype="fp8", out_dtype="bf16")
    launch(C, A, shuffle_weight(B), scale_a, scale_b, bias, M, N)

| in_dtype | A | B | C |
|---|---|---|---|
| fp8, int8 | fp8 or i8 | the same | (A B^T) * scale_a[m] * scale_b[n] |
| int4 | i8 | 4 bits, `pack_int4` | the same |
| fp16, bf16 | 16 bits | the same | A B^T |
| fp4, fp6 | fp4, or fp6 in 8 bits | fp4 | A B^T, 32 values along K share a scale: E8M0, `shuffle_scale`; CDNA 4 |
| mxfp8 | fp8 | fp8 | the same |

A workgroup of four waves computes tile_m x tile_n. Its rows of A are in shared memory, swizzled, in one buffer or two;
each wave loads its own columns of B into registers. While a tile of K is multiplied, the next one is on its way, and
the scheduler is told to put memory accesses between matrix instructions. `mfma_preshuffle_pipeline` has the parts,
`shuffles` what puts B and scales in order. With split_k, so many workgroups share a tile of C, each with a part of K
(`split_sums`).

128 x 128 x 128 of fp8: 140 VGPRs, 64 of which hold sums and 32 two tiles of B; two workgroups share a compute unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from math import gcd
from typing import Any, NamedTuple

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import get_arch
from flydsl.runtime.device import target_arch
from kernels import mfma_preshuffle_pipeline as pipeline
from kernels.kernels_common import bytes_of, ceil_div, require
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.layout_utils import swizzled_blocks
from kernels.mfma_epilogues import ACTIVATIONS, TileC, activated
from kernels.mfma_preshuffle_pipeline import TileA, TileB, Tiling, require_types
from kernels.mfma_products import BITS, MICRO_SCALED, THREADS, W4A16
from kernels.sizes import require_elements, require_least, require_rows
from kernels.split_sums import add_pairs, begin_tile, wait_for_tile, words_left_at_zero, words_of
from kernels.tuned import Candidate, divisor_near, fastest, fitting, part_of, searched
from kernels.tuned.rough_time import Workgroup

TENSORS = "C A B scale_a scale_b bias"
OUT_TYPES = {"fp16": fx.Float16, "bf16": fx.BFloat16}
# (M, N, K): one row, a partial tile, several tiles, an odd number of tiles along K.
SHAPES = ((1, 128, 512), (33, 128, 768), (130, 256, 1024))


def reference(
    A: Any, B: Any, scale_a: Any = None, scale_b: Any = None, *, bias: Any = None, epilogue: str = "none"
) -> Any:
    """The result of torch in f32. A (M, K) and B (N, K) as numbers; scales of A's rows and of B's; bias: (N)."""
    import torch
    import torch.nn.functional as f

    result = A.float() @ B.float().T
    if scale_a is not None:
        result = result * scale_a[:, None] * scale_b
    activations = {"relu": torch.relu, "silu": f.silu, "gelu": lambda x: f.gelu(x, approximate="tanh")}
    return result if epilogue == "none" else activations.get(epilogue[5:], lambda x: x)(result + bias.float())


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters; see `compile_preshuffle_gemm_a8`. Raises ArgumentError where sizes do not fit."""

    tiling: Tiling
    n: int
    out_dtype: str
    cshuffle: bool = False
    asynchronous: bool = False
    ahead: tuple[int, int] = (2, 0)
    epilogue: str = "none"
    xcd_swizzle: int = 0
    split_k: int = 1

    def __post_init__(self) -> None:
        tiling, room = self.tiling, self.tiling.stages * self.tiling.a_bytes
        require(tiling.dtype != W4A16, f"in_dtype={W4A16!r}", "one of the types above; moe_gemm_2stage has it")
        require(self.n >= 0 and self.n % tiling.tile_n == 0, f"N={self.n}", f"a multiple of tile_n={tiling.tile_n}")
        require(self.out_dtype in OUT_TYPES, f"out_dtype={self.out_dtype!r}", f"one of {', '.join(OUT_TYPES)}")
        require(self.epilogue in ACTIVATIONS, f"epilogue={self.epilogue!r}", f"one of {', '.join(ACTIVATIONS)}")
        only_one = self.epilogue == "none" or not self.cshuffle
        require(only_one, f"epilogue={self.epilogue!r} with use_cshuffle_epilog", "one of both")
        c_bytes = 2 * tiling.tile_m * tiling.tile_n
        for option, through in (("use_cshuffle_epilog", self.cshuffle), (f"split_k={self.split_k}", self.split_k > 1)):
            require(not through or c_bytes <= room, f"{option} with {room} bytes of A", f"C takes {c_bytes}")
        require(self.xcd_swizzle >= 0, f"xcd_swizzle={self.xcd_swizzle}", "0 or more")
        require(self.split_k > 0 and tiling.tiles_k % self.split_k == 0, f"split_k={self.split_k}",
                f"a divisor of the {tiling.tiles_k} tiles along K")  # fmt: skip
        whole = tiling.dtype not in MICRO_SCALED and self.epilogue == "none" and not self.cshuffle
        require(self.split_k == 1 or whole, f"split_k={self.split_k}",
                "1 with micro-scales, with an epilogue, and with use_cshuffle_epilog")  # fmt: skip

    @property
    def out(self) -> Any:
        """The type of C."""
        return OUT_TYPES[self.out_dtype]

    @property
    def row_scales(self) -> bool:
        """True if C is multiplied by scales of rows and columns."""
        return self.tiling.dtype in ("fp8", "int8", "int4")

    def require_tensors(self, tensors: dict[str, Any], M: Any, N: int) -> None:
        """Refuse tensors of other types and sizes than the launch's."""
        scale_a, scale_b, k = tensors["scale_a"], tensors["scale_b"], self.tiling.k
        require_product(self.tiling.dtype, self.out, tensors, M, N, k, self.row_scales)
        if self.tiling.dtype in MICRO_SCALED:
            kinds = bytes_of(fx.Float8E8M0FNU)
            require_elements("scale_a", scale_a, (M + 31) // 32 * k, *kinds, or_more=True)
            require_elements("scale_b", scale_b, N // 32 * k, *kinds, or_more=True)
        if self.epilogue != "none":
            require_elements("bias", tensors["bias"], N, self.out)
        if self.split_k > 1:
            tiles_m = (M + self.tiling.tile_m - 1) // self.tiling.tile_m
            require_least(tensors, signal=(fx.Int32, tiles_m * (N // self.tiling.tile_n)))

    def operands(self, tensors: Any, M: Any, N: int) -> tuple[pipeline.Product, Any, TileA, TileB, TileC]:
        """(product, place, A, B, C) of a workgroup's tile."""
        tiling, product, place = self.tiling, self.tiling.product(), tile_place(self, N)
        a, b = TileA(tiling, product, tensors["A"], M, place[0]), TileB(tiling, product, tensors["B"], place[1])
        tile = (tiling.tile_m, tiling.tile_n)
        return product, place, a, b, TileC(tensors["C"], self.out, M, N, tile, place, tiling.wave_tile)


def require_product(
    dtype: str, out: Any, tensors: dict[str, Any], M: Any, N: int, K: int, row_scales: bool = False
) -> None:
    """Raise ArgumentError where A, B, C, and with row_scales the scales, are of other types and sizes."""
    a_bits, b_bits = BITS[dtype]
    require_types(dtype, tensors["A"], tensors["B"])
    require_rows("C", tensors["C"], M, N, out)
    require_rows("A", tensors["A"], M, K, bits=a_bits)
    require_elements("B", tensors["B"], N * K, bits=b_bits)
    if row_scales:
        require_elements("scale_a", tensors["scale_a"], M, fx.Float32, or_more=True)
        require_elements("scale_b", tensors["scale_b"], N, fx.Float32)


@flyc.kernel
def preshuffle_gemm_kernel(tensors: Any, M: fx.Int32, N: fx.Constexpr[int], plan: fx.Constexpr[Plan]) -> None:
    """One tile of C, or a part of its sums. tensors: by the names of TENSORS, and with split_k `signal`."""
    compute_tile(tensors, M, N, plan)


def compute_tile(tensors: Any, M: Any, N: int, plan: Plan) -> None:
    """The body of the kernel: the tile of a workgroup."""
    scale_a, scale_b, bias = (tensors[name] for name in ("scale_a", "scale_b", "bias"))
    product, place, a, b, c = plan.operands(tensors, M, N)
    part: Any = fx.Int32(fx.block_idx.z) if plan.split_k > 1 else 0
    signal: Any = None
    if plan.split_k > 1:
        signal = fx.get_iter(tensors["signal"]) + (place[0] * (N // plan.tiling.tile_n) + place[1])
        begin_tile(c, part, THREADS, signal)
    micro = pipeline.MxScales(plan.tiling, scale_a, scale_b, M, N, place) if plan.tiling.dtype in MICRO_SCALED else None

    def multiply(acc: Any, now_b: Any, now_scales: Any, fragment: Any, stage: int) -> Any:
        chosen = None if micro is None else micro.chooser(now_scales, stage)
        return pipeline.multiply_groups(b, acc, now_b, fragment, chosen)

    acc = pipeline.main_loop(
        a, b, product.tile_of_zeros(plan.tiling), multiply, scales=pipeline.no_scales if micro is None else micro.load,
        asynchronous=plan.asynchronous, hints=not plan.asynchronous, ahead=plan.ahead, part=(part, plan.split_k),
    )  # fmt: skip
    result = with_scales(plan, c, acc, scale_a, scale_b, bias, M)
    if plan.split_k == 1:
        c.store(result, a.buffer if plan.cshuffle else None)
    else:
        wait_for_tile(signal, plan.split_k)
        c.store_through(a.buffer, result, e_vec=2, lanes=32, put=partial(add_to_tile, tensors["C"], M, N, c))


def add_to_tile(C: Any, M: Any, N: int, c: TileC, row: Any, column: Any, values: Any) -> None:
    """Add consecutive elements of a row of the tile to C."""
    add_pairs(C, M, N, c.first_row + row, column, fx.Vector(values))


def tile_place(plan: Plan, N: int) -> tuple[Any, Any]:
    """The tile's numbers along M and N."""
    if not plan.xcd_swizzle:
        return fx.block_idx.x, fx.block_idx.y
    block = fx.block_idx.x + fx.block_idx.y * fx.grid_dim.x
    columns = N // plan.tiling.tile_n
    return swizzled_blocks(fx.Int32(block), fx.Int32(fx.grid_dim.x) * columns, columns, plan.xcd_swizzle)


def with_scales(plan: Plan, c: TileC, acc: Any, scale_a: Any, scale_b: Any, bias: Any, M: Any) -> Any:
    """(mi, ni, ii) -> the element of C before it is rounded."""
    if plan.row_scales:
        # unpack_int4 gives 16 times the weights.
        factor = 1 / 16 if plan.tiling.dtype == "int4" else 1.0
        of_columns = [scale * factor for scale in c.of_columns(scale_b, fx.Float32)]
        of_rows = c.of_rows(scale_a, M)
    biases = c.of_columns(bias, plan.out) if plan.epilogue != "none" else []

    def result(mi: int, ni: int, ii: int) -> Any:
        value = acc[mi][ni][ii]
        if plan.row_scales:
            value = value.to(fx.Float32) * of_rows[mi][ii] * of_columns[ni]
        return activated(value + biases[ni].to(fx.Float32), plan.epilogue) if biases else value

    return result


@cache
def compile_preshuffle_gemm_a8(
    *, M: int = 0, N: int = 0, K: int, tile_m: int, tile_n: int, tile_k: int, in_dtype: str = "fp8",
    out_dtype: str = "fp16", lds_stage: int = 2, use_cshuffle_epilog: bool = False, waves_per_eu: int | None = None,
    use_async_copy: bool = False, dsrd_preload: int = -1, dvmem_preload: int = -1, epilogue: str = "none",
    xcd_swizzle: int = 0, split_k: int = 1,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, scale_a, scale_b, bias, M, N, stream), every tensor flattened to one dimension.

    M, N: 0 if they may be any; a launcher's N is known at compile time, and a multiple of tile_n. K is a multiple
    of tile_k. lds_stage: buffers of A in shared memory. use_cshuffle_epilog: C goes through shared memory, so that a
    thread stores several columns at a time. use_async_copy: A goes past the registers. waves_per_eu: waves per SIMD
    that registers are allocated for. dsrd_preload, dvmem_preload: reads of shared and of global memory before the first
    matrix instruction of a tile; -1 for a good choice. epilogue: bias, bias_relu, bias_silu or bias_gelu, where bias
    has C's type. xcd_swizzle: tiles along M that the workgroups of one die take for each tile along N; 0 for no order.
    split_k: workgroups that share a tile, along K; with more than one, `signal` follows bias, of a word for each tile.
    Raises ArgumentError where sizes do not fit.
    """
    tiling = Tiling(dtype=in_dtype, k=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k, stages=lds_stage)
    ahead = (2 if dsrd_preload < 0 else dsrd_preload, max(0, dvmem_preload))
    plan = Plan(
        tiling=tiling,
        n=N,
        out_dtype=out_dtype,
        cshuffle=use_cshuffle_epilog,
        asynchronous=use_async_copy,
        ahead=ahead,
        epilogue=epilogue,
        xcd_swizzle=xcd_swizzle,
        split_k=split_k,
    )
    launch = partial(launch_tiles, preshuffle_gemm_kernel, plan, waves_per_eu)
    tensors = TENSORS if split_k == 1 else f"{TENSORS} signal"
    return launcher("launch_preshuffle_gemm", tensors, launch, M=fx.Int32, N=int)


class Tile(NamedTuple):
    """The options that depend on the size: those of `compile_preshuffle_gemm_a8`, and row_bytes, of A along K."""

    tile_m: int
    tile_n: int
    row_bytes: int
    lds_stage: int = 2
    use_async_copy: bool = False
    xcd_swizzle: int = 0
    split_k: int = 1

    def options(self, dtype: str) -> dict[str, Any]:
        """The options of `compile_preshuffle_gemm_a8`."""
        named = self._asdict()
        return named | {"tile_k": named.pop("row_bytes") * 8 // BITS[dtype][0]}

    def plan(self, n: int, k: int, in_dtype: str, out_dtype: str) -> Plan:
        """The plan of a product. ArgumentError for sizes that the tile does not fit."""
        tile_k = self.row_bytes * 8 // BITS[in_dtype][0]
        tiling = Tiling(
            dtype=in_dtype, k=k, tile_m=self.tile_m, tile_n=self.tile_n, tile_k=tile_k, stages=self.lds_stage
        )
        return Plan(
            tiling=tiling,
            n=n,
            out_dtype=out_dtype,
            asynchronous=self.use_async_copy,
            xcd_swizzle=self.xcd_swizzle,
            split_k=self.split_k,
        )

    def narrowed(self, n: int, k: int, dtype: str, lds_bytes: int) -> Tile:
        """The tile with as many columns, as much of K and as many parts of K as divide the product's.

        lds_bytes: what a workgroup may have. ArgumentError if the tile does not fit.
        """
        k_bytes = k * BITS[dtype][0] // 8
        # Of A's tile, each thread loads 16 bytes at a time.
        row_bytes = part_of(k_bytes, self.row_bytes, max(64, 16 * THREADS // gcd(16 * THREADS, self.tile_m)))
        split_k = 1 if dtype in MICRO_SCALED else divisor_near(k_bytes // row_bytes, self.split_k)
        tile = self._replace(tile_n=gcd(self.tile_n, n), row_bytes=row_bytes, split_k=split_k)
        tiling = tile.plan(n, k, dtype, "bf16").tiling
        room = tiling.stages * tiling.a_bytes
        require(room <= lds_bytes, f"{room} bytes of LDS for {tile}", f"{lds_bytes} or less")
        return tile

    def work(self, k: int, dtype: str) -> Workgroup:
        """The work of a workgroup, for `rough_time_us`."""
        return Workgroup(
            tile=(self.tile_m, self.tile_n), waves=(1, 4, 1), k_bytes=k * BITS[dtype][0] // 8 // self.split_k,
            step_bytes=self.row_bytes, parts=self.split_k, ahead=1, b_to_lds=False,
            lds_bytes=self.lds_stage * self.tile_m * self.row_bytes, group=self.xcd_swizzle, by_rows=False,
        )  # fmt: skip


def default_tile(m: int, n: int, k: int, device: str = "cpu", in_dtype: str = "fp8") -> dict[str, Any]:
    """The options of `compile_preshuffle_gemm_a8` for a size, by the model of time.

    For the GPU that the tensors are on, they are those that a search found for the size, or of all that were found the
    fastest by a rough time (`kernels.tuned`). device: of the tensors. ArgumentError for a size that none of the tiles
    fits. Where split_k is more than 1, the launcher takes `signal` as well; `preshuffle_gemm` has one.

        launch = compile_preshuffle_gemm_a8(K=k, in_dtype="fp8", out_dtype="bf16", **default_tile(m, n, k))
    """
    require(in_dtype in BITS, f"in_dtype={in_dtype!r}", f"one of {', '.join(BITS)}")
    return tile_of(m, n, k, in_dtype, target_arch(device)).options(in_dtype)


@cache
def tile_of(m: int, n: int, k: int, dtype: str, arch: str) -> Tile:
    """The tile of `default_tile`, for a GPU by its name."""
    bits = BITS[dtype][0]
    kind = "bf16" if bits == 16 else "fp8"
    found = searched("preshuffle_gemm", arch, kind, (m, n, k)) if BITS[dtype] == BITS[kind] else None
    if found:
        return Tile(**found)
    return fastest("preshuffle_gemm", arch, kind, (m, n, k), bits, _tiles_for(n, k, dtype, kind, arch))


@cache
def _tiles_for(n: int, k: int, dtype: str, kind: str, arch: str) -> tuple[Candidate[Tile], ...]:
    room = get_arch(arch).lds_bytes_per_workgroup

    def fit(options: dict[str, Any]) -> tuple[Tile, Workgroup]:
        tile = Tile(**options).narrowed(n, k, dtype, room)
        return tile, tile.work(k, dtype)

    return fitting("preshuffle_gemm", arch, kind, "split_k", fit)


def launch_tiles(
    kernel: Any, plan: Plan, waves_per_eu: int | None, tensors: dict[str, Any], M: Any, N: int, stream: Any
) -> None:
    """Launch a workgroup for each tile of C, inside a launcher."""
    tile_m, tile_n = plan.tiling.tile_m, plan.tiling.tile_n
    require(N > 0 and N % tile_n == 0, f"N={N}", f"a multiple of tile_n={tile_n}")
    require(plan.n in (0, N), f"N={N}", f"this launcher was compiled for N={plan.n}")
    plan.require_tensors(tensors, M, N)
    grid = ((M + tile_m - 1) // tile_m, N // tile_n, plan.split_k)
    launch_some(kernel(tensors, M, N, plan, value_attrs=for_waves(waves_per_eu)), M, grid, THREADS, stream)


def compile_preshuffle_gemm_w4(*, a_dtype: str = "fp4", **sizes: Any) -> Any:
    """The launcher of a product of fp4 weights. sizes: as of `compile_preshuffle_gemm_a8`. a_dtype: fp4 or fp8."""
    kinds = {"fp4": "fp4", "fp8": "fp8_fp4", "fp6": "fp6"}
    require(a_dtype in kinds, f"a_dtype={a_dtype!r}", "fp4 or fp8")
    return compile_preshuffle_gemm_a8(in_dtype=kinds[a_dtype], **{"dsrd_preload": 2, "dvmem_preload": 2, **sizes})


# The launcher of a product of fp6 and fp4 weights.
compile_preshuffle_gemm_a6w4 = partial(compile_preshuffle_gemm_w4, a_dtype="fp6")


_TILES = tuple(
    Tile(*sizes)
    for sizes in ((16, 64, 512), (32, 64, 256), (32, 128, 128), (64, 64, 256), (64, 128, 128), (128, 128, 128))
)


def _default(C: Any, A: Any, B: Any, scale_a: Any, scale_b: Any, bias: Any, signal: Any, M: int, N: int, K: int,
             in_dtype: str, *_: Any, **__: Any) -> Tile:  # fmt: skip
    return tile_of(M, N, K, in_dtype, target_arch(str(C.device)))


@chosen(f"{TENSORS} signal", "M N K in_dtype", _TILES, default=_default)
def preshuffle_gemm_of_size(
    tensors: dict[str, Any], M: fx.Int32, N: int, K: int, in_dtype: str, out_dtype: str, tile: Any, stream: Any
) -> None:
    """`preshuffle_gemm` with words that are 0."""
    plan = tile.plan(N, K, in_dtype, out_dtype)
    taken = tensors if plan.split_k > 1 else {name: x for name, x in tensors.items() if name != "signal"}
    launch_tiles(preshuffle_gemm_kernel, plan, None, taken, M, N, stream)


def preshuffle_gemm(
    C: Any, A: Any, B: Any, scale_a: Any, scale_b: Any, bias: Any, M: int, N: int, K: int, in_dtype: str,
    out_dtype: str, stream: Any = None,
) -> None:  # fmt: skip
    """The product with the tile of `default_tile`, or with FLYDSL_AUTOTUNE=1 the fastest of some.

    Where the tile splits K, parts are rounded to C's type before they are added, and their order may change.
    """
    words = words_of(C, ceil_div(M, 16) * ceil_div(N, 64), stream)
    sizes = (M, N, K, in_dtype, out_dtype)
    with words_left_at_zero():
        preshuffle_gemm_of_size(C, A, B, scale_a, scale_b, bias, words, *sizes, *([] if stream is None else [stream]))
