"""Addresses in the memory of other ranks, with a memory that takes what HIP takes, and nothing else."""

from __future__ import annotations

from typing import Any

from kernels.node_memory import NodeMemory

PEER_BASE, OPENED_AT = 0x7000, 0x9_0000


class StrictMemory:
    """One allocation of each of two processes. Handles are of beginnings, and of the other process."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def hipMemGetAddressRange(self, address: int) -> tuple[int, int]:
        return address & ~0xFFF, 4096

    def hipIpcGetMemHandle(self, address: int) -> bytes:
        assert address & 0xFFF == 0, "opened elsewhere by HIP than by CUDA"
        return address.to_bytes(64, "little")

    def hipIpcOpenMemHandle(self, handle: bytes) -> int:
        assert int.from_bytes(handle, "little") == PEER_BASE, "hipErrorInvalidContext: a handle of this process"
        self.calls.append("open")
        return OPENED_AT

    def hipExtMallocWithFlags(self, size_bytes: int, flags: int) -> int:
        self.calls.append("allocate")
        return 0x10_0000 * len(self.calls)


def node_of_two(memory: Any) -> NodeMemory:
    """Rank 0; the other one has something at 0x7010, however many are asked for."""
    node = NodeMemory.__new__(NodeMemory)
    node.memory, node.rank, node._owned, node._opened, node._tables = memory, 0, [], {}, []
    exchange: Any = lambda mine: [mine, node._place(PEER_BASE + 0x10) * (len(mine) // 72)]  # noqa: E731
    node.exchange = exchange
    return node


def test_handles_are_of_beginnings_and_a_rank_opens_none_of_its_own() -> None:
    memory = StrictMemory()
    node = node_of_two(memory)
    assert node.places([0x3018, 0x4020]) == [[0x3018, OPENED_AT + 0x10], [0x4020, OPENED_AT + 0x10]]
    assert memory.calls == ["open"]  # once


def test_nothing_is_allocated_while_a_graph_is_captured() -> None:
    memory = StrictMemory()
    node = node_of_two(memory)
    node.reserve_tables()
    tables = [node.new_table() for _ in range(4096)]
    assert len(set(tables)) == len(tables)
    assert memory.calls == ["allocate"]
