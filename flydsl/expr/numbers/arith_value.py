"""The interface of scalars and vectors: Python's operators, and a few methods that FlyDSL gives its values.

The functions behind the operators take and return these classes, so their modules register them here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from mlir import ir


class NumericFunctions:
    """The functions behind the operators and methods of values, registered by the modules that define them."""

    bare_value: Callable[[Any], Any]
    vector: Callable[[ir.Value], Any]
    binary: Callable[[str, Any, Any], Any]
    negate: Callable[[Any], Any]
    inverted: Callable[[Any], Any]
    absolute: Callable[[Any], Any]
    rounded: Callable[..., Any]


functions = NumericFunctions()


class ArithValue:
    """A value with arithmetic operators: a scalar (`Numeric`) or a `Vector` of scalars.

    `ArithValue(value)` is a number, an `ir.Value` or a value of the DSL as a bare scalar or vector.
    bare: whether the value came from MLIR's operations by name; see `flydsl.expr.numbers.promotion`.
    """

    dtype: type[Any]
    bare: bool = False
    # NumPy scalars on the left of an operator leave it to this class.
    __array_ufunc__ = None

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is not ArithValue:
            return super().__new__(cls)
        (value,) = arguments
        return functions.bare_value(value)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Other modules add methods (`add_methods`)."""

    def __copy__(self) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def ir_value(self) -> ir.Value:
        """The value in the program that is being traced."""
        raise NotImplementedError(f"{type(self).__name__} has no IR value")

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        """The one value that it consists of."""
        return [self.ir_value()]

    @classmethod
    def __construct_from_ir_values__(cls, values: Sequence[ir.Value]) -> Any:
        """A value of the class, made of the one value that it consists of."""
        return cls(values[0])

    def to(self, dtype: Any) -> Any:
        """The value converted to another scalar type."""
        raise NotImplementedError(f"{type(self).__name__} has no conversions")

    @property
    def result(self) -> Any:
        """The value itself, under the name of an MLIR operation's result, as in `arith.AddFOp(a, b).result`."""
        return self

    res = result  # the name that operations of `rocdl` and `llvm` give theirs

    def __add__(self, other: Any) -> Any:
        return functions.binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return functions.binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return functions.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return functions.binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return functions.binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return functions.binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return functions.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return functions.binary("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return functions.binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return functions.binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return functions.binary("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return functions.binary("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return functions.binary("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return functions.binary("pow", other, self)

    def __and__(self, other: Any) -> Any:
        return functions.binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return functions.binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return functions.binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return functions.binary("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return functions.binary("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return functions.binary("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return functions.binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return functions.binary("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return functions.binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return functions.binary("shr", other, self)

    def __lt__(self, other: Any) -> Any:
        return functions.binary("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return functions.binary("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return functions.binary("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return functions.binary("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return functions.binary("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return functions.binary("ne", self, other)

    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        return functions.negate(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return functions.absolute(self)

    def __round__(self, digits: int | None = None) -> Any:
        return functions.rounded(self, "roundeven", digits)

    def __floor__(self) -> Any:
        return functions.rounded(self, "floor")

    def __ceil__(self) -> Any:
        return functions.rounded(self, "ceil")

    def __trunc__(self) -> Any:
        return functions.rounded(self, "trunc")

    def __invert__(self) -> Any:
        return functions.inverted(self)

    # Functions of `fx.arith`, `fx.math` and `fx.gpu` that are methods too, of their first operand: see `add_methods`.
    select: ClassVar[Callable[..., Any]]
    addf: ClassVar[Callable[..., Any]]
    subf: ClassVar[Callable[..., Any]]
    mulf: ClassVar[Callable[..., Any]]
    divf: ClassVar[Callable[..., Any]]
    maximumf: ClassVar[Callable[..., Any]]
    minimumf: ClassVar[Callable[..., Any]]
    maxnumf: ClassVar[Callable[..., Any]]
    minnumf: ClassVar[Callable[..., Any]]
    extf: ClassVar[Callable[..., Any]]
    truncf: ClassVar[Callable[..., Any]]
    exp: ClassVar[Callable[..., Any]]
    exp2: ClassVar[Callable[..., Any]]
    log: ClassVar[Callable[..., Any]]
    log2: ClassVar[Callable[..., Any]]
    sqrt: ClassVar[Callable[..., Any]]
    rsqrt: ClassVar[Callable[..., Any]]
    sin: ClassVar[Callable[..., Any]]
    cos: ClassVar[Callable[..., Any]]
    tanh: ClassVar[Callable[..., Any]]
    shuffle_xor: ClassVar[Callable[..., Any]]
    shuffle_up: ClassVar[Callable[..., Any]]
    shuffle_down: ClassVar[Callable[..., Any]]
    shuffle_idx: ClassVar[Callable[..., Any]]


def add_methods(*methods: Callable[..., Any]) -> None:
    """Add functions as methods of their first operand: `fx.math.exp(x)` is also `x.exp()`."""
    for method in methods:
        setattr(ArithValue, method.__name__, method)
