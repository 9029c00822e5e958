"""Lanes of a wave: lane ids, and values that move from lane to lane."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA4, GFX12
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numeric import Boolean, Int32, numeric_class
from flydsl.expr.rocdl.intrinsic import (
    bitcast,
    bits_of,
    call,
    call_intrinsic,
    i32_attribute,
    ir_type,
    is_type,
    operand,
    require_target,
    result_type_first,
    value_of,
)
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "ReadfirstlaneOp", "ballot", "ds_bpermute", "ds_permute", "ds_swizzle", "lane_id", "mbcnt_hi", "mbcnt_lo",
    "perm_b32", "permlane16_swap", "permlane32_swap", "permlanex16", "readfirstlane", "readlane", "update_dpp",
]  # fmt: skip


def _same_type(what: str, res: Any, value: ir.Value) -> ir.Type:
    """The type of the result, which must be the operand's."""
    if res is not None and ir_type(what, res) != value.type:
        raise argument_error(f"{what} of {value.type} is {value.type}, not {ir_type(what, res)}", how_to_make.RESULT)
    return value.type


def _moved(what: str, value: Any, *, widths: tuple[int, ...] = (16, 32, 64)) -> ir.Value:
    """A value that an instruction moves as a whole."""
    given = value_of(what, value)
    if bits_of(given.type) not in widths or isinstance(given.type, ir.VectorType):
        shown = ", ".join(map(str, widths))
        raise argument_error(
            f"{what} moves scalars of {shown} bits, not {given.type}",
            "gpu.shuffle moves any scalar or vector; or convert or bitcast it",
        )
    return given


@result_type_first
def readfirstlane(res: Any, src: Any) -> Any:
    """The value of the first active lane, in every lane: a scalar for the compiler. src: 16, 32 or 64 bits."""
    value = _moved("readfirstlane", src)
    return call("readfirstlane", [value], _same_type("readfirstlane", res, value))


ReadfirstlaneOp = readfirstlane


@result_type_first
def readlane(res: Any, src0: Any, src1: Any) -> Any:
    """The value of `src0` in lane `src1`, in every lane. The lane must be the same number in the whole wave."""
    value = _moved("readlane", src0)
    return call("readlane", [value, operand("the lane of readlane", src1, Int32)], _same_type("readlane", res, value))


@result_type_first
def ballot(res: Any, pred: Any) -> Any:
    """A mask with one bit per lane, set if the Boolean `pred` holds. res: T.i64 (default), or T.i32 in wave32."""
    kind = element_type("i64") if res is None else ir_type("ballot", res)
    if str(kind) not in ("i32", "i64"):
        raise argument_error(f"ballot has 32 or 64 bits, not {kind}", "pass T.i64 for waves of 64 lanes, for example")
    return call("ballot", [operand("the predicate of ballot", pred, Boolean)], kind)


@result_type_first
def mbcnt_lo(res: Any, in0: Any, in1: Any) -> Any:
    """Number of ones in mask `in0` for the lanes 0 to 31 below this one, plus `in1`."""
    return _count("mbcnt_lo", "mbcnt.lo", res, in0, in1)


@result_type_first
def mbcnt_hi(res: Any, in0: Any, in1: Any) -> Any:
    """Number of ones in mask `in0` for the lanes 32 to 63 below this one, plus `in1`."""
    return _count("mbcnt_hi", "mbcnt.hi", res, in0, in1)


def _count(name: str, operation: str, res: Any, mask: Any, start: Any) -> Any:
    values = [operand(f"{name} of", value, Int32) for value in (mask, start)]
    return call(operation, values, _same_type(name, res, values[1]))


def lane_id() -> Int32:
    """This lane's number in its wave, Int32."""
    return mbcnt_hi(-1, mbcnt_lo(-1, 0))


@result_type_first
def ds_bpermute(res: Any, index: Any, src: Any) -> Any:
    """`src` of the lane whose number times 4 is `index`, or 0 if that lane is not active. src: 32 bits."""
    return _permute("ds_bpermute", res, index, src)


@result_type_first
def ds_permute(res: Any, index: Any, src: Any) -> Any:
    """Send `src` to the lane whose number times 4 is `index`; a lane that receives nothing gets 0. src: 32 bits."""
    return _permute("ds_permute", res, index, src)


def _permute(name: str, res: Any, index: Any, src: Any) -> Any:
    value = _moved(name, src, widths=(32,))
    kind = _same_type(name, res, value)
    arguments = [operand(f"the index of {name}", index, Int32), bitcast(value, Int32.ir_type)]
    return _typed(call_intrinsic(f"llvm.amdgcn.{name.replace('_', '.')}", arguments, Int32.ir_type), kind)


def _typed(value: ir.Value, kind: ir.Type) -> Any:
    return numeric_class(kind).of(bitcast(value, kind))


@result_type_first
def ds_swizzle(res: Any, src: Any, offset: Any) -> Any:
    """Move 32 bits among the lanes of a group of 32 by a fixed pattern. No LDS memory is used.

    offset: the pattern. Bit 15 set: bits 0 to 7 name the source of each lane of four. Else the source lane is
    ((lane & and) | or) ^ xor, with and, or, xor the bits 0 to 4, 5 to 9 and 10 to 14 (ISA, DS_SWIZZLE_B32).
    """
    value = _moved("ds_swizzle", src, widths=(32,))
    kind = _same_type("ds_swizzle", res, value)
    pattern = Int32(immediate("the offset of ds_swizzle", offset, 0, 0xFFFF)).ir_value()
    return _typed(call("ds_swizzle", [bitcast(value, Int32.ir_type), pattern], Int32.ir_type).ir_value(), kind)


@result_type_first
def perm_b32(res: Any, src0: Any, src1: Any, selector: Any) -> Any:
    """Select four bytes (v_perm_b32). Each byte of `selector` names one: 0 to 3 of src1, 4 to 7 of src0.

    12 is the byte 0, 13 and above 0xFF; 8 to 11 are a sign (ISA, V_PERM_B32). Nothing moves between lanes.
    """
    values = [operand("perm_b32", value, Int32) for value in (src0, src1, selector)]
    return _typed(call_intrinsic("llvm.amdgcn.perm", values, Int32.ir_type), _same_type("perm_b32", res, values[0]))


@result_type_first
def update_dpp(
    res: Any, old: Any, src: Any, dpp_ctrl: Any, row_mask: Any = 0xF, bank_mask: Any = 0xF, bound_ctrl: Any = False
) -> Any:
    """Move data within rows of 16 lanes in the VALU (data parallel primitives).

    old: the value of lanes that the masks leave out, and, without bound_ctrl, of those without a source.
    dpp_ctrl: the movement, such as 0xB1 for quad_perm [1, 0, 3, 2] or 0x111 for row_shr:1 (ISA, "DPP_CTRL").
    row_mask, bank_mask: 4 bits each, which rows and which quarters of a row are written.
    """
    value = _moved("update_dpp", src)
    if is_type(old):
        raise argument_error("update_dpp takes one result type", how_to_make.RESULT)
    attributes = {
        "dppCtrl": i32_attribute(immediate("dpp_ctrl of update_dpp", dpp_ctrl, 0, 0x1FF)),
        "rowMask": i32_attribute(immediate("row_mask of update_dpp", row_mask, 0, 0xF)),
        "bankMask": i32_attribute(immediate("bank_mask of update_dpp", bank_mask, 0, 0xF)),
        "boundCtrl": ir.BoolAttr.get(bool(immediate("bound_ctrl of update_dpp", bound_ctrl, 0, 1))),
    }
    operands = [operand("old of update_dpp", old, value.type), value]
    return call("update.dpp", operands, _same_type("update_dpp", res, value), attributes)


def _swap(name: str, operation: str, res: Any, old: Any, src: Any, fi: Any, bound_control: Any) -> Any:
    require_target(name, CDNA4)
    values = [operand(f"operand {what} of {name}", value, Int32) for what, value in (("old", old), ("src", src))]
    kind = ir.Type.parse("!llvm.struct<(i32, i32)>")
    if res is not None and ir_type(name, res) != kind:
        raise argument_error(f"{name}: the result is {kind}, not {ir_type(name, res)}", how_to_make.RESULT)
    attributes = {
        "fi": ir.BoolAttr.get(bool(immediate(f"fi of {name}", fi, 0, 1))),
        "boundControl": ir.BoolAttr.get(bool(immediate(f"bound_control of {name}", bound_control, 0, 1))),
    }
    return call(operation, values, kind, attributes)


@result_type_first
def permlane16_swap(res: Any, old: Any, src: Any, fi: Any = False, bound_control: Any = False) -> Any:
    """Swap the odd rows of 16 lanes of `old` with the even ones of `src`: a structure of both. CDNA 4."""
    return _swap("permlane16_swap", "permlane16.swap", res, old, src, fi, bound_control)


@result_type_first
def permlane32_swap(res: Any, old: Any, src: Any, fi: Any = False, bound_control: Any = False) -> Any:
    """Swap the upper 32 lanes of `old` with the lower ones of `src`: a structure of both. CDNA 4."""
    return _swap("permlane32_swap", "permlane32.swap", res, old, src, fi, bound_control)


@result_type_first
def permlanex16(
    res: Any, old: Any, src0: Any, src1: Any, src2: Any, fi: Any = False, bound_control: Any = False
) -> Any:
    """`src0` of the other row's lane that 4 bits of src1 (lanes 0 to 7) and src2 (8 to 15) name. gfx12."""
    require_target("permlanex16", GFX12)
    values = [operand("permlanex16", value, Int32) for value in (old, src0, src1, src2)]
    attributes = {
        "fi": ir.BoolAttr.get(bool(immediate("fi of permlanex16", fi, 0, 1))),
        "boundControl": ir.BoolAttr.get(bool(immediate("bound_control of permlanex16", bound_control, 0, 1))),
    }
    return call("permlanex16", values, _same_type("permlanex16", res, values[0]), attributes)
