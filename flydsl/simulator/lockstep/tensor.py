"""Tiles that the tensor data mover copies, wave by wave, every byte checked against its bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from flydsl.hsaco.operands import CLUSTER_STATE, ttmp
from flydsl.simulator.arrays import Array
from flydsl.simulator.errors import DescriptorError
from flydsl.simulator.isa.builder import Builder
from flydsl.simulator.isa.lds_barrier import arrived
from flydsl.simulator.lockstep.memory import NumpyMemory, Request
from flydsl.simulator.memory.tensor_descriptor import GROUP_WORDS, BadField, Tile, check_multicast, tile_of

_BOUNDS_HINT = "tensor_shape (tensor_dim0, tensor_dim1) counts the elements that there are from the tile's first one on"


class Piece(NamedTuple):
    """Some bytes of a tile. lds: where they lie in `waves.lds`; offsets: in storage, None for zeros of no tensor."""

    lds: Array
    storage: Array | None
    offsets: Array | None
    content: Array


@dataclass(frozen=True)
class Move:
    """A tile that one wave copies: checked, and not copied yet. wave: its index in the batch."""

    wave: int
    tile: Tile
    pieces: tuple[Piece, ...]
    is_load: bool


class NumpyTensors(NumpyMemory):
    """The builder's operations on tiles."""

    def move_tensor(self, words: Sequence[Array], *, is_load: bool) -> None:
        """Copy a tile for each wave, as the words of its descriptor say. All are checked before the first is copied."""
        waves = self._selected_indices()
        columns = [np.broadcast_to(word[:, 0], waves.size) for word in words]
        moves = [
            self._prepared(int(wave), tuple(int(column[i]) for column in columns), is_load=is_load)
            for i, wave in enumerate(waves)
        ]
        self._move_tiles([move for move in moves if move is not None])

    def _move_tiles(self, moves: Sequence[Move]) -> None:
        for move in moves:
            for lds, storage, offsets, content in move.pieces:
                if self.lds_marks is not None:
                    self.lds_marks[int(move.is_load), lds] = True
                if move.is_load:
                    self.waves.lds[lds] = content
                elif storage is not None:
                    storage[offsets] = content
            if move.tile.barrier is not None:
                self._arrive(move)

    def _prepared(self, wave: int, words: tuple[int, ...], *, is_load: bool) -> Move | None:
        if len(words) < sum(GROUP_WORDS):
            has_one_plane = ~words[0] >> 31 & 1  # where rows are gathered, their list is here
            words += (has_one_plane, *[0] * (sum(GROUP_WORDS) - len(words) - 1))
        try:
            tile = tile_of(words, is_load=is_load)
            if is_load and tile is not None:
                check_multicast(words, *self._place_in_cluster(wave))
            if tile is not None:
                self._check_lds(wave, tile, is_load=is_load)
        except BadField as error:
            raise self._bad_descriptor(wave, error) from error
        return None if tile is None else Move(wave, tile, tuple(self._pieces(wave, tile, is_load=is_load)), is_load)

    def _place_in_cluster(self, wave: int) -> tuple[int | None, int]:
        """The workgroup's number in its cluster, None if it is in none, and the workgroups there."""
        state, sizes = int(self.waves.sgpr[wave, CLUSTER_STATE]), int(self.waves.sgpr[wave, ttmp(6)])
        return state >> 21 & 15 if state else None, (sizes >> 24 & 15) + 1

    def _bad_descriptor(self, wave: int, error: BadField) -> DescriptorError:
        listed, waves = self.instruction.listed, self.waves
        return DescriptorError(
            f"{self.instruction.mnemonic} with a descriptor whose {error}\n"
            f"  instruction: {listed.text} (ISA line {listed.line})\n"
            f"  workgroup {waves.workgroup_ids[int(waves.workgroup[wave])]}, wave {wave % waves.waves_per_workgroup}",
            at=listed.location,
            hint=error.hint,
        )

    # --- bounds

    def _check_lds(self, wave: int, tile: Tile, *, is_load: bool) -> None:
        """Raise BadField for a tile that does not fit into LDS. What a store leaves out need not."""
        rows = np.arange(tile.addresses.size) if is_load else np.flatnonzero(tile.elements)
        if not rows.size:
            return
        end = int(tile.lds_ends(rows, tile.width if is_load else int(tile.elements.max())).max())
        limit = self.waves.lds_bytes
        if end > limit:
            start = int(tile.lds_starts[0])
            raise BadField(
                "lds_addr", start,
                f"{rows.size} rows of {tile.width} elements of {tile.element_bytes} bytes "
                + (f"with {tile.padding_bytes} bytes after each {tile.interval_bytes} " if tile.padding_bytes else "")
                + f"end at {end:#x}; the workgroup has {limit} bytes of LDS",
                f"launch(..., smem={end}) for dynamic shared memory, or a larger static allocation",
            )  # fmt: skip
        if tile.barrier is not None and tile.barrier + 8 > limit:
            raise BadField("atomic_barrier_address", tile.barrier >> 3,
                           f"the barrier at {tile.barrier:#x}; the workgroup has {limit} bytes of LDS")  # fmt: skip

    # --- copying

    def _pieces(self, wave: int, tile: Tile, *, is_load: bool) -> Iterator[Piece]:
        """The bytes to copy, of one repetition after the other, which may overlap in LDS, by the rows' lengths and
        buffers. Raises MemoryFault for rows outside of them."""
        beginnings = np.flatnonzero(tile.places == 0)[1:]
        for rows in np.split(np.arange(tile.places.size), beginnings):
            yield from self._pieces_of(wave, tile, rows, is_load=is_load)

    def _pieces_of(self, wave: int, tile: Tile, part: Array, *, is_load: bool) -> Iterator[Piece]:
        lengths = tile.elements[part]
        if is_load:
            for elements in np.unique(lengths[lengths < tile.width]).tolist():
                rows = part[lengths == elements]
                lds = self._lds_places(wave, tile, rows, tile.width)[:, elements * tile.element_bytes :]
                yield Piece(lds.reshape(-1), None, None, np.zeros(lds.size, np.uint8))
        for elements in np.unique(lengths[lengths > 0]).tolist():
            rows, size = part[lengths == elements], elements * tile.element_bytes
            request = Request(tile.addresses[rows], rows, size, 2, not is_load, wave, _BOUNDS_HINT)
            for place in self._resolve_global(request):
                assert place.lanes is not None
                lds = self._lds_places(wave, tile, place.lanes, elements).reshape(-1)
                offsets = (place.offsets[:, None] + np.arange(size)).reshape(-1)
                yield Piece(lds, place.storage, offsets, place.storage[offsets] if is_load else self.waves.lds[lds])

    def _lds_places(self, wave: int, tile: Tile, rows: Array, elements: int) -> Array:
        """The indices in `waves.lds` of the bytes of rows: (rows, bytes)."""
        return self.lds_of(wave) + tile.lds_offsets(rows, elements)

    def lds_of(self, wave: int) -> int:
        """The index in `waves.lds` where the LDS of a wave's workgroup begins."""
        return int(self.waves.workgroup[wave]) * self.waves.lds_stride

    def _arrive(self, move: Move) -> None:
        """Arrive at the barrier in LDS that the descriptor names."""
        assert move.tile.barrier is not None
        first = self.lds_of(move.wave) + move.tile.barrier
        state = self.waves.lds[first : first + 8].view(np.uint64)
        state[:] = arrived(cast(Builder, self), state[:, None].copy(), self.const("i64", 1))[:, 0]
