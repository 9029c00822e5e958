"""Keyword arguments under the names that FlyDSL's functions have for them.

    fx.complement(layout, codomain_size=12)
    fx.make_view(iter=pointer, layout=layout)

`loc=` and `ip=` are taken too. The location is left to the DSL, which gives an operation its user's line; operations go
to the insertion point `ip`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

_NAMES = """
    add_offset(ptr offset) append(base elem) apply_swizzle(ptr swizzle) blocked_product(layout tiler) ceil_div(lhs rhs)
    coalesce(layout pattern) complement(layout codomain_size) composed_get_inner(input) composed_get_offset(input)
    composed_get_outer(input) composition(layout tiler) const_expr(x) copy(copy_atom src dst)
    copy_atom_call(copy_atom src dst) coprofile(layout) coshape(layout) cosize(layout) crd2idx(crd layout)
    depth(int_or_tuple) dice(src coord) elem_less(lhs rhs) equal(lhs rhs) flat_divide(layout divisor)
    flat_product(layout tiler) gemm(mma_atom d a b c) get_1d_coord(index layout) get_flat_coord(index layout)
    get_iter(memref) get_layout(memref) get_leaves(input) get_scalar(int_tuple) get_shape(layout) get_stride(layout)
    group(int_tuple begin end) has_none(int_or_tuple) idx2crd(index layout) int_tuple_add(lhs rhs)
    int_tuple_div(lhs rhs) int_tuple_mod(lhs rhs) int_tuple_mul(lhs rhs) int_tuple_product(int_tuple)
    int_tuple_product_each(int_tuple) int_tuple_product_like(lhs rhs) int_tuple_sub(lhs rhs) inttoptr(result_type src)
    left_inverse(layout) logical_divide(layout divisor) logical_product(layout tiler)
    make_composed_layout(inner offset_or_outer outer) make_copy_atom(copy_op_type elem_type)
    make_fragment_layout_like(tensor) make_fragment_like(tensor dtype) make_identity_layout(shape)
    make_layout(shape stride) make_layout_like(ref) make_layout_tv(thr_layout val_layout) make_mma_atom(mma_op_type)
    make_ordered_layout(shape order) make_rmem_tensor(shape_or_layout dtype)
    make_tiled_copy(copy_atom layout_thr_val tile_mn) make_tiled_copy_A(copy_atom tiled_mma)
    make_tiled_copy_B(copy_atom tiled_mma) make_tiled_copy_C(copy_atom tiled_mma)
    make_tiled_copy_tv(copy_atom thr_layout val_layout) make_tiled_mma(mma_atom atom_layout permutation)
    make_view(iter layout) memref_alloca(memref_type layout) memref_load(memref indices) memref_load_vec(memref)
    memref_store(value memref indices) memref_store_vec(vector memref) mma_atom_call(mma_atom d a b c)
    mma_make_fragment(operand_id tiled_mma input) prepend(base elem) ptr_load(ptr result_type) ptr_store(value ptr)
    ptrtoint(ptr) raked_product(layout tiler) rank(int_or_tuple) recast_iter(result_type src)
    recast_layout(layout old_type_bits new_type_bits) right_inverse(layout) select(int_tuple indices)
    shape_div(lhs rhs) size(int_tuple) slice(src coord) static(result_type) take(int_tuple begin end)
    tile_to_shape(block trg_shape ord_shape) tiled_copy_partition_dst(tiled_copy dst thr_int_tuple)
    tiled_copy_partition_src(tiled_copy src thr_int_tuple) tiled_copy_retile(tiled_copy t)
    tiled_divide(layout divisor) tiled_mma_partition(operand_id tiled_mma t coord)
    tiled_mma_partition_shape(operand_id tiled_mma shape) tiled_product(layout tiler) zipped_divide(layout divisor)
    zipped_product(layout tiler)
    atom_set_value(atom field value) get(int_tuple mode) get_(int_tuple mode) make_int_tuple(elems) make_coord()
    make_shape() make_stride() make_tile() printf() get_dyn_shared(dtype)
    UniversalAtomic(atomic_op val_type) UniversalFMA(ty)
    create_buffer_resource(memref_val stride max_size) create_llvm_ptr(value address_space)
"""

# The names of a function's parameters, in order.
_OF_FUNCTION = {name: tuple(parameters.split()) for name, parameters in re.findall(r"(\w+)\(([^)]*)\)", _NAMES)}


def accept_keywords(namespace: dict[str, Any], names: Sequence[str] | None = None) -> None:
    """Let the functions of a module take FlyDSL's keywords."""
    for name in namespace if names is None else names:
        if name in _OF_FUNCTION and inspect.isfunction(namespace.get(name)):
            namespace[name] = _accepting(namespace[name], _OF_FUNCTION[name])


def _accepting(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    positional = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    own = dict(zip(names, positional, strict=False))

    @functools.wraps(function)
    def accepting(*args: Any, loc: Any = None, ip: Any = None, **named: Any) -> Any:
        __tracebackhide__ = True
        if ip is None and not named:
            return function(*args)
        with nullcontext() if ip is None else ip:
            return function(*args, **{own.get(name, name): value for name, value in named.items()})

    return accepting
