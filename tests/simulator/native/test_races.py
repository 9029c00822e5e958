"""The proof that a launch has no race: what is proved, the machine that finds races has nothing to say against."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.errors import SimulatorError
from flydsl.hsaco import KernelInfo
from flydsl.hsaco.listing import read_listing
from flydsl.progress import Task
from flydsl.simulator import Memory, Program, checking, launch
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import LaunchStatistics
from flydsl.simulator.launching import prepare
from flydsl.simulator.native.races import run_without_races
from tests.simulator.conftest import compile_llvm_ir
from tests.simulator.waits.launching import SHELL

ARCH = get_arch("gfx942")
WAVES, WORKGROUPS, LDS_BYTES = 4, 3, 1024
LIMIT = 100_000
PROLOGUE = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_mov_b32 s30, s{workgroup}
s_waitcnt lgkmcnt(0)
v_and_b32_e32 v0, 0x3ff, v0
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v9, 5
v_readfirstlane_b32 s31, v0
s_lshr_b32 s31, s31, 6
s_lshl_b32 s30, s30, 10
"""
"""v0: the thread, v1: four times that, v9: 5 in all of them, s30: 1024 times the workgroup, s31: the wave."""


LDS_SIZES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16}
GLOBAL_SIZES = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx4": 16}
SMALL_LOADS = {"b8": "u8", "b16": "u16", "byte": "ubyte", "short": "ushort"}


@cache
def kernel_info() -> KernelInfo:
    return Program.load(*compile_llvm_ir(SHELL, ARCH.name)).kernels["k"]


def program(text: str) -> Program:
    info = kernel_info()
    prologue = PROLOGUE.format(workgroup=info.descriptor.user_sgpr_count)
    instructions = read_listing(f"k:\n{prologue}\n{text}\ns_endpgm\n")
    return Program.from_listing({"k": info}, instructions, ARCH, ARCH.wave_size)


class Launch:
    """A launch of a text by 3 workgroups of 4 waves, with 1 KiB of LDS and 1024 numbers at s[4:5]."""

    def __init__(self, text: str) -> None:
        self.program = program(text)

    def _arguments(self) -> tuple[Array, dict[str, Any]]:
        memory, out = Memory(), np.arange(1000, 2024, dtype=np.uint32)
        address = memory.map_array(out, name="out")
        sizes = {"grid": (WORKGROUPS, 1, 1), "block": (WAVES * ARCH.wave_size, 1, 1), "dynamic_lds_bytes": LDS_BYTES}
        return out, {"kernarg": struct.pack("<Q", address), "memory": memory} | sizes

    def proved(self) -> tuple[LaunchStatistics | None, Array]:
        out, arguments = self._arguments()
        with Task("test", 1, kind="simulation") as task:
            return run_without_races(prepare(self.program, "k", **arguments), LIMIT, task), out

    def checked(self) -> tuple[LaunchStatistics | SimulatorError, Array]:
        out, arguments = self._arguments()
        try:
            with checking("races"):
                return launch(self.program, "k", backend="lockstep", instruction_limit=LIMIT, **arguments), out
        except SimulatorError as error:
            return error, out


def is_proved(text: str) -> bool:
    """Whether the proof succeeds. Raises AssertionError where it must not, or leaves anything but what it should."""
    one = Launch(text)
    (statistics, left), (found, right) = one.proved(), one.checked()
    if statistics is None:
        assert (left == np.arange(1000, 2024)).all()
        return False
    assert statistics == found
    assert (left == right).all()
    return True


STORE, LOAD = "ds_write_b32 v1, v0", "ds_read_b32 v12, v6"
OTHERS = "v_xor_b32_e32 v6, 0x100, v1"
"""The address of what the wave beside this one stores."""
ONE_PLACE = "v_mov_b32_e32 v6, 0"
FIRST_WAVE = "s_cmp_eq_u32 s31, 0\ns_cbranch_scc0 L\n{}\nL:"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((STORE, "s_barrier", OTHERS, LOAD), True),
        ((STORE, OTHERS, LOAD), False),
        ((STORE, "s_barrier", OTHERS, LOAD, STORE), False),
        ((STORE, "s_barrier", OTHERS, LOAD, "s_barrier", STORE), True),
        (("ds_write_b8 v0, v0", "s_barrier", "ds_read_u8 v12, v0"), True),
        (("v_xor_b32_e32 v6, 1, v1", "ds_write_b8 v6, v0", "ds_write_b8 v1, v0"), True),
        # lanes at one place
        ((ONE_PLACE, FIRST_WAVE.format("ds_write_b32 v6, v9")), True),
        ((ONE_PLACE, FIRST_WAVE.format("ds_write_b32 v6, v0")), False),
        ((ONE_PLACE, FIRST_WAVE.format("ds_read_b32 v12, v6\nds_write_b32 v6, v9")), False),
        ((ONE_PLACE, LOAD, "s_barrier", FIRST_WAVE.format("ds_write_b32 v6, v9")), True),
        ((ONE_PLACE, "ds_write_b32 v6, v9"), False),  # right, as all store 5, but this is not known of other waves
        # atomics
        ((ONE_PLACE, "ds_add_u32 v6, v0", "s_barrier", LOAD), True),
        ((ONE_PLACE, "ds_add_u32 v6, v0", LOAD), False),
        ((ONE_PLACE, "ds_add_rtn_u32 v12, v6, v0"), False),
        (("global_atomic_add v1, v0, s[4:5]",), True),
        (("global_atomic_add v12, v1, v0, s[4:5] sc0",), False),
        # global memory, which the three workgroups share
        (("v_add_u32_e32 v6, s30, v1", "global_store_dword v6, v0, s[4:5]"), True),
        (("v_add_u32_e32 v6, s30, v1", "global_store_short v6, v0, s[4:5] offset:2"), True),
        (("global_load_dword v12, v1, s[4:5]", "s_load_dword s20, s[4:5], 0x40"), True),
        (("global_store_dword v1, v0, s[4:5]",), False),
        (("s_load_dword s20, s[4:5], 0x40", "v_add_u32_e32 v6, s30, v1", "global_store_dword v6, v0, s[4:5]"), False),
        (("global_load_dword v12, v1, s[4:5] sc1",), False),
        # barriers that a wave does not come to
        ((STORE, FIRST_WAVE.format("s_barrier"), OTHERS, LOAD), False),
        (("global_load_dword v12, v1, s[4:5]", FIRST_WAVE.format("s_endpgm"), "s_barrier"), False),
        ((FIRST_WAVE.format("s_nop 0"), "s_barrier"), True),
        # what native code leaves to the other machine
        (("v_mov_b32_e32 v6, -1", "ds_read_b32 v12, v6"), False),
    ],
)
def test_what_is_proved_and_what_is_not(lines: tuple[str, ...], expected: bool) -> None:
    assert is_proved("\n".join(lines)) is expected


def test_an_interrupt_ends_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flydsl.simulator.native.races._Watched._be_patient", interrupted)
    loop = "s_mov_b32 s20, 0x8000\nL:\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 L"
    with pytest.raises(KeyboardInterrupt):
        Launch(loop).proved()


# --- random programs

ADDRESSES = (
    *["v_mov_b32_e32 v6, v1"] * 3,
    "v_xor_b32_e32 v6, {any}, v1",
    "v_xor_b32_e32 v6, {within}, v1",
    "v_and_b32_e32 v6, {mask}, v1",
    "v_add_u32_e32 v6, {any}, v1",
    "v_mov_b32_e32 v6, v0",
    "v_lshlrev_b32_e32 v6, 1, v0",
    "v_mov_b32_e32 v6, {any}",
)


def address(rng: np.random.Generator, size: int) -> str:
    """An address of LDS in v6, for accesses of a size, from which a whole access is within the 1024 bytes."""
    numbers = {
        "any": hex(int(rng.integers(256)) * 4),
        "within": hex(int(rng.integers(64)) * 4),
        "mask": hex(int(rng.choice([0x3C, 0xFC, 0x3F0, 0x300, 0x3E0, 0x2FC]))),
    }
    within = 0x3FF - 15 if size > 4 else 0x3FF
    return f"{rng.choice(ADDRESSES).format(**numbers)}\nv_and_b32_e32 v6, {hex(within & ~(min(size, 4) - 1))}, v6"


def registers(first: int, size: int) -> str:
    return f"v{first}" if size <= 4 else f"v[{first}:{first + size // 4 - 1}]"


def lds_access(rng: np.random.Generator, kind: float) -> list[str]:
    width = str(rng.choice(list(LDS_SIZES)))
    size = LDS_SIZES[width]
    data = rng.choice(["v0", "v0", "v9", "v8"]) if size <= 4 else registers(8, size)
    instruction = f"ds_write_{width} v6, {data}" if kind < 0.92 else "ds_add_u32 v6, v0"
    if kind < 0.45:
        instruction = f"ds_read_{SMALL_LOADS.get(width, width)} {registers(12, size)}, v6"
    return [address(rng, size if kind < 0.92 else 4), instruction]


def global_access(rng: np.random.Generator, kind: float) -> list[str]:
    width = str(rng.choice(list(GLOBAL_SIZES)))
    size = GLOBAL_SIZES[width]
    data = rng.choice(["v0", "v0", "v9", "v8"]) if size <= 4 else registers(8, size)
    instruction = f"global_store_{width} v6, {data}, s[4:5]" if kind < 0.92 else "global_atomic_add v6, v0, s[4:5]"
    if kind < 0.45:
        instruction = f"global_load_{SMALL_LOADS.get(width, width)} {registers(12, size)}, v6, s[4:5]"
    own_part = ["v_add_u32_e32 v6, s30, v6"] if rng.random() < 0.8 else []
    return [address(rng, size if kind < 0.92 else 4), *own_part, instruction]


def access(rng: np.random.Generator) -> str:
    """A load, a store or an atomic, of all lanes or of some."""
    kind = rng.random()
    lines = lds_access(rng, kind) if rng.random() < 0.7 else global_access(rng, kind)
    if rng.random() < 0.2:
        mask = rng.choice(["1", "0xffff", "0xff0000ff00", "0xaaaaaaaaaaaaaaaa", "0x8000000000000000"])
        lines = [f"s_mov_b64 exec, {mask}", *lines, "s_mov_b64 exec, -1"]
    return "\n".join(lines)


def statement(rng: np.random.Generator, number: int, barrier: float) -> str:
    kind = rng.random()
    if kind < 0.04:
        return f"s_load_dword s20, s[4:5], {hex(4 * int(rng.integers(256)))}"
    if kind < 0.08:
        return "v_add_u32_e32 v8, 1, v12"
    if kind < 0.11:
        return f"s_cmp_eq_u32 s31, {rng.integers(WAVES)}\ns_cbranch_scc0 L{number}\ns_barrier\nL{number}:"
    if kind < 0.13:
        return f"s_cmp_eq_u32 s31, {rng.integers(WAVES)}\ns_cbranch_scc0 L{number}\ns_endpgm\nL{number}:"
    if kind < 0.13 + barrier:
        return "s_barrier"
    text = access(rng)
    if rng.random() < 0.3:
        return f"s_cmp_eq_u32 s31, {rng.integers(WAVES)}\ns_cbranch_scc0 L{number}\n{text}\nL{number}:"
    return text


def random_text(seed: int) -> str:
    rng = np.random.default_rng(seed)
    barrier = rng.choice([0.1, 0.3, 0.5])
    return "\n".join(statement(rng, number, barrier) for number in range(int(rng.integers(2, 14))))


def count_proved(first: int, count: int) -> int:
    return sum(is_proved(random_text(seed)) for seed in range(first, first + count))


@pytest.mark.slow
def test_what_is_proved_has_no_race() -> None:
    assert 15 < count_proved(0, 100) < 50


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_what_is_proved_of_more_programs_has_no_race(first: int) -> None:
    assert 10 < count_proved(first, 100) < 60
