"""The layout algebra compiled: random dynamic operands through the whole compiler and the simulator.

Every operation runs in a kernel on operands of which some leaves are loaded from memory. What it gives must be what
the same function gives on ints: `fly-layout-lowering` has no algebra of its own.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import layout as algebra
from flydsl.dialect.ops import OPS
from flydsl.errors import LayoutError
from flydsl.layout import ComposedLayout, Layout
from tests.launchers import launcher_of
from tests.layout.operands import CASES, Computed, Maker, erase, evaluate, is_dynamic, over_leaves

pytestmark = pytest.mark.slow

LANES = 64
ROUNDS = 8  # operands of one case, a half of them in one kernel
MOST_POINTS = 1024  # of a random layout, so that no product leaves 32 bits
# Of a half of ROUNDS; the others need what divides a number that is not in a tuple, which no program says.
FEWEST_DECIDED = 2

# The DSL's form of each function of the algebra.
IN_PROGRAMS = {spec.algebra: getattr(fx, spec.name) for spec in OPS.values() if spec.algebra is not None}
IN_PROGRAMS[algebra.make_layout] = fx.make_layout
# Tiles are known at compile time.
NOT_COMPILED = {"zipped_divide by dynamic tile"}
COMPILED = [name for name, (function, _) in CASES.items() if function in IN_PROGRAMS and name not in NOT_COMPILED]


@dataclass
class Probe:
    """Inside a kernel: loads run-time operands from a table of numbers, and stores what comes out, a row each.

    table: the memory behind `numbers`, filled while tracing. expected: for each row, the int of each lane.
    """

    numbers: Any
    out: Any
    lane: Any
    table: torch.Tensor
    loaded: int = 0
    expected: list[list[int]] = field(default_factory=list)

    def operand(self, value: Any) -> Any:
        """An operand as the program's."""
        if isinstance(value, Layout):
            return fx.make_layout(self.operand(value.shape), self.operand(value.stride))
        if isinstance(value, ComposedLayout):
            return fx.make_composed_layout(*map(self.operand, (value.inner, value.offset, value.outer)))
        if isinstance(value, tuple) and is_dynamic(value) and not algebra.has_none(value):
            return fx.int_tuple_mul(self.loads(over_leaves(quotient, value)), over_leaves(divisibility, value))
        return self.loads(value)

    def loads(self, value: Any) -> Any:
        """A number, or the numbers of a tuple, of which the program knows nothing."""
        if isinstance(value, tuple):
            return tuple(map(self.loads, value))
        if not isinstance(value, Computed):
            return value
        self.table[self.loaded] = value.value
        number = self.numbers[self.loaded]
        self.loaded += 1
        return number if value.width == 64 else fx.Int32(number)

    def observe(self, result: Any, of_ints: Any) -> None:
        """Store a result; of a layout its size and the index at a coordinate for each lane."""
        if isinstance(of_ints, int | tuple):
            self.store(result, [of_ints] * LANES)
            return
        points = algebra.size(of_ints)
        self.store(fx.size(result), [points] * LANES)
        self.store(fx.crd2idx(self.lane % points, result), [of_ints(lane % points) for lane in range(LANES)])

    def store(self, value: Any, of_ints: list[Any]) -> None:
        """A number, or the rank and the numbers of a tuple, of every lane."""
        if isinstance(of_ints[0], tuple):
            self.store(fx.rank(value), [len(of_ints[0])] * LANES)
            for i in range(len(of_ints[0])):
                self.store(value[i], [number[i] for number in of_ints])
            return
        self.out[len(self.expected), self.lane] = fx.Int64(value)
        self.expected.append(of_ints)


def quotient(leaf: Any) -> Any:
    return Computed(leaf.width, 1, leaf.value // leaf.divisibility) if isinstance(leaf, Computed) else leaf


def divisibility(leaf: Any) -> int:
    return leaf.divisibility if isinstance(leaf, Computed) else 1


def operands_of(name: str) -> list[tuple[Any, ...]]:
    """Dynamic operands of a case that are admissible, both as types and as ints."""
    function, draw = CASES[name]
    make = Maker(seed=zlib.crc32(name.encode()))
    drawn: list[tuple[Any, ...]] = []
    while len(drawn) < ROUNDS:
        layout = make.layout(depth=3)
        if algebra.size(layout) > MOST_POINTS:
            continue
        operands = draw(make, layout)
        try:
            function(*erase(operands))
            function(*evaluate(operands))
        except LayoutError:
            continue
        if is_dynamic(operands):
            drawn.append(operands)
    return drawn


def run_case(probe: Probe, name: str, half: int) -> int:
    """Run every second operand of a case; how many of them the compiler admitted."""
    function, _ = CASES[name]
    decided = 0
    for operands in operands_of(name)[half::2]:
        try:
            result = IN_PROGRAMS[function](*map(probe.operand, operands))
        except LayoutError:
            continue
        of_ints = function(*evaluate(operands))
        if function is algebra.right_inverse:  # less is known than of ints, so another inverse may be found
            check_round_trip(probe, result, probe.operand(operands[0]), algebra.size(result))
        elif function is algebra.left_inverse:
            check_round_trip(probe, probe.operand(operands[0]), result, algebra.size(evaluate(operands[0])))
        else:
            probe.observe(result, of_ints)
        decided += 1
    return decided


def check_round_trip(probe: Probe, first: Any, second: Any, points: int) -> None:
    """`second(first(i)) == i`."""
    probe.store(fx.crd2idx(fx.crd2idx(probe.lane % points, first), second), [lane % points for lane in range(LANES)])


# Of each function the other cases are read as types and as ints in every run: `tests.layout.test_readings`.
FIRST = {function: name for name in reversed(COMPILED) for function in [CASES[name][0]]}.values()


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.sweep) for name in COMPILED]
)
def test_compiled_code_agrees_with_ints(name: str, half: int) -> None:
    table, out = torch.zeros(512, dtype=torch.int64), torch.zeros(256, LANES, dtype=torch.int64)
    probes: list[Probe] = []
    decided: list[int] = []

    @flyc.kernel
    def kernel(Numbers: fx.Tensor, Out: fx.Tensor):
        probes.append(Probe(Numbers, Out, fx.thread_idx.x, table))
        decided.append(run_case(probes[0], name, half))

    launch = launcher_of(kernel, grid=1, block=LANES)
    launch(table, out)
    assert decided[0] >= FEWEST_DECIDED
    expected = torch.tensor(probes[0].expected)
    assert torch.equal(out[: len(expected)], expected)


def test_every_operation_of_the_dialect_is_compiled_here() -> None:
    assert set(IN_PROGRAMS) == {CASES[name][0] for name in COMPILED}


SWIZZLED = fx.make_composed_layout(fx.Swizzle(3, 3, 3), 0, fx.make_layout((8, 64), (64, 1)))


# The offset of the swizzled view, from a number that is 0 at run time.
OFFSETS = {"static": lambda zero: 0, "at run time": lambda zero: zero}


def run_on_swizzled(body: Any, offset: str = "static") -> torch.Tensor:
    """What `body(view, lane)` writes to a memory of 512 numbers through a swizzled view."""

    @flyc.kernel
    def kernel(Out: fx.Tensor, zero: fx.Int32):
        layout = fx.make_composed_layout(SWIZZLED.inner, OFFSETS[offset](zero), SWIZZLED.outer)
        body(fx.make_view(fx.get_iter(Out), layout), fx.thread_idx.x)

    launch = launcher_of(kernel, grid=1, block=LANES)
    out = torch.full((512,), -1, dtype=torch.int32)
    launch(out, 0)
    return out


def swizzled(values: Any) -> torch.Tensor:
    """Memory in which element i, j of the swizzled view is `values(i, j)`."""
    out = torch.full((512,), -1, dtype=torch.int32)
    for i in range(8):
        for j in range(64):
            out[SWIZZLED(i, j)] = values(i, j)
    return out


@pytest.mark.parametrize("offset", OFFSETS)
def test_elements_of_a_swizzled_tensor(offset: str) -> None:
    def body(view: Any, lane: Any) -> None:
        for i in range(8):
            view[i, lane] = lane + 64 * i

    assert torch.equal(run_on_swizzled(body, offset), swizzled(lambda i, j: j + 64 * i))


@pytest.mark.parametrize("offset", OFFSETS)
def test_slices_and_tiles_of_a_swizzled_tensor(offset: str) -> None:
    def body(view: Any, lane: Any) -> None:
        tiles = fx.zipped_divide(view, fx.make_tile(4, 16))
        row = fx.slice(tiles, (None, lane // 8))[(lane % 4, None)]
        for j in range(16):
            row[j] = row[j] * 0 + lane // 8 * 16 + j

    def tile_and_column(i: int, j: int) -> int:
        return (i // 4 + j // 16 * 2) * 16 + j % 16

    assert torch.equal(run_on_swizzled(body, offset), swizzled(tile_and_column))


def test_vector_copies_to_a_swizzled_tensor() -> None:
    """Blocks of 8 elements stay together, so that 4 of them can be copied at once."""

    def body(view: Any, lane: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Int32)
        registers = fx.make_rmem_tensor(4, fx.Int32)
        blocks = fx.zipped_divide(view, fx.make_tile(1, 4))
        for k in range(2):
            for n in range(4):
                registers[n] = lane * 8 + k * 4 + n
            fx.copy_atom_call(atom, registers, blocks[None, (lane // 8, lane % 8 * 2 + k)])

    assert torch.equal(run_on_swizzled(body), swizzled(lambda i, j: 64 * i + j))


def test_a_vector_that_a_swizzle_takes_apart_is_refused() -> None:
    def body(view: Any, lane: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Int32)
        apart = fx.make_view(fx.get_iter(view), fx.make_composed_layout(fx.Swizzle(1, 0, 4), 0, fx.make_layout(4, 1)))
        fx.copy_atom_call(atom, fx.make_rmem_tensor(4, fx.Int32), apart)

    with pytest.raises(LayoutError, match="side by side"):
        run_on_swizzled(body)


@pytest.mark.parametrize("stride", [9, 10, 12, 16])
def test_every_call_of_a_copy_to_a_swizzled_tensor_writes_its_own_elements(stride: int) -> None:
    """Rows that do not begin with a block of the swizzle are taken apart: no copy of 4 at once can write them."""
    rows, columns = 4, 8
    layout = fx.make_composed_layout(fx.Swizzle(2, 2, 2), fx.make_layout((columns, rows), (1, stride)))

    def body(view: Any, lane: Any) -> None:
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Int32)
        registers = fx.make_rmem_tensor((columns, rows), fx.Int32)
        for n in fx.range_constexpr(rows * columns):
            registers[n] = n
        fx.copy(atom, registers, fx.make_view(fx.get_iter(view), layout))

    if stride % 4:
        with pytest.raises(LayoutError, match=f"side by side where calls are at strides of .*{stride}"):
            run_on_swizzled(body)
    else:
        memory = run_on_swizzled(body)
        assert [memory[layout(n)] for n in range(rows * columns)] == list(range(rows * columns))


def test_shapes_and_strides_of_torch_tensors() -> None:
    """The algebra on a tensor's own layout: what is written to a tile is what torch sees there."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane = fx.thread_idx.x
        layout = A.layout
        numbers = [
            layout(lane % 3, 2), fx.cosize(layout), fx.size(layout),
            fx.get(fx.idx2crd(lane, fx.make_layout(A.shape)), 1),
            fx.crd2idx((1, lane % 4), fx.select(layout, [1, 0])), fx.coalesce(layout)(lane % 12),
            fx.composition(layout, fx.make_tile(None, 2))(1, lane % 2),
        ]  # fmt: skip
        for row in fx.range_constexpr(7):
            Out[row, lane] = fx.Int64(numbers[row])

    launch = launcher_of(kernel, grid=1, block=LANES)
    out = torch.zeros(7, LANES, dtype=torch.int64)
    launch(torch.zeros(6, 20)[::2, 1:9], out)
    layout = algebra.make_layout((3, 8), (40, 1))
    for lane in range(LANES):
        assert out[:, lane].tolist() == [
            layout(lane % 3, 2), algebra.cosize(layout), 24, lane // 3 % 8, layout(lane % 4, 1),
            layout(lane % 12), layout(1, lane % 2),
        ]  # fmt: skip
