"""Tiles of a matrix that go to LDS through registers or past them, in one or two stages, and are added up.

Past them: buffer and global loads into LDS (CDNA), asynchronous loads, the tensor data mover and clusters that share a
tile (gfx1250). Tiles may reach beyond the matrix, where those that check bounds read 0. Each block adds up a row of
tiles, whose elements it takes in another order than they came. At every opt level, in both backends, as NumPy has it.
"""

from __future__ import annotations

import os
import random
from typing import Any
from unittest import mock

import numpy as np
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import Arch
from flydsl.errors import FlyError
from flydsl.expr import rocdl, tdm_ops
from flydsl.expr.rocdl import cluster
from flydsl.simulator.arrays import Array
from tests.fuzz.archs import ARCHS
from tests.fuzz.thread_programs import shared

TYPES = {fx.Int32: torch.int32, fx.Float32: torch.float32, fx.Float16: torch.float16, fx.Int8: torch.int8,
         fx.Int64: torch.int64}  # fmt: skip
CHECKED = ("tensor", "registers")  # they read 0 beyond the matrix, in every direction
BUFFER_BITS = {"cdna2": (32,), "cdna3": (32,), "cdna4": (32, 128)}


class Program:
    """One kernel. rows, columns: of a tile. pad: elements behind each row in LDS. way: how a tile gets there."""

    def __init__(self, seed: int, arch: Arch) -> None:
        numbers = random.Random(seed)
        self.seed, self.arch, self.wave = seed, arch, arch.wave_size
        family = arch.instruction_sets[0]
        self.kind = numbers.choice(list(TYPES))
        self.bytes = self.kind.width // 8
        self.way, self.bits = self._way(numbers, family)
        self.threads = self.wave * numbers.choice((1, 2, 4))
        self.each = self.bits // self.kind.width  # elements of an instruction and lane
        self.columns = max(numbers.choice((16, 32, 64)), self.each)
        self.rows = max(numbers.choice((4, 8, 16)), self.threads * self.each // self.columns)
        self.pad = numbers.choice((0, 0, 8)) if self.way in ("tensor", "registers") else 0
        if self.pad and not 2 <= self.columns * self.bytes // 4 <= 256:
            self.pad = 0
        self.stages, self.is_unrolled = numbers.choice((1, 2)), numbers.random() < 0.5
        self.blocks = numbers.choice((1, 2, 3))
        self.cluster = numbers.choice((1, 2, 4)) if self.way in ("tensor", "cluster") else 1
        self.tiles = numbers.randint(1, 4)
        self.m, self.n = self.rows * self.blocks, self.columns * self.tiles
        if self.way in CHECKED and numbers.random() < 0.6:
            self.m -= numbers.randrange(self.rows)
            self.n -= numbers.randrange(self.columns)
        elif self.way == "buffer" and numbers.random() < 0.6:
            self.m -= numbers.randrange(self.rows)
        self.factor, self.shift = numbers.choice((1, 3, 5)), numbers.randrange(64)
        generator = np.random.default_rng(seed)
        self.x = torch.from_numpy(generator.integers(-3, 4, (self.m, self.n))).to(TYPES[self.kind])

    def _way(self, numbers: random.Random, family: str) -> tuple[str, int]:
        width = self.kind.width
        ways = [("registers", width)]
        ways += [("buffer", bits) for bits in BUFFER_BITS.get(family, ()) if bits >= width]
        if family == "cdna4":
            ways += [(way, bits) for way in ("buffer async", "global async") for bits in (32, 128) if bits >= width]
        if family == "cdna5":
            sizes = [bits for bits in (8, 32, 64, 128) if bits >= width]
            ways += [(way, bits) for way in ("async", "cluster") for bits in sizes] + 3 * [("tensor", width)]
        return numbers.choice(ways[1:] or ways) if numbers.random() < 0.9 else ways[0]

    def __str__(self) -> str:
        names = ("way", "bits", "kind", "threads", "rows", "columns", "pad", "stages", "is_unrolled", "blocks",
                 "cluster", "tiles", "m", "n")  # fmt: skip
        return f"program {self.seed} on {self.arch.name}: { ({name: getattr(self, name) for name in names}) }"

    @property
    def elements(self) -> int:
        """Of a tile."""
        return self.rows * self.columns

    @property
    def loads(self) -> int:
        """Instructions of a wave for a tile."""
        return 1 if self.way == "tensor" else -(-self.elements // (self.threads * self.each))

    def taken(self, place: Any) -> Any:
        """The element that goes to a place of the result."""
        return (place * self.factor + self.shift) & (self.elements - 1)

    def expected(self) -> Array:
        padded = np.zeros((self.rows * self.blocks, self.columns * self.tiles), np.int64)
        padded[: self.m, : self.n] = self.x.numpy()
        tiles = padded.reshape(self.blocks, self.rows, self.tiles, self.columns).transpose(0, 2, 1, 3)
        flat = tiles.reshape(self.blocks, self.tiles, -1)[:, :, self.taken(np.arange(self.elements))]
        sums = (flat * np.arange(1, self.tiles + 1)[:, None]).sum(1)
        return np.stack([sums + member for member in range(self.cluster)], axis=1)

    def run(self) -> Array:
        """What the kernel computes: (blocks, members of a cluster, elements)."""
        program = self

        @flyc.kernel
        def kernel(X: fx.Tensor, Out: fx.Tensor, m: fx.Int32, n: fx.Int32, tiles: fx.Int32) -> None:
            t, block, member = fx.Int32(fx.thread_idx.x), fx.Int32(fx.block_idx.x), fx.Int32(fx.block_idx.y)
            size = program.rows * (program.columns + program.pad)
            lds = shared(program.kind, program.stages * size)
            add_up(program, X, Out[block, member, None], lds, m, n, tiles, t, block, member)

        @flyc.jit
        def launch(X: fx.Tensor, Out: fx.Tensor, m: fx.Int32, n: fx.Int32, tiles: fx.Int32) -> None:
            options = {"cluster": (1, program.cluster, 1)} if program.cluster > 1 else {}
            kernel(X, Out, m, n, tiles).launch(
                grid=(program.blocks, program.cluster), block=program.threads, **options)  # fmt: skip

        out = torch.full((self.blocks, self.cluster, self.elements), -99, dtype=torch.int32)
        launch(self.x, out, self.m, self.n, self.tiles)
        found: Array = out.numpy()
        return found


@flyc.jit
def add_up(p: Any, x: Any, out: Any, lds: Any, m: Any, n: Any, tiles: Any, t: Any, block: Any, member: Any) -> None:
    size = p.rows * (p.columns + p.pad)
    own = p.elements // p.threads
    sums = fx.make_rmem_tensor(own, fx.Int32)
    sums.fill(0)
    if p.stages == 2:
        fetch(p, x, lds, m, n, block, fx.Int32(0), t)
    if p.is_unrolled:
        for k in fx.range_constexpr(p.tiles):
            one_tile(p, x, lds, m, n, block, member, fx.Int32(k), tiles, t, size, sums)
    else:
        for k in range(tiles):
            one_tile(p, x, lds, m, n, block, member, fx.Int32(k), tiles, t, size, sums)
    for i in fx.range_constexpr(own):
        out[i * p.threads + t] = sums[i] + member


@flyc.jit
def one_tile(
    p: Any, x: Any, lds: Any, m: Any, n: Any, block: Any, member: Any, k: Any, tiles: Any, t: Any, size: int, sums: Any
) -> None:
    """Wait for tile k, with the next one on its way if there are two stages, and add it."""
    place = lds + (k % p.stages) * size
    if p.stages == 1:
        fetch(p, x, place, m, n, block, k, t)
        wait(p, 0)
    else:
        if k + 1 < tiles:
            fetch(p, x, lds + ((k + 1) % 2) * size, m, n, block, k + 1, t)
            wait(p, p.loads)
        else:
            wait(p, 0)
    fx.barrier()
    for i in fx.range_constexpr(p.elements // p.threads):
        element = p.taken(i * p.threads + t)
        held = place[element // p.columns * (p.columns + p.pad) + element % p.columns]
        sums[i] = sums[i] + held.to(fx.Int32) * (k + 1)
    rocdl.s_wait_dscnt(0) if p.way in ("async", "cluster", "tensor") else None
    fx.barrier()


@flyc.jit
def fetch(p: Any, x: Any, place: Any, m: Any, n: Any, block: Any, k: Any, t: Any) -> None:
    """Ask for tile k of a block's row of tiles."""
    row, column = block * p.rows, k * p.columns
    if p.way == "tensor":
        mask = (1 << p.cluster) - 1 if p.cluster > 1 else 0
        padding = {"pad_interval": p.columns, "pad_amount": p.pad} if p.pad else {}
        tdm_ops.tensor_load_2d(tdm_ops.make_tensor_descriptor_2d(
            global_ptr=x, lds_memref=place, global_offset=(row, column), tensor_shape=(m - row, n - column),
            strides=(n, 1), tile_shape=(p.rows, p.columns), elem_bytes=p.bytes, num_warps=p.threads // p.wave,
            workgroup_mask=mask, early_timeout=mask > 0, **padding))  # fmt: skip
    else:
        for i in fx.range_constexpr(p.loads):
            first = (i * p.threads + t) * p.each
            fetch_part(p, x, place, m, n, row + first // p.columns, column + first % p.columns, first)


@flyc.jit
def fetch_part(p: Any, x: Any, place: Any, m: Any, n: Any, row: Any, column: Any, first: Any) -> None:
    """Some elements that lie side by side in the matrix and in LDS. first: the first one's number in the tile."""
    source, target = fx.get_iter(x) + (row * n + column), place + first
    if p.way == "registers":
        value = p.kind(0)
        if (row < m) & (column < n):
            value = source[0]
        place[first // p.columns * (p.columns + p.pad) + first % p.columns] = value
    elif p.way == "async":
        getattr(rocdl, f"global_load_async_to_lds_b{p.bits}")(source, target)
    elif p.way == "cluster":
        rocdl.cluster_load_async_to_lds(source, target, p.bits // 8, mask=(1 << p.cluster) - 1)
    else:
        layout = fx.make_layout(p.each, 1)
        make = {"buffer": rocdl.BufferCopyLDS, "buffer async": rocdl.cdna4.BufferLoadAsyncLDS,
                "global async": rocdl.cdna4.GlobalLoadAsyncLDS}[p.way]  # fmt: skip
        if p.way != "global async":
            whole = rocdl.make_buffer_tensor(x, max_size=False)
            source = fx.get_iter(whole) + (row * n + column)
        fx.copy(fx.make_copy_atom(make(p.bits), p.kind), fx.make_view(source, layout), fx.make_view(target, layout))


def wait(p: Any, under_way: int) -> None:
    """Until at most so many of the wave's instructions are under way."""
    if p.way == "tensor":
        tdm_ops.tensor_wait(under_way)
    elif p.way in ("async", "cluster"):
        rocdl.s_wait_asynccnt(under_way)
    elif p.way != "registers":
        rocdl.s_waitcnt(vmcnt=min(under_way, 63))
    if p.cluster > 1:
        cluster.cluster_barrier()


def check(seed: int, arch: Arch, opt_level: int = 2, backend: str = "native") -> None:
    """AssertionError if a program does not compute what NumPy does."""
    program = Program(seed, arch)
    settings = {"FLYDSL_COMPILE_OPT_LEVEL": str(opt_level), "FLYDSL_SIMULATOR_BACKEND": backend,
                "FLYDSL_GPU_ARCH": arch.name}  # fmt: skip
    said = f"{program}, opt level {opt_level}, {backend}"
    with mock.patch.dict(os.environ, settings):
        try:
            found = program.run()
        except FlyError as error:
            raise AssertionError(f"{said}: {type(error).__name__}: {error}") from error
    expected = program.expected()
    assert np.array_equal(found, expected), f"{said}:\n{found}, not\n{expected}"


def run(seed: int, count: int) -> None:
    """Check `count` programs. GPUs, opt levels and backends take turns."""
    chosen, findings = random.Random(seed), []
    for number in range(count):
        try:
            check(chosen.randrange(1 << 32), chosen.choice(ARCHS), number % 4, chosen.choice(("native", "lockstep")))
        except AssertionError as finding:
            findings.append(str(finding))
    assert not findings, "\n\n".join(findings)
