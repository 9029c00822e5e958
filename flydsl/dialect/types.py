"""The types of the fly dialect as Python values.

| type | text |
|---|---|
| IntTupleType | `!fly.int_tuple<(*,?)>` |
| LayoutType | `!fly.layout<(4,8):(1,4)>` |
| ComposedLayoutType | `!fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>` |
| SwizzleType | `!fly.swizzle<S<3,3,3>>` |
| CoordSwizzleType | `!fly.coord_swizzle<CS<3,0,[0],3,[1]>>` |
| TileType | `!fly.tile<[8\\|24]>` |
| PointerType | `!fly.ptr<f32, global>` |
| MemRefType | `!fly.memref<f32, global, (?,?):(?{i64},1)>` |
| CopyAtomType | `!fly.copy_atom<!fly.universal_copy<32>, 32>` |
| TiledCopyType | `!fly.tiled_copy<!fly.copy_atom<...>, !fly.layout<(4,8):(1,4)>, !fly.tile<[4\\|8]>>` |
| MmaAtomType | `!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x4, (f32, f32) -> f32>>` |
| TiledMmaType | `!fly.tiled_mma<!fly.mma_atom<...>, !fly.layout<(2,2,1):(1,2,0)>>`, a `!fly.tile` where it permutes |

MLIR holds each as a dynamic type with one string parameter, `!fly.layout<"(4,8):(1,4)">`; `flydsl.dialect.text`
prints and reads the form without quotes. Both directions are cached, so a type is parsed once per context.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, TypeAlias

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER, CopyOp, MmaOp, TiledCopy, TiledMma, parse_copy_op, parse_mma_op
from flydsl.dialect.context import context
from flydsl.dialect.elements import element_bits, element_type, memory_bits
from flydsl.errors import CompileError, FlyError

AnyLayout: TypeAlias = algebra.Layout | algebra.ComposedLayout

_ALIGN = re.compile(r"align<([1-9]\d{0,6})>$")
_UNALIGNED = re.compile(rf",\s*{_ALIGN.pattern}")
ADDRESS_SPACES = ("generic", "global", "shared", "register", BUFFER)


@dataclass(frozen=True)
class FlyType(ABC):
    """A type of the dialect: a mnemonic and the text between its angle brackets."""

    mnemonic: ClassVar[str]

    @property
    @abstractmethod
    def body(self) -> str:
        """The text between the angle brackets."""

    @classmethod
    @abstractmethod
    def parse_body(cls, body: str) -> FlyType:
        """Read the text between the angle brackets. Raises CompileError if it is malformed."""

    def __str__(self) -> str:
        return f"!fly.{self.mnemonic}<{self.body}>"

    @property
    def ir(self) -> ir.Type:
        """The MLIR type."""
        return _to_mlir(self)


class NotatedType(FlyType):
    """The type of one value of the layout algebra, its first field, in the algebra's own notation."""

    kind: ClassVar[Any]
    kind_name: ClassVar[str]

    @property
    def body(self) -> str:
        return algebra.to_text(next(iter(vars(self).values())))

    @classmethod
    def parse_body(cls, body: str) -> FlyType:
        return cls(_parse(body, cls.kind, cls.kind_name))  # type: ignore[call-arg]


class ElementsType(FlyType):
    """A type of memory: elements in an address space."""

    element: str
    space: str

    @property
    def element_type(self) -> ir.Type:
        """MLIR's type of an element."""
        return element_type(self.element)

    @property
    def address_space(self) -> str:
        """The address space; equal to the member of `fx.AddressSpace`, and to its number."""
        return SpaceName(self.space)

    @property
    def element_bits(self) -> int:
        """Bits of an element in memory."""
        return memory_bits(self.element)


@dataclass(frozen=True)
class IntTupleType(NotatedType):
    """A nested tuple of integers, each static, dynamic (`?`) or a wildcard (`*`)."""

    mnemonic = "int_tuple"
    kind, kind_name = int | tuple | algebra.Dynamic | algebra.Basis | None, "an int tuple"
    value: algebra.IntTuple

    @classmethod
    def get(cls, int_or_tuple: Any, context: Any = None) -> IntTupleType:
        """The type of a tuple of integers, nested or not; None is the wildcard."""
        return cls(algebra.make_int_tuple(int_or_tuple))


@dataclass(frozen=True)
class LayoutType(NotatedType):
    """A layout, with dynamic leaves where shape or stride are known at run time only."""

    mnemonic = "layout"
    kind, kind_name = algebra.Layout, "a layout"
    layout: algebra.Layout

    @classmethod
    def get(cls, shape: algebra.IntTuple, stride: algebra.IntTuple | None = None) -> LayoutType:
        """The type of a static layout; by default the leftmost mode is the fastest."""
        return cls(algebra.make_layout(shape, stride))


@dataclass(frozen=True)
class ComposedLayoutType(NotatedType):
    """A layout after which an offset is added and a swizzle, or another layout, is applied."""

    mnemonic = "composed_layout"
    kind, kind_name = algebra.ComposedLayout, "a composed layout"
    layout: algebra.ComposedLayout

    @classmethod
    def get(cls, inner: Any, offset: Any, outer: Any) -> ComposedLayoutType:
        """The type of `inner(offset + outer(c))`. inner, outer: layouts, a swizzle as inner, or the types of these."""
        return cls(algebra.make_composed_layout(*map(_value_of, (inner, offset, outer))))


@dataclass(frozen=True)
class SwizzleType(NotatedType):
    """A swizzle, which is always known at compile time."""

    mnemonic = "swizzle"
    kind, kind_name = algebra.Swizzle, "a swizzle"
    swizzle: algebra.Swizzle

    @classmethod
    def get(cls, bits: int, base: int, shift: int) -> SwizzleType:
        """The type of the swizzle S<bits,base,shift>."""
        return cls(algebra.Swizzle(bits, base, shift))


@dataclass(frozen=True)
class CoordSwizzleType(NotatedType):
    """A swizzle of coordinates, which is always known at compile time."""

    mnemonic = "coord_swizzle"
    kind, kind_name = algebra.CoordSwizzle, "a swizzle of coordinates"
    swizzle: algebra.CoordSwizzle

    @classmethod
    def get(cls, mask: int, base_row: int, mode_row: Any, base_col: int, mode_col: Any) -> CoordSwizzleType:
        """The type of the swizzle that XORs `mask` bits of mode_row, from base_row on, into mode_col from base_col on.

        mode_row, mode_col: lists of ints, the paths of the modes.
        """
        return cls(algebra.CoordSwizzle(mask, base_row, mode_row, base_col, mode_col))


@dataclass(frozen=True)
class TileType(NotatedType):
    """A tile: one layout or size per mode."""

    mnemonic = "tile"
    kind, kind_name = algebra.Tile, "a tile"
    tile: algebra.Tile

    @classmethod
    def get(cls, modes: Any) -> TileType:
        """The type of a tile: a list of its modes, each an extent, a layout or the type of one, None or a list."""
        listed = modes if isinstance(modes, list | tuple) else [modes]
        return cls(algebra.make_tile(*map(_value_of, listed)))


@dataclass(frozen=True, init=False)
class PointerType(ElementsType):
    """A pointer to elements in an address space; offsets count elements.

    alignment: of the address in bytes; None if no more is known than that an element is aligned. `PointerType(kind)`,
    with a pointer's type, is that type again: FlyDSL's programs convert it so.
    """

    mnemonic = "ptr"
    element: str
    space: str
    alignment: int | None = None

    def __init__(self, element: str | PointerType, space: str | None = None, alignment: int | None = None) -> None:
        given = (element.element, element.space, element.alignment) if isinstance(element, PointerType) else (
            element, space, alignment)  # fmt: skip
        if given[1] is None:
            raise CompileError(
                f"a pointer to {element} needs an address space", hint=f"pass one of {', '.join(ADDRESS_SPACES)}"
            )
        for name, value in zip(("element", "space", "alignment"), given, strict=True):
            object.__setattr__(self, name, value)

    @property
    def body(self) -> str:
        aligned = "" if self.alignment is None else f", align<{self.alignment}>"
        return f"{self.element}, {self.space}{aligned}"

    @classmethod
    def parse_body(cls, body: str) -> PointerType:
        element, space, *rest = split_top_level(body)
        match = _ALIGN.match(rest[0]) if rest else None
        if len(rest) > 1 or (rest and match is None):
            raise CompileError(f"{body!r} is not a pointer", hint="write f16, shared, align<16>, for example")
        alignment = int(match[1]) if match else None
        if alignment is not None and alignment & (alignment - 1):
            raise CompileError(f"an alignment must be a power of two, got {alignment} bytes")
        return cls(_checked_element(element), _checked_space(space), alignment)

    @classmethod
    def get(cls, elem_ty: Any, address_space: Any, alignment: int | None = None) -> PointerType:
        """The type of pointers to elements of an MLIR type (or its name), in an address space (or its number)."""
        name = getattr(elem_ty, "memory_name", None) or str(elem_ty)
        space = _space_name(address_space)
        text = f"{name}, {space}" if alignment is None else f"{name}, {space}, align<{alignment}>"
        return cls.parse_body(text)

    @property
    def known_alignment(self) -> int:
        """The alignment of the address in bytes that can be relied on."""
        return self.alignment or max(self.element_bits // 8, 1)

    def aligned(self, alignment: int) -> PointerType:
        """The same pointer with another alignment, which is left out if it is that of an element."""
        plain = PointerType(self.element, self.space)
        return plain if alignment == plain.known_alignment else replace(plain, alignment=alignment)


@dataclass(frozen=True)
class MemRefType(ElementsType):
    """A tensor: elements in an address space, seen through a layout, which may be swizzled.

    FlyDSL's `align<16>` after the layout is read, and left to the pointer.
    """

    mnemonic = "memref"
    element: str
    space: str
    layout: AnyLayout

    @property
    def body(self) -> str:
        return f"{self.element}, {self.space}, {self.layout}"

    @classmethod
    def parse_body(cls, body: str) -> MemRefType:
        element, space, layout = _split(_UNALIGNED.sub("", body), 3)
        return cls(_checked_element(element), _checked_space(space), _parse(layout, AnyLayout, "a layout"))

    @classmethod
    def get(cls, elem_ty: Any, layout: Any, address_space: Any) -> MemRefType:
        """The type of tensors of an element type (MLIR's or its name), with a layout or the type of one."""
        name = getattr(elem_ty, "memory_name", None) or str(elem_ty)
        return cls.parse_body(f"{name}, {_space_name(address_space)}, {_value_of(layout)}")

    @property
    def pointer(self) -> PointerType:
        """The type of the tensor's iterator."""
        return PointerType(self.element, self.space)

    def with_layout(self, layout: AnyLayout) -> MemRefType:
        """The same memory seen through another layout."""
        return MemRefType(self.element, self.space, layout)


@dataclass(frozen=True)
class CopyAtomType(FlyType):
    """A copy instruction applied to elements of `value_bits` bits."""

    mnemonic = "copy_atom"
    op: CopyOp
    value_bits: int

    @property
    def body(self) -> str:
        return f"{self.op}, {self.value_bits}"

    @classmethod
    def get(cls, copy_op: CopyOp, val_bits: int) -> CopyAtomType:
        """The type of an instruction on values of `val_bits` bits."""
        return cls.parse_body(f"{copy_op}, {val_bits}")

    @property
    def copy_op(self) -> CopyOp:
        """The instruction."""
        return self.op

    @property
    def val_bits(self) -> int:
        """Bits of a value."""
        return self.value_bits

    @classmethod
    def parse_body(cls, body: str) -> CopyAtomType:
        op, value_bits = _split(body, 2)
        copy = parse_copy_op(op)
        if not re.fullmatch(r"[1-9]\d{0,3}", value_bits) or copy.bits % int(value_bits):
            raise CompileError(
                f"the bits of a value must be a number that divides the {copy.bits} bits of {op}, got {value_bits!r}"
            )
        return cls(copy, int(value_bits))


@dataclass(frozen=True)
class TiledCopyType(FlyType):
    """A copy instruction repeated over the threads and values of a tile."""

    mnemonic = "tiled_copy"
    copy: TiledCopy

    @property
    def atom(self) -> CopyAtomType:
        """The instruction."""
        return CopyAtomType(self.copy.op, self.copy.value_bits)

    @property
    def body(self) -> str:
        return f"{self.atom}, {LayoutType(self.copy.layout_tv)}, {TileType(self.copy.tile)}"

    @classmethod
    def parse_body(cls, body: str) -> TiledCopyType:
        atom, layout, tile = _parse_parts(_split(body, 3))
        if not (isinstance(atom, CopyAtomType) and isinstance(layout, LayoutType) and isinstance(tile, TileType)):
            raise CompileError(f"a tiled copy must have a copy atom, a layout and a tile, got {body!r}")
        return cls(TiledCopy(atom.op, atom.value_bits, layout.layout, tile.tile))


@dataclass(frozen=True)
class MmaAtomType(FlyType):
    """A matrix instruction."""

    mnemonic = "mma_atom"
    op: MmaOp

    @property
    def body(self) -> str:
        return str(self.op)

    @classmethod
    def get(cls, mma_op: MmaOp) -> MmaAtomType:
        """The type of an instruction."""
        return cls(mma_op)

    @property
    def mma_op(self) -> MmaOp:
        """The instruction."""
        return self.op

    @classmethod
    def parse_body(cls, body: str) -> MmaAtomType:
        return cls(parse_mma_op(body))


@dataclass(frozen=True)
class TiledMmaType(FlyType):
    """A matrix instruction repeated over the waves and values of a tile."""

    mnemonic = "tiled_mma"
    mma: TiledMma

    @property
    def atom(self) -> MmaAtomType:
        """The instruction."""
        return MmaAtomType(self.mma.op)

    @property
    def body(self) -> str:
        parts: list[FlyType] = [self.atom, LayoutType(self.mma.atom_layout)]
        if self.mma.permutation is not None:
            parts.append(TileType(self.mma.permutation))
        return ", ".join(map(str, parts))

    @classmethod
    def parse_body(cls, body: str) -> TiledMmaType:
        atom, layout, *tiles = _parse_parts(split_top_level(body))
        if isinstance(atom, MmaAtomType) and isinstance(layout, LayoutType) and len(tiles) < 2:
            tile = tiles[0] if tiles else None
            if isinstance(tile, TileType | None):
                return cls(TiledMma(atom.op, layout.layout, None if tile is None else tile.tile))
        raise CompileError(f"a tiled MMA must have an MMA atom, a layout and perhaps a tile, got {body!r}")


_LAYOUTS = (IntTupleType, LayoutType, ComposedLayoutType, SwizzleType, CoordSwizzleType, TileType)
_ATOMS = (CopyAtomType, TiledCopyType, MmaAtomType, TiledMmaType)
_TYPES = (*_LAYOUTS, PointerType, MemRefType, *_ATOMS)
TYPES: dict[str, type[FlyType]] = {cls.mnemonic: cls for cls in _TYPES}


def split_top_level(text: str, separator: str = ",") -> Iterator[str]:
    """The parts of `text` between separators that no bracket encloses.

    >>> list(split_top_level("f32, global, (?,?):(?{i64},1)"))
    ['f32', 'global', '(?,?):(?{i64},1)']
    """
    depth, start = 0, 0
    for i, char in enumerate(text):
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[i - 1 : i] != "-"):
            depth -= 1
        elif char == separator and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    yield text[start:].strip()


def _parse_parts(parts: Iterable[str]) -> Iterator[FlyType]:
    """The types in the parameter of a tiled copy or MMA; FlyDSL also writes a layout as `<(1,4,1):(0,1,0)>` there."""
    for part in parts:
        mnemonic = "" if not part.startswith("<") else "!fly.tile" if part.startswith("<[") else "!fly.layout"
        yield parse_type(mnemonic + part)


def _parse(text: str, kind: Any, what: str) -> Any:
    value = algebra.parse(text)
    if not isinstance(value, kind):
        raise CompileError(f"{text!r} is not {what}")
    return value


def _checked_element(name: str) -> str:
    element_bits(name)
    return name


def _checked_space(name: str) -> str:
    """An address space; other dialects' are attributes, such as `#fly_rocdl.buffer_desc`.

    Later versions of FlyDSL write that one as `buffer_desc`.
    """
    if name == "buffer_desc":
        return BUFFER
    if name not in ADDRESS_SPACES and not name.startswith("#"):
        raise CompileError(f"{name!r} is not an address space", hint=f"known: {', '.join(ADDRESS_SPACES)}")
    return name


def _value_of(part: Any) -> Any:
    """A layout, swizzle, tile or tuple, given itself or by its type; lists as tuples."""
    if isinstance(part, list | tuple):
        return tuple(map(_value_of, part))
    for kind, name in _VALUES.items():
        if isinstance(part, kind):
            return getattr(part, name)
    return part


_VALUES = {IntTupleType: "value", LayoutType: "layout", ComposedLayoutType: "layout", SwizzleType: "swizzle",
           CoordSwizzleType: "swizzle", TileType: "tile"}  # fmt: skip


class SpaceName(str):
    """The name of an address space, which equals its number among `ADDRESS_SPACES`, too.

    >>> SpaceName("register") == "register", SpaceName("register") == ADDRESS_SPACES.index("register")
    (True, True)
    """

    __hash__ = str.__hash__

    def __int__(self) -> int:
        return ADDRESS_SPACES.index(self)

    def __eq__(self, other: object) -> bool:
        return int(self) == other if isinstance(other, int) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def _space_name(space: Any) -> str:
    """The name of an address space, given by name or by number among `ADDRESS_SPACES`."""
    if isinstance(space, int):
        if not 0 <= space < len(ADDRESS_SPACES):
            raise CompileError(
                f"{space} is not an address space", hint=f"their numbers are 0 to {len(ADDRESS_SPACES) - 1}"
            )
        return ADDRESS_SPACES[space]
    return str(space)


def _split(body: str, count: int) -> list[str]:
    parts = list(split_top_level(body))
    if len(parts) != count:
        raise CompileError(f"the type takes {count} parameters, got {len(parts)}: {body!r}")
    return parts


@cache
def _to_mlir(fly: FlyType) -> ir.Type:
    return ir.Type.parse(f'!fly.{fly.mnemonic}<"{fly.body}">', context())


@cache
def fly_type(mlir_type: ir.Type) -> Any:
    """The fly type that an MLIR type holds, or None for a type of another dialect.

    Raises CompileError where the text inside a fly type is malformed.
    """
    text = str(mlir_type)
    return parse_type(text) if text.startswith("!fly.") else None


def parse_type(text: str) -> FlyType:
    """Read a fly type, with or without quotes around its parameter. Raises CompileError if it is malformed.

    >>> parse_type("!fly.layout<64:1>")
    LayoutType(layout=64:1)
    """
    mnemonic, _, rest = text.removeprefix("!fly.").partition("<")
    if mnemonic not in TYPES:
        raise CompileError(f"!fly.{mnemonic} is not a type of the fly dialect", hint=f"known: {', '.join(TYPES)}")
    body = rest[:-1].strip('"')
    try:
        return TYPES[mnemonic].parse_body(body)
    except FlyError as error:
        raise CompileError(f"!fly.{mnemonic}<{body}>: {error.message}", hint=error.hint) from None
