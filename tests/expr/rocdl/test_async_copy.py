"""Asynchronous copies, transposing loads and prefetches of gfx12 and gfx1250."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir

import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import SmemAllocator

pytestmark = pytest.mark.slow


@pytest.fixture
def with_lds(compiled: Callable[..., str]) -> Callable[..., str]:
    """`with_lds(function, arch)`: the assembly of a kernel that calls `function(A, lds)`; A is f32 (64)."""
    allocator = SmemAllocator(None, global_sym_name="lds")
    part = allocator.allocate_array(fx.Float16, 1024, 16)

    def run(function: Callable[[Any, Any], Any], arch: str = "gfx1250") -> str:
        def body(A: Any) -> None:
            with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
                allocator.finalize()
            function(A, part(allocator.get_base()))

        return compiled(body, arch)

    return run


@pytest.mark.parametrize("bits", [8, 32, 64, 128])
def test_copies(bits: int, with_lds: Callable[..., str]) -> None:
    def body(A: Any, lds: Any) -> None:
        getattr(rocdl, f"global_load_async_to_lds_b{bits}")(A, lds, 16, 1)
        getattr(rocdl, f"cluster_load_async_to_lds_b{bits}")(A, lds, 0, 0, 5)
        rocdl.cluster_load_async_to_lds(A, lds, bits // 8, mask=3)
        getattr(rocdl, f"global_store_async_from_lds_b{bits}")(A, lds, 32, 1)
        rocdl.s_wait_asynccnt(0)

    text = with_lds(body)
    assert re.search(rf"global_load_async_to_lds_b{bits} .* offset:16 th:TH_LOAD_NT", text)
    assert len(re.findall(rf"cluster_load_async_to_lds_b{bits}", text)) == 2
    assert re.search(rf"global_store_async_from_lds_b{bits} .* offset:32 th:TH_STORE_NT", text)
    assert "s_wait_asynccnt 0x0" in text


@pytest.mark.parametrize(
    ("name", "kind", "place"),
    [
        ("ds_load_tr16_b128", lambda: T.vec(8, T.f16), "lds"),
        ("ds_load_tr8_b64", lambda: T.vec(2, T.i32), "lds"),
        ("ds_load_tr6_b96", lambda: None, "lds"),
        ("ds_load_tr4_b64", lambda: None, "lds"),
        ("global_load_tr_b128", lambda: T.vec(8, T.bf16), "memory"),
        ("global_load_tr_b64", lambda: None, "memory"),
        ("global_load_tr6_b96", lambda: None, "memory"),
        ("global_load_tr4_b64", lambda: None, "memory"),
    ],
)
def test_transposing_loads(name: str, kind: Callable[[], Any], place: str, with_lds: Callable[..., str]) -> None:
    def body(A: Any, lds: Any) -> None:
        result = getattr(rocdl, name)(kind(), lds if place == "lds" else A)
        A[fx.thread_idx.x] = fx.Vector(result).bitcast(fx.Float32)[0]

    printed = {"global_load_tr_b128": "global_load_tr16_b128", "global_load_tr_b64": "global_load_tr8_b64"}
    assert printed.get(name, name) in with_lds(body)


def test_a_transposing_load_of_an_element_of_a_memref(with_lds: Callable[..., str]) -> None:
    def body(A: Any, lds: Any) -> None:
        first = rocdl.lds_transpose_load(T.vec(8, T.f16), lds.get(), fx.thread_idx.x * 8, 2)
        second = rocdl.lds_transpose_load(T.vec(2, T.i32), lds, fx.Index(fx.thread_idx.x) * 8, 1)
        storage = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 1024, 16])
        third = rocdl.lds_transpose_load(T.vec(8, T.f16), storage, fx.thread_idx.x * 8, 2)
        values = [fx.Vector(value).bitcast(fx.Float32)[0] for value in (first, second, third)]
        A[fx.thread_idx.x] = values[0] + values[1] + values[2]

    text = with_lds(body)
    assert text.count("ds_load_tr16_b128") == 2
    assert "ds_load_tr8_b64" in text


def test_prefetches(with_lds: Callable[..., str]) -> None:
    text = with_lds(lambda A, lds: rocdl.global_prefetch(A, 8))
    assert re.search("global_prefetch_b8 .* scope:SCOPE_SE", text)


@pytest.mark.parametrize(
    ("call", "arch", "error", "message"),
    [
        (lambda A, lds: rocdl.global_load_async_to_lds_b32(A, lds), "gfx1201", ArchError, "gfx1201 does not have it"),
        (lambda A, lds: rocdl.global_load_async_to_lds_b32(lds, lds), "gfx1250", ArgumentError, "in global memory"),
        (lambda A, lds: rocdl.global_load_async_to_lds_b32(A, A), "gfx1250", ArgumentError, "in LDS"),
        (lambda A, lds: rocdl.global_load_async_to_lds_b32(A, lds, 1 << 23), "gfx1250", ArgumentError, "is outside of"),
        (lambda A, lds: rocdl.global_load_async_to_lds_b32(A), "gfx1250", ArgumentError, "missing .* 'lds_ptr'"),
        (lambda A, lds: rocdl.cluster_load_async_to_lds(A, lds, 2), "gfx1250", ArgumentError, "1, 4, 8 or 16"),
        (
            lambda A, lds: rocdl.ds_load_tr16_b128(T.vec(4, T.f16), lds),
            "gfx1250",
            ArgumentError,
            "the result has 128 bits",
        ),
        (lambda A, lds: rocdl.lds_transpose_load(None, lds, 0, 4), "gfx1250", ArgumentError, "1 or 2"),
        (lambda A, lds: rocdl.global_load_tr6_b96(A), "gfx1201", ArchError, "gfx1201 does not have it"),
    ],
)
def test_wrong_use_is_an_error_at_the_line(
    call: Callable[..., Any], arch: str, error: type[FlyError], message: str, with_lds: Callable[..., str]
) -> None:
    with pytest.raises(error, match=message) as caught:
        with_lds(call, arch)
    assert caught.value.at.file == __file__
