"""Random kernels of LLVM IR, compiled at all opt levels, run on the simulator and compared with NumPy, bit by bit.

Integers, floats and vectors of all widths; uniform values and values that differ by lane; branches, loops, memory of a
thread that is indexed at run time, LDS across the waves of a workgroup with barriers. The listing of each must assemble
to the machine code of its HSACO. They are for each of the GPUs that the simulator executes; for those that the
environment names, such as FUZZED_ARCHS=gfx1250. On gfx90a those that need scratch are left out, as they are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flydsl.codegen import compile_llvm_ir
from flydsl.codegen.assemble import assemble
from flydsl.codegen.link import link
from flydsl.errors import FlyError
from flydsl.hsaco import read_hsaco
from flydsl.simulator import load
from flydsl.simulator.arrays import Array
from flydsl.simulator.loading import LoadedModule
from tests.fuzz.archs import ARCHS
from tests.fuzz.integer_functions import DIVISIONS, FUNCTIONS

THREADS = 128
MODULE = 16  # programs that are compiled together, which takes little longer than one
Values = dict[str, Array]

INTEGERS = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64}
FLOATS = {"half": np.float16, "float": np.float32, "double": np.float64}
SCALARS = {**INTEGERS, **FLOATS}
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"))


@dataclass(frozen=True)
class Kind:
    """A scalar (count 0) or a vector."""

    element: str
    count: int = 0

    def __str__(self) -> str:
        return f"<{self.count} x {self.element}>" if self.count else self.element

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    @property
    def dtype(self) -> type[Any]:
        return SCALARS[self.element]

    @property
    def bits(self) -> int:
        return 8 * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Step:
    """Lines of LLVM IR and what they compute: `run` sets values by name, of a row for each thread."""

    text: str
    run: Callable[[Values], None]


@dataclass
class Program:
    """A random program; `llvm_ir` and `expected` are the same thing said twice."""

    seed: int
    rng: random.Random = field(init=False)
    names: dict[str, Kind] = field(default_factory=dict)
    arrays: list[str] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        generator = np.random.default_rng(self.seed)
        self.scalar_arguments = generator.integers(0, 2**32, 4, np.uint32)
        self.scalar_arguments[0] = generator.integers(0, 4)  # of loops and conditions
        self.inputs = generator.integers(0, 2**32, (2, THREADS), np.uint32)
        self.inputs[1] = self.rng.choice((self.inputs[1], self.inputs[1] % 4))
        self.steps = list(self._sources())
        self.steps += [self._step(depth=0) for _ in range(self.rng.randint(8, 28))]
        self.results = [name for name in self.names if self.rng.random() < 0.5] or list(self.names)[-1:]

    # --- what a program is made of -----------------------------------------------------------------------------------

    def _sources(self) -> Iterator[Step]:
        for i in range(len(self.scalar_arguments)):
            value = np.broadcast_to(self.scalar_arguments[i], THREADS)
            yield self._given(f"%s{i}", "", value)
        for i in range(len(self.inputs)):
            text = (
                f"%pin{i} = getelementptr i32, ptr addrspace(1) %in, i64 {i * THREADS}\n"
                f"%qin{i} = getelementptr i32, ptr addrspace(1) %pin{i}, i32 %t\n"
                f"%in{i} = load i32, ptr addrspace(1) %qin{i}"
            )
            yield self._given(f"%in{i}", text, self.inputs[i])

    def _given(self, name: str, text: str, value: Array) -> Step:
        self.names[name] = Kind("i32")
        return Step(text, lambda values: values.update({name: value}))

    def _step(self, depth: int) -> Step:
        makers: list[Callable[[], Step]] = [
            *[self._arithmetic] * 4, self._shift, self._convert, self._select, self._select, self._vector,
            self._insert, self._insert, self._extract, self._shuffle, self._function, self._function, self._division,
        ]  # fmt: skip
        if depth == 0:
            makers += [self._through_lds, self._through_memory, self._through_memory]
        if depth < 2:
            makers += [lambda: self._branch(depth), lambda: self._loop(depth)]
        return self.rng.choice(makers)()

    def _arithmetic(self) -> Step:
        kind = self._any_kind()
        a, b = self._operand(kind), self._operand(kind)
        if kind.is_float:
            name, function = self.rng.choice((("fadd", np.add), ("fsub", np.subtract), ("fmul", np.multiply)))
        else:
            name, function = self.rng.choice(
                (
                    ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("and", np.bitwise_and),
                    ("or", np.bitwise_or), ("xor", np.bitwise_xor),
                )
            )  # fmt: skip
        return self._new(kind, f"{name} {kind} {a}, {b}", lambda at: function(at(a, kind), at(b, kind)))

    def _function(self) -> Step:
        kind, function = self._any_kind(lambda kind: not kind.is_float), self.rng.choice(FUNCTIONS)
        operands = [self._operand(kind) for _ in range(function.operands)]
        suffix = f"v{kind.count}{kind.element}" if kind.count else kind.element
        text = function.call.format(*operands, kind=kind, suffix=suffix)
        return self._new(kind, text, lambda at: function.of(kind.bits, *(at(operand, kind) for operand in operands)))

    def _division(self) -> Step:
        """By a number from 1 to the largest that has no sign."""
        kind, function, n = self._any_kind(lambda kind: not kind.is_float), self.rng.choice(DIVISIONS), self.count
        a, b = self._operand(kind), self._operand(kind)
        one, mask = (self._constant(kind, [x] * max(kind.count, 1)) for x in (1, 2 ** (kind.bits - 1) - 1))
        lines = [f"%one{n} = or {kind} {b}, {one}", f"%divisor{n} = and {kind} %one{n}, {mask}"]

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            divisor = (at(b, kind) | kind.dtype(1)) & kind.dtype(2 ** (kind.bits - 1) - 1)
            return function.of(kind.bits, at(a, kind), divisor)

        step = self._new(kind, function.call.format(a, f"%divisor{n}", kind=kind), compute)
        return Step("\n".join((*lines, step.text)), step.run)

    def _shift(self) -> Step:
        kind = self._any_kind(lambda kind: not kind.is_float)
        a, amount, masked = self._operand(kind), self._operand(kind), f"%m{self.count}"
        mask = self._constant(kind, [kind.bits - 1] * max(kind.count, 1))
        name = self.rng.choice(("shl", "lshr", "ashr"))

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            by = at(amount, kind) & kind.dtype(kind.bits - 1)
            if name == "ashr":
                signed = at(a, kind).view(f"i{kind.bits // 8}") >> by.astype(f"i{kind.bits // 8}")
                return signed.view(kind.dtype)
            return at(a, kind) << by if name == "shl" else at(a, kind) >> by

        step = self._new(kind, f"{name} {kind} {a}, {masked}", compute)
        return Step(f"{masked} = and {kind} {amount}, {mask}\n{step.text}", step.run)

    def _convert(self) -> Step:
        source = self._any_kind(lambda kind: not kind.is_float)
        target = Kind(self.rng.choice([e for e in INTEGERS if e != source.element]), source.count)
        a = self._operand(source)
        name = "trunc" if target.bits < source.bits else self.rng.choice(("zext", "sext"))

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            value = at(a, source)
            signed = value.view(f"i{source.bits // 8}") if name == "sext" else value
            return signed.astype(f"i{target.bits // 8}" if name == "sext" else target.dtype).view(target.dtype)

        return self._new(target, f"{name} {source} {a} to {target}", compute)

    def _select(self) -> Step:
        kind = self._any_kind()
        a, b, condition = self._operand(kind), self._operand(kind), f"%c{self.count}"
        text, test = self._condition(condition)

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            chosen = test(at)
            return np.where(chosen[:, None] if kind.count else chosen, at(a, kind), at(b, kind))

        step = self._new(kind, f"select i1 {condition}, {kind} {a}, {kind} {b}", compute)
        return Step(f"{text}\n{step.text}", step.run)

    def _condition(self, name: str) -> tuple[str, Callable[[Callable[[str, Kind], Array]], Array]]:
        kind = self._any_kind(lambda kind: not kind.count)
        a, b = self._operand(kind), self._operand(kind)
        if kind.is_float:
            relation, test = self.rng.choice((("olt", np.less), ("oeq", np.equal), ("une", np.not_equal)))
            return f"{name} = fcmp {relation} {kind} {a}, {b}", lambda at: test(at(a, kind), at(b, kind))
        relation, test = self.rng.choice(
            (("ult", np.less), ("eq", np.equal), ("ne", np.not_equal), ("ugt", np.greater))
        )
        if self.rng.random() < 0.5:  # of one bit
            bit = 1 << self.rng.randrange(4)
            text = f"{name}.bit = and {kind} {a}, {bit}\n{name} = icmp {relation} {kind} {name}.bit, 0"
            return text, lambda at: test(at(a, kind) & kind.dtype(bit), kind.dtype(0))
        return f"{name} = icmp {relation} {kind} {a}, {b}", lambda at: test(at(a, kind), at(b, kind))

    def _vector(self) -> Step:
        """A bitcast of integers to a vector or a float, of equal size."""
        source = self._any_kind(lambda kind: not kind.is_float)
        size = source.bits * max(source.count, 1)
        fits = [
            Kind(element, 0 if size == bits else size // bits)
            for element, dtype in SCALARS.items()
            if size % (bits := 8 * np.dtype(dtype).itemsize) == 0 and size // bits in (1, 2, 4)
        ]
        target = self.rng.choice(fits)
        a = self._operand(source)

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            rows = np.ascontiguousarray(at(a, source)).reshape(THREADS, -1).view(target.dtype)
            return rows if target.count else rows[:, 0]

        return self._new(target, f"bitcast {source} {a} to {target}", compute)

    def _insert(self) -> Step:
        kind = Kind(self.rng.choice(list(SCALARS)), self.rng.choice((2, 4)))
        whole, part = self._operand(kind), self._operand(Kind(kind.element))
        text, index, index_of = self._index(kind.count)

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            value = at(whole, kind).copy()
            value[np.arange(THREADS), index_of(at)] = at(part, Kind(kind.element))
            return value

        step = self._new(kind, f"insertelement {kind} {whole}, {kind.element} {part}, i32 {index}", compute)
        return Step(text + step.text, step.run)

    def _extract(self) -> Step:
        kind = Kind(self.rng.choice(list(SCALARS)), self.rng.choice((2, 4)))
        whole = self._operand(kind)
        text, index, index_of = self._index(kind.count)
        step = self._new(
            Kind(kind.element),
            f"extractelement {kind} {whole}, i32 {index}",
            lambda at: at(whole, kind)[np.arange(THREADS), index_of(at)],
        )
        return Step(text + step.text, step.run)

    def _index(
        self, count: int, prefix: str = "%i"
    ) -> tuple[str, str, Callable[[Callable[[str, Kind], Array]], Array]]:
        if self.rng.random() < 0.4:
            constant = self.rng.randrange(count)
            return "", str(constant), lambda at: np.full(THREADS, constant)
        kind, name = Kind("i32"), f"{prefix}{self.count}"
        source, mask = self._operand(kind), self.rng.choice((1, count - 1))
        return f"{name} = and i32 {source}, {mask}\n", name, lambda at: (at(source, kind) & mask).astype(np.int64)

    def _shuffle(self) -> Step:
        kind = Kind(self.rng.choice(list(SCALARS)), self.rng.choice((2, 4)))
        a, b = self._operand(kind), self._operand(kind)
        order = [self.rng.randrange(2 * kind.count) for _ in range(kind.count)]
        mask = ", ".join(f"i32 {i}" for i in order)
        return self._new(
            kind,
            f"shufflevector {kind} {a}, {kind} {b}, <{kind.count} x i32> <{mask}>",
            lambda at: np.concatenate((at(a, kind), at(b, kind)), axis=1)[:, order],
        )

    def _through_lds(self) -> Step:
        """Each thread reads what another one wrote, with barriers before and after."""
        kind = self._any_kind(lambda kind: kind.bits * max(kind.count, 1) <= 128)
        a, n = self._operand(kind), self.count
        factor, shift = self.rng.choice((1, 3, 5, 63)), self.rng.randrange(THREADS)
        barrier = 'fence syncscope("workgroup") release call void @llvm.amdgcn.s.barrier() '
        barrier += 'fence syncscope("workgroup") acquire'
        lines = (
            f"%w{n} = getelementptr {kind}, ptr addrspace(3) @lds, i32 %t",
            f"store {kind} {a}, ptr addrspace(3) %w{n}",
            barrier,
            f"%f{n} = mul i32 %t, {factor}",
            f"%g{n} = add i32 %f{n}, {shift}",
            f"%h{n} = and i32 %g{n}, {THREADS - 1}",
            f"%r{n} = getelementptr {kind}, ptr addrspace(3) @lds, i32 %h{n}",
        )
        order = (np.arange(THREADS) * factor + shift) % THREADS
        step = self._new(kind, f"load {kind}, ptr addrspace(3) %r{n}", lambda at: at(a, kind)[order])
        return Step("\n".join((*lines, step.text, barrier)), step.run)

    def _through_memory(self) -> Step:
        """An array of a thread's own: written at one index of run time, read at another."""
        element, count, n = Kind(self.rng.choice(list(SCALARS))), self.rng.choice((2, 4, 8)), self.count
        first = [self._operand(element) for _ in range(count)]
        written, at_text, at_name, at_of = self._operand(element), *self._index(count, "%wi")
        text, index, index_of = self._index(count)
        size = element.bits // 8
        self.arrays.append(f"%a{n} = alloca [{count} x {element}], align 16, addrspace(5)")
        lines = []
        for i, value in enumerate(first):
            lines.append(f"%a{n}.{i} = getelementptr i8, ptr addrspace(5) %a{n}, i32 {i * size}")
            lines.append(f"store {element} {value}, ptr addrspace(5) %a{n}.{i}")
        lines.append(f"{at_text}%aw{n} = getelementptr {element}, ptr addrspace(5) %a{n}, i32 {at_name}")
        lines.append(f"store {element} {written}, ptr addrspace(5) %aw{n}")
        lines.append(f"{text}%ar{n} = getelementptr {element}, ptr addrspace(5) %a{n}, i32 {index}")

        def compute(at: Callable[[str, Kind], Array]) -> Array:
            array = np.stack([at(value, element) for value in first], axis=1)
            array[np.arange(THREADS), at_of(at)] = at(written, element)
            return array[np.arange(THREADS), index_of(at)]

        step = self._new(element, f"load {element}, ptr addrspace(5) %ar{n}", compute)
        return Step("\n".join((*lines, step.text)), step.run)

    def _branch(self, depth: int) -> Step:
        n = self._number()
        text, test = self._condition(f"%b{n}")
        kind, otherwise = self._any_kind(), ""
        outer, otherwise = dict(self.names), self._operand(kind)
        inner = [self._step(depth + 1) for _ in range(self.rng.randint(1, 4))]
        result = self._operand(kind)
        self.names = outer
        lines = [text, f"br label %from{n}", f"from{n}:", f"br i1 %b{n}, label %then{n}, label %join{n}"]
        lines += [f"then{n}:", *(step.text for step in inner), f"br label %last{n}", f"last{n}:"]
        lines += [f"br label %join{n}", f"join{n}:"]

        def run(values: Values) -> None:
            at = reader(values)
            chosen, other = test(at), at(otherwise, kind)
            for step in inner:
                step.run(values)
            values[name] = np.where(chosen[:, None] if kind.count else chosen, at(result, kind), other)

        name = self._name(kind)
        lines.append(f"{name} = phi {kind} [ {result}, %last{n} ], [ {otherwise}, %from{n} ]")
        return Step("\n".join(lines), run)

    def _loop(self, depth: int) -> Step:
        """A loop of the first scalar argument's number of iterations, or of three, that carries one value."""
        n, kind = self._number(), self._any_kind()
        count = self.rng.choice(("%s0", "3"))
        first, outer = self._operand(kind), dict(self.names)
        carried = f"%carried{n}"
        self.names[carried] = kind
        self.names[f"%k{n}"] = Kind("i32")
        inner = [self._step(depth + 1) for _ in range(self.rng.randint(1, 4))]
        result = self._operand(kind)
        self.names = outer
        lines = [f"br label %before{n}", f"before{n}:", f"br label %head{n}", f"head{n}:"]
        lines.append(f"%k{n} = phi i32 [ 0, %before{n} ], [ %next{n}, %latch{n} ]")
        lines.append(f"{carried} = phi {kind} [ {first}, %before{n} ], [ {result}, %latch{n} ]")
        lines += [f"%go{n} = icmp ult i32 %k{n}, {count}", f"br i1 %go{n}, label %body{n}, label %done{n}", f"body{n}:"]
        lines += [*(step.text for step in inner), f"br label %latch{n}", f"latch{n}:"]
        lines += [f"%next{n} = add i32 %k{n}, 1", f"br label %head{n}", f"done{n}:"]

        def run(values: Values) -> None:
            at = reader(values)
            value = at(first, kind)
            for i in range(int(at(count, Kind("i32"))[0])):
                values.update({carried: value, f"%k{n}": np.full(THREADS, i, np.uint32)})
                for step in inner:
                    step.run(values)
                value = at(result, kind)
            values[name] = value

        name = self._name(kind)
        size = f"<{kind.count} x i1> splat (i1 true)" if kind.count else "i1 true"
        lines.append(f"{name} = select {size}, {kind} {carried}, {kind} {carried}")
        return Step("\n".join(lines), run)

    # --- names and operands ------------------------------------------------------------------------------------------

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _name(self, kind: Kind) -> str:
        name = f"%v{self._number()}"
        self.names[name] = kind
        return name

    def _new(self, kind: Kind, operation: str, compute: Callable[[Callable[[str, Kind], Array]], Array]) -> Step:
        name = self._name(kind)
        return Step(f"{name} = {operation}", lambda values: values.update({name: compute(reader(values))}))

    def _any_kind(self, accepts: Callable[[Kind], bool] = lambda kind: True) -> Kind:
        return self.rng.choice([kind for kind in self.names.values() if accepts(kind)])

    def _operand(self, kind: Kind) -> str:
        known = [name for name, other in self.names.items() if other == kind]
        if known and self.rng.random() < 0.8:
            return self.rng.choice(known[-6:] if self.rng.random() < 0.7 else known)
        return self._constant(kind, [self._number_of(kind) for _ in range(max(kind.count, 1))])

    def _number_of(self, kind: Kind) -> float | int:
        if kind.is_float:
            return self.rng.choice(SPECIAL_FLOATS)
        ones, half = 2**kind.bits - 1, 2 ** (kind.bits // 2) - 1
        return self.rng.choice(
            (0, 1, 2, 3, 7, ones, ones - half, half, 2 ** (kind.bits - 1), self.rng.getrandbits(kind.bits))
        )

    def _constant(self, kind: Kind, numbers: list[Any]) -> str:
        texts = [literal(kind.element, number) for number in numbers]
        return f"<{', '.join(f'{kind.element} {text}' for text in texts)}>" if kind.count else texts[0]

    # --- the whole ---------------------------------------------------------------------------------------------------

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return f"k{self.seed}"

    @property
    def definitions(self) -> str:
        """The kernel and its LDS."""
        stores = []
        for i, name in enumerate(self.results):
            kind = self.names[name]
            stores.append(f"%po{i} = getelementptr i8, ptr addrspace(1) %out, i64 {i * THREADS * 32}")
            stores.append(f"%qo{i} = getelementptr [32 x i8], ptr addrspace(1) %po{i}, i32 %t")
            stores.append(f"store {kind} {name}, ptr addrspace(1) %qo{i}")
        body = "\n".join([*self.arrays, *(step.text for step in self.steps), *stores])
        body = body.replace("@lds", f"@lds{self.seed}")
        scalars = ", ".join(f"i32 %s{i}" for i in range(len(self.scalar_arguments)))
        return f"""@lds{self.seed} = internal addrspace(3) global [{THREADS * 32} x i8] poison, align 32
define amdgpu_kernel void @{self.kernel}(ptr addrspace(1) %in, ptr addrspace(1) %out, {scalars}) #0 {{
entry:
%t = call i32 @llvm.amdgcn.workitem.id.x()
{body}
ret void
}}
"""

    def expected(self) -> list[Array]:
        values: Values = {}
        with np.errstate(all="ignore"):
            for step in self.steps:
                step.run(values)
        return [values[name] for name in self.results]


def reader(values: Values) -> Callable[[str, Kind], Array]:
    """How a step gets an operand, a name or a constant, as a row for each thread."""

    def at(operand: str, kind: Kind) -> Array:
        if operand.startswith("%"):
            return values[operand]
        texts = [text.split()[-1] for text in operand.strip("<>").split(",")] if kind.count else [operand]
        row = np.array([number(kind.element, text) for text in texts], kind.dtype)
        return np.broadcast_to(row if kind.count else row[0], (THREADS, kind.count) if kind.count else THREADS)

    return at


def literal(element: str, value: Any) -> str:
    """A number as LLVM IR writes it: floats by their bits."""
    if element == "half":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if element in FLOATS:
        return f"0x{int(np.float64(value).view(np.uint64)):016X}"
    return str(value)


def number(element: str, text: str) -> Any:
    """The inverse of `literal`."""
    if element == "half":
        return np.uint16(int(text[3:], 16)).view(np.float16)
    if element in FLOATS:
        return np.uint64(int(text, 16)).view(np.float64)
    return int(text)


DECLARATIONS = f"""declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = {{ "amdgpu-flat-work-group-size"="{THREADS},{THREADS}" }}
"""


def check(first: int, count: int = 1) -> None:
    """Make programs of some seeds, compile them as one module, and run them. AssertionError where something differs.

    Opt levels and architectures take turns.
    """
    programs = [Program(seed) for seed in range(first, first + count)]
    opt_level, arch = first // MODULE % 4, ARCHS[first // MODULE // 4 % len(ARCHS)]
    where = f"check({first}, {count}), opt level {opt_level}, {arch.name}"
    try:
        code = compile_llvm_ir(
            "".join(program.definitions for program in programs) + DECLARATIONS, arch, opt_level=opt_level
        )
    except FlyError as error:
        raise AssertionError(f"{where}: {error}") from error
    assembled = read_hsaco(link(assemble(code.listing, arch))).text
    assert assembled == code.contents.text, f"{where}: the listing is not the machine code"
    module = load(code.hsaco, code.listing, check_listing=False)
    for program in programs:
        if arch.name == "gfx90a" and code.contents.kernels[program.kernel].scratch_bytes:
            continue
        _check_launch(module, program, where)


def _check_launch(module: LoadedModule, program: Program, where: str) -> None:
    expected = program.expected()
    out = np.zeros((len(expected), THREADS, 32), np.uint8)
    scalars = [np.uint32(value) for value in program.scalar_arguments]
    module.kernel(program.kernel).launch((1, 1, 1), (THREADS, 1, 1), [program.inputs, out, *scalars])
    for name, rows, want in zip(program.results, out, expected, strict=True):
        size = want.dtype.itemsize * (want.shape[1] if want.ndim > 1 else 1)
        got = np.ascontiguousarray(rows[:, :size]).view(want.dtype).reshape(want.shape)
        assert same(got, want), f"{where}: {name} of program {program.seed} is\n{got}, not\n{want}"


def same(got: Array, want: Array) -> bool:
    """Equal in each bit; any NaN is another's equal, as LLVM leaves its bits open."""
    if want.dtype.kind == "f":
        both_nan = np.isnan(got) & np.isnan(want)
        bits = f"u{want.dtype.itemsize}"
        return bool(np.all(both_nan | (got.view(bits) == np.ascontiguousarray(want).view(bits))))
    return bool(np.array_equal(got, want))


def run(seed: int, count: int) -> None:
    """Check `count` programs, from one seed on."""
    findings = []
    for first in range(seed, seed + count, MODULE):
        try:
            check(first, min(MODULE, seed + count - first))
        except AssertionError as finding:
            findings.append(str(finding))
    assert not findings, "\n\n".join(findings)
