"""Row-wise kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from kernels import causal_conv1d, gdr_decode, gdr_prefill, qk_norm_rope_quant
from kernels.fused_rope_cache_kernel import build_fused_rope_cache_module
from kernels.norms import Norm, build
from kernels.quant import build_block_quant_module, build_quant_module
from kernels.silu_and_mul_fq import build_silu_and_mul_fq_module
from kernels.softmax_kernel import build_softmax_module
from kernels.topk_gating_softmax_kernel import build_topk_gating_softmax_module
from tests.kernels import (
    test_causal_conv1d,
    test_fused_rope_cache_kernel,
    test_gdr_decode,
    test_gdr_prefill,
    test_qk_norm_rope_quant,
    test_silu_and_mul_fq,
)
from tests.kernels.cases import ARCHS, Case, originals
from tests.kernels.norms import CODES, operands

ROWS = 304  # one for each compute unit of an MI300X
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def softmax(n: int, dtype: str) -> tuple[Any, tuple[Any, ...]]:
    a, c = (torch.zeros(ROWS, n, dtype=TYPES[dtype]) for _ in range(2))
    return build_softmax_module(ROWS, n, dtype), (a, c, ROWS)


def as_bytes(arguments: Any) -> tuple[Any, ...]:
    """The arguments, those of fp8 as bytes: which fp8 it is depends on the architecture."""
    fp8 = (torch.float8_e4m3fnuz, torch.float8_e4m3fn)
    return tuple(a.view(torch.uint8) if getattr(a, "dtype", None) in fp8 else a for a in arguments)


def norm(n: int, mean: bool, residual: bool, smooth: bool, quant: str | None, dtype: str) -> Any:
    variant = Norm(columns=n, dtype=dtype, mean=mean, residual=residual, smooth=smooth, quant=quant)
    return build(variant), as_bytes((*operands(variant, ROWS).values(), ROWS))


def norms(mean: bool) -> dict[str, Case]:
    """Every variant, and the plain one at short rows."""
    kernel, made = ("layernorm_kernel" if mean else "rmsnorm_kernel"), {}
    for quant, smooth in ((None, False), ("i8", False), ("i8", True), ("fp8", False)):
        for residual in (False, True):
            name = Norm(columns=1, dtype="f32", mean=mean, residual=residual, smooth=smooth, quant=quant).name + (
                "_fp8" if quant == "fp8" else ""
            )
            made |= of_types(f"{name}_{{}}", kernel, norm, 8192, mean, residual, smooth, quant, test="test_norms.py")
    name = Norm(columns=1, dtype="f32", mean=mean).name
    for n in (2000,) if mean else (2000, 512):
        place = "n2000" if n == 2000 else "m16384_n512"
        made |= of_types(f"{name}_{place}_{{}}", kernel, norm, n, mean, False, False, None, test="test_norms.py")
    return made


def quant(n: int, dtype: str, target: str) -> tuple[Any, tuple[Any, ...]]:
    x, out = torch.zeros(ROWS, n, dtype=TYPES[dtype]), torch.zeros(ROWS, n, dtype=CODES[target])
    return build_quant_module(n, dtype, target)[0], as_bytes((x, out, torch.zeros(ROWS), ROWS))


def block_quant(n: int, dtype: str, target: str, group: int) -> tuple[Any, tuple[Any, ...]]:
    out = torch.zeros(ROWS, n // 2 if target == "mxfp4" else n, dtype=torch.uint8)
    scales = torch.zeros(ROWS, n // group, dtype=torch.uint8 if target.startswith("mx") else torch.float32)
    x = torch.zeros(ROWS, n, dtype=TYPES[dtype])
    return build_block_quant_module(n, dtype, target, group), (x, out, scales, ROWS)


def silu(inter: int, topk: int, quant: str, gui: bool = False) -> tuple[Any, tuple[Any, ...]]:
    given = test_silu_and_mul_fq.operands(32, topk, inter, quant)
    launcher = build_silu_and_mul_fq_module(inter, topk, quant, gui)
    return launcher, (*given.values(), 32, len(given["sorted_ids"]))


def gating(e: int, k: int, dtype: str) -> tuple[Any, tuple[Any, ...]]:
    indices = [torch.zeros(ROWS, k, dtype=torch.int32) for _ in range(2)]
    numbers = torch.zeros(ROWS, e, dtype=TYPES[dtype])
    return build_topk_gating_softmax_module(e, k, dtype), (numbers, torch.zeros(ROWS, k), *indices, ROWS)


def rope(d: int, dtype: str, flash: bool, fp8: bool = False, half: bool = True) -> tuple[Any, tuple[Any, ...]]:
    given = test_fused_rope_cache_kernel.operands((32, 8, 1, d), dtype, flash, False, half, fp8)
    launcher = build_fused_rope_cache_module(
        d, flash_layout=flash, dtype_str=dtype, apply_scale=fp8, reuse_freqs_front_part=half
    )
    return launcher, as_bytes(given.values())


def ropes() -> dict[str, Case]:
    """Both layouts, types and sizes of heads, and fp8 caches and frequencies of their own for one of each."""
    variants = [(d, t, flash, False, True) for d in (64, 128) for t in ("bf16", "f16") for flash in (True, False)]
    variants += [(128, "bf16", True, True, True), (128, "bf16", False, True, True), (128, "bf16", True, False, False)]
    made = {}
    for d, t, flash, fp8, half in variants:
        name = f"rope_{t}_d{d}_{'' if flash else 'non'}flash{'_fp8' * fp8}{'' if half else '_fullfreq'}"
        types = f"{t}, fp8" if fp8 else t
        given = (d, t, flash, fp8, half)
        made[name] = Case("fused_rope_cache_kernel", types, lambda given=given: rope(*given))
    return made


def qk(group: int | None) -> tuple[Any, tuple[Any, ...]]:
    q, kv, weight, cos, sin, positions = test_qk_norm_rope_quant.operands(32, 16, 64)
    heads = qk_norm_rope_quant.Heads(q_heads=16, rope_dim=64, group=group, scale_dtype="fp32")
    tensors = {"q": q, "kv": kv, "kv_weight": weight, "cos": cos, "sin": sin, "positions": positions}
    tensors |= qk_norm_rope_quant.results(q, kv, heads)
    return qk_norm_rope_quant.build(tuple(tensors), heads), (*tensors.values(), 32)


def gated_delta(state: str, tokens: int = 1) -> tuple[Any, tuple[Any, ...]]:
    given = test_gdr_decode.operands((4, tokens, 4, 16, 128, 128), TYPES[state])
    launcher = gdr_decode.build_gdr_decode_module(4, 16, state_dtype=state, tokens=tokens)
    return launcher, (*given.values(), 4)


def gated_delta_prompt(tokens: int, k_heads: int, v_heads: int) -> tuple[Any, tuple[Any, ...]]:
    """A sequence, with heads of 128."""
    given = test_gdr_prefill.operands(((tokens,), k_heads, v_heads, 128, 128))
    tensors = *given.values(), *gdr_prefill.room_for_chunks(given["query"], given["value"], 1)
    launcher = gdr_prefill.build_gdr_prefill_module(k_heads, v_heads)
    return launcher, (*(tensor.view(-1) for tensor in tensors), 1, tokens)


def convolution(width: int, tokens: int = 1) -> tuple[Any, tuple[Any, ...]]:
    given = test_causal_conv1d.operands((4, tokens, 8192, width))
    return causal_conv1d.build_causal_conv1d_module(8192, width, tokens=tokens), (*given.values(), 4)


def convolved_prompts(lengths: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    given = test_causal_conv1d.prompts(lengths, 8192, 4)
    tensors = (given[name].view(-1) for name in causal_conv1d.OF_PROMPTS.split())
    return causal_conv1d.build_causal_conv1d_prefill_module(8192), (*tensors, len(lengths), max(lengths))


QUANT_CASES = {
    "quant_pertoken_f16_n8192": Case("quant", "f16, i8", lambda: quant(8192, "f16", "i8")),
    "quant_pertoken_bf16_fp8": Case("quant", "bf16, fp8", lambda: quant(8192, "bf16", "fp8")),
    "quant_block_bf16_mxfp4": Case("quant", "bf16, mxfp4", lambda: block_quant(8192, "bf16", "mxfp4", 32)),
    "quant_block_bf16_mxfp8": Case("quant", "bf16, mxfp8", lambda: block_quant(8192, "bf16", "mxfp8", 32)),
    "quant_block_bf16_fp8": Case("quant", "bf16, fp8", lambda: block_quant(8192, "bf16", "fp8", 128)),
    "silu_mul_fq_fp4_i2048k8": Case("silu_and_mul_fq", "bf16, mxfp4", lambda: silu(2048, 8, "fp4")),
    "silu_mul_fq_fp8_i2048k8": Case("silu_and_mul_fq", "bf16, mxfp8", lambda: silu(2048, 8, "fp8")),
    "silu_mul_fq_none_i2048k8": Case("silu_and_mul_fq", "bf16", lambda: silu(2048, 8, "none")),
    "silu_mul_fq_fp4_i2048k8_gui": Case("silu_and_mul_fq", "bf16, mxfp4", lambda: silu(2048, 8, "fp4", gui=True)),
    "silu_mul_fq_fp4_i256k9": Case("silu_and_mul_fq", "bf16, mxfp4", lambda: silu(256, 9, "fp4")),
}


def of_types(name: str, kernel: str, make: Any, *given: Any, test: str = "") -> dict[str, Case]:
    """A case for each type."""
    return {name.format(t): Case(kernel, t, lambda t=t: make(*given, t), test=test) for t in TYPES}


_CASES: dict[str, Case] = {
    **of_types("softmax_{}", "softmax_kernel", softmax, 8192),
    **of_types("softmax_n2000_{}", "softmax_kernel", softmax, 2000),
    **norms(mean=True),
    **norms(mean=False),
    **QUANT_CASES,
    **of_types("topk_gating_e128k8_{}", "topk_gating_softmax_kernel", gating, 128, 8),
    **of_types("topk_gating_e256k8_{}", "topk_gating_softmax_kernel", gating, 256, 8),
    "topk_gating_e64k6_bf16": Case("topk_gating_softmax_kernel", "bf16", lambda: gating(64, 6, "bf16")),
    "topk_gating_e8k2_bf16": Case("topk_gating_softmax_kernel", "bf16", lambda: gating(8, 2, "bf16")),
    **ropes(),
    "qk_norm_rope_bf16": Case("qk_norm_rope_quant", "bf16", lambda: qk(None)),
    "qk_norm_rope_fp8_g128": Case("qk_norm_rope_quant", "bf16, fp8", lambda: qk(128)),
    "gdr_decode_f32": Case("gdr_decode", "bf16, f32", lambda: gated_delta("f32")),
    "gdr_decode_bf16": Case("gdr_decode", "bf16", lambda: gated_delta("bf16")),
    "gdr_decode_f32_l4": Case("gdr_decode", "bf16, f32", lambda: gated_delta("f32", 4)),
    "gdr_prefill_f32": Case("gdr_prefill", "bf16, f32", lambda: gated_delta_prompt(256, 2, 4)),
    "causal_conv1d_w4": Case("causal_conv1d", "bf16", lambda: convolution(4), archs=(*ARCHS, "gfx1201")),
    "causal_conv1d_w4_l4": Case("causal_conv1d", "bf16", lambda: convolution(4, 4), archs=(*ARCHS, "gfx1201")),
    "causal_conv1d_prompts": Case("causal_conv1d", "bf16", lambda: convolved_prompts((500, 12)), archs=ARCHS),
}
RDNA4 = "gfx1201"
# On RDNA 4 as well where there is a figure to compare with: of f32 and bf16.
CASES: dict[str, Case] = {
    name: replace(case, archs=(*case.archs, RDNA4)) if (name, RDNA4) in originals() else case
    for name, case in _CASES.items()
}
_FEW = "up to three VGPRs more, of the 64 that eight waves leave to each"
_ROPES = {
    "rope_bf16_d64_flash": ("gfx950",),
    "rope_f16_d64_flash": ("gfx942",),
    "rope_f16_d64_nonflash": ("gfx942",),
    "rope_bf16_d128_flash": ("gfx942", "gfx950"),
    "rope_bf16_d128_nonflash": ("gfx942",),
    "rope_f16_d128_flash": ("gfx942",),
    "rope_f16_d128_nonflash": ("gfx942",),
    "rope_bf16_d128_flash_fp8": ("gfx942",),
    "rope_bf16_d128_nonflash_fp8": ("gfx942",),
    "rope_bf16_d128_flash_fullfreq": ("gfx942",),
}
_MORE_ON_RDNA4 = (
    "fused_add_layernorm_bf16",
    *(f"topk_gating_{name}" for name in ("e128k8_f32", "e128k8_bf16", "e256k8_f32", "e256k8_bf16", "e64k6_bf16",
                                         "e8k2_bf16")),
)  # fmt: skip
_SILU = "up to five VGPRs more, as the columns of a thread are computed together; eight waves as well"
_RDNA4 = "more loads under way at once; sixteen waves as well"
_SOFTMAX = "up to two VGPRs more in half as many waves, which reduce in fewer steps; eight waves as well"
MISSES: dict[tuple[str, str], str] = {
    **{(name, RDNA4): _RDNA4 for name in _MORE_ON_RDNA4},
    **{(name, arch): _FEW for name, archs in _ROPES.items() for arch in archs},
    **{(f"silu_mul_fq_{name}", arch): _SILU for name in ("fp4_i2048k8", "fp4_i2048k8_gui") for arch in ARCHS},
    ("silu_mul_fq_fp8_i2048k8", "gfx950"): "one VGPR more, in 34 instructions fewer; eight waves as well",
    **{("softmax_n2000_bf16", arch): _SOFTMAX for arch in ARCHS},
    ("softmax_n2000_f16", "gfx942"): _SOFTMAX,
    ("softmax_n2000_f32", "gfx950"): _SOFTMAX,
    ("fused_add_layernorm_f16", "gfx942"): "four VGPRs more, as all loads are under way at once; eight waves as well",
}
