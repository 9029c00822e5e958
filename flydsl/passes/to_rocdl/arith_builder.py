"""Values with operators, so that the formulas of math functions and conversions read as formulas.

Every operation exists on scalars and on vectors alike; a Python number takes the other operand's type.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from mlir import ir

from flydsl.dialect.elements import element_type, scalar_of, with_elements
from flydsl.passes.rewriting import FUNCTIONS, create, enclosing_function

_ORDERED = {"==": 1, ">": 2, ">=": 3, "<": 4, "<=": 5, "!=": 13}
_INTEGER = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


class ElementwiseValue:
    """An `ir.Value` of float or integer type; the location is that of the operation that is being expanded."""

    __slots__ = ("at", "value")

    def __init__(self, value: ir.Value, at: ir.Location) -> None:
        self.value = value
        self.at = at

    @property
    def element(self) -> ir.Type:
        return scalar_of(self.value.type)

    @property
    def is_float(self) -> bool:
        return isinstance(self.element, ir.FloatType)

    @property
    def width(self) -> int:
        """Bits of an element."""
        return int(self.element.width)

    def elements(self) -> list[ElementwiseValue]:
        """The scalars of a vector, the last dimension fastest."""
        positions = itertools.product(*map(range, self.value.type.shape))
        attributes = [{"static_position": ir.DenseI64ArrayAttr.get(position)} for position in positions]
        return [self.op("vector.extract", kind=self.element, **position) for position in attributes]

    @staticmethod
    def from_elements(elements: Sequence[ElementwiseValue], shape: Sequence[int]) -> ElementwiseValue:
        """A vector of scalars, in the same order."""
        first = elements[0]
        kind = ir.VectorType.get(shape, first.value.type)
        values = [element.value for element in elements]
        return ElementwiseValue(create("vector.from_elements", values, [kind], first.at).result, first.at)

    def like(self, element: str) -> ir.Type:
        """The type with these elements and this value's shape."""
        return with_elements(self.value.type, element_type(element))

    def constant(self, number: float | int) -> ElementwiseValue:
        """A constant of this value's type."""
        kind, element = self.value.type, self.element
        if self.is_float:
            attribute: ir.Attribute = ir.FloatAttr.get(element, number)
        else:
            attribute = ir.IntegerAttr.get(element, number)
        if isinstance(kind, ir.VectorType):
            attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
        return ElementwiseValue(create("arith.constant", [], [kind], self.at, {"value": attribute}).result, self.at)

    def _lift(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return other if isinstance(other, ElementwiseValue) else self.constant(other)

    def op(
        self, name: str, *others: ElementwiseValue | float, kind: ir.Type | None = None, **attributes: ir.Attribute
    ) -> ElementwiseValue:
        """An upstream operation on this value and others of its type."""
        operands = [self.value, *(self._lift(other).value for other in others)]
        return ElementwiseValue(create(name, operands, [kind or self.value.type], self.at, attributes).result, self.at)

    def llvm(
        self, name: str, *others: ElementwiseValue | float, kind: ir.Type | None = None, **attributes: ir.Attribute
    ) -> ElementwiseValue:
        """An LLVM intrinsic such as `fma`, as a call: the operations of some are not legal before the LLVM dialect."""
        call: dict[str, ir.Attribute] = {
            "intrin": ir.StringAttr.get(f"llvm.{name}"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1 + len(others), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        return self.op("llvm.call_intrinsic", *others, kind=kind, **call, **attributes)

    def _arith(self, name: str, left: ElementwiseValue | float, right: ElementwiseValue | float) -> ElementwiseValue:
        return self._lift(left).op(f"arith.{name}{'f' if self.is_float else 'i'}", self._lift(right))

    def __add__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self._arith("add", self, other)

    def __radd__(self, other: float) -> ElementwiseValue:
        return self._arith("add", other, self)

    def __sub__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self._arith("sub", self, other)

    def __rsub__(self, other: float) -> ElementwiseValue:
        return self._arith("sub", other, self)

    def __mul__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self._arith("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self._arith("div", self, other)

    def __rtruediv__(self, other: float) -> ElementwiseValue:
        return self._arith("div", other, self)

    def __neg__(self) -> ElementwiseValue:
        return self.op("arith.negf") if self.is_float else 0 - self

    def __and__(self, other: ElementwiseValue | int) -> ElementwiseValue:
        return self.op("arith.andi", other)

    def __or__(self, other: ElementwiseValue | int) -> ElementwiseValue:
        return self.op("arith.ori", other)

    def __xor__(self, other: ElementwiseValue | int) -> ElementwiseValue:
        return self.op("arith.xori", other)

    def __lshift__(self, other: ElementwiseValue | int) -> ElementwiseValue:
        return self.op("arith.shli", other)

    def __rshift__(self, other: ElementwiseValue | int) -> ElementwiseValue:
        """Logical: zeros come in from the left."""
        return self.op("arith.shrui", other)

    def compare(self, relation: str, other: ElementwiseValue | float) -> ElementwiseValue:
        """A truth value; with a NaN only `!=` holds. Integers are signed."""
        table, name = (_ORDERED, "arith.cmpf") if self.is_float else (_INTEGER, "arith.cmpi")
        predicate = ir.IntegerAttr.get(element_type("i64"), table[relation])
        return self.op(name, other, kind=self.like("i1"), predicate=predicate)

    def __lt__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self.compare("<", other)

    def __le__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self.compare("<=", other)

    def __gt__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self.compare(">", other)

    def __ge__(self, other: ElementwiseValue | float) -> ElementwiseValue:
        return self.compare(">=", other)

    def equals(self, other: ElementwiseValue | float) -> ElementwiseValue:
        """A truth value: true if the two are equal."""
        return self.compare("==", other)

    def differs(self, other: ElementwiseValue | float) -> ElementwiseValue:
        """A truth value: true if the two differ, or one is a NaN."""
        return self.compare("!=", other)

    def choose(self, true: ElementwiseValue | float, false: ElementwiseValue | float) -> ElementwiseValue:
        """Select by this truth value: `true` if it holds, else `false`. One of them must be an ElementwiseValue."""
        typed = true if isinstance(true, ElementwiseValue) else false
        assert isinstance(typed, ElementwiseValue)
        operands = [self.value, typed._lift(true).value, typed._lift(false).value]
        return ElementwiseValue(create("arith.select", operands, [typed.value.type], self.at).result, self.at)

    def abs(self) -> ElementwiseValue:
        """The magnitude of a float."""
        return self.llvm("fabs")

    def fma(self, factor: ElementwiseValue | float, summand: ElementwiseValue | float) -> ElementwiseValue:
        """self * factor + summand with one rounding."""
        return self.llvm("fma", factor, summand)

    def nearest(self) -> ElementwiseValue:
        """The nearest integer as a float, ties to even."""
        return self.llvm("roundeven")

    def copysign(self, sign: ElementwiseValue) -> ElementwiseValue:
        """This magnitude with the other's sign."""
        return self.llvm("copysign", sign)

    def clamp(self, low: float, high: float) -> ElementwiseValue:
        """Within [low, high]; a NaN may become either."""
        return self.llvm("maxnum", low).llvm("minnum", high)

    def ldexp(self, exponent: ElementwiseValue) -> ElementwiseValue:
        """self * 2^exponent with one rounding; exponent is an i32."""
        return self.llvm("ldexp", exponent)

    def bits(self) -> ElementwiseValue:
        """A float's bits as an integer."""
        return self.op("arith.bitcast", kind=self.like(f"i{self.width}"))

    def to_float(self, element: str) -> ElementwiseValue:
        """A float as another float type, or a signed integer as a float."""
        kind = self.like(element)
        if kind == self.value.type:
            return self
        if not self.is_float:
            return self.op("arith.sitofp", kind=kind)
        return self.op("arith.extf" if element_type(element).width > self.width else "arith.truncf", kind=kind)

    def to_int(self, element: str = "i32") -> ElementwiseValue:
        """A float as a signed integer, toward zero."""
        return self.op("arith.fptosi", kind=self.like(element))

    def polynomial(self, coefficients: Sequence[float]) -> ElementwiseValue:
        """A polynomial in this value by Horner's rule; coefficients: lowest power first."""
        total = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total.fma(self, coefficient)
        return total


def holds_anywhere(condition: ElementwiseValue) -> ir.Value:
    """A truth value: true if the condition holds for one element."""
    if not isinstance(condition.value.type, ir.VectorType):
        return condition.value
    kind = {"kind": ir.Attribute.parse("#vector.kind<or>")}
    return create("vector.reduction", [condition.value], [element_type("i1")], condition.at, kind).result


def approximate(name: str, x: ElementwiseValue) -> ElementwiseValue:
    """A hardware approximation of 1 ulp, which exists for scalars only: `rsq`, `rcp`. On the host: the function."""
    if _on_host():
        return _ON_HOST[name](x)
    if name == "rsq":  # an intrinsic without an operation
        return elementwise(lambda scalar: scalar.llvm("amdgcn.rsq"), x)
    return elementwise(lambda scalar: scalar.op(f"rocdl.{name}"), x)


def _on_host() -> bool:
    """True in a launcher, for whose processor LLVM has no instructions of a GPU: it ends the process over one."""
    op = ir.InsertionPoint.current.block.owner.operation
    return (op if op.name in FUNCTIONS else enclosing_function(op)).name != "gpu.func"


_ON_HOST: dict[str, Callable[[ElementwiseValue], ElementwiseValue]] = {
    "exp2": lambda x: x.llvm("exp2"),
    "log": lambda x: x.llvm("log2"),  # v_log_f32 has base 2
    "sqrt": lambda x: x.llvm("sqrt"),
    "rcp": lambda x: 1.0 / x,
    "rsq": lambda x: 1.0 / x.llvm("sqrt"),
    "sin": lambda x: (x * (2.0 * math.pi)).llvm("sin"),  # the instructions' operand is in turns
    "cos": lambda x: (x * (2.0 * math.pi)).llvm("cos"),
}


def elementwise(function: Callable[[ElementwiseValue], ElementwiseValue], x: ElementwiseValue) -> ElementwiseValue:
    """Apply a function of scalars to a scalar, or to each element of a vector."""
    if not isinstance(x.value.type, ir.VectorType):
        return function(x)
    return ElementwiseValue.from_elements([function(element) for element in x.elements()], x.value.type.shape)
