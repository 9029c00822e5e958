"""Launchers compute the same on every host, with and without instructions for f16 and bf16."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.dialect.context import context
from flydsl.runtime import host_target

HALFWAY = [1.00048828125, 1.00048828126, 1.00390625, 1.00390626, 65519.0, 65520.0, 3.3895e38, 3.4e38]
SMALL = [5.9e-8, 2.98e-8, 2.9e-8, 1e-39, 9.1835e-41, 4.6e-41, 4.5e-41, 1e-320]
VALUES = [0.0, *HALFWAY, *SMALL, 1e300, math.inf]


@flyc.kernel
def keep(bits: fx.Tensor, half: fx.Int32, bfloat: fx.Int32, again: fx.Float64, whole: fx.Int32) -> None:
    bits[0], bits[1], bits[2] = half, bfloat, whole
    bits[3] = again.to(fx.Float32).bitcast(fx.Int32)


@flyc.jit
def narrow(bits: fx.Tensor, x: fx.Float64) -> None:
    half, bfloat = x.to(fx.Float16), x.to(fx.Float32).to(fx.BFloat16)
    whole = half.to(fx.Int16).to(fx.Int32)
    keep(bits, half.bitcast(fx.Int16).to(fx.Int32), x.to(fx.BFloat16).bitcast(fx.Int16).to(fx.Int32),
         bfloat.to(fx.Float64) + half.to(fx.Float64), whole).launch(grid=1, block=1)  # fmt: skip


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_narrow_floats_of_launchers(sign: float) -> None:
    for value in (sign * v for v in VALUES):
        bits = torch.zeros(4, dtype=torch.int32)
        narrow(bits, value)
        half = nearest_half(value)
        bfloat = torch.tensor(value, dtype=torch.float32).bfloat16()
        assert bits[0] == half.view(np.int16), value
        assert bits[1] == nearest_bfloat(value), value
        assert bits[2] == max(-(1 << 15), min((1 << 15) - 1, int(max(-1e9, min(1e9, float(half)))))), value
        assert bits[3] == (bfloat.double() + float(half)).float().view(torch.int32), value


@flyc.kernel
def keep_one(bits: fx.Tensor, value: fx.Int32) -> None:
    bits[0] = value


@flyc.jit
def shifted_bits(bits: fx.Tensor, x: fx.Float32) -> None:
    keep_one(bits, (-x.to(fx.BFloat16)).bitcast(fx.Int16).to(fx.Int32) >> 15).launch(grid=1, block=1)


def test_the_bits_of_a_bf16_are_shifted() -> None:
    """LLVM's x86 back end ends the process at these operations, if the bits do not go through memory."""
    bits = torch.zeros(1, dtype=torch.int32)
    shifted_bits(bits, 1.5)
    assert bits[0] == torch.tensor([-1.5], dtype=torch.bfloat16).view(torch.int16).int()[0] >> 15


def nearest_half(value: float) -> np.float16:
    with np.errstate(over="ignore"):
        return np.float16(value)


def nearest_bfloat(value: float) -> int:
    """The bits, signed, of the bf16 next to a float, and of the even one of two: without a step over f32."""
    least = struct.unpack("<f", struct.pack("<I", 1 << 16))[0]
    quantum = max(math.ldexp(1, math.frexp(value)[1] - 8), least) if math.isfinite(value) else 1.0
    rounded = round(value / quantum) * quantum if math.isfinite(value) else value
    limit = math.ldexp(1, 128)
    wide = struct.pack("<f", math.copysign(math.inf, value) if abs(rounded) >= limit else math.copysign(rounded, value))
    return int(struct.unpack("<hh", wide)[1])


def test_a_nan_is_no_number() -> None:
    bits = torch.zeros(4, dtype=torch.int32)
    narrow(bits, math.nan)
    assert bits[0] & 0x7FFF > 0x7C00
    assert bits[1] & 0x7FFF > 0x7F80
    assert bits[2] == 0


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_functions_do_not_get_the_hosts_features(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    text = "llvm.func @f(%x: f16) -> f32 { %y = llvm.fpext %x : f16 to f32 llvm.return %y : f32 }"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        before = str(module)
        with host_target.for_any_host(module):
            functions: list[Any] = list(module.body)
            assert len(functions) == 6
            assert module.operation.verify()
            for function in functions:
                cpu, features = map(str, function.attributes["passthrough"])
                assert host_target.TARGETS[machine][0] in cpu
                assert host_target.TARGETS[machine][1] in features
        assert str(module) == before
