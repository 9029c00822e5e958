"""What the tests of layernorm and rmsnorm share: operands of a variant, and its result in torch."""

from __future__ import annotations

from typing import Any

import torch

from kernels.norms import Norm, reference
from tests.kernels.rows import TYPES, assert_close, matrix, strided

CODES = {None: None, "i8": torch.int8, "fp8": torch.float8_e4m3fnuz}
LARGEST = {"i8": 127.0, "fp8": 240.0}
VARIANTS = [
    (residual, smooth, quant)
    for residual in (False, True)
    for smooth, quant in ((False, None), (False, "i8"), (False, "fp8"), (True, "i8"), (True, "fp8"))
]


def operands(norm: Norm, m: int, extra: int = 0, x: Any = None) -> dict[str, Any]:
    """The launcher's tensors, results filled with other numbers. extra: elements between rows."""
    n, dtype = norm.columns, norm.dtype
    random = torch.Generator().manual_seed(n)
    scale_type = TYPES[dtype] if norm.mean else torch.float32
    output = torch.full((m, n), 3.0).to(CODES[norm.quant] or TYPES[dtype])
    made = {
        "Input": matrix(m, n, dtype) if x is None else x,
        "ResidualIn": matrix(m, n, dtype, seed=1),
        "Gamma": torch.rand(n, generator=random).to(TYPES[dtype]),
        "Beta": torch.rand(n, generator=random).to(TYPES[dtype]),
        "XScale": (torch.rand(n, generator=random) + 0.5).to(scale_type),
        "Output": output,
        "ResidualOut": matrix(m, n, dtype, seed=2),
        "YScale": torch.full((m,), torch.nan),
    }
    return {
        name: strided(made[name], extra) if extra and name in ("Input", "ResidualIn", "ResidualOut") else made[name]
        for name in norm.tensors()
    }


def check(norm: Norm, given: dict[str, Any], x: Any) -> None:
    """Compare the results with torch's. x: the input as it was."""
    y, a = reference(norm, x, given["Gamma"], given.get("Beta"), given.get("ResidualIn"), given.get("XScale"))
    if norm.residual:
        assert torch.equal(given["ResidualOut"].nan_to_num(), a.nan_to_num())
    if norm.quant is None:
        assert_close(given["Output"], y, norm.dtype)
        return
    scales = y.abs().amax(-1) / LARGEST[norm.quant]
    scales[scales == 0] = 1
    torch.testing.assert_close(given["YScale"], scales, rtol=1e-5, atol=0)
    codes = given["Output"].float()
    expected = y / scales[:, None]
    # An integer is half a step away at most, an fp8 number half of a step of three bits.
    step = 0.5 if norm.quant == "i8" else expected.abs() / 16 + 2.0**-11
    assert ((codes - expected).abs() <= step * 1.001 + 1e-3).all()
