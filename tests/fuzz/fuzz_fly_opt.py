"""`fly-opt` on the project's own dumps with pieces changed, and passes in any order.

A run gives a text or raises FlyError: it does not end this process, raises nothing else, takes no longer than SECONDS.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from flydsl.compiler import fly_opt
from flydsl.errors import FlyError
from flydsl.passes import PASSES
from tests.dialect.test_spelling import IMMEDIATES, INFERRED, INPUTS, PRINTED, function
from tests.kernels import examples

SECONDS = 5.0  # of the processor
PATIENCE_SECONDS = 120
SHOWN = 10
MOST_FINDINGS = 40

STEPS = (
    *PASSES,
    *("canonicalize", "cse", "symbol-dce", "inline", "loop-invariant-code-motion", "sccp", "int-range-optimizations"),
    *("convert-scf-to-cf", "gpu.module(canonicalize,cse)", "convert-arith-to-llvm", "convert-vector-to-llvm"),
    *("convert-cf-to-llvm", "reconcile-unrealized-casts", "gpu-kernel-outlining", "builtin.module(cse)"),
    *("no-such-pass", "func.func(", "canonicalize{max-iterations=0}", ""),
)
NUMBERS = ("0", "-1", "1", "2", "3", "7", "16", "255", "4294967296", "9223372036854775807", "99999999999999999999")
TYPES = ("i1", "i32", "i64", "i0", "i16777216", "f16", "f32", "f80", "index", "none", "!llvm.ptr", "!llvm.void",
         "vector<4xf32>", "vector<0xf32>", "vector<[4]xi32>", "tensor<?xf32>", "memref<4xf32>", "()", "tuple<>",
         "!fly.layout<4:1>", "!fly.int_tuple<?>", "!llvm.array<0 x i8>", "!llvm.struct<()>", "!fly.tile<[4]>",
         "complex<f32>", "!fly.memref<f32, global, 4:1>", "!gpu.async.token")  # fmt: skip
ATTRIBUTES = ("{}", "{value = 1 : i32}", "{operandSegmentSizes = array<i32: 1, 1>}", "dense<1> : vector<4xi32>", "unit",
              "{offsets = [9], strides = [1]}", "dense<> : tensor<0xi32>", "array<i64>", '"x"', "@x", "#llvm.poison",
              "affine_map<() -> ()>", "loc(unknown)", "0x7F800000 : f32", "1.0 : f16", "true", "[1, 2]")  # fmt: skip
TOKEN = re.compile(r"[%@!#]?[\w.$]+|\S")
NUMBER = re.compile(r"(?<![\w%.])-?\d+")
TYPE = re.compile(r"!?[a-z_]+(?:\.\w+)?<[^<>\n]*>|\b[if]\d+\b|\bindex\b")
ATTRIBUTE = re.compile(r"\{[^{}\n]*\}|dense<[^>\n]*> : \S+|\[[^\]\n]*\]")
NAME = re.compile(r"(?<=[ \"])(?:fly|llvm|arith|vector|gpu|scf|rocdl|func|cf|ub)\.[\w.]+")


@cache
def dumps() -> tuple[str, ...]:
    """Every stage of the examples that copy a tile, multiply tiles and add vectors, and FlyDSL's spellings."""
    square, long = torch.zeros(64, 64), torch.zeros(256)
    pipelines = [
        examples.tiledCopy.lower(torch.zeros(24, 120), torch.zeros(24, 120)),
        examples.tiledMma.lower(torch.zeros(64, 8), torch.zeros(64, 8), square),
        examples.vec_add.lower(long, long, long, 256),
    ]
    texts = [text for each in pipelines for p in [each.artifact.pipeline] for text in (p.origin, *(s.after for s in p))]
    return (*dict.fromkeys(texts), *spellings())


def spellings() -> list[str]:
    """Functions with operations as FlyDSL writes them."""
    results = [function(f"%0 = {operation} -> {stated}", INPUTS) for operation, _, stated, _ in INFERRED]
    return [function(PRINTED), IMMEDIATES, *results]


def mutated(text: str, numbers: random.Random) -> str:
    """The text with a few changes, most often one."""
    for _ in range(numbers.choice([0, 1, 1, 1, 1, 2, 4])):
        text = numbers.choice(MUTATIONS)(text, numbers)
    return text


def _replacing(pattern: re.Pattern[str], values: tuple[str, ...] = ()) -> Callable[[str, random.Random], str]:
    """Put one of the values, or another occurrence, in place of an occurrence of the pattern."""

    def mutate(text: str, numbers: random.Random) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text
        one = numbers.choice(found)
        other = numbers.choice(values) if values and numbers.random() < 0.6 else numbers.choice(found)[0]
        return text[: one.start()] + other + text[one.end() :]

    return mutate


def _lines(text: str, numbers: random.Random) -> str:
    """Leave out, repeat or swap lines."""
    lines = text.split("\n")
    i, j = numbers.randrange(len(lines)), numbers.randrange(len(lines))
    kind = numbers.randrange(3)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[j])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines)


def _cut(text: str, numbers: random.Random) -> str:
    start = numbers.randrange(len(text) + 1)
    return text[:start] + text[start + numbers.choice([1, 1, 2, 5, 40, len(text)]) :]


def _bytes(text: str, numbers: random.Random) -> str:
    at = numbers.randrange(len(text) + 1)
    return text[:at] + numbers.choice(["\0", "\x80", "é", '"', "<", ">", "(", "}", "%", "\\", "\ufeff"]) + text[at:]


MUTATIONS = (
    *(_replacing(TOKEN), _replacing(NUMBER, NUMBERS), _replacing(NUMBER, NUMBERS), _replacing(TYPE, TYPES)),
    *(_replacing(TYPE, TYPES), _replacing(ATTRIBUTE, ATTRIBUTES), _replacing(ATTRIBUTE, ATTRIBUTES)),
    *(_replacing(NAME), _lines, _cut, _bytes),
)


def run(seed: int, count: int) -> None:
    """Make `count` trials. AssertionError tells those that went wrong."""
    findings = [found for number in range(count) if (found := trial(f"{seed}:{number}"))]
    if findings:
        raise AssertionError("\n\n".join([*findings[:SHOWN], f"{len(findings)} findings"]))


def operands(key: str) -> tuple[str, list[str]]:
    """The text and the passes of a trial, made from a key such as "1:7"."""
    numbers = random.Random(key)
    text = mutated(numbers.choice(dumps()), numbers)
    return text, numbers.choices(STEPS, k=numbers.choice([0, 1, 1, 2, 4]))


def trial(key: str) -> str | None:
    """What is wrong with one trial; None where nothing is.

    The processor's time is that of the forked processes, which do the work.
    """
    text, steps = operands(key)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        with _limited():
            fly_opt.run(text, steps)
    except FlyError as error:
        said = str(error)
        if not error.message or "Traceback" in said:
            return f"{key} {steps}: {said}"
    except Exception:  # noqa: BLE001 - whatever it is, it is the finding
        return f"{key} {steps}: {traceback.format_exc(limit=-4)}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime - before.ru_utime
    return f"{key} {steps}: took {took:.1f} s" if took > SECONDS else None


@contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError where the work takes far too long."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"not done after {PATIENCE_SECONDS} s")

    handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
