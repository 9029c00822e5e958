"""Matrix instructions as atoms, for `fx.make_mma_atom`: `fx.rocdl.MFMA(16, 16, 16, fx.Float16)`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from flydsl import atoms, env
from flydsl.atoms import MmaOp
from flydsl.dialect.elements import value_name
from flydsl.dialect.location import argument_error
from flydsl.errors.places import user_location
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.emit import target_name
from flydsl.expr.tracing.operands import element_name, located

__all__ = ["MFMA", "WMMA", "WMMAScale"]


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, elem_ty_b: Any = None) -> MmaOp:
    """A matrix instruction of CDNA on a tile of m x n x k.

    elem_ty_ab: the element type of A and B; elem_ty_b: of B, where it is another one (fp8 with bf8).
    elem_ty_acc: of C and D, by default f32, for i8 i32, for f64 f64.
    gfx950 has the OCP's fp8 and bf8 only: an atom of the FNUZ formats takes the same bits for those, with a warning.
    Raises ArgumentError for a combination that no architecture has; compiling raises CompileError where the target
    lacks it.
    """
    a = value_name(element_name(elem_ty_ab))
    b = a if elem_ty_b is None else value_name(element_name(elem_ty_b))
    acc = {"i8": "i32", "f64": "f64"}.get(a, "f32") if elem_ty_acc is None else element_name(elem_ty_acc)
    op = located(atoms.MFMA, m, n, k, a, b, acc)
    _warn_of_other_formats(op)
    return op


def _warn_of_other_formats(op: atoms.MFMA) -> None:
    """Warn at the user's line of a format that the target does not have, and takes for another one."""
    place, target = user_location(), target_name()
    if place is None or target is None or op.read_as(target) == (op.a, op.b):
        return
    warnings.warn_explicit(
        f"{target} takes the bits of {op.a} and {op.b} for {' and '.join(op.read_as(target))}: the product is right "
        "only if they are",
        UserWarning,
        place.file,
        place.line,
    )


def WMMA(
    m: int,
    n: int,
    k: int,
    elem_ty_ab: Any,
    elem_ty_acc: Any = None,
    *,
    elem_ty_b: Any = None,
    sign_a: bool | None = None,
    sign_b: bool | None = None,
    clamp: bool = False,
    mod_c: int = 0,
) -> MmaOp:
    """A matrix instruction of RDNA or gfx1250 on a tile of m x n x k, by a wave of 32 lanes, in the target's form.

    elem_ty_ab: the element type of A and B; elem_ty_b: of B, where it is another one (fp8 with bf8).
    elem_ty_acc: of C and D, by default f32, for integers i32. sign_a, sign_b: integers are signed. By default they are
    not, whatever their type, as in FlyDSL; of Int8 and Int4 that is a warning. clamp: an integer result saturates.
    mod_c: 0; others are unsupported.
    Raises ArgumentError for a combination that the target's generation does not have; compiling raises CompileError
    where the target has no WMMA.
    """
    _refuse_others("WMMA", {"mod_c": (mod_c, 0)})
    types = (elem_ty_ab, elem_ty_ab if elem_ty_b is None else elem_ty_b)
    a, b = (value_name(element_name(kind)) for kind in types)
    is_integer = a.startswith("i")
    acc = ("i32" if is_integer else "f32") if elem_ty_acc is None else value_name(element_name(elem_ty_acc))
    signs = {"sign_a": sign_a, "sign_b": sign_b}
    if is_integer:
        _warn_of_lost_signs({name: kind for name, kind in zip(signs, types, strict=True) if signs[name] is None})
    signs = {name: False if given is None else given for name, given in signs.items()}
    for name, value in {**signs, "clamp": clamp}.items():
        if not isinstance(value, bool):
            raise argument_error(f"{name} of WMMA must be True or False, got {value!r}", "pass a Python bool")
    arch = target_name() or env.text("ARCH") or env.text("FLYDSL_GPU_ARCH")
    return located(atoms.wmma_of, arch, (m, n, k), (a, b, acc), (*signs.values(), clamp))


def _warn_of_lost_signs(unstated: Mapping[str, Any]) -> None:
    """Warn at the user's line of signed types whose signs are not multiplied. unstated: types by the parameter."""
    signed = {name: kind for name, kind in unstated.items() if _is_signed(kind)}
    place = user_location()
    if signed and place is not None:
        kinds = dict.fromkeys(kind.__name__ for kind in signed.values())
        warnings.warn_explicit(
            f"WMMA takes {' and '.join(kinds)} for unsigned unless it is told otherwise, as in FlyDSL: "
            f"pass {', '.join(f'{name}=True' for name in signed)}, or False to say that they are unsigned",
            UserWarning,
            place.file,
            place.line,
        )


def _is_signed(kind: Any) -> bool:
    """True for a signed integer type of the DSL."""
    return isinstance(kind, type) and issubclass(kind, Numeric) and element_name(kind).startswith("i")


def WMMAScale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
    mod_c: int = 0,
    reuse_a: bool = False,
    reuse_b: bool = False,
    block_size: int = 32,
) -> MmaOp:
    """A scaled matrix instruction of gfx1250: 16x16x128 of 8, 6 or 4-bit floats, or 32x16x128 of 4-bit ones.

    opsel_a, opsel_b: 1 takes the scales of lanes 16 to 31. See `flydsl.atoms.scaled`.
    mod_c, reuse_a, reuse_b, block_size: as they are by default; `rocdl.wmma_scale16_f32_16x16x128_f8f6f4` is the
    instruction with a scale for each 16 elements.
    """
    given = {"mod_c": (mod_c, 0), "reuse_a": (reuse_a, False), "reuse_b": (reuse_b, False)}
    _refuse_others("WMMAScale", {**given, "block_size": (block_size, 32)})
    return scaled_op(atoms.WMMAScale, (m, n, k), (elem_ty_a, elem_ty_b, elem_ty_acc), (opsel_a, opsel_b))


def _refuse_others(name: str, given: dict[str, tuple[Any, Any]]) -> None:
    """Raise ArgumentError for options that differ from the only supported value."""
    for option, (value, only) in given.items():
        if value != only:
            raise argument_error(f"unsupported: {name} with {option}={value!r}", f"leave it out: it is {only!r}")


def scaled_op(family: Any, shape: tuple[int, int, int], types: tuple[Any, Any, Any], opsel: tuple[int, int]) -> MmaOp:
    """A scaled instruction of a family; the type of B is by default that of A, that of C f32."""
    a = element_name(types[0])
    b, acc = (
        default if kind is None else element_name(kind) for kind, default in zip(types[1:], (a, "f32"), strict=True)
    )
    return located(family, *shape, a, b, acc, *opsel)
