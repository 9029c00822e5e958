"""Names of FlyDSL's API that are unsupported say so; misspelt ones get a suggestion."""

from __future__ import annotations

import importlib

import pytest

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import arith, buffer_ops, const_expr, gpu, range_constexpr, rocdl, vector
from flydsl.expr.flydsl_names.names import FLYDSL_NAMES


def test_the_seeds_imports_work() -> None:
    assert list(range_constexpr(3)) == [0, 1, 2]
    assert const_expr(7) == 7
    assert arith.addf
    assert vector.Vector is fx.Vector
    assert fx.rocdl is rocdl
    assert fx.buffer_ops is buffer_ops
    assert gpu.thread_idx is fx.thread_idx


@pytest.mark.parametrize("module", FLYDSL_NAMES)
def test_every_name_is_there_or_says_that_it_is_not_yet(module: str) -> None:
    namespace = importlib.import_module(module)
    for name in FLYDSL_NAMES[module]:
        if not hasattr(namespace, name):
            with pytest.raises(AttributeError, match="unsupported"):
                getattr(namespace, name)


@pytest.mark.parametrize(
    "module",
    [
        "flydsl.expr.lowlevel", "flydsl.compiler.scf_control_flow", "flydsl.expr.nvvm.universal",
        "flydsl.runtime.device_runtime.base", "flydsl.extension.random.rocdl", "flydsl.extension.coop.warp.zip",
        "flydsl.extension.flytrace", "flydsl.utils.kernel_info",
    ],
)  # fmt: skip
def test_modules_of_newer_versions_say_so(module: str) -> None:
    with pytest.raises(ImportError, match="is part of FlyDSL's API, but unsupported"):
        importlib.import_module(module)


@pytest.mark.parametrize(
    ("module", "name"),
    [("block.load", "BlockLoad"), ("warp.reduce_batched", "warp_sum_batched"), ("warp.rocdl", "warp_scan")],
)
def test_a_cooperative_operation_can_be_imported_from_a_module_of_its_own(module: str, name: str) -> None:
    names: dict[str, object] = {}
    exec(f"from flydsl.extension.coop.{module} import {name}", names)
    assert names[name] is getattr(fx.coop, name)
    with pytest.raises(ImportError, match=r"unsupported|no attribute"):
        exec(f"from flydsl.extension.coop.{module} import nothing", {})


def test_names_that_live_elsewhere() -> None:
    assert fx.PointerType is fx.typing.PointerType is rocdl.PointerType
    assert issubclass(fx.Array[fx.Int32, 4], fx.Array._Base)
    assert fx.typing.address_space_from_attr(2) is fx.AddressSpace.Shared
    with pytest.raises(ArgumentError, match="9 is not an address space"):
        fx.typing.address_space_from_attr(9)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="close to it: make_layout"):
        fx.make_layot  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute .zzz.(?s:.*) of the module has the names"):
        fx.zzz  # noqa: B018
    with pytest.raises(AttributeError, match=r"rocdl\.global_load_async_lds is part of FlyDSL's API, but unsupported"):
        rocdl.global_load_async_lds  # noqa: B018


def test_public_names_exist() -> None:
    for module in (fx, fx.primitive, fx.arith, fx.derived, fx.typing, fx.numeric):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_a_star_import_brings_the_api_and_leaves_python_and_mlir_alone() -> None:
    brought: dict[str, object] = {}
    exec("from flydsl.expr import *\nfrom flydsl.expr.numeric import *", brought)
    assert {"Int32", "Integer", "as_numeric", "make_layout", "UniversalCopy128b", "Storage", "gpu"} <= brought.keys()
    assert not {"range", "min", "max", "random", "ir", "operator", "np", "memory", "copies"} & brought.keys()


def test_sizes_of_types_in_memory() -> None:
    @fx.struct
    class Block:
        rows: fx.Array[fx.Float32, 16]
        count: fx.Int8

    protocol = importlib.import_module("flydsl.compiler.protocol")
    assert (protocol.dsl_size_of(Block), protocol.dsl_align_of(Block)) == (68, 4)
    assert (protocol.dsl_size_of(fx.Int64), protocol.dsl_align_of(fx.BFloat16)) == (8, 2)


@pytest.mark.parametrize(
    ("module", "name"),
    [("flydsl.expr", "BasisType"), ("flydsl.expr.rocdl.cdna5", "TDM"),
     ("flydsl.expr.primitive", "assume"),
     ("flydsl.compiler.kernel_function", "create_gpu_module"), ("flydsl._mlir.dialects.fly", "BasisType")],
)  # fmt: skip
def test_an_import_says_what_is_unsupported(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=rf"^{module}.{name} is part of FlyDSL's API, but unsupported"):
        exec(f"from {module} import {name}", {})


@pytest.mark.parametrize(
    "module", ["flydsl.expr.ktrace", "flydsl._mlir.dialects._fly_ops_gen", "flydsl.expr.ktrace_common"]
)
def test_a_module_of_flydsl_that_is_unsupported(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="is part of FlyDSL's API, but unsupported"):
        importlib.import_module(module)


@pytest.mark.parametrize(
    ("statement", "instead"),
    [
        ("from flydsl.expr.rocdl.cdna5 import TDM", r"fx\.rocdl\.make_tdm_atom"),
        ("import flydsl._mlir.dialects._fly_rocdl_ops_gen", r"flydsl\._mlir\.dialects\.fly"),
        ("from flydsl.expr import BasisType", r"fx\.E\(0\) is a step"),
    ],
)
def test_what_is_unsupported_says_what_to_use_instead(statement: str, instead: str) -> None:
    with pytest.raises(ImportError, match=f"unsupported(?s:.*)hint: {instead}"):
        exec(statement, {})


def test_an_import_of_a_misspelt_name_has_the_suggestion() -> None:
    with pytest.raises(ImportError, match="close to it: make_layout"):
        exec("from flydsl.expr import make_layuot", {})
    assert not hasattr(fx, "make_layuot")


def test_options_of_a_trace() -> None:
    meta = importlib.import_module("flydsl.expr.meta")
    assert meta.tracing_option("width", 3) == 3
    with meta.tracing_context(width=4), meta.tracing_context(other=None):
        assert (meta.tracing_option("width"), meta.tracing_option("other", 5)) == (4, None)
    assert meta.tracing_option("width") is None


def test_the_lds_of_a_workgroup() -> None:
    device = importlib.import_module("flydsl.runtime.device")
    assert device.SMEM_CAPACITY_MAP["gfx950"] == 163840
    device.check_smem_capacity(1 << 30)
    device.check_smem_capacity(65536, "gfx942")
    with pytest.raises(RuntimeError, match="Shared Memory Overflow: 65537 bytes"):
        device.check_smem_capacity(65537, "gfx942")


def test_basis_vectors_by_flydsl_s_names() -> None:
    assert fx.Basis(2, [0, 1]) == fx.E(0, 1) * 2 == fx.Int32(2) * fx.E([0, 1])
    assert (fx.Basis(3, 1).value, fx.E(), isinstance(fx.E(0), fx.Basis)) == (3, 1, True)
    with pytest.raises(ValueError, match="needs modes"):
        fx.Basis(1, [])
