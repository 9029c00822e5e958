"""Names that a module of FlyDSL has because it imports them: programs import them from there, too.

from flydsl.expr.gpu import Int32
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_VALUES = "as_dsl_value as_ir_value as_numeric"
_NUMBERS = "BFloat16 Float16 Float32 Float64 Int16 Int32 Int64 Numeric Uint8 Uint16 Uint32 Uint64"
_CASTS = "arith_const fp_to_fp fp_to_int int_to_fp int_to_int is_float_type"
_TENSORS = "Int16 Int32 Int64 Pointer Tensor Vector get_scalar is_generic_address_space is_target_address_space"

# Module -> (names, the module that has them). Those of a whole module: "*".
_BORROWED: dict[str, tuple[tuple[str, str], ...]] = {
    "flydsl.expr.arith": (
        ("as_ir_value", "flydsl.expr"),
        ("resolve_fastmath", "flydsl.expr.utils.arith"),
    ),
    "flydsl.expr.derived": (("*", "flydsl.expr.primitive"),),
    "flydsl.expr.gpu": (
        (f"Arena Array Empty Storage {_NUMBERS} as_ir_value get_dyn_shared is_composite_type is_struct_type make_ptr",
         "flydsl.expr"),
        ("tracing_option", "flydsl.expr.meta"),
        ("dsl_align_of dsl_size_of", "flydsl.compiler.protocol"),
    ),
    "flydsl.expr.llvm": ((f"Pointer {_NUMBERS} {_VALUES}", "flydsl.expr"),),
    "flydsl.expr.math": (("Numeric as_ir_value", "flydsl.expr"), ("current_fastmath", "flydsl.expr.utils.arith")),
    "flydsl.expr.numeric": ((_CASTS, "flydsl.expr.utils.arith"), ("index_cast", "flydsl.expr.arith")),
    "flydsl.expr.primitive": (("SyncScope to_llvm_ptr", "flydsl.expr.llvm"),),
    "flydsl.expr.rocdl": ((_TENSORS, "flydsl.expr"), ("get_rocm_arch", "flydsl.runtime.device")),
    "flydsl.expr.rocdl.universal": ((_TENSORS, "flydsl.expr"), ("get_rocm_arch", "flydsl.runtime.device")),
    "flydsl.expr.rocdl.cdna5": (("Int32 Int64 Tensor", "flydsl.expr"),),
    "flydsl.expr.rocdl.tdm_ops": (
        ("as_ir_value T", "flydsl.expr"),
        ("memref_dialect", "flydsl._mlir.dialects.memref"),
    ),
    "flydsl.expr.struct": (
        ("add_offset", "flydsl.expr"),
        ("c_abi_spec cache_signature construct_from_ir_values dsl_align_of dsl_size_of extract_to_ir_values "
         "get_ir_types peek_from_ptr poke_into_ptr", "flydsl.compiler.protocol"),
    ),
    "flydsl.expr.typing": (
        (f"ArithValue Basis E Integer VectorAlias {_VALUES}", "flydsl.expr"),
        (f"{_CASTS} resolve_fastmath", "flydsl.expr.utils.arith"),
        ("*", "flydsl.expr.primitive"),
    ),
    "flydsl.expr.utils.arith": (("tracing_context tracing_option", "flydsl.expr.meta"),),
}  # fmt: skip
_DECORATED = "dsl_loc_tracing"


def borrowed(module: str, name: str) -> Callable[[], Any] | None:
    """A function that gets a name which FlyDSL's module has from another one; None if it has no such name."""
    for names, home in _BORROWED.get(module, ()):
        if name in names.split() or (names == "*" and name in import_module(home).__all__):
            return lambda: _of(home, name)
    if name == _DECORATED and module in _BORROWED:
        return lambda: _of("flydsl.expr.meta", name)
    return None


def _of(home: str, name: str) -> Any:
    found = import_module(home)
    return found if home.rpartition(".")[2] == name.removesuffix("_dialect") else getattr(found, name)
