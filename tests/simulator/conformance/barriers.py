"""Barriers of gfx1250, and operands that are skipped."""

from __future__ import annotations

import numpy as np

from tests.simulator.conformance.registry import conforms, execute, expect


@conforms("semantics/barrier_state", "gfx1250", refused="does not know s_get_barrier_state")
def state_of_barriers(arch: str) -> None:
    """Nobody has arrived: 0 of the workgroup's and of the trap handler's. SCC stays."""
    text = "\n".join(
        f"s_cmp_eq_u32 0, {scc}\ns_get_barrier_state s{at}, {barrier}\ns_cselect_b32 s{at + 1}, 1, 0"
        for at, (barrier, scc) in zip((8, 10, 12), ((-1, 0), (-2, 0), (-2, 1)), strict=True)
    )
    after = execute(text, arch, {})
    assert [after.s(i) for i in range(8, 14)] == [0, 1, 0, 1, 0, 0]


@conforms("semantics/barrier_signal_isfirst", "gfx1250")
def arrival(arch: str) -> None:
    """Two waves exchange halves of LDS across a barrier at which they arrive by the form that also sets SCC."""
    text = """
        ds_store_b32 v0, v1
        s_wait_dscnt 0
        s_barrier_signal_isfirst -1
        s_barrier_wait -1
        ds_load_b32 v2, v3
        s_wait_dscnt 0
    """
    lane = np.arange(64, dtype=np.uint32)
    after = execute(text, arch, {0: 4 * lane, 1: lane + 100, 3: 4 * ((lane + 32) & 63)}, lds=bytes(256))
    expect(after.v(2), [100 + ((i + 32) & 63) for i in range(64)], arch)


@conforms("semantics/flat_scratch_base", "gfx1250")
def what_is_skipped(arch: str) -> None:
    """The upper half of the base of scratch as an operand of 64 bits, in instructions that a branch skips."""
    text = """
        s_cmp_eq_u32 s8, 0
        s_cbranch_scc1 behind
        s_mov_b64 s[4:5], src_flat_scratch_base_hi
        s_lshl_b64 s[6:7], src_flat_scratch_base_hi, 0
        v_add_nc_u64_e64 v[0:1], src_flat_scratch_base_hi, v[2:3]
        behind:
    """
    scalars = {4: 0x5100000000000001, 6: 0x5100000000000002, 8: 0}
    lanes = 0x5100000000000100 + np.arange(32, dtype=np.uint64)
    after = execute(text, arch, {0: lanes, 2: np.zeros(32, np.uint64)}, s=scalars)
    assert [after.s(4, 2), after.s(6, 2)] == [scalars[4], scalars[6]]
    expect(after.v(0, np.uint64), lanes.tolist(), arch)
