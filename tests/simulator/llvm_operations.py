"""Operations of LLVM IR, one function each, to be compiled for the GPU and for the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("half", "float", "double")
BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "i1": 1} | {t: int(t[1:]) for t in INTEGERS}
SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"} | {t: t for t in INTEGERS}


@dataclass(frozen=True)
class Operation:
    """`body` computes %r of `result` from %a, %b, %c of `operand`. Vectors are "<2 x i16>"."""

    name: str
    operand: str
    result: str
    body: str
    declarations: tuple[str, ...] = ()


def lanes(type_: str) -> int:
    return int(type_[1:].split(" x ")[0]) if type_.startswith("<") else 1


def scalar_type(type_: str) -> str:
    return type_[1:-1].split(" x ")[1] if type_.startswith("<") else type_


def suffix(type_: str) -> str:
    """As intrinsic names spell a type."""
    return f"v{lanes(type_)}{SUFFIX[scalar_type(type_)]}" if type_.startswith("<") else SUFFIX[type_]


def like(type_: str, element: str) -> str:
    return f"<{lanes(type_)} x {element}>" if type_.startswith("<") else element


def constant(type_: str, value: str) -> str:
    element = scalar_type(type_)
    return "<" + ", ".join([f"{element} {value}"] * lanes(type_)) + ">" if type_.startswith("<") else value


def _plain(op: str, type_: str, body: str) -> Operation:
    return Operation(f"{op}_{suffix(type_)}", type_, type_, body)


def _call(name: str, type_: str, count: int, extra: str = "", result: str | None = None) -> Operation:
    result = result or type_
    intrinsic = f"@llvm.{name}.{suffix(type_)}"
    if result != type_:
        intrinsic = f"@llvm.{name}.{suffix(result)}.{suffix(type_)}"
    operands = ", ".join(f"{type_} %{v}" for v in "abc"[:count]) + (f", {extra}" if extra else "")
    types = ", ".join([type_] * count + ([extra.split()[0]] if extra else []))
    declaration = f"declare {result} {intrinsic}({types})"
    name = f"{name.replace('.', '_')}_{suffix(result)}_{suffix(type_)}"
    return Operation(name, type_, result, f"%r = call {result} {intrinsic}({operands})", (declaration,))


def integer_operations(type_: str) -> Iterator[Operation]:
    bits = BITS[scalar_type(type_)]
    for op in ("add", "sub", "mul", "and", "or", "xor"):
        yield _plain(op, type_, f"%r = {op} {type_} %a, %b")
    one, top = constant(type_, "1"), constant(type_, str(bits - 1))
    for op in ("shl", "lshr", "ashr"):
        yield _plain(op, type_, f"%n = and {type_} %b, {top}\n  %r = {op} {type_} %a, %n")
    for op in ("udiv", "urem"):
        yield _plain(op, type_, f"%d = or {type_} %b, {one}\n  %r = {op} {type_} %a, %d")
    for op in ("sdiv", "srem"):  # the smallest number is not divided by -1
        keep = constant(type_, str((1 << (bits - 1)) - 1))
        yield _plain(op, type_, f"%n = and {type_} %a, {keep}\n  %d = or {type_} %b, {one}\n  %r = {op} {type_} %n, %d")
    for op in ("umin", "umax", "smin", "smax", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat"):
        yield _call(op, type_, 2)
    for op in ("ctpop", "bitreverse"):
        yield _call(op, type_, 1)
    for op in ("ctlz", "cttz", "abs"):
        yield _call(op, type_, 1, "i1 false")
    if bits > 8:
        yield _call("bswap", type_, 1)
    for op in ("fshl", "fshr"):
        yield _call(op, type_, 3)
    for predicate in ("eq", "ult", "sge"):
        condition = like(type_, "i1")
        body = f"%q = icmp {predicate} {type_} %a, %b\n  %r = select {condition} %q, {type_} %c, {type_} %a"
        yield _plain(f"icmp_{predicate}", type_, body)
    if not type_.startswith("<"):
        for sign in ("s", "u"):
            for op in ("add", "sub", "mul"):
                yield _overflow(f"{sign}{op}", type_)
        wide = f"i{2 * bits}"
        for extend in ("zext", "sext"):
            body = (
                f"%x = {extend} {type_} %a to {wide}\n  %y = {extend} {type_} %b to {wide}\n  %p = mul {wide} %x, %y\n"
            )
            body += f"  %h = lshr {wide} %p, {bits}\n  %r = trunc {wide} %h to {type_}"
            yield _plain(f"mulh_{extend}", type_, body)
        yield _plain("mad", type_, f"%p = mul {type_} %a, %b\n  %r = add {type_} %p, %c")


def _overflow(op: str, type_: str) -> Operation:
    pair = f"{{ {type_}, i1 }}"
    intrinsic = f"@llvm.{op}.with.overflow.{type_}"
    body = f"%p = call {pair} {intrinsic}({type_} %a, {type_} %b)\n  %v = extractvalue {pair} %p, 0\n"
    body += f"  %o = extractvalue {pair} %p, 1\n  %r = select i1 %o, {type_} %c, {type_} %v"
    return Operation(f"{op}_overflow_{type_}", type_, type_, body, (f"declare {pair} {intrinsic}({type_}, {type_})",))


def float_operations(type_: str) -> Iterator[Operation]:
    for op in ("fadd", "fsub", "fmul", "fdiv"):
        yield _plain(op, type_, f"%r = {op} {type_} %a, %b")
    yield _plain("fneg", type_, f"%r = fneg {type_} %a")
    yield _call("fma", type_, 3)
    for op in ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "roundeven", "round"):
        yield _call(op, type_, 1)
    if not type_.startswith("<"):  # LLVM's x86 backend does not select it for vectors
        yield _call("canonicalize", type_, 1)
    for op in ("copysign", "minnum", "maxnum", "minimum", "maximum"):
        yield _call(op, type_, 2)
    for predicate in ("oeq", "olt", "oge", "one", "ord", "ueq", "ult", "uge", "une", "uno"):
        body = f"%q = fcmp {predicate} {type_} %a, %b\n  %r = select {like(type_, 'i1')} %q, {type_} %c, {type_} %a"
        yield _plain(f"fcmp_{predicate}", type_, body)
    clamped = f"%x = call {type_} @llvm.maxnum.{suffix(type_)}({type_} %a, {type_} {constant(type_, '0.0')})\n"
    clamped += f"  %r = call {type_} @llvm.minnum.{suffix(type_)}({type_} %x, {type_} {constant(type_, '1.0')})"
    declarations = tuple(f"declare {type_} @llvm.{m}.{suffix(type_)}({type_}, {type_})" for m in ("minnum", "maxnum"))
    yield Operation(f"clamp_{suffix(type_)}", type_, type_, clamped, declarations)
    body = f"%x = fneg {type_} %a\n  %y = call {type_} @llvm.fabs.{suffix(type_)}({type_} %b)\n"
    body += f"  %p = fmul {type_} %x, %y\n  %r = fsub {type_} %p, %c"
    yield Operation(
        f"signs_{suffix(type_)}", type_, type_, body, (f"declare {type_} @llvm.fabs.{suffix(type_)}({type_})",)
    )


def conversions() -> Iterator[Operation]:
    for f in FLOATS:
        for i in INTEGERS:
            for op in ("fptosi", "fptoui"):
                yield _call(f"{op}.sat", f, 1, result=i)
            for op in ("sitofp", "uitofp"):
                yield Operation(f"{op}_{i}_{SUFFIX[f]}", i, f, f"%r = {op} {i} %a to {f}")
        for class_ in (3, 96, 144, 264, 516):
            body = f"%q = call i1 @llvm.is.fpclass.{SUFFIX[f]}({f} %a, i32 {class_})\n  %r = zext i1 %q to i32"
            declaration = f"declare i1 @llvm.is.fpclass.{SUFFIX[f]}({f}, i32)"
            yield Operation(f"fpclass_{class_}_{SUFFIX[f]}", f, "i32", body, (declaration,))
    for narrow, wide in (("half", "float"), ("float", "double")):
        yield Operation(f"fpext_{SUFFIX[narrow]}", narrow, wide, f"%r = fpext {narrow} %a to {wide}")
        yield Operation(f"fptrunc_{SUFFIX[wide]}", wide, narrow, f"%r = fptrunc {wide} %a to {narrow}")


def all_operations() -> Iterator[Operation]:
    for type_ in (*INTEGERS, "<2 x i16>", "<4 x i8>", "<2 x i32>", "<2 x i64>"):
        yield from integer_operations(type_)
    for type_ in (*FLOATS, "<2 x half>", "<2 x float>"):
        yield from float_operations(type_)
    yield from conversions()


def functions(operations: list[Operation]) -> str:
    """The operations as functions that are inlined, and their declarations."""
    declarations = sorted({d for o in operations for d in o.declarations})
    bodies = [
        f"define internal {o.result} @{o.name}({o.operand} %a, {o.operand} %b, {o.operand} %c) alwaysinline {{\n"
        f"  {o.body}\n  ret {o.result} %r\n}}"
        for o in operations
    ]
    return "\n".join([*declarations, *bodies])


def _access(operation: Operation, space: str, index: str) -> str:
    """Load the operands at an index, call, and store the result."""
    t, r = operation.operand, operation.result
    lines = []
    for v in "abc":
        lines.append(f"  %{v}p = getelementptr {t}, ptr{space} %{v}s, i64 {index}")
        lines.append(f"  %{v} = load {t}, ptr{space} %{v}p")
    lines.append(f"  %r = call {r} @{operation.name}({t} %a, {t} %b, {t} %c)")
    lines.append(f"  %rp = getelementptr {r}, ptr{space} %rs, i64 {index}")
    lines.append(f"  store {r} %r, ptr{space} %rp")
    return "\n".join(lines)


def device_module(operations: list[Operation]) -> str:
    kernels = [
        f"define amdgpu_kernel void @k_{o.name}(ptr addrspace(1) noalias %as, ptr addrspace(1) noalias %bs, "
        f"ptr addrspace(1) noalias %cs, ptr addrspace(1) noalias %rs) #0 {{\n"
        "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %i = zext i32 %t to i64\n"
        f"{_access(o, ' addrspace(1)', '%i')}\n  ret void\n}}"
        for o in operations
    ]
    attributes = 'attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }'
    return "\n".join(["declare i32 @llvm.amdgcn.workitem.id.x()", functions(operations), *kernels, attributes])


def host_module(operations: list[Operation]) -> str:
    loops = [
        f"define void @h_{o.name}(ptr %as, ptr %bs, ptr %cs, ptr %rs, i64 %n) {{\nentry:\n  br label %loop\n"
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        f"{_access(o, '', '%i')}\n  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %n\n"
        "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}"
        for o in operations
    ]
    return "\n".join([functions(operations), *loops])
