"""Run one instruction of a reference case on many operands, and say where simulator and reference differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flydsl.arch import GFX942, Arch, get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.hsaco.operands import EXEC, VCC
from flydsl.simulator import Memory, Program
from flydsl.simulator.arrays import Array
from flydsl.simulator.waves import LANES, Waves
from tests.simulator import backends
from tests.simulator.reference import ieee
from tests.simulator.reference.case import M16, Case
from tests.simulator.reference.ieee import Mode

NOT_ON_GFX942 = {"v_cvt_pk_bf16_f32": get_arch("gfx950")}
"""A GPU that has what gfx942 does not have."""
WAVES = 12
DATA = LANES * WAVES
"""The number of operand tuples that a vector instruction is tried on at once."""

_SMALL = [0, 1, 2, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFF, 0x800000, 0xFFFFFF]
_LARGE = [0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFF0000, 0xFFFFFFFE, 0xFFFFFFFF, 0x80018001, 0x7FFF7FFF]
EDGES = {
    "i16": [0, 1, 2, 15, 16, 17, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF],
    "i32": [*_SMALL, *_LARGE],
    "i64": [0, 1, 63, 64, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 2, (1 << 64) - 1],
}
WIDTHS = {"i3": 3, "mask": 1, "vcc": 1, "exponent": 32, "exponent16": 16, "classes": 32, "selectors": 32, "field": 32}
WIDTHS |= {"number": 32, "i128": 128, "f32x2": 64, "f16x2": 32, "f16hi": 32}


def width_of(word: str) -> int:
    word = word.rstrip("~")
    return WIDTHS[word] if word in WIDTHS else int(word[1:])


def float_edges(f: ieee.Format) -> list[int]:
    """Zeros, denormals, neighbours of powers of two, integers and halves, extremes, NaNs of both kinds; all negated."""
    half = f.quiet_bit
    positive = [0, 1, half, f.smallest_normal - 1, f.smallest_normal, f.smallest_normal + 1]
    positive += [f.one - f.smallest_normal, f.one - 1, f.one, f.one + 1, f.one + half, f.one + f.smallest_normal]
    positive += [f.one + f.smallest_normal + half // 2, f.largest, f.infinity]
    positive += [f.default_nan, f.default_nan | 5, f.infinity | 1, f.infinity | (half - 1)]
    return positive + [p | f.sign_bit for p in positive]


def random_floats(f: ieee.Format, rng: np.random.Generator, count: int) -> list[int]:
    """Half of them any bits, half of exponents near that of 1, so that sums and products round and cancel."""
    any_bits = rng.integers(0, 1 << 63, count // 2, dtype=np.uint64).tolist()
    close = []
    for x in rng.integers(0, 1 << 63, count - len(any_bits), dtype=np.uint64).tolist():
        spread = (x >> 55) % 9 - 4
        close.append((f.one + spread * f.smallest_normal) | x & (f.smallest_normal - 1) | (x >> 54 & 1) * f.sign_bit)
    return [x & (2 * f.sign_bit - 1) for x in any_bits] + close


def samples(word: str, rng: np.random.Generator, count: int) -> list[int]:
    """Edges and random values of one kind of operand, `count` of them, in random order."""
    word = word.rstrip("~")
    if word in ieee.FORMATS:
        f = ieee.FORMATS[word]
        pool = rng.choice(np.array(float_edges(f), np.uint64), count // 2).tolist()
        values = pool + random_floats(f, rng, count - len(pool))
    elif word in ("f16x2", "f32x2"):
        part = word[:3]
        low, high = samples(part, rng, count), samples(part, rng, count)
        values = [a | b << int(part[1:]) for a, b in zip(low, high, strict=True)]
    elif word == "number":
        values = [x for x in samples("f32", rng, 3 * count) if not ieee.is_nan(ieee.F32, x)][:count]
    elif word.startswith("exponent"):
        values = [x & 0xFFFFFFFF for x in rng.integers(-80, 80, count).tolist()]
        values[::7] = rng.integers(0, 1 << 32, len(values[::7])).tolist()
    elif word == "classes":
        values = [1 << x for x in rng.integers(0, 10, count).tolist()]
        values[::2] = rng.integers(0, 1 << 10, len(values[::2])).tolist()
    elif word == "selectors":
        values = [sum(int(b) << 8 * i for i, b in enumerate(rng.integers(0, 16, 4))) for _ in range(count)]
    elif word == "field":
        values = [
            int(o) | int(w) << 16 for o, w in zip(rng.integers(0, 64, count), rng.integers(0, 70, count), strict=True)
        ]
    elif word == "i128":
        values = [a | b << 64 for a, b in zip(samples("i64", rng, count), samples("i64", rng, count), strict=True)]
    elif word in ("mask", "vcc"):
        values = rng.integers(0, 2, count).tolist()
    elif word == "i3":
        values = rng.integers(0, 5, count).tolist()
    else:
        bits = width_of(word)
        edges = EDGES[word]
        chosen = [edges[i] for i in rng.integers(0, len(edges), count // 2).tolist()]
        loose = rng.integers(0, 1 << 63, count - len(chosen), dtype=np.uint64).tolist()
        sizes = rng.integers(0, bits, count - len(chosen)).tolist()
        values = chosen + [(x << 1 & (1 << bits) - 1) >> s for x, s in zip(loose, sizes, strict=True)]
    return [values[i] for i in rng.permutation(count).tolist()]


def run(
    text: str,
    *,
    vectors: Mapping[int, Array] | None = None,
    scalars: Mapping[int, Array] | None = None,
    scc: Array | None = None,
    mode: int = 0x3F0,
    memory: Memory | None = None,
    lds: bytes = b"",
    scratch_bytes: int = 0,
    exec_bits: int | None = (1 << 64) - 1,
    waves: int = WAVES,
    vgprs: int = 128,
    arch: Arch | None = None,
) -> Waves:
    """Run instructions on registers of u32: vectors (waves, lanes), scalars (waves,). exec_bits None: as in scalars."""
    arch = arch or NOT_ON_GFX942.get(text.split(None, 1)[0], GFX942)
    program = Program.from_listing({}, read_listing(f"k:\n{text}\ns_endpgm\n"), arch)
    state = Waves(
        [(0, 0, 0)],
        (arch.wave_size * waves, 1, 1),
        vgprs=vgprs,
        agprs=0,
        lds_bytes=len(lds),
        scratch_bytes=scratch_bytes,
        entry=0,
        mode=mode,
        lanes=arch.wave_size,
    )
    state.lds[: len(lds)] = np.frombuffer(lds, np.uint8)
    for register, values in (vectors or {}).items():
        state.vgpr[register] = values
    for register, values in (scalars or {}).items():
        state.sgpr[:, register] = values
    if exec_bits is not None:
        state.sgpr[:, EXEC : EXEC + 2] = [exec_bits & 0xFFFFFFFF, exec_bits >> 32]
    if scc is not None:
        state.scc[:, 0] = scc
    backends.run_both(program, state, memory or Memory(), {})
    return state


@dataclass(frozen=True)
class _Place:
    """Where an operand lives: the first register, its number of dwords, and how the text names it."""

    first: int
    dwords: int
    text: str


def vector_place(first: int, bits: int) -> _Place:
    dwords = max(bits // 32, 1)
    return _Place(first, dwords, f"v{first}" if dwords == 1 else f"v[{first}:{first + dwords - 1}]")


def split_dwords(values: list[int], dwords: int, lanes: int = LANES) -> list[Array]:
    """Registers of (waves, lanes) u32."""
    return [np.array([v >> 32 * i & 0xFFFFFFFF for v in values], np.uint32).reshape(-1, lanes) for i in range(dwords)]


def mask_dwords(values: list[int], lanes: int = LANES) -> list[Array]:
    """Lane bits as one or two scalar registers per wave."""
    bits = np.array(values, np.uint8).reshape(-1, lanes)
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    return list(packed.T)


@dataclass(frozen=True)
class Trial:
    """A vector instruction with operands in registers. operands[i] are the values of the i-th word of the case."""

    case: Case
    text: str
    results: tuple[_Place | int, ...]  # a vector register, or the first of a pair of scalar ones
    operands: list[list[int]]
    state: Waves

    def got(self, index: int) -> list[int]:
        place = self.results[index]
        if isinstance(place, int):
            pair = np.ascontiguousarray(self.state.sgpr[:, place : place + self.state.lanes // 32]).view(np.uint8)
            return np.unpackbits(pair, axis=1, bitorder="little").reshape(-1).tolist()
        return joined([self.state.vgpr[place.first + i] for i in range(place.dwords)])


def joined(dwords: list[Array]) -> list[int]:
    """The numbers of which these are the dwords, the lowest first."""
    numbers = dwords[0].reshape(-1).tolist()
    for i, dword in enumerate(dwords[1:], start=1):
        numbers = [number | upper << 32 * i for number, upper in zip(numbers, dword.reshape(-1).tolist(), strict=True)]
    return numbers


OLD_VALUE = 0xA5A5_5A5A


def mask_text(first: int, lanes: int) -> str:
    return f"s{first}" if lanes == 32 else f"s[{first}:{first + 1}]"


def attempt(
    mnemonic: str, case: Case, mode: int = 0x3F0, suffix: str = "", seed: int = 1, arch: Arch | None = None
) -> Trial:
    """Run the instruction on DATA lanes of samples. arch: of which `mnemonic` is a name; by default a CDNA GPU."""
    lanes = arch.wave_size if arch else LANES
    waves = DATA // lanes
    rng = np.random.default_rng([seed, *mnemonic.encode()])
    operands = operand_values(case, rng)
    vectors: dict[int, Array] = {}
    scalars: dict[int, Array] = {}
    texts, results = [], []
    for i, word in enumerate(case.results):
        if word == "mask":
            results.append(20 + 2 * i)
            texts.append(mask_text(20 + 2 * i, lanes))
        else:
            place = vector_place(64 + 8 * i, width_of(word))
            results.append(place)  # type: ignore[arg-type]
            texts.append(place.text)
            for j in range(place.dwords):
                vectors[place.first + j] = np.full((waves, lanes), OLD_VALUE, np.uint32)
    for i, (word, values) in enumerate(zip(case.operands, operands, strict=True)):
        if word in ("old", "old1"):
            place = results[int(word == "old1")]  # type: ignore[assignment]
            for j, dword in enumerate(split_dwords(values, place.dwords, lanes)):
                vectors[place.first + j] = dword
        elif word == "vcc":
            scalars |= {VCC + j: dword for j, dword in enumerate(mask_dwords(values, lanes))}
        elif word == "mask":
            scalars |= {10 + 2 * i + j: dword for j, dword in enumerate(mask_dwords(values, lanes))}
            texts.append(mask_text(10 + 2 * i, lanes))
        elif word.startswith("0x"):
            texts.append(word)
        else:
            place = vector_place(8 * i, width_of(word))
            texts.append(place.text)
            vectors |= {place.first + j: dword for j, dword in enumerate(split_dwords(values, place.dwords, lanes))}
    text = f"{mnemonic} {', '.join(texts)}{suffix}{case.suffix}"
    state = run(text, vectors=vectors, scalars=scalars, mode=mode, waves=waves, arch=arch)
    return Trial(case, text, tuple(results), operands, state)


def operand_values(case: Case, rng: np.random.Generator) -> list[list[int]]:
    """For two operands of a kind with few edges, all pairs of them come first."""
    words = [w for w in case.operands if not w.startswith("0x")]
    values = []
    for word in case.operands:
        if word.startswith("0x"):
            values.append([int(word, 16)] * DATA)
        elif word in ("old", "old1"):
            result = case.results[int(word == "old1")]
            values.append(samples({"f16": "i32", "f16hi": "i32", "f32x2": "f32x2"}.get(result, result), rng, DATA))
        else:
            values.append(samples(word, rng, DATA))
    if len(words) == 3 and len(set(words[:2])) == 1 and words[0] in ieee.FORMATS and words[2] in (words[0], "old"):
        _cancel(ieee.FORMATS[words[0]], values)
    return values


def _cancel(f: ieee.Format, values: list[list[int]]) -> None:
    """In every fourth lane the third operand nearly cancels the product of the first two."""
    for lane in range(0, DATA, 4):
        product = ieee.multiply(Mode(0x3F0), f, values[0][lane], values[1][lane])
        values[2][lane] = product ^ f.sign_bit


def expected(trial: Trial, mode: int) -> list[tuple[int, ...]]:
    """The results that the reference computes, one tuple per lane."""
    machine_mode = Mode(mode)
    rows = []
    keep = [not w.startswith("0x") for w in trial.case.operands]
    for row in zip(*trial.operands, strict=True):
        rows.append(trial.case.evaluate(machine_mode, *[v for v, k in zip(row, keep, strict=True) if k]))
    return rows


def same(word: str, got: int, wanted: int, exact_nan: bool, old: int = OLD_VALUE) -> bool:
    """Whether a result is what the reference says. Any quiet NaN will do where the document names none."""
    bits = width_of(word)
    wanted &= (1 << bits) - 1
    if word == "f16hi":
        return got & M16 == wanted & M16 and same("f16", got >> 16, wanted >> 16, exact_nan)
    if bits == 16:
        upper = old >> 16 if word.endswith("~") else 0
        if got >> 16 != upper:
            return False
        got &= M16
    if got == wanted:
        return True
    if exact_nan or word[0] != "f":
        return False
    if word.endswith("x2"):
        half = bits // 2
        low = (1 << half) - 1
        return all(same_float(f"f{half}", g, w) for g, w in ((got & low, wanted & low), (got >> half, wanted >> half)))
    return same_float(word.rstrip("~"), got, wanted)


def same_float(type_: str, got: int, wanted: int) -> bool:
    f = ieee.FORMATS[type_]
    quiet_nan = ieee.is_nan(f, got) and got & f.quiet_bit != 0
    return got == wanted or (quiet_nan and ieee.is_nan(f, wanted))


def disagreements(trial: Trial, mode: int, *, keeps_halves: bool = False) -> list[str]:
    """A line for every lane where the simulator gives something else than the reference. keeps_halves: of every result
    of 16 bits the other half of the register stays."""
    wanted = expected(trial, mode)
    found = []
    for index, word in enumerate(trial.case.results):
        word = f"{word}~" if keeps_halves and word in ("i16", "f16") else word
        for lane, (got, results) in enumerate(zip(trial.got(index), wanted, strict=True)):
            if not same(word, got, results[index], trial.case.exact_nan):
                operands = ", ".join(f"{values[lane]:#x}" for values in trial.operands)
                found.append(
                    f"{trial.text}: ({operands}) gives {got:#x}, not {results[index] & ((1 << width_of(word)) - 1):#x}"
                )
    return found


SCALAR_WAVES = 512
CONSTANTS = (0, 1, 5, 0x7FFF, 0x8000, 0xFFFF)
"""What stands for `k`."""


def attempt_scalar(mnemonic: str, case: Case, arch: Arch | None = None, mode: int = 0x3F0) -> list[str]:
    """Run a scalar instruction in many waves, each with operands of its own; a line for every difference."""
    if "k" not in case.operands:
        return _attempt_scalar(mnemonic, case, 0, arch, mode, SCALAR_WAVES)
    attempts = (_attempt_scalar(mnemonic, case, k, arch, mode, SCALAR_WAVES // 4) for k in CONSTANTS)
    return [line for found in attempts for line in found]


def _attempt_scalar(mnemonic: str, case: Case, constant: int, arch: Arch | None, mode: int, waves: int) -> list[str]:
    rng = np.random.default_rng([constant, *mnemonic.encode()])
    operands: list[list[int]] = []
    scalars: dict[int, Array] = {}
    texts = []
    scc = np.zeros(waves, np.bool_)
    result_word = case.results[0]
    if result_word != "scc":
        texts.append("s[10:11]" if width_of(result_word) == 64 else "s10")
    for i, word in enumerate(case.operands):
        if word == "k":
            operands.append([constant] * waves)
            texts.append(f"{constant:#x}")
            continue
        if word.startswith("0x"):
            operands.append([int(word, 16)] * waves)
            texts.append(word)
            continue
        kind = {"scc": "mask", "exec": "i64", "old": result_word}.get(word, word)
        values = samples(kind, rng, waves)
        operands.append(values)
        if word == "scc":
            scc = np.array(values, np.bool_)
            continue
        first = {"exec": EXEC, "old": 10}.get(word, 20 + 2 * i)
        wide = width_of(kind) == 64
        for j in range(2 if wide else 1):
            scalars[first + j] = np.array([v >> 32 * j & 0xFFFFFFFF for v in values], np.uint32)
        if word not in ("exec", "old"):
            texts.append(f"s[{first}:{first + 1}]" if wide else f"s{first}")
    text = f"{mnemonic} {', '.join(texts)}"
    exec_bits = None if "exec" in case.operands else (1 << 64) - 1
    state = run(text, scalars=scalars, scc=scc, exec_bits=exec_bits, waves=waves, vgprs=1, arch=arch, mode=mode)
    return _scalar_disagreements(text, case, operands, scc, state, mode)


def _scalar_disagreements(
    text: str, case: Case, operands: list[list[int]], scc: Array, state: Waves, mode: int
) -> list[str]:
    found = []
    words = [word for word in case.results if word != "scc"]
    results = {word: joined(_scalar_dwords(word, state)) for word in words}
    for wave in range(len(scc)):
        row = [values[wave] for values, word in zip(operands, case.operands, strict=True) if not word.startswith("0x")]
        for word, wanted in zip(case.results, case.evaluate(Mode(mode), *row), strict=True):
            if word == "scc":
                got = int(state.scc[wave, 0])
            else:
                got = results[word][wave]
                wanted &= (1 << 32 * len(_scalar_dwords(word, state))) - 1
            if got != int(wanted) and not (word[0] == "f" and same(word, got, int(wanted), case.exact_nan, 0)):
                found.append(f"{text}: {word} of ({', '.join(map(hex, row))}) is {got:#x}, not {int(wanted):#x}")
        if "scc" not in case.results and state.scc[wave, 0] != scc[wave]:
            found.append(f"{text} changes SCC")
    return found


def _scalar_dwords(word: str, state: Waves) -> list[Array]:
    """Where a scalar instruction leaves a result: one number per wave in each."""
    first, count = (EXEC, 2) if word == "exec" else (10, max(width_of(word) // 32, 1))
    return [state.sgpr[:, first + j] for j in range(count)]
