"""Conversions between floats and scaled 8, 6 and 4-bit floats, by their ROCDL names: operand types of a lane.

`cvt_scalef32_pk_fp4_f32` packs two f32 divided by a scale into fp4, `cvt_scalef32_pk_f32_fp4` the other way round;
`sr` rounds at random by a seed. Source: LLVM, IntrinsicsAMDGPU.td, and the CDNA 4 ISA document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flydsl.atoms.instruction_sets import CDNA4, GFX1250

_BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
_NAME = re.compile(r"cvt_scale(f32)?_(sr_)?(2x)?(?:pk(\d*)_)?([a-z]+\d+)_([a-z]+\d+)$")
_WIDE = ("f32", "f16", "bf16")
_EIGHT, _SIX = ("fp8", "bf8"), ("fp6", "bf6")


def _named(form: str, narrow: tuple[str, ...], wide: tuple[str, ...] = _WIDE, unpack: bool = False) -> list[str]:
    return [f"cvt_{form}_{w}_{n}" if unpack else f"cvt_{form}_{n}_{w}" for n in narrow for w in wide]


_BY_ARCHS = {
    CDNA4: [
        *_named("scalef32_pk", (*_EIGHT, "fp4")),
        *_named("scalef32_pk", (*_EIGHT, "fp4"), unpack=True),
        *_named("scalef32_sr", _EIGHT),
        *_named("scalef32_sr_pk", ("fp4",)),
        *_named("scalef32", _EIGHT, ("f32", "f16"), unpack=True),
        *_named("scalef32_pk32", _SIX, ("f16", "bf16")),
        *_named("scalef32_pk32", _SIX, unpack=True),
        *_named("scalef32_sr_pk32", _SIX),
        *_named("scalef32_2xpk16", _SIX, ("f32",)),
    ],
    GFX1250: [
        *_named("scalef32_pk8", (*_EIGHT, "fp4")),
        *_named("scalef32_sr_pk8", (*_EIGHT, "fp4")),
        *_named("scalef32_pk16", _SIX),
        *_named("scalef32_sr_pk16", _SIX),
        *_named("scale_pk8", (*_EIGHT, "fp4"), unpack=True),
        *_named("scale_pk16", _SIX, unpack=True),
    ],
}


@dataclass(frozen=True)
class ScaledConversion:
    """A conversion of a lane's numbers.

    operands: (name, type as MLIR writes it) of each operand. result: the type of the result. archs: who has it.
    immediates: (name in FlyDSL, name of ROCDL's attribute, bits, largest value) of numbers that are part of the
    instruction, after the operands.
    """

    name: str
    operands: tuple[tuple[str, str], ...]
    result: str
    immediates: tuple[tuple[str, str, int, int], ...]
    archs: tuple[str, ...]

    @classmethod
    def named(cls, name: str, archs: tuple[str, ...]) -> ScaledConversion:
        """The conversion of a ROCDL name.

        >>> c = ScaledConversion.named("cvt_scalef32_pk_fp4_f32", CDNA4)
        >>> [kind for _, kind in c.operands], c.result
        (['i32', 'f32', 'f32', 'f32'], 'i32')
        """
        match = _NAME.match(name)
        assert match, name
        count = int(match[4]) if match[4] else 2 if match[4] == "" else 1
        is_random, is_double, target, source = bool(match[2]), bool(match[3]), match[5], match[6]
        scale = ("scale", "f32" if match[1] else "i32")
        if source in _BITS:
            return cls(name, *_unpacking(count, source, target, scale), archs)
        seed = (("seed", "i32"),) if is_random else ()
        if count >= 8:
            sources = (("src0", _vector(source, 16)), ("src1", _vector(source, 16))) if is_double else (
                ("src", _vector(source, count)),)  # fmt: skip
            packed = _words(target, count * (1 + is_double))
            return cls(name, (*sources, *seed, scale), packed, (), archs)
        return cls(name, *_packing(count, source, target, seed, scale), archs)

    @property
    def operation(self) -> str:
        """The name of the ROCDL operation."""
        return f"rocdl.{self.name.replace('_', '.')}"


def _packing(
    count: int, source: str, target: str, seed: tuple[tuple[str, str], ...], scale: tuple[str, str]
) -> tuple[tuple[tuple[str, str], ...], str, tuple[tuple[str, str, int, int], ...]]:
    """One or two numbers into a part of `old_vdst`."""
    halves = count == 2 and target in _EIGHT
    packed = "vector<2xi16>" if halves else "i32"
    two_operands = count == 2 and source == "f32" and not seed
    sources = (("src0", "f32"), ("src1", "f32")) if two_operands else (("src", _vector(source, count)),)
    part = ("dst_lo_hi_sel", "dstLoHiSel", 1, 1) if halves else ("dst_sel_index", "dstSelIndex", 32, 3)
    return (("old_vdst", packed), *sources, *seed, scale), packed, (part,)


def _unpacking(
    count: int, source: str, target: str, scale: tuple[str, str]
) -> tuple[tuple[tuple[str, str], ...], str, tuple[tuple[str, str, int, int], ...]]:
    wide = _vector(target, count)
    if count >= 8:
        select = () if scale[1] == "f32" else (("scale_sel", "scaleSel", 32, 15),)
        return (("src", _words(source, count)), scale), wide, select
    byte = ("src_sel_index", "srcSelIndex", 32, 3)
    if count == 2:
        return (("src", "i32"), scale), wide, (("src_lo_hi_sel", "srcLoHiSel", 1, 1) if source in _EIGHT else byte,)
    if target == "f32":
        return (("src", "i32"), scale), wide, (byte,)
    half = ("dst_lo_hi_sel", "dstLoHiSel", 1, 1)
    return (("old_vdst", _vector(target, 2)), ("src", "i32"), scale), _vector(target, 2), (byte, half)


def _vector(element: str, count: int) -> str:
    return element if count == 1 else f"vector<{count}x{element}>"


def _words(element: str, count: int) -> str:
    return _vector("i32", _BITS[element] * count // 32)


SCALED_CONVERSIONS = {name: ScaledConversion.named(name, archs) for archs, names in _BY_ARCHS.items() for name in names}
