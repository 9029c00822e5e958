"""Launchers compiled for types alone, saved, loaded and launched elsewhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import layout as algebra
from flydsl.arch import ARCHS
from flydsl.compiler import TensorSpec
from flydsl.compiler.caching import saved
from flydsl.errors import ArgumentError, CompileError, FlyError
from flydsl.system.disk_cache import packed, unpacked
from tests.processes import run_python


@flyc.kernel
def scale_kernel(A: fx.Tensor, factor: fx.Float32, n: fx.Int32, step: fx.Constexpr[int]):
    for i in range(fx.thread_idx.x, n, 64):
        A[i] = A[i] * factor.to(A.dtype) + step


@flyc.jit
def scale(
    A: fx.Tensor, factor: fx.Float32, n: fx.Int32, step: fx.Constexpr[int] = 0, stream: fx.Stream = fx.Stream(None)
):
    scale_kernel(A, factor, n, step).launch(grid=1, block=64, stream=stream)


@pytest.fixture
def artifact() -> flyc.CompiledArtifact:
    return flyc.compile(scale, TensorSpec(fx.Float32), fx.Float32, fx.Int32, 3)


def scaled(artifact: Any, *more: Any, **keywords: Any) -> list[float]:
    A = torch.ones(100)
    artifact(A, 2.0, 100, *more, **keywords)
    return A.unique().tolist()


def test_types_stand_for_arguments(artifact: flyc.CompiledArtifact) -> None:
    assert scaled(artifact, 3) == [5.0]
    assert artifact.code.arch.name == "gfx942"


@pytest.mark.slow
@pytest.mark.parametrize("arch", [arch.name for arch in ARCHS])
@pytest.mark.diagonal(2)
def test_a_named_architecture(arch: str) -> None:
    made = flyc.compile(scale, TensorSpec(fx.Float32), fx.Float32, fx.Int32, arch=arch)
    assert made.code.arch.name == arch
    assert made.hsaco[:4] == b"\x7fELF"


def test_with_an_architecture_tensors_say_their_type_only() -> None:
    A = torch.ones(100)
    made = flyc.compile(scale, A, 2.0, 100, arch="gfx942")
    assert A.unique().tolist() == [1.0]
    made(A, 2.0, 100)
    assert A.unique().tolist() == [2.0]


def test_saved_and_loaded(artifact: flyc.CompiledArtifact, tmp_path: Path) -> None:
    flyc.save(artifact, tmp_path / "scale.flydsl")
    loaded = flyc.load(tmp_path / "scale.flydsl")
    assert scaled(loaded) == scaled(loaded, 3) == scaled(loaded, step=3) == scaled(loaded, 3, None) == [5.0]
    assert loaded.isa == artifact.isa
    assert [stage.after for stage in loaded.pipeline] == [stage.after for stage in artifact.pipeline]
    assert [path.name for path in tmp_path.iterdir()] == ["scale.flydsl"]


def test_what_a_call_compiled_can_be_saved_too(tmp_path: Path) -> None:
    flyc.save(scale.compile(torch.ones(8), 2.0, 8), tmp_path / "a")
    assert scaled(flyc.load(tmp_path / "a")) == [2.0]


def test_an_artifact_can_be_pickled(artifact: flyc.CompiledArtifact) -> None:
    assert scaled(pickle.loads(pickle.dumps(artifact))) == [5.0]


@pytest.mark.slow
def test_loaded_in_another_process(artifact: flyc.CompiledArtifact, tmp_path: Path) -> None:
    flyc.save(artifact, tmp_path / "scale.flydsl")
    program = (
        "import sys, torch, flydsl.compiler as flyc\n"
        "A = torch.ones(100)\n"
        "loaded = flyc.load(sys.argv[1])\n"
        "loaded(A, 2.0, 100)\n"
        "print(A.unique().tolist(), 'make_int_tuple' in loaded.source_ir, loaded.pipeline[1].diff != '')\n"
    )
    command = ["-c", program, tmp_path / "scale.flydsl"]
    environment = os.environ | {"FLYDSL_SIMULATOR_BACKEND": "lockstep"}
    assert run_python(*command, env=environment).stdout == "[5.0] True True\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(8).half(), 2.0, 8), "A: this was compiled for a tensor !fly.memref<f32, .*, got a cpu tensor"),
        ((torch.ones(8, 8), 2.0, 8), "A: this was compiled for"),
        ((torch.ones(8), 2.0, 8, 4), "step: this was compiled for 3, got 4"),
        ((torch.ones(8), 2.0, 8, True), "step: this was compiled for 3, got True"),
        ((torch.ones(8), 2.0), "scale misses n"),
        ((torch.ones(8), 2.0, 8.5), "n must be Int32, got 8.5"),
    ],
)
def test_wrong_arguments_of_a_loaded_artifact(
    arguments: tuple[Any, ...], message: str, artifact: flyc.CompiledArtifact
) -> None:
    with pytest.raises(ArgumentError, match=message):
        pickle.loads(pickle.dumps(artifact))(*arguments)


SPECS: list[tuple[Any, Any]] = [
    (TensorSpec(torch.float16, 2), torch.ones(4, 8).half()),
    (TensorSpec(fx.Float32, 2, unit_stride=0), torch.ones(4, 8).T),
    (TensorSpec(fx.Float32, 2, unit_stride=None), torch.ones(8, 8)[::2, ::2]),
    (torch.empty(4, 8, dtype=torch.bfloat16, device="meta"), torch.ones(4, 8).bfloat16()),
    (TensorSpec(fx.Float32, layout=algebra.make_layout((4, 8), (8, 1))), flyc.from_dlpack(torch.ones(4, 8))),
    (TensorSpec(torch.uint8, 2), torch.ones(4, 8, dtype=torch.uint8)),
]


@pytest.mark.parametrize(("spec", "tensor"), SPECS, ids=lambda value: str(getattr(value, "dtype", "")))
def test_specifications_of_tensors(spec: Any, tensor: Any, tmp_path: Path) -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[0, fx.thread_idx.x] = (A[1, fx.thread_idx.x] * 2).to(A.dtype)

    @flyc.jit
    def double(A: fx.Tensor):
        kernel(A).launch(grid=1, block=4)

    flyc.save(flyc.compile(double, spec), tmp_path / "a")
    flyc.load(tmp_path / "a")(tensor)
    values = getattr(tensor, "tensor", tensor)
    assert (values[0, :4] == 2).all()
    assert (values[1:] == 1).all()


def test_pointers_constants_and_parameters_without_annotation(tmp_path: Path) -> None:
    table = object()

    @flyc.kernel
    def kernel(P: fx.Pointer, value, dtype: fx.Constexpr, weight: fx.Constexpr):
        fx.ptr_store(value.to(dtype) * weight, P + fx.thread_idx.x)

    @flyc.jit
    def launch(P: fx.Pointer, value, dtype: fx.Constexpr, weight: fx.Constexpr[float], hidden: fx.Constexpr = table):
        kernel(P, value, dtype, weight).launch(grid=1, block=4)

    flyc.save(flyc.compile(launch, TensorSpec(fx.Float32), fx.Int32, fx.Float32, 0.5), tmp_path / "a")
    loaded, P = flyc.load(tmp_path / "a"), torch.zeros(4)
    loaded(P, 7)
    assert P.tolist() == [3.5] * 4
    loaded(P, 8, fx.Float32, 0.5)
    assert P.tolist() == [4.0] * 4
    with pytest.raises(ArgumentError, match="hidden: this was compiled for a value that is compiled in"):
        loaded(P, 7, hidden=table)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TensorSpec(fx.Float32, 0), "rank must be a positive integer, got 0"),
        (lambda: TensorSpec(fx.Float32, 2, 2), "unit_stride must be one of the 2 dimensions, got 2"),
        (lambda: TensorSpec("f32"), "not supported"),
        (lambda: TensorSpec(fx.Float32, layout="(4):(1)"), "layout must be a layout"),
        (lambda: flyc.compile(scale, TensorSpec(fx.Float32), TensorSpec(fx.Float32), 1), "factor must be Float32, got"),
        (lambda: flyc.compile(scale, TensorSpec(fx.Float32), 1.0, fx.Float32), "n must be Int32, got"),
        (lambda: flyc.compile(scale, fx.Float32, 1.0, 1), "A must be Tensor, got"),
        (lambda: scale(TensorSpec(fx.Float32), 1.0, 1), "A takes a tensor, got"),
    ],
)
def test_wrong_types(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@fx.struct
class Range:
    start: fx.Int32
    stop: fx.Int32


@flyc.kernel
def range_kernel(A: fx.Tensor, limits: Range):
    A[fx.thread_idx.x] = limits.start


@flyc.jit
def launch(A: fx.Tensor, limits: Range):
    range_kernel(A, limits).launch(grid=1, block=4)


def test_a_struct_of_the_program_cannot_be_saved() -> None:
    made = flyc.compile(launch, torch.zeros(4, dtype=torch.int32), Range(1, 2))
    with pytest.raises(ArgumentError, match="limits is a Range"):
        flyc.save(made, "nowhere")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"garbage" * 100,
        lambda content: content[:-1],
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
        lambda content: content.replace(b"artifact 1", b"artifact 9", 1),
    ],
    ids=["empty", "garbage", "cut", "flipped bit", "another version"],
)
def test_other_files_are_refused(damage: Any, artifact: flyc.CompiledArtifact, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(damage(saved.to_bytes(artifact)))
    with pytest.raises(ArgumentError, match="not a complete artifact of this version of flydsl"):
        flyc.load(tmp_path / "a")


@pytest.mark.parametrize("field", ["parameters", "positional", "kernels", "arch", "code", "hints", "place", "module"])
@pytest.mark.parametrize("value", [None, [], "x", [["A", "Tensor", ["tensor", "f99", "x"], None]], {}], ids=str)
def test_records_that_make_no_sense_are_refused(field: str, value: Any, artifact: flyc.CompiledArtifact) -> None:
    content = saved.to_bytes(artifact)
    start = content.index(b"\n") + 1
    record = unpacked(content[start:])
    assert record is not None
    with pytest.raises(ArgumentError, match="not a complete artifact"):
        saved.from_bytes(content[:start] + packed({**record, field: value}))


def test_a_damaged_source_can_be_launched(artifact: flyc.CompiledArtifact) -> None:
    content = saved.to_bytes(artifact)
    start = content.index(b"\n") + 1
    record = unpacked(content[start:])
    assert record is not None
    found = saved.from_bytes(content[:start] + packed({**record, "origin": b"no bytecode"}))
    assert found.isa == artifact.isa
    with pytest.raises(CompileError, match=r"the module as traced.* is damaged"):
        _ = found.source_ir


@pytest.mark.parametrize(
    "text", ["1 +", "[" * 5000, "-" * 200_000 + "1", "print()"], ids=["cut", "open", "deep", "call"]
)
def test_values_that_are_no_literals_are_refused(text: str, artifact: flyc.CompiledArtifact) -> None:
    content = saved.to_bytes(artifact)
    start = content.index(b"\n") + 1
    record = unpacked(content[start:])
    assert record is not None
    parameters = [["n", "Int32", ["scalar", "Int32"], ["plain", text]]]
    with pytest.raises(ArgumentError, match="not a complete artifact"):
        saved.from_bytes(content[:start] + packed({**record, "parameters": parameters, "positional": 1}))


def test_a_file_that_cannot_be_written_leaves_nothing(artifact: flyc.CompiledArtifact, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        flyc.save(artifact, tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda artifact: flyc.load("no/such.flydsl"), "no/such.flydsl: No such file"),
        (lambda artifact: flyc.load(3), "path must be a str or a path, got 3"),
        (lambda artifact: flyc.save(artifact, "no/such.flydsl"), "there is no folder no to write it to"),
        (lambda artifact: flyc.save(flyc.compile, "such.flydsl"), "save takes an artifact"),
    ],
)
def test_misuse_of_files_is_one_error_at_the_users_line(
    use: Callable[[Any], Any], says: str, artifact: flyc.CompiledArtifact
) -> None:
    with pytest.raises(FlyError) as caught:
        use(artifact)
    assert says in caught.value.message
    assert caught.value.at is not None
    assert (caught.value.at.file, bool(caught.value.hint)) == (__file__, True)
