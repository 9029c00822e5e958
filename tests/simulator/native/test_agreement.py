"""Where backends could drift apart: orders of accumulation, random bits, partial EXEC. `run` compares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
EVERY_THIRD = sum(1 << lane for lane in range(0, 64, 3))


def random_registers(count: int, seed: int) -> dict[int, np.ndarray[Any, Any]]:
    """Every bit pattern: exponents far apart, so that the order of additions shows in the result."""
    rng = np.random.default_rng(seed)
    return {register: rng.integers(0, 1 << 32, 64, np.uint32, endpoint=False) for register in range(count)}


@pytest.mark.parametrize(
    "text",
    [
        "v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[8:11]",
        "v_mfma_f32_32x32x8_f16 v[0:15], v[4:5], v[6:7], v[8:23]",
        "v_mfma_f32_32x32x2_f32 a[0:15], v4, v6, v[8:23]",
        "v_mfma_f32_4x4x4_16b_bf16 v[0:3], v[4:5], v[6:7], v[8:11]",
        "v_mfma_i32_32x32x4_2b_i8 v[32:63], v4, v6, v[0:31]",
        "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[16:23]",
        "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[8:9], v[10:11], v[16:17]",
        "v_smfmac_f32_16x16x32_bf16 v[0:3], v[4:5], v[6:9], v10",
    ],
)
def test_matrix_products_of_any_bits(run: Run, text: str) -> None:
    run(text, v=random_registers(64, seed=1), exec_bits=EVERY_THIRD)


PRODUCT = "v_mfma_f32_16x16x32_fp8_fp8 v[32:35], v[4:5], v[6:7], v[8:11]"
"""Native code keeps the elements of v[4:5] and v[6:7] for the next one."""


@pytest.mark.parametrize(
    "following",
    [
        "v_mfma_f32_16x16x32_fp8_fp8 v[36:39], v[4:5], v[12:13], v[8:11]",
        "v_mfma_f32_16x16x32_fp8_fp8 v[36:39], v[6:7], v[4:5], v[8:11]",
        "v_mfma_f32_16x16x32_fp8_fp8 v[36:39], v[4:5], v[4:5], v[8:11]",
        "v_mfma_f32_16x16x32_fp8_fp8 v[36:39], v[20:21], v[22:23], v[8:11]\n" + PRODUCT,
        "v_mfma_f32_16x16x32_bf8_fp8 v[36:39], v[4:5], v[6:7], v[8:11]",
        "v_mfma_f32_32x32x16_fp8_fp8 v[36:51], v[4:5], v[6:7], v[8:23]",
        "v_xor_b32 v5, v5, v6\n" + PRODUCT,
        "v_mov_b32_dpp v6, v7 row_shr:3 row_mask:0xb bank_mask:0xf\n" + PRODUCT,
        "s_mov_b64 exec, 1\nv_mov_b32 v7, 0\n" + PRODUCT,
        "s_barrier\n" + PRODUCT,
    ],
)
def test_products_one_after_the_other(run: Run, following: str) -> None:
    rng = np.random.default_rng(2)
    of_two_waves = {register: rng.integers(0, 1 << 32, 128, np.uint32) for register in range(24)}
    run(f"{PRODUCT}\n{following}", v=of_two_waves)


@pytest.mark.parametrize(
    "text",
    [
        "v_exp_f32 v0, v1",
        "v_log_f32 v0, v1",
        "v_sin_f32 v0, v1",
        "v_cos_f16 v0, v1",
        "v_rsq_f32 v0, v1",
        "v_rcp_f64 v[0:1], v[2:3]",
        "v_ldexp_f64 v[0:1], v[2:3], v4",
        "v_ldexp_f32 v0, v1, v2",
        "v_frexp_mant_f64 v[0:1], v[2:3]",
        "v_div_scale_f32 v0, vcc, v1, v2, v1",
        "v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7]",
        "v_fma_f16 v0, v1, v2, v3",
        "v_pk_fma_f16 v0, v1, v2, v3 op_sel:[0,1,0] neg_lo:[1,0,0]",
        "v_mov_b32_dpp v0, v1 row_shr:3 row_mask:0xb bank_mask:0xf",
        "v_add_f32_dpp v0, v1, v2 row_ror:5 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        "ds_bpermute_b32 v0, v1, v2 offset:12",
        "ds_permute_b32 v0, v1, v2",
        "v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]",
        "v_cmpx_gt_f32 vcc, v1, v2\nv_mov_b32 v0, v3",
        "v_perm_b32 v0, v1, v2, v3",
    ],
)
@pytest.mark.parametrize("mode", [0x3F0, 0x000])
@pytest.mark.parametrize("exec_bits", [(1 << 64) - 1, EVERY_THIRD, 0])
def test_any_bits_under_any_mask(run: Run, text: str, mode: int, exec_bits: int) -> None:
    run(text, v=random_registers(8, seed=2), s={106: 0x123456789ABCDEF0}, exec_bits=exec_bits, mode=mode)


def test_small_floats_keep_their_last_bit(run: Run) -> None:
    """Results near the denormal range round once, whichever way they are made."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(64) * 2.0 ** rng.integers(-1070, -1000, 64)).view(np.uint64)
    run(
        "v_ldexp_f64 v[4:5], v[0:1], v2\nv_div_fmas_f64 v[6:7], v[0:1], v[0:1], v[0:1]\nv_mul_f64 v[8:9], v[0:1], 0.5",
        v={0: x, 2: rng.integers(-60, 60, 64).astype(np.int32)},
        s={106: EVERY_THIRD},
    )
