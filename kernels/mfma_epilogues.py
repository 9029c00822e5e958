"""From a tile's sums to its result: factors, bias and activation, and stores, straight or through shared memory.

A lane holds four consecutive rows of one column of each tile of 16 x 16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flydsl.expr as fx
from kernels.kernels_common import LOG2_E, refusal
from kernels.layout_utils import idx2crd
from kernels.tensor_shim import GTensor, STensor

WAVE = 64
ACTIVATIONS = ("none", "bias", "bias_relu", "bias_silu", "bias_gelu")
_GELU = 0.7978845608028654  # sqrt(2 / pi)
_GELU_CUBE = 0.044715


def default_epilog(*, m_repeat: int, lane_div_16: Any, bx_m: Any, body_row: Callable[..., Any]) -> None:
    """Call body_row(mi, ii, row_in_tile, row) for each row of the sums that a lane holds.

    m_repeat: tiles of 16 rows. lane_div_16: the lane's number // 16. bx_m: the first row of the tile.
    mi, ii: the tile of 16 rows, and the register in it.
    """
    for mi in range(m_repeat):
        for ii in range(4):
            row_in_tile = lane_div_16 * 4 + (mi * 16 + ii)
            body_row(mi, ii, row_in_tile, bx_m + row_in_tile)


def c_shuffle_epilog(
    *, tile_m: int, tile_n: int, e_vec: int = 2, cshuffle_nlane: int = 32, block_size: int = 256, m_repeat: int,
    tid: Any, lane_div_16: Any, bx_m: Any, by_n: Any, lds_out: STensor, write_row_to_lds: Callable[..., Any],
    store_pair: Callable[..., Any], precompute_row: Callable[..., Any] | None = None,
) -> None:  # fmt: skip
    """Let lanes exchange columns through shared memory, so that each stores `e_vec` of them at a time.

    lds_out: (tile_m, tile_n), row-major, of the type that is stored. write_row_to_lds(mi, ii, row_in_tile, row) writes
    a lane's row there. Then thread t has row t // cshuffle_nlane of each pass over the rows and
    columns (t % cshuffle_nlane) * e_vec of each pass over the columns, and store_pair(row, column, values) is called.
    precompute_row(row) gives (context, predicate); then it is store_pair(row, column, values, context, predicate).
    """
    rows = block_size // cshuffle_nlane
    if block_size % cshuffle_nlane or tile_m % rows or tile_n % (cshuffle_nlane * e_vec):
        raise refusal(
            f"a tile of {tile_m} x {tile_n}, stored by {rows} x {cshuffle_nlane} threads, {e_vec} columns each",
            hint="the tile is a multiple of what all threads store",
        )
    fx.gpu.barrier()
    default_epilog(m_repeat=m_repeat, lane_div_16=lane_div_16, bx_m=bx_m, body_row=write_row_to_lds)
    fx.gpu.barrier()
    row, lane = idx2crd(tid, (rows, cshuffle_nlane))
    for first_row in range(0, tile_m, rows):
        row_in_tile = row + first_row
        extra = () if precompute_row is None else precompute_row(bx_m + row_in_tile)
        for first in range(0, tile_n, cshuffle_nlane * e_vec):
            column = lane * e_vec + first
            values = lds_out.vec_load((row_in_tile, column), e_vec)
            store_pair(bx_m + row_in_tile, by_n + column, values, *extra)


def mfma_epilog(*, use_cshuffle: bool, **arguments: Any) -> None:
    """`c_shuffle_epilog` or `default_epilog`, with its arguments. Raises ArgumentError where a callback is missing."""
    needed = ("write_row_to_lds", "store_pair", "lds_out") if use_cshuffle else ("body_row",)
    missing = [name for name in needed if arguments.get(name) is None]
    if missing:
        raise refusal(f"mfma_epilog(use_cshuffle={use_cshuffle}) without {', '.join(missing)}")
    (c_shuffle_epilog if use_cshuffle else default_epilog)(**arguments)


def activated(value: Any, epilogue: str) -> Any:
    """A sum with its bias after the activation that an epilogue names. gelu is the form with tanh."""
    if epilogue.endswith("relu"):
        return fx.arith.maximumf(value, fx.Float32(0.0))
    if epilogue.endswith("silu"):
        return value * sigmoid(value)
    if epilogue.endswith("gelu"):
        # (1 + tanh(x)) / 2 is the sigmoid of 2x.
        return value * sigmoid(value * (2 * _GELU) * (value * value * _GELU_CUBE + 1.0))
    return value


def sigmoid(value: Any) -> Any:
    """1 / (1 + exp(-value)) of an f32, or of a vector of them."""
    return fx.rocdl.rcp(fx.rocdl.exp2(value * -LOG2_E) + 1.0)


class TileC:
    """A workgroup's tile of C (rows, columns), which its waves compute in parts of one size.

    rows: how many C has; those after them are not written. columns: of C, for `store` a multiple of the tile's.
    place: the tile's numbers along M and N. wave_tile: rows and columns of a wave's part; waves are numbered along N
    first. wave: the calling wave's number, by default that in the workgroup.
    """

    def __init__(
        self, C: Any, dtype: Any, rows: Any, columns: Any, tile: tuple[int, int], place: tuple[Any, Any],
        wave_tile: tuple[int, int], wave: Any = None,
    ) -> None:  # fmt: skip
        self.dtype, self.tile = dtype, tile
        self.first_row, self.first_column = place[0] * tile[0], place[1] * tile[1]
        self.m_repeat, self.num_acc_n = wave_tile[0] // 16, wave_tile[1] // 16
        self.thread = fx.Int32(fx.thread_idx.x)
        self.lane = self.thread & (WAVE - 1)
        wave = self.thread >> 6 if wave is None else wave
        wave_m, wave_n = idx2crd(wave, (-1, tile[1] // wave_tile[1]))
        one_row = tile[0] == wave_tile[0]
        # Of the tile:
        self.row = (self.lane >> 4) * 4 + (0 if one_row else wave_m * wave_tile[0])
        self.column = (wave if one_row else wave_n) * wave_tile[1] + (self.lane & 15)
        size = dtype.width // 8
        here = (rows - self.first_row < tile[0]).select(rows - self.first_row, fx.Int32(tile[0]))
        self.memory = GTensor(
            C, dtype, (-1, columns), base_byte_offset=fx.Int64(place[0]) * (fx.Int64(columns) * (tile[0] * size)),
            num_records_bytes=here * (columns * size),
        )  # fmt: skip

    def of_rows(self, tensor: Any, rows: Any) -> list[Any]:
        """[mi]: the f32 of each of the lane's rows, of a tensor with one for each row of C."""
        memory = GTensor(tensor, fx.Float32, num_records_bytes=rows * 4)
        first = self.first_row + self.row
        return [fx.Vector(memory.vec_load(first + mi * 16, 4)) for mi in range(self.m_repeat)]

    def of_columns(self, tensor: Any, dtype: Any, columns: Any = None) -> list[Any]:
        """[ni]: the value of each of the lane's columns, of a tensor with one for each column of C.

        columns: how many there are, if the last tile may have fewer; those beyond read 0.
        """
        memory = GTensor(tensor, dtype, num_records_bytes=None if columns is None else columns * (dtype.width // 8))
        return [memory.load(self.first_column + self.column + ni * 16) for ni in range(self.num_acc_n)]

    def store(self, value: Callable[[int, int, int], Any], shared: Any = None) -> None:
        """Write value(mi, ni, ii), an f32, of every tile of 16 x 16. shared: memory for `store_through`, if by it."""
        if shared is None:
            default_epilog(**self._lanes, body_row=self._write_row(self.memory, self.first_column, value))
        else:
            self.store_through(shared, value)

    def store_through(
        self, shared: Any, value: Callable[[int, int, int], Any], *, threads: int = 256, e_vec: int | None = None,
        lanes: int | None = None, put: Callable[..., None] | None = None, target: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        """The same, but lanes exchange columns through shared memory, and each has e_vec of them.

        threads: of the workgroup. lanes: that have a row. put(row of the tile, column, values): what to do with them,
        by default store them; after these arguments it is given what target(row of the tile) gives, if there is one.
        """
        if e_vec is None:
            e_vec, lanes = 4 if self.tile[1] % 128 == 0 else 2, 32
        view = STensor(shared, self.dtype, self.tile)
        c_shuffle_epilog(
            **self._lanes, tile_m=self.tile[0], tile_n=self.tile[1], e_vec=e_vec, block_size=threads, tid=self.thread,
            cshuffle_nlane=lanes or self.tile[1] // e_vec, by_n=self.first_column, lds_out=view,
            write_row_to_lds=self._write_row(view, 0, value), precompute_row=target,
            store_pair=put or (lambda row, column, values: self.memory.vec_store((row, column), values)),
        )  # fmt: skip

    @property
    def _lanes(self) -> dict[str, Any]:
        return {"m_repeat": self.m_repeat, "lane_div_16": 0, "bx_m": 0}

    def _write_row(self, memory: Any, first_column: Any, value: Callable[..., Any]) -> Callable[..., None]:
        """Write a row of sums that is counted from the lane's first one: distances are known at compile time."""
        first = memory.linear_offset((self.row, first_column + self.column))

        def write_row(mi: int, ii: int, row: int, _: int) -> None:
            for ni in range(self.num_acc_n):
                memory.store(first + memory.linear_offset((row, ni * 16)), value(mi, ni, ii).to(self.dtype))

        return write_row
