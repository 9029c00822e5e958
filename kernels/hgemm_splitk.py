"""C = A B^T of f16 or bf16 with B as it is, (N, K), where K may be split among workgroups.

    launch = compile_hgemm_kernel("bf16", n, k, TILE_M=16, TILE_N=64, TILE_K=128, SPLIT_K=14, BLOCK_M_WARPS=1)
    launch(C, A, B, bias, m, semaphore, signal)

With B_TO_LDS, tiles of A and B go straight to a ring of STAGES buffers in shared memory (`mfma_ring_pipeline`); without
it B goes to registers, as if it were shuffled, and A through one buffer or two (`mfma_preshuffle_pipeline`). C leaves
through shared memory, 16 bytes a thread. With BLOCK_K_WARPS each of so many waves has its part of every tile's K; their
sums are added in f32.

With SPLIT_K every workgroup adds its part, a pair of elements at a time, to a tile that one of them fills
(`split_sums`, which says what `signal` is; `semaphore` is unused). Without words, as of `small_m_hgemm`, a first kernel
fills C.

128 x 128 x 64 of f16 with two stages: 146 VGPRs, 64 of which hold sums; 64 KiB of shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any, NamedTuple

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import get_arch
from flydsl.runtime.device import target_arch
from kernels import preshuffle_gemm
from kernels.kernels_common import ceil_div, refusal, require, require_array
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.layout_utils import swizzled_blocks
from kernels.mfma_epilogues import TileC
from kernels.mfma_ring_pipeline import Ring, ring_sums
from kernels.sizes import require_elements, require_least, require_rows
from kernels.split_sums import add_pairs, begin_tile, wait_for_tile, words_left_at_zero, words_of
from kernels.tensor_shim import GTensor
from kernels.tuned import Candidate, divisor_near, fastest, fitting, part_of, searched
from kernels.tuned.rough_time import Workgroup

DTYPES = {"f16": "fp16", "fp16": "fp16", "bf16": "bf16"}
# (M, N, K)
SHAPES = ((1, 128, 256), (33, 128, 512), (130, 256, 384))
FILL_THREADS = 256


def reference(A: Any, B: Any, bias: Any = None) -> Any:
    """The result of torch in f32."""
    return preshuffle_gemm.reference(A, B, bias=bias, epilogue="none" if bias is None else "bias")


@dataclass(frozen=True, kw_only=True)
class Plan(Ring):
    """The compile-time parameters of a kernel; see `compile_hgemm_kernel`. Raises ArgumentError where sizes do not fit.

    tiles: tiles along N that a workgroup computes one after the other. has_words: workgroups that share a tile have a
    signal and a semaphore. add_vec: neighbouring elements that a lane adds to C, at least. With 2, 16 lanes add to the
    same 64 bytes at once; an atomic operation takes the L2 as long where fewer do. xcd_swizzle: tiles along M that the
    workgroups of a die take for each tile along N; 0 for no order.
    """

    n: int = 0
    has_bias: bool = False
    tiles: int = 1
    has_words: bool = False
    add_vec: int = 2
    xcd_swizzle: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        tile_m, tile_n, _ = self.tile
        require(self.n > 0 and self.n % tile_n == 0, f"n={self.n}", f"a multiple of TILE_N={tile_n}")
        require(self.add_vec in (2, 4, 8), f"ADD_VEC={self.add_vec}", "2, 4 or 8")
        require(self.e_vec > 0, f"a tile of {tile_m} x {tile_n}", f"rows that {self.threads} threads store evenly")

    @property
    def element(self) -> Any:
        """The type of all tensors."""
        return preshuffle_gemm.OUT_TYPES[self.dtype]

    @property
    def lds_bytes(self) -> int:
        """Shared memory: of the tiles, and then of C."""
        return max(super().lds_bytes, 2 * self.tile[0] * self.tile[1])

    @property
    def grid(self) -> int:
        """Workgroups along N."""
        return ceil_div(self.n, self.tile[1] * self.tiles)

    @property
    def e_vec(self) -> int:
        """Neighbouring elements of C of a lane: 16 bytes to store, to add as few as may be. 0 if none fits."""
        widths = (width for width in (2, 4, 8) if width >= self.add_vec) if self.split > 1 else (8, 4)
        return next((width for width in widths if self.tile[0] % (self.threads // self.lanes(width)) == 0), 0)

    def lanes(self, width: int) -> int:
        """Threads that share a row of the tile, each with so many elements at a time."""
        return gcd(self.tile[1] // width, self.threads)

    def words(self, m: Any) -> Any:
        """Tiles of C with m rows, each with a word of its own."""
        return (m + self.tile[0] - 1) // self.tile[0] * (self.n // self.tile[1])


@flyc.kernel
def fill_kernel(C: fx.Tensor, bias: fx.Tensor, m: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """Rows of C become the bias, or zeros."""
    out = GTensor(C, plan.element, (-1, plan.n), num_records_bytes=m * (plan.n * 2))
    column = (fx.block_idx.x * FILL_THREADS + fx.thread_idx.x) * 2
    value = fx.Vector.filled(2, 0, plan.element)
    if fx.const_expr(plan.has_bias):
        value = fx.Vector(GTensor(bias, plan.element, num_records_bytes=plan.n * 2).vec_load(column, 2))
    if column < plan.n:
        out.vec_store((fx.block_idx.y, column), value)


@flyc.kernel
def hgemm_kernel(tensors: Any, m: fx.Int32, tiles_k: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """Tiles of C, or a part of their sums. tiles_k: the plan's; as an argument it keeps a short loop a loop."""
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    row, column = fx.block_idx.x // plan.grid, fx.block_idx.x % plan.grid
    if plan.xcd_swizzle:
        blocks = fx.Int32(fx.grid_dim.x)
        row, column = swizzled_blocks(fx.Int32(fx.block_idx.x), blocks, plan.grid, plan.xcd_swizzle)
    if plan.tiles == 1:
        tile_of_c(tensors, m, tiles_k, plan, (row, column), shared)
    else:
        first, last = column * plan.tiles, plan.n // plan.tile[1]
        for number in range(first, (first + plan.tiles < last).select(first + plan.tiles, last)):
            tile_of_c(tensors, m, tiles_k, plan, (row, number), shared)
            fx.gpu.barrier()


def tile_of_c(tensors: Any, m: Any, tiles_k: Any, plan: Plan, place: tuple[Any, Any], shared: Any) -> None:
    """One tile of C. place: its numbers along M and N."""
    C, A, B, bias = (tensors[name] for name in ("C", "A", "B", "bias"))
    product, a, b = plan.operands(A, B, m, plan.n, place, shared)
    wave = None if plan.waves[2] == 1 else plan.number_of_share()
    c = TileC(C, plan.element, m, plan.n, plan.tile[:2], place, plan.share_tile, wave)
    signal = (
        fx.get_iter(tensors["signal"]) + (place[0] * (plan.n // plan.tile[1]) + place[1]) if plan.has_words else None
    )
    if plan.has_words:
        begin_tile(c, fx.block_idx.y, plan.threads, signal, bias if plan.has_bias else None)
    part = fx.Int32(fx.block_idx.y) if plan.split > 1 else 0
    acc: Any = ring_sums(plan, product, a, b, part, tiles_k if plan.stays_loop else plan.tiles_k)
    biases: list[Any] = []
    if plan.has_bias and plan.split == 1:
        biases = [value.to(fx.Float32) for value in c.of_columns(bias, plan.element)]

    def result(mi: int, ni: int, ii: int) -> Any:
        return acc[mi][ni][ii] + biases[ni] if biases else acc[mi][ni][ii]

    def add(row: Any, column: Any, values: Any) -> None:
        add_pairs(C, m, plan.n, c.first_row + row, column, fx.Vector(values))

    if plan.has_words:
        wait_for_tile(signal, plan.split)
    c.store_through(
        shared, result, threads=plan.threads, e_vec=plan.e_vec, lanes=plan.lanes(plan.e_vec),
        put=add if plan.split > 1 else None,
    )  # fmt: skip


@cache
def compile_hgemm_kernel(
    dtype: str, n: int, k: int, TILE_M: int = 128, TILE_N: int = 128, TILE_K: int = 64, STAGES: int = 2,
    SPLIT_K: int = 1, BLOCK_M_WARPS: int = 2, BLOCK_N_WARPS: int = 2, BLOCK_K_WARPS: int = 1, B_TO_LDS: bool = False,
    HAS_BIAS: bool = False, ADD_VEC: int = 2, XCD_SWIZZLE: int = 0,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, bias, m, semaphore, signal, stream).

    dtype: f16 or bf16, of all. C (m, n), A (m, k), B (n, k), bias (n), each in one dimension or two. TILE_*: of a
    workgroup. BLOCK_*_WARPS: its waves along M, N and K. ADD_VEC: `Plan.add_vec`, FlyDSL's is 8. XCD_SWIZZLE:
    `Plan.xcd_swizzle`. Raises ArgumentError where sizes do not fit.
    """
    tile, waves = (TILE_M, TILE_N, TILE_K), (BLOCK_M_WARPS, BLOCK_N_WARPS, BLOCK_K_WARPS)
    return hgemm_launcher(half_plan(
        dtype, n, k, tile, waves, stages=STAGES, split=SPLIT_K, b_to_lds=B_TO_LDS, has_bias=HAS_BIAS,
        has_words=SPLIT_K > 1, add_vec=ADD_VEC, xcd_swizzle=XCD_SWIZZLE,
    ))  # fmt: skip


def half_plan(dtype: str, n: int, k: int, tile: tuple[int, int, int], waves: tuple[int, int, int], **how: Any) -> Plan:
    """The plan. how: its other fields. Raises ArgumentError where sizes do not fit."""
    require(dtype in DTYPES, f"dtype={dtype!r}", f"one of {', '.join(DTYPES)}")
    return Plan(dtype=DTYPES[dtype], k=k, tile=tile, waves=waves, n=n, **how)


def hgemm_launcher(plan: Plan, waves_per_eu: int | None = None) -> Any:
    """The launcher of a plan; see `compile_hgemm_kernel`."""

    def launch(tensors: dict[str, Any], m: Any, semaphore: Any, signal: Any, stream: Any) -> None:
        launch_tiles(plan, waves_per_eu, tensors | ({"signal": signal} if plan.has_words else {}), m, stream)

    words = {"semaphore": fx.Tensor, "signal": fx.Tensor}
    return launcher("launch_hgemm", "C A B bias", launch, m=fx.Int32, **words)


def launch_tiles(plan: Plan, waves_per_eu: int | None, tensors: dict[str, Any], m: Any, stream: Any) -> None:
    """Launch a workgroup for each tile of C and part of K, inside a launcher. A bias may be left out."""
    tensors = {**tensors, "bias": tensors.get("bias", tensors["A"])}
    for name, rows, columns in (("C", m, plan.n), ("A", m, plan.k), ("B", plan.n, plan.k)):
        require_rows(name, tensors[name], rows, columns, plan.element)
    if plan.has_bias:
        require_elements("bias", tensors["bias"], plan.n, plan.element)
    if plan.has_words:
        require_least(tensors, signal=(fx.Int32, plan.words(m)))
    if plan.split > 1 and not plan.has_words:
        fill = fill_kernel(tensors["C"], tensors["bias"], m, plan)
        launch_some(fill, m, (ceil_div(plan.n, 2 * FILL_THREADS), m), FILL_THREADS, stream)
    blocks = (m + plan.tile[0] - 1) // plan.tile[0] * plan.grid
    kernel = hgemm_kernel(tensors, m, plan.tiles_k, plan, value_attrs=for_waves(waves_per_eu))
    launch_some(kernel, m, (blocks, plan.split), plan.threads, stream)


def hgemm_splitk_(
    c: Any, a: Any, b: Any, bias: Any = None, hgemm_kwargs: dict[str, Any] | None = None, stream: Any = None
) -> Any:
    """c = a b^T (+ bias), with the tile of `hgemm_kwargs` or `default_tile`'s. c (m, n), a (m, k), b (n, k)."""
    require(a.ndim == b.ndim == 2, f"A {tuple(a.shape)} and B {tuple(b.shape)}", "two dimensions each")
    (m, k), n = a.shape, b.shape[0]
    for name, tensor, shape in (("A", a, (m, k)), ("B", b, (n, k)), ("C", c, (m, n))):
        require_array(name, tensor, a.dtype, shape)
    dtype = {"torch.bfloat16": "bf16", "torch.float16": "f16"}.get(str(a.dtype), str(a.dtype))
    chosen = {"TILE_M": 128, "TILE_N": 128} | dict(hgemm_kwargs or default_tile(m, n, k, str(c.device)))
    launch = compile_hgemm_kernel(dtype, n, k, **chosen, HAS_BIAS=bias is not None)
    words = words_of(c, ceil_div(m, chosen["TILE_M"]) * (n // chosen["TILE_N"]), stream)
    some = c.view(-1)[:1] if bias is None else bias
    with words_left_at_zero():
        launch(c.view(-1), a.view(-1), b.view(-1), some, m, words, words, stream)
    return c


class Tile(NamedTuple):
    """The options that depend on the size. The fields are those of `Plan`."""

    tile: tuple[int, int, int]
    waves: tuple[int, int, int]
    split: int = 1
    stages: int = 2
    b_to_lds: bool = True
    xcd_swizzle: int = 0

    @classmethod
    def of(cls, options: dict[str, Any]) -> Tile:
        """The tile of a table's options, where tuples are lists."""
        return cls(**options | {name: tuple(options[name]) for name in ("tile", "waves")})

    def options(self) -> dict[str, Any]:
        """The options of `compile_hgemm_kernel`."""
        sizes = {f"TILE_{x}": size for x, size in zip("MNK", self.tile, strict=True)}
        sizes |= {f"BLOCK_{x}_WARPS": count for x, count in zip("MNK", self.waves, strict=True)}
        sizes |= {"SPLIT_K": self.split, "STAGES": self.stages, "B_TO_LDS": self.b_to_lds}
        return sizes | {"XCD_SWIZZLE": self.xcd_swizzle}

    def narrowed(self, n: int, k: int, lds_bytes: int) -> Tile:
        """The tile with as many columns and parts of K as divide the product's, and as many stages as there are tiles
        of K and as fit in LDS.

        lds_bytes: what a workgroup may have. Raises ArgumentError if the fewest stages do not fit.
        """
        tile_m, tile_n, tile_k = self.tile
        tile = tile_m, gcd(tile_n, n), part_of(k, tile_k, 32 * self.waves[2])
        narrow = self._replace(tile=tile, split=divisor_near(k // tile[2], self.split))
        least = 2 if self.b_to_lds else 1
        for stages in range(max(least, min(self.stages, k // narrow.split // tile[2])), least - 1, -1):
            fewer = narrow._replace(stages=stages)
            needed = half_plan("bf16", n, k, **fewer._asdict()).lds_bytes
            if needed <= lds_bytes:
                return fewer
        raise refusal(f"{needed} bytes of LDS for a tile of {' x '.join(map(str, tile))}", hint=f"{lds_bytes} or less")

    def work(self, n: int, k: int) -> Workgroup:
        """The work of a workgroup, for `rough_time_us`."""
        plan, step_bytes = half_plan("bf16", n, k, **self._asdict()), 2 * self.tile[2]
        # With one buffer for A, LLVM does not always find what to do while B is on its way.
        ahead = self.stages - 1 if self.b_to_lds else (1 + self.stages) / 3
        return Workgroup(
            tile=self.tile[:2], waves=self.waves, k_bytes=step_bytes * plan.tiles_k, step_bytes=step_bytes,
            parts=self.split, ahead=ahead, b_to_lds=self.b_to_lds, lds_bytes=plan.lds_bytes, group=self.xcd_swizzle,
            by_rows=True,
        )  # fmt: skip


def default_tile(m: int, n: int, k: int, device: str = "cpu") -> dict[str, Any]:
    """The options of `compile_hgemm_kernel` for a size, by the model of time.

    For the GPU that the tensors are on, they are those that a search found for the size, or of all that were found the
    fastest by a rough time (`kernels.tuned`). ArgumentError for a size that none of the tiles fits.
    """
    return tile_of(m, n, k, target_arch(device)).options()


@cache
def tile_of(m: int, n: int, k: int, arch: str) -> Tile:
    """The tile of `default_tile`, for a GPU by its name."""
    found = searched("hgemm", arch, "bf16", (m, n, k))
    return Tile.of(found) if found else fastest("hgemm", arch, "bf16", (m, n, k), 16, _tiles_for(n, k, arch))


@cache
def _tiles_for(n: int, k: int, arch: str) -> tuple[Candidate[Tile], ...]:
    room = get_arch(arch).lds_bytes_per_workgroup

    def fit(options: dict[str, Any]) -> tuple[Tile, Workgroup]:
        tile = Tile.of(options).narrowed(n, k, room)
        return tile, tile.work(n, k)

    return fitting("hgemm", arch, "bf16", "split", fit)


_TILES = (
    Tile((16, 64, 128), (1, 2, 1), 8), Tile((16, 64, 128), (1, 1, 2)), Tile((32, 64, 128), (1, 2, 1), 4),
    Tile((64, 64, 64), (2, 2, 1)), Tile((128, 64, 64), (2, 2, 1)), Tile((128, 128, 64), (2, 2, 1)),
)  # fmt: skip


def _default(C: Any, A: Any, B: Any, signal: Any, m: int, n: int, k: int, *_: Any, **__: Any) -> Tile:
    return tile_of(m, n, k, target_arch(str(C.device)))


@chosen("C A B signal", "m n k dtype", _TILES, default=_default)
def hgemm_of_size(tensors: dict[str, Any], m: fx.Int32, n: int, k: int, dtype: str, tile: Any, stream: Any) -> None:
    """`hgemm` with words that are 0."""
    plan = half_plan(dtype, n, k, **tile._asdict(), has_words=tile.split > 1)
    taken = tensors if plan.has_words else {name: x for name, x in tensors.items() if name != "signal"}
    launch_tiles(plan, None, taken, m, stream)


def hgemm(C: Any, A: Any, B: Any, m: int, n: int, k: int, dtype: str, stream: Any = None) -> None:
    """The product with the tile of `default_tile`, or with FLYDSL_AUTOTUNE=1 the fastest of some.

    dtype: f16 or bf16. C (m, n), A (m, k), B (n, k), each in one dimension or two.
    """
    words = words_of(C, ceil_div(m, 16) * ceil_div(n, 16), stream)
    with words_left_at_zero():
        hgemm_of_size(C, A, B, words, m, n, k, dtype, *([] if stream is None else [stream]))
