from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from flydsl.codegen.link import link
from flydsl.compiler import CompiledArtifact
from flydsl.errors import SimulatorError
from flydsl.hsaco import read_hsaco
from flydsl.hsaco.assembler import assemble
from kernels import vector_add as kernel
from tests.kernels import examples

DTYPES = [getattr(torch, name) for name in kernel.DTYPES]
EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=kernel.DTYPES)
LARGE = 100_000  # the workgroups of a large vector do the same for every element type


def sizes(*of_every_dtype: int) -> pytest.MarkDecorator:
    """Each size with every element type; a large one with one of 32 and one of 16 bits."""
    few = (torch.float32, torch.bfloat16)
    cases = [(n, dtype) for n in of_every_dtype for dtype in DTYPES if n < LARGE or dtype in few]
    return pytest.mark.parametrize(
        ("n", "dtype"), cases, ids=[f"{n}-{dtype}".replace("torch.", "") for n, dtype in cases]
    )


def call_readme(A: Any, B: Any, C: Any) -> None:
    examples.vectorAdd(A, B, C, len(A), len(A) + 1, examples.SCALARS[A.dtype])


@sizes(64, 128, 4096, 100_032)
@pytest.mark.diagonal(2)
def test_readme_example(n: int, dtype: Any) -> None:
    A, B, C = examples.vectors(n, dtype)
    call_readme(A, B, C)
    assert torch.equal(C, A + B)


@sizes(256, 4096, 100_096)
@pytest.mark.diagonal(2)
def test_first_kernel_of_the_guide(n: int, dtype: Any) -> None:
    A, B, C = examples.vectors(n, dtype)
    examples.vec_add(A, B, C, n)
    assert torch.equal(C, A + B)


@pytest.mark.checked("all")
@pytest.mark.parametrize("stride", [1, 3])
@sizes(*(min(n, LARGE + 3) for (n,) in kernel.SHAPES))  # the largest in sweep_rows
@pytest.mark.diagonal(2)
def test_kernel(n: int, stride: int, dtype: Any) -> None:
    A, B, C = examples.vectors(n, dtype, stride)
    kernel.vector_add(A, B, C)
    assert torch.equal(C, kernel.reference(A, B))


@EVERY_DTYPE
def test_kernel_takes_vectors_that_start_anywhere(dtype: Any) -> None:
    A, B, C = examples.vectors(1001, dtype)
    kernel.vector_add(A[1:], B[1:], C[1:])
    assert torch.equal(C[1:], A[1:] + B[1:])
    assert C[0] == 0


def test_kernel_leaves_what_lies_behind_the_end() -> None:
    A, B, C = examples.vectors(1000, torch.float32)
    kernel.vector_add(A[:777], B[:777], C[:777])
    assert torch.equal(C[:777], A[:777] + B[:777])
    assert not C[777:].any()


def test_kernel_moves_128_bits_at_a_time() -> None:
    A, B, C = examples.vectors(1000, torch.bfloat16)
    assert kernel.vector_add.lower(A, B, C).artifact.isa.count("global_load_dwordx4") == 2
    strided = examples.vectors(1000, torch.bfloat16, 2)
    assert "dwordx4" not in kernel.vector_add.lower(*strided).artifact.isa.split(".amdhsa_kernel")[0]


def test_out_of_bounds_names_everything() -> None:
    """n = 100 with blocks of 64: thread 36 of the second block is the first one past the end."""
    A, B, C = examples.vectors(100, torch.float32)
    with pytest.raises(SimulatorError) as caught:
        examples.vectorAdd(A, B, C, 100, 101)
    text = str(caught.value)
    assert "global_load_dword" in text
    assert re.search(r"workgroup \(1, 0, 0\).*thread \(36, 0, 0\)", text)
    assert re.search(r"\b[AB]\b.*\b100\b", text)
    assert "examples.py:" in text
    assert "fx.copy_atom_call(copyAtom, fx.slice(t" in text
    assert not C.any() or torch.equal(C[:64], (A + B)[:64])


def artifacts() -> list[CompiledArtifact]:
    made = []
    for dtype in DTYPES:
        A, B, C = examples.vectors(4096, dtype)
        made.append(examples.vectorAdd.lower(A, B, C, 4096, 1, examples.SCALARS[dtype]).artifact)
        made.append(examples.vec_add.lower(A, B, C, 4096).artifact)
        made.append(kernel.vector_add.lower(A, B, C).artifact)
    return made


def test_isa_assembles_to_the_same_machine_code() -> None:
    for artifact in artifacts():
        obj = assemble(artifact.isa, artifact.code.arch.name)
        assert read_hsaco(link(obj)).text == artifact.code.contents.text
