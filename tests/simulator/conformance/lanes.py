"""Values from other lanes: DPP, permutations of rows, ds_swizzle, ds_permute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flydsl.arch import get_arch
from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import EVERY, RDNA3_ON, RDNA4_ON, conforms, execute, expect


def value(lane: int) -> int:
    return 0x9E370000 | (lane * 0x21 + 0x13 & 0xFFFF)


def values(lanes: int) -> Array:
    return np.array([value(lane) for lane in range(lanes)], np.uint32)


def from_lanes(arch: str, text: str, source: Callable[[int], int], lanes: int, old: int = 7, **options: int) -> None:
    """`text` moves v0 to v1, of which lane i is then that of `source(i)`."""
    got = execute(text, arch, {0: values(lanes), 1: old}, lanes=lanes, **options).v(1)
    expect(got, [value(source(lane)) for lane in range(lanes)], f"{arch}, waves of {lanes}: {text}")


def both_sizes(arch: str) -> tuple[int, ...]:
    """Lanes of a wave: RDNA has waves of both sizes."""
    return (32, 64) if arch in ("gfx1100", "gfx1201") else (get_arch(arch).wave_size,)


@conforms("general/int_isa/dpp", EVERY)
def lanes_of_four(arch: str) -> None:
    for lanes in both_sizes(arch):
        masks = "row_mask:0xf bank_mask:0xf"
        from_lanes(arch, f"v_mov_b32_dpp v1, v0 quad_perm:[1,0,3,2] {masks}", lambda i: i ^ 1, lanes)
        old = values(lanes) ^ np.uint32(0xFFFFFFFF)
        text = "v_mov_b32_dpp v1, v0 quad_perm:[1,0,3,2] row_mask:0x5 bank_mask:0xf"
        wanted = [value(i ^ 1) if 0x5 >> (i >> 4) & 1 else int(old[i]) for i in range(lanes)]
        expect(execute(text, arch, {0: values(lanes), 1: old}, lanes=lanes).v(1), wanted, f"{arch}: some rows")


@conforms("general/int_isa/dpp (of eight)", RDNA3_ON)
def lanes_of_eight(arch: str) -> None:
    for lanes in both_sizes(arch):
        from_lanes(arch, "v_mov_b32_dpp v1, v0 dpp8:[1,0,3,2,5,4,7,6]", lambda i: i ^ 1, lanes)


@conforms("general/int_isa/ds_swizzle", EVERY)
def patterns(arch: str) -> None:
    for lanes in both_sizes(arch):
        from_lanes(arch, "ds_swizzle_b32 v1, v0 offset:0x041f", lambda i: i ^ 1, lanes)
        from_lanes(arch, "ds_swizzle_b32 v1, v0 offset:0x80b1", lambda i: i ^ 1, lanes)


@conforms("general/int_isa/permlane (variable)", RDNA4_ON)
def rows_by_a_register(arch: str) -> None:
    for lanes in both_sizes(arch):
        index = (np.arange(lanes, dtype=np.uint32) & 15) ^ 3
        for name, other_row in (("v_permlane16_var_b32", 0), ("v_permlanex16_var_b32", 16)):
            got = execute(f"{name} v1, v0, v2", arch, {0: values(lanes), 1: 0xDEADBEEF, 2: index}, lanes=lanes).v(1)
            expect(got, [value((i ^ other_row) & ~15 | (i & 15) ^ 3) for i in range(lanes)], f"{arch}: {name}")


@conforms("general/int_isa/permlane (fixed)", RDNA3_ON)
def rows_by_constants(arch: str) -> None:
    selectors = {4: 0x67452301, 5: 0xEFCDAB89}
    for lanes in both_sizes(arch):
        from_lanes(arch, "v_permlane16_b32 v1, v0, s4, s5", lambda i: i ^ 1, lanes, s=selectors)  # type: ignore[arg-type]
        from_lanes(arch, "v_permlanex16_b32 v1, v0, s4, s5", lambda i: i ^ 17, lanes, s=selectors)  # type: ignore[arg-type]


@conforms("general/int_isa/permlane (halves)", RDNA3_ON)
def halves_of_a_wave(arch: str) -> None:
    """In waves of 32 lanes nothing happens."""
    for lanes in both_sizes(arch):
        if lanes == 64:
            from_lanes(arch, "v_permlane64_b32 v1, v0", lambda i: i ^ 32, lanes)
        else:
            old = values(32) ^ np.uint32(0x12345678)
            expect(execute("v_permlane64_b32 v1, v0", arch, {0: values(32), 1: old}).v(1), old.tolist(), arch)


@conforms("general/int_isa/ds_permute", EVERY)
def permutations(arch: str) -> None:
    """A lane that is not active gives zero."""
    for lanes in both_sizes(arch):
        following = 4 * ((np.arange(lanes, dtype=np.uint32) + 1) % lanes)
        half = 4 * (np.arange(lanes, dtype=np.uint32) ^ (lanes // 2))
        operands = {0: values(lanes), 2: following, 3: half}
        names = ("bpermute", "permute")
        lines = (f"ds_{name}_b32 v{4 + 2 * i + j}, v{2 + i}, v0" for i in range(2) for j, name in enumerate(names))
        text = "\n".join(lines)
        after = execute(text, arch, operands, lanes=lanes)
        expect(after.v(4), [value((i + 1) % lanes) for i in range(lanes)], f"{arch}: gather")
        expect(after.v(5), [value((i - 1) % lanes) for i in range(lanes)], f"{arch}: scatter")
        for register in (6, 7):
            expect(after.v(register), [value(i ^ lanes // 2) for i in range(lanes)], f"{arch}: halves")
        even = sum(1 << i for i in range(0, lanes, 2))
        operands[4] = np.full(lanes, 0xC001D00D, np.uint32)
        after = execute("ds_bpermute_b32 v4, v2, v0", arch, operands, lanes=lanes, exec_bits=even)
        expect(after.v(4), [0xC001D00D if i % 2 else 0 for i in range(lanes)], f"{arch}: from inactive lanes")


@conforms("general/int_isa/ds_permute (inactive, too)", RDNA4_ON)
def permutations_that_fetch_inactive_lanes(arch: str) -> None:
    for lanes in both_sizes(arch):
        operands = {0: values(lanes), 2: 4 * ((np.arange(lanes, dtype=np.uint32) + 1) % lanes), 4: 0xC001D00D}
        even = sum(1 << i for i in range(0, lanes, 2))
        for exec_bits in (even, (1 << lanes) - 1):
            after = execute("ds_bpermute_fi_b32 v4, v2, v0", arch, operands, lanes=lanes, exec_bits=exec_bits)
            wanted = [value((i + 1) % lanes) if exec_bits >> i & 1 else 0xC001D00D for i in range(lanes)]
            expect(after.v(4), wanted, f"{arch}, waves of {lanes}")
