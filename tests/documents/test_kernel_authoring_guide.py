"""The snippets of the kernel authoring guide that no other test has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.expr as fx
from flydsl.expr import buffer_ops, rocdl
from flydsl.expr.typing import T
from flydsl.expr.typing import Vector as Vec

Run = Callable[..., None]
Compile = Callable[..., str]
LANE = torch.arange(64)


def test_arithmetic(launched: Run) -> None:
    def body(Out: Any) -> None:
        c42, c3_14, mask = fx.Index(42), fx.Float32(3.14), fx.Int32(0xFF)
        i32_val = fx.thread_idx.x
        idx = fx.Index(i32_val)
        a, b = i32_val * 5, mask
        cond = i32_val < 7
        whole = [idx + c42, a * 2, a // 4, a % 16, fx.Int32(idx), cond.select(a, b), a & b, a ^ b, a << 4]
        for j, result in enumerate(whole):
            Out[i32_val, j] = fx.Float32(fx.Int32(result))
        Out[i32_val, 9] = c3_14 * i32_val

    out = torch.zeros(64, 10)
    launched(body, out)
    a, b = LANE * 5, 0xFF
    expected = [LANE + 42, a * 2, a // 4, a % 16, LANE, torch.where(LANE < 7, a, b), a & b, a ^ b, a << 4]
    columns = [column.float() for column in expected] + [torch.tensor(3.14) * LANE.float()]
    assert torch.equal(out, torch.stack(columns, dim=1))


def test_explicit_fastmath(assembly: Compile) -> None:
    from flydsl._mlir.dialects import arith

    def body(A: Any) -> None:
        x = A[fx.thread_idx.x]
        product = arith.MulFOp(x, x, fastmath=arith.FastMathFlags.contract).result
        A[fx.thread_idx.x] = arith.AddFOp(product, x, fastmath=arith.FastMathFlags.contract).result

    assert "v_fma" in assembly(body, torch.zeros(64))


def test_vectors(launched: Run) -> None:
    def body(A: Any, Out: Any) -> None:
        i = fx.thread_idx.x
        a, b, c, d = (A[4 * i + j] for j in range(4))
        vec = Vec.from_elements([a, b, c, d], fx.Float32)
        idx = fx.Index(i * 16)
        vec.store(Out, [idx])
        elem = vec[1]
        as_i32 = vec.bitcast(fx.Int32)
        as_bf16 = vec.to(fx.BFloat16)
        Vec.from_elements([elem] * 4, fx.Float32).store(Out, [idx + 4])
        (as_i32 & -65536).bitcast(fx.Float32).store(Out, [idx + 8])
        as_bf16.to(fx.Float32).store(Out, [idx + 12])

    a, out = torch.randn(64, 4), torch.zeros(64, 16)
    launched(body, a.flatten(), out.view(-1))
    cut = (a.view(torch.int32) & -65536).view(torch.float32)
    assert torch.equal(out, torch.cat([a, a[:, 1:2].expand(64, 4), cut, a.bfloat16().float()], dim=1))


def test_the_type_of_a_matrix_instruction() -> None:
    atom_type = rocdl.MFMA(m=16, n=16, k=32, elem_ty_ab=fx.Float8E4M3FNUZ)
    assert "16x16x32" in str(atom_type)
    assert "f8E4M3FNUZ" in str(atom_type)


FORMATS = {
    "mfma_f32_16x16x16_f16": (torch.float16, 16),
    "mfma_f32_16x16x16f16": (torch.float16, 16),
    "mfma_f32_16x16x16bf16_1k": (torch.bfloat16, 16),
    "mfma_f32_16x16x32_fp8_fp8": (torch.float8_e4m3fnuz, 32),
    "mfma_f32_16x16x32_fp8": (torch.float8_e4m3fnuz, 32),
    "mfma_i32_16x16x32_i8": (torch.int8, 32),
    "mfma_i32_16x16x32i8": (torch.int8, 32),
}


@pytest.mark.parametrize("name", FORMATS)
def test_matrix_instructions(launched: Run, name: str) -> None:
    dtype, k = FORMATS[name]
    generator = torch.Generator().manual_seed(k)
    a, b = (torch.randint(-4, 5, (16, k), generator=generator).to(dtype) for _ in range(2))
    lanes_a, lanes_b = (x.view(16, 4, k // 4).transpose(0, 1).contiguous().view(torch.int32).flatten() for x in (a, b))
    packed = {16: Vec, 32: fx.Int64}[k]

    def body(A: Any, B: Any, Out: Any) -> None:
        lane = fx.thread_idx.x
        words = [
            buffer_ops.buffer_load(buffer_ops.create_buffer_resource(X), lane * 2, vec_width=2, dtype=T.i32)
            for X in (A, B)
        ]
        if packed is Vec:
            a, b = (Vec(word).bitcast(fx.Float16 if dtype is torch.float16 else fx.Int16) for word in words)
        else:
            a, b = (Vec(word).bitcast(fx.Int64)[0] for word in words)
        number, result_type = (fx.Int32, T.i32x4) if "_i32_" in name else (fx.Float32, T.f32x4)
        acc = Vec.filled(4, 0, number)
        result = getattr(rocdl, name)(result_type, [a, b, acc])
        Vec(result).store(Out, [fx.Index(lane * 4)])

    out = torch.zeros(256, dtype=torch.int32 if "_i32_" in name else torch.float32)
    launched(body, lanes_a, lanes_b, out)
    assert torch.equal(out.view(4, 16, 4).permute(0, 2, 1).reshape(16, 16).float(), a.float() @ b.float().T)


def test_the_scaled_matrix_instruction_of_gfx950(assembly: Compile) -> None:
    def body(A: Any) -> None:
        a = b = Vec.filled(8, fx.Int32(A[0]), fx.Int32)
        acc = Vec.filled(4, 0.0, fx.Float32)
        cbsz = blgp = 0
        opselA = opselB = 0
        scaleA = scaleB = fx.Int32(0x7F7F7F7F)
        result = rocdl.mfma_scale_f32_16x16x128_f8f6f4(T.f32x4, [a, b, acc, cbsz, blgp, opselA, scaleA, opselB, scaleB])
        A[fx.thread_idx.x] = Vec(result)[0]

    assert "v_mfma_scale_f32_16x16x128_f8f6f4" in assembly(body, torch.zeros(64), arch="gfx950")


def test_scheduling(launched: Run) -> None:
    def body(A: Any, Out: Any) -> None:
        i = fx.thread_idx.x
        value = A[i]
        for cnt, schedule in enumerate((rocdl.sched_mfma, rocdl.sched_vmem, rocdl.sched_dsrd, rocdl.sched_dswr)):
            schedule(cnt)
        Out[i] = value + 1

    a, out = torch.randn(64), torch.zeros(64)
    launched(body, a, out)
    assert torch.equal(out, a + 1)


def test_mathematics_of_the_hardware(launched: Run) -> None:
    def body(A: Any, Out: Any) -> None:
        i = fx.thread_idx.x
        x = A[i]
        Out[i, 0] = rocdl.exp2(T.f32, x)
        Out[i, 1] = rocdl.rcp(T.f32, x)

    a, out = torch.rand(64) * 8 + 0.5, torch.zeros(64, 2)
    launched(body, a, out)
    torch.testing.assert_close(out, torch.stack([torch.exp2(a), 1 / a], dim=1), rtol=1e-5, atol=0)


def test_lanes_and_raw_buffers(launched: Run) -> None:
    def body(A: Any, Out: Any) -> None:
        i = fx.thread_idx.x
        rsrc = buffer_ops.create_buffer_resource(A)
        offset, soffset, aux = i * 4, fx.Int32(0), fx.Int32(0)
        data = rocdl.raw_ptr_buffer_load(T.i32, rsrc, offset, soffset, aux)
        val = rocdl.ds_bpermute(T.i32, (63 - i) * 4, data)
        rocdl.raw_ptr_buffer_store(val, buffer_ops.create_buffer_resource(Out), offset, soffset, aux)

    a, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    launched(body, a, out)
    assert torch.equal(out, a.flip(0))


def test_lanes_and_raw_buffers_without_a_result_type(launched: Run) -> None:
    def body(A: Any, Out: Any) -> None:
        i = fx.thread_idx.x
        data = rocdl.raw_ptr_buffer_load(buffer_ops.create_buffer_resource(A), i * 4, 0, 0)
        val = rocdl.ds_bpermute((63 - i) * 4, data)
        rocdl.raw_ptr_buffer_store(val, buffer_ops.create_buffer_resource(Out), i * 4, 0, 0)

    a, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    launched(body, a, out)
    assert torch.equal(out, a.flip(0))
