"""Element types as memory holds them."""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import element_bits, element_type, is_float, scalar_of, with_elements
from flydsl.passes.rewriting import create


def storage_type(kind: ir.Type) -> ir.Type:
    """The type in memory: LLVM knows no float below 16 bits and no index, and a Boolean takes a byte."""
    element = scalar_of(kind)
    name, bits = str(element), element_bits(str(element))
    if bits == 1 or name == "index" or (bits < 16 and is_float(name)):
        element = element_type(f"i{max(bits, 8)}")
    return with_elements(kind, element)


def convert_storage(value: ir.Value, kind: ir.Type, at: ir.Location) -> ir.Value:
    """A value between its type and its form in memory."""
    if value.type == kind:
        return value
    source, target = scalar_of(value.type), scalar_of(kind)
    widths = [element_bits(str(t)) for t in (source, target)]
    if "index" in (str(source), str(target)):
        return create("arith.index_cast", [value], [kind], at).result
    maker = value.owner
    if not isinstance(maker, ir.Block) and maker.name == "arith.bitcast" and maker.operands[0].type == kind:
        return maker.operands[0]  # as it was read
    name = "bitcast" if widths[0] == widths[1] else "extui" if widths[0] < widths[1] else "trunci"
    return create(f"arith.{name}", [value], [kind], at).result
