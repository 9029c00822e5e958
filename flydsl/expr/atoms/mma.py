"""Matrix instructions, tilings of them, and products of tensors. All of them are fixed when compiling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from mlir import ir

from flydsl import atoms
from flydsl import layout as algebra
from flydsl.atoms import MmaOp
from flydsl.dialect.elements import value_name
from flydsl.dialect.gemm_traversal import DEFAULT_ORDER, TRAVERSAL_ORDERS, traversal
from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import MmaAtomType, TiledMmaType
from flydsl.errors import how_to_make
from flydsl.expr.atoms.atom_values import AtomWithValues, OfOneThread, TiledAtom, with_values
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.expr.memory.tensors import Tensor, as_memory, memref_load, of_memory, require_tensor
from flydsl.expr.threads.block_threads import note_tile
from flydsl.expr.tracing.emit import emit_fly
from flydsl.expr.tracing.operands import as_operand, element_name, is_runtime, located, thread_number
from flydsl.layout import Layout, Tile
from flydsl.layout.int_tuple import as_int_tuple

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyLayout, AnyTensor, IntTupleLike, Number, Result, ScalarType

__all__ = [
    "GemmTraversalOrder", "MmaOperand", "UniversalFMA", "gemm", "make_mma_atom", "make_tiled_mma", "mma_atom_call",
    "mma_make_fragment", "tiled_mma_partition", "tiled_mma_partition_shape",
]  # fmt: skip


class MmaOperand(str, Enum):
    """An operand of a matrix instruction: D = A B^T + C."""

    A = "a"
    B = "b"
    C = "c"
    D = "d"


# The loops of a gemm over its calls, innermost first. SERPENTINE: each loop turns around each time, so that operands of
# one call are used again by the next.
GemmTraversalOrder = Enum(  # type: ignore[misc]
    "GemmTraversalOrder",
    {name: order for order in TRAVERSAL_ORDERS for name in (order, order.replace("SERPENTINE", "Serpentine"))},
    type=str,
)


class MmaAtom(AtomWithValues):
    """A matrix instruction: `fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))`.

    values: what its calls use besides their operands: `scale_a` and `scale_b` of a scaled instruction.
    """

    type: MmaAtomType

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """Extents of the tile that one call multiplies."""
        return self.type.op.shape_mnk

    @property
    def thr_layout(self) -> Layout:
        """The threads of a call."""
        return self.type.op.thr_layout

    @property
    def tv_layout_A(self) -> Layout:
        """(thread, value) -> element of A's tile (M, K), its first mode fastest."""
        return self.type.op.layout_tv_a

    @property
    def tv_layout_B(self) -> Layout:
        """(thread, value) -> element of B's tile (N, K)."""
        return self.type.op.layout_tv_b

    @property
    def tv_layout_C(self) -> Layout:
        """(thread, value) -> element of C's tile (M, N)."""
        return self.type.op.layout_tv_c

    thr_id = thr_layout
    layout_A_tv, layout_B_tv, layout_C_tv = tv_layout_A, tv_layout_B, tv_layout_C

    def operand(self) -> ir.Value:
        return with_values(emit_fly("make_mma_atom", results=[self.type]).result, self.values)


class TiledMma(TiledAtom):
    """A matrix instruction repeated over the waves and values of a tile: `fx.make_tiled_mma(...)`."""

    type: TiledMmaType

    @property
    def atom(self) -> MmaAtom:
        """The instruction."""
        return MmaAtom(self.type.atom, self.values)

    @property
    def tile_size_mnk(self) -> tuple[int, ...]:
        """Extents of the tile that the block multiplies."""
        return self.type.mma.tile_size_mnk

    @property
    def thr_layout_vmnk(self) -> Layout:
        """(thread of an instruction, its position along M, N, K) -> thread of the block."""
        return self.type.mma.thr_layout_vmnk

    @property
    def tiled_tv_layout_A(self) -> Layout:
        """(thread, value) -> element of A's tile, its first mode fastest."""
        return self.type.mma.layout_tv("a")

    @property
    def tiled_tv_layout_B(self) -> Layout:
        """(thread, value) -> element of B's tile."""
        return self.type.mma.layout_tv("b")

    @property
    def tiled_tv_layout_C(self) -> Layout:
        """(thread, value) -> element of C's tile."""
        return self.type.mma.layout_tv("c")

    tv_layout_A_tiled, tv_layout_B_tiled, tv_layout_C_tiled = tiled_tv_layout_A, tiled_tv_layout_B, tiled_tv_layout_C
    layout_A_tv_tiled, layout_B_tv_tiled, layout_C_tv_tiled = tiled_tv_layout_A, tiled_tv_layout_B, tiled_tv_layout_C

    @property
    def mma_atom(self) -> MmaAtom:
        """The instruction."""
        return self.atom

    @property
    def atom_layout(self) -> Layout:
        """(M, N, K) position of an instruction in the tile -> number of its wave."""
        return self.type.mma.atom_layout

    @property
    def permutation_mnk(self) -> Tile | None:
        """The numbering of each mode's elements before they are dealt out; None if they stay as they are."""
        return self.type.mma.permutation

    def make_fragment_A(self, a: Tensor, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of A: see `ThrMma.make_fragment_A`."""
        return mma_make_fragment("a", self, a, stages=stages)

    def make_fragment_B(self, b: Tensor, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of B."""
        return mma_make_fragment("b", self, b, stages=stages)

    def make_fragment_C(self, c: Tensor, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of C."""
        return mma_make_fragment("c", self, c, stages=stages)

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """The part of one thread. thr_idx: its number, usually `fx.thread_idx.x`."""
        return ThrMma(self, thread_number("get_slice", thr_idx, self.type.mma.layout_tv("c")))

    thr_slice = get_slice

    def operand(self) -> ir.Value:
        given = (self.atom, self.type.mma.atom_layout, self.type.mma.permutation)
        return emit_fly("make_tiled_mma", [as_operand(part) for part in given if part is not None]).result


class ThrMma(OfOneThread):
    """One thread's part of a tiled MMA, whose attributes it has, too."""

    def __init__(self, tiled_mma: TiledMma, thr_idx: Any) -> None:
        self.tiled = self.tiled_mma = _require_tiled("ThrMma", tiled_mma)
        self.thr_idx = thr_idx

    def partition_A(self, a: Any) -> Any:
        """The thread's part of A (M, K, ...): (values of a call, calls along M, along K, ...)."""
        return self._partition("a", a)

    def partition_B(self, b: Any) -> Any:
        """The thread's part of B (N, K, ...)."""
        return self._partition("b", b)

    def partition_C(self, c: Any) -> Any:
        """The thread's part of C (M, N, ...), which it accumulates."""
        return self._partition("c", c)

    def make_fragment_A(self, a: Tensor, stages: int | None = None) -> Tensor:
        """Registers for the thread's part of A, of the instruction's type; stages: their number, the last mode.

        a: the tile (M, K) that the block multiplies, not partitioned yet.
        """
        return self._make_fragment("a", a, stages)

    def make_fragment_B(self, b: Tensor, stages: int | None = None) -> Tensor:
        """Registers for the thread's part of B."""
        return self._make_fragment("b", b, stages)

    def make_fragment_C(self, c: Tensor, stages: int | None = None) -> Tensor:
        """Registers for the thread's part of C, of the type in which the instruction accumulates."""
        return self._make_fragment("c", c, stages)

    def _partition(self, operand: str, tensor: Any) -> Any:
        return tiled_mma_partition(operand, self.tiled_mma, tensor, self.thr_idx)

    def _make_fragment(self, operand: str, tensor: Tensor, stages: int | None) -> Tensor:
        return mma_make_fragment(operand, self.tiled_mma, tensor, stages=stages)

    def __repr__(self) -> str:
        return f"ThrMma({self.tiled_mma.type}, {self.thr_idx!r})"


def UniversalFMA(element: ScalarType) -> MmaOp:
    """The multiply-add of one thread on single elements of a type."""
    return located(atoms.UniversalFMA, value_name(element_name(element)))


def make_mma_atom(op: MmaOp) -> MmaAtom:
    """A matrix instruction. op: `fx.rocdl.MFMA(16, 16, 16, fx.Float16)`, `fx.UniversalFMA(fx.Float32)`, ..."""
    if not isinstance(op, MmaOp):
        hint = "such as fx.rocdl.MFMA(16, 16, 16, fx.Float16)"
        raise argument_error(f"make_mma_atom takes a matrix instruction, not {op!r}", hint)
    return MmaAtom(MmaAtomType(op))


def make_tiled_mma(
    atom: MmaAtom, atom_layout: AnyLayout | IntTupleLike = None, permutation: Tile | None = None
) -> TiledMma:
    """A matrix instruction repeated over waves and values.

    atom_layout: (M, N, K) position of an instruction in the tile -> number of the wave that executes it; by default
    one wave. A layout of fewer modes has one instruction along the others.
    permutation: a tile (M, N, K) that renumbers the elements of each mode before they are distributed; None leaves a
    mode unchanged.
    """
    if not isinstance(atom, MmaAtom):
        raise argument_error(f"make_tiled_mma takes an MMA atom first, not {atom!r}", how_to_make.MMA_ATOM)
    if is_runtime((atom_layout, permutation)):
        raise argument_error(
            "make_tiled_mma takes layouts that are known at compile time",
            "make them of Python ints or fx.Constexpr values",
        )
    layout = Layout((1, 1, 1)) if atom_layout is None else atom_layout
    if not isinstance(layout, Layout):
        layout = located(algebra.make_layout, layout)
    while algebra.rank(layout) < 3:
        layout = algebra.append(layout, Layout(1, 0))
    tile = permutation
    if permutation is not None and not isinstance(permutation, Tile):
        if not isinstance(permutation, tuple | list):
            raise argument_error(
                f"the permutation of make_tiled_mma must be a tile of M, N and K, got {permutation!r}",
                "pass fx.make_tile(None, None, 32), for example",
            )
        tile = located(algebra.make_tile, *permutation)
    return TiledMma(TiledMmaType(located(atoms.TiledMma, atom.type.op, layout, tile)), atom.values)


def tiled_mma_partition(operand: MmaOperand | str, tiled_mma: TiledMma, tensor: AnyTensor, thread: Number) -> Result:
    """The part of an operand that a thread multiplies: (values of a call, calls along its two modes, other modes).

    tensor: a tensor, or the coordinate tensor of one.
    """
    if isinstance(tensor, CoordTensor):
        mma = _require_tiled("partition", tiled_mma).type.mma
        if isinstance(tensor.layout, Layout):
            return tensor.by_thread(located(mma.partition, _operand(operand), tensor.layout), thread)
        part = tiled_mma_partition(operand, tiled_mma, as_memory(tensor), thread)
        return of_memory(tensor, part)
    value = require_tensor("partition", tensor).value
    mma = _require_tiled("partition", tiled_mma).type.mma
    note_tile(f"the tiled product {mma.atom_layout}", mma.layout_tv(_operand(operand)), thread)
    operands = [as_operand(tiled_mma), value, as_operand(thread)]
    return Tensor(emit_fly("tiled_mma.partition", operands, attributes={"operand": _operand(operand)}).result)


def tiled_mma_partition_shape(operand: MmaOperand | str, tiled_mma: TiledMma, shape: IntTupleLike) -> Result:
    """The shape of a thread's part of an operand of a static shape."""
    mma = _require_tiled("partition_shape", tiled_mma).type.mma
    parts = located(mma.partition, _operand(operand), located(algebra.make_layout, shape))
    return as_int_tuple(tuple(mode.extents for mode in list(parts)[1:]))


def mma_make_fragment(
    operand: MmaOperand | str, tiled_mma: TiledMma, tensor: AnyTensor, *, stages: int | None = None
) -> Tensor:
    """Registers for a thread's part of an operand, of the instruction's element type.

    tensor: the tile that the block multiplies, not yet partitioned. stages: the number of tiles, as a last mode
    instead of the tensor's modes after the first two.
    """
    operands = [as_operand(_require_tiled("make_fragment", tiled_mma)), require_tensor("make_fragment", tensor).value]
    attributes: dict[str, Any] = {"operand": _operand(operand)}
    if stages is not None:
        if not isinstance(stages, int) or not 0 < stages < 2**31:
            raise argument_error(f"stages must be a positive int, got {stages!r}", "pass stages=2, for example")
        attributes["stages"] = stages
    return Tensor(emit_fly("mma.make_fragment", operands, attributes=attributes).result)


def gemm(
    mma: MmaAtom | TiledMma,
    d: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    traversal_order: GemmTraversalOrder | str | None = None,
    traversal_layout: Layout | None = None,
    atom_callback: Callable[[MmaAtom, tuple[int, int, int]], MmaAtom] | None = None,
    **values: Number,
) -> None:
    """D = A B^T + C on fragments, executing the instruction as often as necessary.

        a, b, c = thread.make_fragment_A(A), thread.make_fragment_B(B), thread.make_fragment_C(C)
        fx.gemm(tiled_mma, c, a, b, c)

    d, c: (values, M, N); a: (values, M, K); b: (values, N, K), in registers; modes M, N, K may be missing.
    traversal_order: of the calls, innermost loop first, for example `fx.GemmTraversalOrder.MNK` or "mnk"; by default
    NMK. traversal_layout: instead, a layout number of the call -> its place in (M, N, K), M fastest.
    atom_callback: `(instruction, (m, n, k)) -> the instruction of that call`, with values of its own.
    values: of a scaled instruction `scale_a=` and `scale_b=`, for all calls. With scales of its own for each call an
    operand is a pair, `gemm(mma, d, [a, scales_a], [b, scales_b], c)`: a register tensor of fx.Int32, (M, K) and (N, K)
    like the calls, or a number.
    Raises LayoutError where the fragments do not fit the instruction or each other.
    """
    if not isinstance(mma, MmaAtom | TiledMma):
        raise argument_error(f"gemm: mma must be an MMA atom or a tiled MMA, got {mma!r}", how_to_make.MMA_ATOM)
    if traversal_order is not None and traversal_layout is not None:
        raise argument_error("gemm with an order and a layout of its calls", "give one or the other")
    (a, scale_a), (b, scale_b) = _with_scales(a), _with_scales(b)
    fragments = [require_tensor("gemm", tensor) for tensor in (d, a, b, c)]
    is_each_its_own = traversal_layout is not None or atom_callback is not None
    if is_each_its_own or isinstance(scale_a, Tensor) or isinstance(scale_b, Tensor):
        atom = _with_values(mma.atom if isinstance(mma, TiledMma) else mma, values)
        scales = [_Scales("scales_a", scale_a), _Scales("scales_b", scale_b)]
        _call_by_call(atom, fragments, scales, _places(fragments, traversal_order, traversal_layout), atom_callback)
        return
    given = {"scale_a": scale_a, "scale_b": scale_b}
    mma = _with_values(mma, values | {name: scale for name, scale in given.items() if scale is not None})
    attributes = {} if traversal_order is None else {"order": _order(traversal_order)}
    emit_fly("gemm", [as_operand(mma), *(tensor.value for tensor in fragments)], attributes=attributes)


def _with_scales(operand: Any) -> tuple[Any, Any]:
    """The fragment and the scales of an operand of a product."""
    if not isinstance(operand, tuple | list):
        return operand, None
    if len(operand) != 2:
        raise argument_error(
            f"an operand of gemm must be a fragment or [fragment, scales], got {len(operand)} parts",
            "pass [a, scale_a], for example",
        )
    return operand[0], operand[1]


class _Scales(NamedTuple):
    """The scales of an operand: None, a number for all calls, or a tensor with one for each."""

    name: str
    given: Any

    def check(self, counts: tuple[int, int]) -> None:
        if not isinstance(self.given, Tensor):
            return
        if algebra.product_each(algebra.get_shape(self.given.type.layout)) != counts:
            raise argument_error(
                f"gemm with {self.name} {self.given.type} for {counts} calls", "pass one for each call"
            )

    def at(self, row: int, k: int) -> Any:
        return memref_load(self.given, (row, k)) if isinstance(self.given, Tensor) else self.given


def _places(fragments: Sequence[Tensor], order: Any, layout: Any) -> Iterable[tuple[int, int, int]]:
    """The calls (m, n, k) of a product, in order."""
    counts = [_calls(fragment) for fragment in fragments[:3]]
    extents = (*counts[0], counts[1][1])
    if counts[1] != (extents[0], extents[2]) or counts[2] != (extents[1], extents[2]):
        raise argument_error(
            f"gemm of {counts[1]} and {counts[2]} calls into {counts[0]}",
            "a is (values, M, K), b is (values, N, K), d and c are (values, M, N)",
        )
    if layout is None:
        name = DEFAULT_ORDER if order is None else _order(order)
        if name not in TRAVERSAL_ORDERS:
            raise argument_error(
                f"gemm has no traversal order {name!r}", f"the orders are {', '.join(TRAVERSAL_ORDERS)}"
            )
        return traversal(extents, name)
    total = prod(extents)
    numbers = [layout(i) for i in range(total)] if algebra.size(layout) == total else []
    if sorted(numbers) != list(range(total)):
        raise argument_error(
            f"traversal_layout must map {extents} calls to the numbers from 0 to {total - 1}, got {layout}"
        )
    return [(i % extents[0], i // extents[0] % extents[1], i // (extents[0] * extents[1])) for i in numbers]


def _call_by_call(
    atom: MmaAtom,
    fragments: Sequence[Tensor],
    scales: Sequence[_Scales],
    places: Iterable[tuple[int, int, int]],
    atom_callback: Callable[[MmaAtom, tuple[int, int, int]], MmaAtom] | None,
) -> None:
    """A product whose calls have scales, an order or instructions of their own."""
    d, a, b, c = fragments
    for held, fragment in zip(scales, (a, b), strict=True):
        held.check(_calls(fragment))
    started: set[tuple[int, int]] = set()  # places of D that hold a partial sum
    for m, n, k in places:
        values = {"scale_a": scales[0].at(m, k), "scale_b": scales[1].at(n, k)}
        call = atom.set_value({name: scale for name, scale in values.items() if scale is not None})
        if atom_callback is not None:
            call = atom_callback(call, (m, n, k))
            if not isinstance(call, MmaAtom):
                raise argument_error(
                    f"atom_callback must return the instruction that it is called with, got {call!r}",
                    "end it with `return call`",
                )
        so_far = d if (m, n) in started else c
        mma_atom_call(call, _call_of(d, m, n), _call_of(a, m, k), _call_of(b, n, k), _call_of(so_far, m, n))
        started.add((m, n))


def _call_of(fragment: Tensor, *at: int) -> Tensor:
    """The values of a call of a fragment, whose modes of calls may be missing."""
    modes = algebra.rank(fragment.type.layout)
    return fragment if modes == 1 else fragment[(None, *at)[:modes]]


def _calls(fragment: Tensor) -> tuple[int, int]:
    """The calls of a fragment (values, calls, calls) of a product; missing modes are one."""
    shape = algebra.get_shape(fragment.type.layout)
    modes = shape if isinstance(shape, tuple) else (shape,)
    if len(modes) > 3 or not is_static(shape):
        raise argument_error(
            f"gemm with an order of its calls, and a fragment of {fragment.type}",
            "pass fragments of shape (values, calls, calls), as make_fragment_A makes them",
        )
    counts = [*(algebra.product(mode) for mode in modes[1:]), 1, 1]
    assert isinstance(counts[0], int), "it is static"
    assert isinstance(counts[1], int), "it is static"
    return counts[0], counts[1]


def mma_atom_call(atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor, **values: Number) -> None:
    """Execute a matrix instruction once, on fragments with exactly its number of values: D = A B^T + C.

    values: as of `gemm`.
    """
    if not isinstance(atom, MmaAtom):
        raise argument_error(f"mma_atom_call takes an MMA atom first, not {atom!r}", how_to_make.MMA_ATOM)
    atom = _with_values(atom, values)
    tensors = [require_tensor("mma_atom_call", tensor).value for tensor in (d, a, b, c)]
    emit_fly("mma_atom_call", [as_operand(atom), *tensors])


def _with_values(mma: Any, values: Mapping[str, Any]) -> Any:
    if not values:
        return mma
    return (mma.atom if isinstance(mma, TiledMma) else mma).set_value(values)


def _require_tiled(what: str, value: Any) -> TiledMma:
    if isinstance(value, TiledMma):
        return value
    raise argument_error(f"{what} takes a tiled MMA, not {value!r}", "pass fx.make_tiled_mma(...)")


def _operand(operand: Any) -> str:
    name = operand.value if isinstance(operand, MmaOperand) else operand
    return "c" if name == "d" else str(name)


def _order(order: Any) -> str:
    """The order as the dialect spells it; FlyDSL's programs also write it as a text, in lower case."""
    return order.value if isinstance(order, Enum) else str(order).upper()
