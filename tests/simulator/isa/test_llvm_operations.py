"""Hundreds of LLVM operations, compiled for some GPUs and simulated, and compiled for the host: the results agree."""

from __future__ import annotations

import ctypes
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flydsl.simulator import Memory, Program, launch
from flydsl.simulator.arrays import Array
from tests.shared_libraries import build_library
from tests.simulator.conftest import compile_llvm_ir
from tests.simulator.differential import samples
from tests.simulator.llvm_operations import (
    BITS,
    Operation,
    all_operations,
    device_module,
    host_module,
    lanes,
    scalar_type,
)

pytestmark = pytest.mark.slow

COUNT = 256
OPERATIONS = {o.name: o for o in all_operations()}
# Each of them on one GPU: every seventh, some of each type, on gfx1250, some on RDNA 3, and the others on gfx942. What
# is left of gfx942 and gfx1250 is in sweep_llvm_operations.
_ELSEWHERE = dict.fromkeys(list(OPERATIONS)[1::20], "gfx1151") | dict.fromkeys(list(OPERATIONS)[::7], "gfx1250")
PLACES = [(name, _ELSEWHERE.get(name, "gfx942")) for name in OPERATIONS]
OTHER_PLACES = [(name, arch) for arch in ("gfx942", "gfx1250") for name in OPERATIONS if (name, arch) not in PLACES]
# The host's own lowering rounds twice here.
ROUNDED_TWICE_ON_THE_HOST = {"fma_f16_f16", "fma_v2f16_v2f16"}
_OPEN_ZEROS = ("minnum", "maxnum", "clamp")
"""Operations of which LLVM leaves open which of two zeros is the larger."""


def storage(type_: str, count: int) -> int:
    return count * lanes(type_) * BITS[scalar_type(type_)] // 8


@cache
def program(arch: str, other: bool) -> Program:
    """Of the operations in PLACES, or of the other ones."""
    operations = [OPERATIONS[name] for name, on in (OTHER_PLACES if other else PLACES) if on == arch]
    return Program.load(*compile_llvm_ir(device_module(operations), arch))


@cache
def host_library() -> ctypes.CDLL:
    """Built by zig's clang, which brings the runtime that f16 needs, for one set of features on every CPU: what LLVM
    makes of f16 with AVX512-FP16 is not right everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "host.ll"), Path(folder, "host.so")
        source.write_text(host_module(list(OPERATIONS.values())))
        build_library(source, target, "-w", "-fno-vectorize", "-fno-slp-vectorize")
        return ctypes.CDLL(str(target))


def inputs(operation: Operation) -> list[Array]:
    element = scalar_type(operation.operand)
    word = {"i8": "i16", "double": "f64", "float": "f32", "half": "f16"}.get(element, element)
    rng = np.random.default_rng(list(operation.name.encode()))
    dtype = f"u{BITS[element] // 8}"
    mask = (1 << BITS[element]) - 1
    count = COUNT * lanes(operation.operand)
    return [np.array([x & mask for x in samples(word, rng, count)], dtype) for _ in range(3)]


def on_the_host(operation: Operation, operands: list[Array]) -> Array:
    result = np.zeros(storage(operation.result, COUNT), np.uint8)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*operands, result)]
    getattr(host_library(), f"h_{operation.name}")(*pointers, ctypes.c_int64(COUNT))
    return result


def on_the_simulator(arch: str, operation: Operation, operands: list[Array]) -> Array:
    result = np.zeros(storage(operation.result, COUNT), np.uint8)
    memory = Memory()
    addresses = [memory.map_array(a, name=n) for n, a in zip("abcr", (*operands, result), strict=True)]
    launch(
        program(arch, (operation.name, arch) in OTHER_PLACES),
        f"k_{operation.name}",
        grid=(1, 1, 1),
        block=(COUNT, 1, 1),
        kernarg=struct.pack("<4Q", *addresses),
        memory=memory,
    )
    return result


def as_elements(operation: Operation, raw: Array) -> Array:
    element = scalar_type(operation.result)
    dtype = {"half": np.float16, "float": np.float32, "double": np.float64}.get(element, f"u{BITS[element] // 8}")
    return raw.view(dtype)


@pytest.mark.parametrize(("name", "arch"), PLACES)
def test_operation(name: str, arch: str) -> None:
    check(name, arch)


def check(name: str, arch: str) -> None:
    operation = OPERATIONS[name]
    if name in ROUNDED_TWICE_ON_THE_HOST:
        pytest.skip("the host rounds twice")
    operands = inputs(operation)
    got = as_elements(operation, on_the_simulator(arch, operation, operands))
    wanted = as_elements(operation, on_the_host(operation, operands))
    equal = got.view(f"u{got.itemsize}") == wanted.view(f"u{got.itemsize}")
    if got.dtype.kind == "f":
        equal |= np.isnan(got) & np.isnan(wanted)
        if name.startswith(_OPEN_ZEROS):
            equal |= (got == 0) & (wanted == 0)
    bad = np.flatnonzero(~equal)
    described = [f"lane {i}: {[hex(int(o[i])) for o in operands]} give {got[i]!r}, not {wanted[i]!r}" for i in bad[:5]]
    assert bad.size == 0, "\n".join([operation.body, *described])


@pytest.mark.parametrize("arch", ["gfx942", "gfx1151", "gfx1250"])
def test_every_instruction_that_llvm_chose_is_known(arch: str) -> None:
    assert not [i.listed.text for i in program(arch, False).unknown_instructions()]
