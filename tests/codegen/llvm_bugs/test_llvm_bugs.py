"""What LLVM's back end gets wrong, and that it does not reach the user.

For each: the machine code that `compile_llvm_ir` makes is right, on the simulator; and LLVM alone is still wrong. When
the second fails, this LLVM no longer needs the workaround that the message names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import compile_llvm_ir, llvm
from flydsl.codegen.assemble import assemble
from flydsl.codegen.link import link
from flydsl.codegen.llvm_bugs import bfloat_ranges, branch_masks, half_products, half_vectors, signed_differences
from flydsl.codegen.llvm_worker import TRIPLE
from flydsl.simulator import load

pytestmark = pytest.mark.slow

GFX942 = get_arch("gfx942")

WRITE_AT_A_BIT = """
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %n, i64 %x) #0 {
  %i = and i32 %n, 1
  %v = insertelement <2 x i64> <i64 7, i64 9>, i64 %x, i32 %i
  store <2 x i64> %v, ptr addrspace(1) %out
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""
NEGATIVE_ZEROS = {
    "insert it": """
  %a = insertelement <2 x half> poison, half %x, i32 0
  %v = insertelement <2 x half> %a, half 0xH8000, i32 1
  store <2 x half> %v, ptr addrspace(1) %out""",
    "insert into it": """
  %v = insertelement <2 x half> <half poison, half 0xH8000>, half %x, i32 0
  store <2 x half> %v, ptr addrspace(1) %out""",
    "shuffle": """
  %a = insertelement <2 x half> poison, half %x, i32 0
  %v = shufflevector <2 x half> %a, <2 x half> splat (half 0xH8000), <2 x i32> <i32 0, i32 3>
  store <2 x half> %v, ptr addrspace(1) %out""",
    "two stores": """
  %p = getelementptr half, ptr addrspace(1) %out, i32 1
  store half %x, ptr addrspace(1) %out, align 4
  store half 0xH8000, ptr addrspace(1) %p""",
}


def kernel_of_half(body: str) -> str:
    return (
        f"define amdgpu_kernel void @k(ptr addrspace(1) %out, half %x) #0 {{{body}\n  ret void\n}}\n"
        'attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }\n'
    )


def run(hsaco: bytes, listing: str, out: np.ndarray, *arguments: Any) -> np.ndarray:
    load(hsaco, listing).kernel("k").launch((1, 1, 1), (64, 1, 1), [out, *arguments])
    return out


def of_llvm_alone(llvm_ir: str, opt_level: int = 2, arch: Arch = GFX942) -> tuple[bytes, str]:
    """What LLVM makes of a module without our help."""
    binding = llvm._binding()
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(cpu=arch.name, opt=opt_level, reloc="pic")
    module = binding.parse_assembly(llvm_ir, binding.create_context())
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    listing = str(machine.emit_assembly(module))
    return link(assemble(listing, arch)), listing


def writes_at_a_bit(hsaco: bytes, listing: str) -> list[list[int]]:
    return [run(hsaco, listing, np.zeros(2, np.int64), np.int32(i), np.int64(5)).tolist() for i in (0, 1, 2, 3)]


@pytest.mark.parametrize("opt_level", range(4))
def test_a_write_at_an_index_of_one_bit(opt_level: int) -> None:
    code = compile_llvm_ir(WRITE_AT_A_BIT, GFX942, opt_level=opt_level)
    assert writes_at_a_bit(code.hsaco, code.listing) == [[5, 9], [7, 5]] * 2


def test_llvm_still_loses_a_write_at_an_index_of_one_bit() -> None:
    assert writes_at_a_bit(*of_llvm_alone(WRITE_AT_A_BIT)) != [[5, 9], [7, 5]] * 2, (
        "this LLVM writes at an index of one bit: flydsl/codegen/llvm_bugs/indexed_writes.py is not needed any more"
    )


def halves(hsaco: bytes, listing: str) -> list[int]:
    return run(hsaco, listing, np.zeros(2, np.uint16), np.float16(1.5)).tolist()


@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("way", NEGATIVE_ZEROS)
def test_negative_zero_beside_another_f16(way: str, opt_level: int) -> None:
    code = compile_llvm_ir(kernel_of_half(NEGATIVE_ZEROS[way]), GFX942, opt_level=opt_level)
    assert halves(code.hsaco, code.listing) == [0x3E00, 0x8000]


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.parametrize("way", NEGATIVE_ZEROS)
@pytest.mark.diagonal(4)
def test_negative_zero_is_there_on_every_arch(arch: Arch, way: str) -> None:
    assert "8000" in compile_llvm_ir(kernel_of_half(NEGATIVE_ZEROS[way]), arch).listing


BFLOATS = """define amdgpu_kernel void @k(ptr addrspace(1) %out, bfloat %a, bfloat %b) #0 {
  %x = fpext bfloat %a to float
  %y = fpext bfloat %b to float
  %m = fmul float %x, %y
  %h = fptrunc float %m to half
  store half %h, ptr addrspace(1) %out
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


def of_bfloats(hsaco: bytes, listing: str) -> float:
    """1e20 * 1e-20, about 1."""
    a, b = (np.float32(x).view(np.uint32) >> 16 for x in (1e20, 1e-20))
    return float(run(hsaco, listing, np.zeros(4, np.float16), a.astype(np.uint16), b.astype(np.uint16))[0])


@pytest.mark.parametrize("opt_level", range(4))
def test_a_product_of_bfloats_becomes_f16(opt_level: int) -> None:
    code = compile_llvm_ir(BFLOATS, GFX942, opt_level=opt_level)
    assert of_bfloats(code.hsaco, code.listing) == pytest.approx(1, rel=0.01)


def test_llvm_still_rounds_bfloats_to_f16_before_their_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat_ranges, "fence_ranges", lambda llvm_ir: llvm_ir)
    listing = llvm.compile_module(BFLOATS, GFX942, 2).listing
    assert of_bfloats(link(assemble(listing, GFX942)), listing) != pytest.approx(1, rel=0.01), (
        "this LLVM keeps the range of bf16: flydsl/codegen/llvm_bugs/bfloat_ranges.py is not needed any more"
    )


def test_llvm_still_loses_the_sign_of_zero() -> None:
    assert halves(*of_llvm_alone(kernel_of_half(NEGATIVE_ZEROS["insert it"]))) != [0x3E00, 0x8000], (
        "this LLVM keeps -0.0 in an f16 vector: flydsl/codegen/llvm_bugs/half_vectors.py is not needed any more"
    )


# Each multiplies 0.0 - x of type T: the back end would negate x, as the product takes a negated operand.
DIFFERENCES = {
    "difference": """
  %d = fsub T ZERO, %x
  %r = fmul T %d, %y""",
    "sum": """
  %n = fneg T %x
  %d = fadd T ZERO, %n
  %r = fmul T %d, %y""",
    "sum of a product": """
  %n = fmul T %x, MINUS
  %d = fadd T %n, ZERO
  %r = fmul T %d, %y""",
    "difference of a product": """
  %n = fmul T %x, MINUS
  %d = fsub T %n, NEGATIVE
  %r = fmul T %d, %y""",
    "multiply-add": """
  %d = call T @llvm.fma.NAME(T %x, T MINUS, T ZERO)
  %r = fmul T %d, %y""",
}
ELEMENTS = {  # the type, 0.0, -0.0, -1.0, its name in an intrinsic's, and numpy's type of an element
    "f32": ("float", "0.0", "-0.0", "-1.0", "f32", np.float32),
    "f16": ("half", "0xH0000", "0xH8000", "0xHBC00", "f16", np.float16),
    "2 f16": ("<2 x half>", "zeroinitializer", "splat (half 0xH8000)", "splat (half 0xHBC00)", "v2f16", np.float16),
    "2 f32": ("<2 x float>", "<float 0.0, float 0.0>", "splat (float -0.0)", "splat (float -1.0)", "v2f32", np.float32),
}


def differences(way: str, element: str, flags: str = "") -> str:
    kind, zero, negative, minus, name, _ = ELEMENTS[element]
    body = DIFFERENCES[way].replace("fsub T", f"fsub {flags}T").replace("NAME", name)
    body = body.replace("MINUS", minus).replace("NEGATIVE", negative).replace("ZERO", zero)
    text = f"""define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {{
  %x = load T, ptr addrspace(1) %in
  %at = getelementptr T, ptr addrspace(1) %in, i32 1
  %y = load T, ptr addrspace(1) %at{body}
  store T %r, ptr addrspace(1) %out
  ret void
}}
declare T @llvm.fma.{name}(T, T, T)
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""
    return text.replace("T ", f"{kind} ").replace("T,", f"{kind},").replace("(T", f"({kind}").replace("T)", f"{kind})")


def signs(hsaco: bytes, listing: str, element: str) -> list[bool]:
    """Whether 2 * (0.0 - x) is negative, for x = 0.0, and for x = 1.0 where there are two."""
    kind = ELEMENTS[element][-1]
    x = [0.0, 1.0] if element.startswith("2") else [0.0]
    given = np.array([*x, *(2.0 for _ in x)], kind)
    return np.signbit(run(hsaco, listing, np.full(len(x), np.nan, kind), given)).tolist()


@pytest.mark.parametrize("opt_level", [0, 1, 2])
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("way", DIFFERENCES)
@pytest.mark.diagonal(3)
def test_a_difference_is_no_negation(way: str, element: str, opt_level: int) -> None:
    code = compile_llvm_ir(differences(way, element), GFX942, opt_level=opt_level)
    assert signs(code.hsaco, code.listing, element) == [False, True][: 2 if element.startswith("2") else 1]


def test_a_difference_whose_sign_of_zero_does_not_count_may_be_a_negation() -> None:
    assert "v_sub" not in compile_llvm_ir(differences("difference", "f32", "nsz "), GFX942).listing


def test_llvm_still_takes_a_difference_for_a_negation() -> None:
    assert signs(*of_llvm_alone(differences("difference", "f32")), "f32") == [True], (
        "this LLVM keeps the sign of 0.0 - x: flydsl/codegen/llvm_bugs/signed_differences.py is not needed any more"
    )


def test_what_hides_zeros_has_names_of_its_own() -> None:
    """One rewriting moves the lines that the next one names its values after."""
    difference = "  %d{0} = fsub half 0xH0000, %x{0}"
    vector = "  %v = insertelement <2 x half> <half poison, half 0xH8000>, half %x, i32 0"
    text = "\n".join([difference.format(0), vector, "", difference.format(3)])
    written = half_vectors.hide_negative_zeros(signed_differences.keep_signs_of_differences(text))
    names = [line.split(" = ")[0].strip() for line in written.split("\n") if " = " in line]
    assert len(names) == len(set(names)) > 6


def selections(element: str, kinds: Iterable[tuple[str, float, bool, bool]], flags: str = "") -> str:
    """Of x and a zero. kinds: predicate, the zero, whether x is compared with it, and whether x is the first choice."""
    kind = ELEMENTS[element][0]
    of_one, is_half = kind.removeprefix("<2 x ").removesuffix(">"), "half" in kind
    condition = "<2 x i1>" if kind.startswith("<") else "i1"
    lines = []
    for i, (predicate, zero, is_left, is_first) in enumerate(kinds):
        sign = np.signbit(zero)
        constant = ("0xH8000" if sign else "0xH0000") if is_half else ("-0.0" if sign else "0.0")
        constant = f"splat ({of_one} {constant})" if kind.startswith("<") else constant
        compared, chosen = (("%x", constant)[:: 1 if first else -1] for first in (is_left, is_first))
        lines += [
            f"%c{i} = fcmp {predicate} {kind} {', '.join(compared)}",
            f"%s{i} = select {flags}{condition} %c{i}, {kind} {chosen[0]}, {kind} {chosen[1]}",
            f"%p{i} = getelementptr {kind}, ptr addrspace(1) %out, i32 {i}",
            f"store {kind} %s{i}, ptr addrspace(1) %p{i}",
        ]
    return (
        "define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {\n"
        f"%x = load {kind}, ptr addrspace(1) %in\n" + "\n".join(lines) + "\nret void\n}\n"
        'attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }\n'
    )


@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.diagonal(3)
def test_a_selection_takes_the_zero_that_it_says(element: str, opt_level: int) -> None:
    """No zero is above or below another one, so the second choice is taken."""
    kinds = list(itertools.product(("olt", "ogt", "ult", "ugt"), (0.0, -0.0), (True, False), (True, False)))
    code = compile_llvm_ir(selections(element, kinds), GFX942, opt_level=opt_level)
    dtype, lanes = ELEMENTS[element][-1], 2 if element.startswith("2") else 1
    for x in (0.0, -0.0):
        out = run(code.hsaco, code.listing, np.ones((len(kinds), lanes), dtype), np.full(lanes, x, dtype))
        wanted = [[np.signbit(zero if is_first else x)] * lanes for _, zero, _, is_first in kinds]
        np.testing.assert_array_equal(np.signbit(out), wanted)


def test_a_selection_that_is_a_minimum_or_maximum_may_be_one() -> None:
    for kind, flags in ((("ogt", 0.0, True, True), ""), (("olt", 0.0, True, True), "nsz ")):
        code = compile_llvm_ir(selections("f32", [kind], flags), GFX942)
        assert code.mnemonics("v_max", "v_min")
        assert not code.mnemonics("v_cndmask")


def test_llvm_still_makes_a_minimum_of_a_selection() -> None:
    alone = of_llvm_alone(selections("f32", [("olt", 0.0, True, True)]))
    assert np.signbit(run(*alone, np.ones(1, np.float32), np.full(1, -0.0, np.float32))), (
        "this LLVM keeps the sign of a selected zero: codegen/llvm_bugs/signed_selections.py is not needed any more"
    )


PRODUCTS = {
    "one": """
  %m = fmul float %a, %b
  %h = fptrunc float %m to half
  store half %h, ptr addrspace(1) %out""",
    "used twice, of a constant": """
  %m = fmul contract float %a, 2.000000e+00
  %h = fptrunc float %m to half
  store half %h, ptr addrspace(1) %out
  %p = getelementptr float, ptr addrspace(1) %out, i32 1
  store float %m, ptr addrspace(1) %p""",
    "vector": """
  %v = insertelement <2 x float> splat (float 1.000000e+00), float %a, i32 0
  %m = fmul <2 x float> %v, <float 1.000000e+00, float 0.000000e+00>
  %h = fptrunc <2 x float> %m to <2 x half>
  %e = extractelement <2 x half> %h, i32 0
  store half %e, ptr addrspace(1) %out""",
    "element of a vector": """
  %v = insertelement <2 x float> splat (float 1.000000e+00), float %a, i32 0
  %m = fmul <2 x float> %v, splat (float 3.000000e+00)
  %e = extractelement <2 x float> %m, i64 0
  %h = fptrunc float %e to half
  store half %h, ptr addrspace(1) %out""",
    "element of another vector": """
  %m = fmul float %a, 3.000000e+00
  %v = insertelement <2 x float> splat (float 1.000000e+00), float %m, i32 1
  %h = fptrunc <2 x float> %v to <2 x half>
  %e = extractelement <2 x half> %h, i32 1
  store half %e, ptr addrspace(1) %out""",
    "division": """
  %m = fdiv float %a, 4.000000e+00
  %h = fptrunc float %m to half
  store half %h, ptr addrspace(1) %out""",
    "approximate division": """
  %m = fdiv afn float %a, %b
  %h = fptrunc float %m to half
  store half %h, ptr addrspace(1) %out""",
    "freeze": """
  %m = fmul float %a, %b
  %f = freeze float %m
  %h = fptrunc float %f to half
  store half %h, ptr addrspace(1) %out""",
}


def kernel_of_floats(body: str) -> str:
    return (
        f"define amdgpu_kernel void @k(ptr addrspace(1) %out, float %a, float %b) #0 {{{body}\n  ret void\n}}\n"
        'attributes #0 = { "amdgpu-flat-work-group-size"="64,64" "amdgpu-waves-per-eu"="1" }\n'
    )


def product(hsaco: bytes, listing: str) -> int:
    return int(run(hsaco, listing, np.zeros(4, np.uint16), np.float32(-0.0), np.float32(5.0))[0])


@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.parametrize("way", PRODUCTS)
@pytest.mark.diagonal(4)
def test_a_product_that_is_negative_zero_becomes_f16(way: str, opt_level: int) -> None:
    code = compile_llvm_ir(kernel_of_floats(PRODUCTS[way]), GFX942, opt_level=opt_level)
    assert product(code.hsaco, code.listing) == 0x8000


@pytest.mark.parametrize("arch", ["gfx90a", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("way", ["vector", "approximate division", "freeze"])
def test_a_product_keeps_its_sign_on_other_gpus(way: str, arch: str) -> None:
    code = compile_llvm_ir(kernel_of_floats(PRODUCTS[way]), get_arch(arch))
    assert product(code.hsaco, code.listing) == 0x8000


PRODUCTS_OF_BFLOATS = {
    "one": "%m = fmul bfloat %x, %y",
    "of a constant": "%m = fmul bfloat %x, 0xR3F00",
    "approximate division": "%m = fdiv afn bfloat %x, %y",
    "element of a vector": """%u = insertelement <2 x bfloat> splat (bfloat 0xR3F80), bfloat %x, i32 %i
  %v = fmul <2 x bfloat> %u, %u
  %w = fmul <2 x bfloat> %v, <bfloat 0xR8000, bfloat 0xR3F80>
  %m = extractelement <2 x bfloat> %w, i32 0""",
}


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("way", PRODUCTS_OF_BFLOATS)
@pytest.mark.diagonal(2)
def test_a_product_of_bfloats_keeps_its_sign(way: str, arch: str) -> None:
    body = f"""
  %x = fptrunc float %a to bfloat
  %y = fptrunc float %b to bfloat
  %i = fptosi float %a to i32
  {PRODUCTS_OF_BFLOATS[way]}
  store bfloat %m, ptr addrspace(1) %out"""
    code = compile_llvm_ir(kernel_of_floats(body), get_arch(arch))
    assert product(code.hsaco, code.listing) == 0x8000


def test_llvm_still_loses_the_sign_of_a_product_of_bfloats() -> None:
    text = kernel_of_floats("""
  %x = fptrunc float %a to bfloat
  %m = fmul bfloat %x, %x
  store bfloat %m, ptr addrspace(1) %out""")
    assert half_products.loses_signs(of_llvm_alone(text, arch=get_arch("gfx1250"))[1], text), (
        "this LLVM keeps the sign of a product of bf16: with_opaque_products does not need to change them any more"
    )


def test_a_product_whose_sign_of_zero_does_not_count_stays_one() -> None:
    text = kernel_of_floats(PRODUCTS["one"].replace("fmul", "fmul nsz"))
    assert half_products.keep_signs_of_products(text) == text


def test_a_product_that_may_lose_its_sign_keeps_its_instruction() -> None:
    code = compile_llvm_ir(kernel_of_floats(PRODUCTS["freeze"].replace("fmul", "fmul nsz")), GFX942)
    assert "v_fma_mixlo_f16" in code.listing


def test_llvm_still_loses_the_sign_of_a_product() -> None:
    assert product(*of_llvm_alone(kernel_of_floats(PRODUCTS["one"]))) != 0x8000, (
        "this LLVM keeps the sign of a product: flydsl/codegen/llvm_bugs/half_products.py is not needed any more"
    )


# What %r is, of %x = 0x12 and %y = 0x123456789abcdef0 and a condition that holds, in a kernel whose lanes may differ.
ORS = {
    "a vector": (
        """
  %v = bitcast i64 %y to <2 x i32>
  %o = or <2 x i32> %v, <i32 5, i32 -1>
  %r = bitcast <2 x i32> %o to i64""",
        0xFFFFFFFF9ABCDEF5,
    ),
    "a vector that is selected": (
        """
  %v = bitcast i64 %y to <2 x i32>
  %s = select i1 %c, <2 x i32> <i32 1, i32 -1>, <2 x i32> <i32 2, i32 -1>
  %o = or <2 x i32> %v, %s
  %r = bitcast <2 x i32> %o to i64""",
        0xFFFFFFFF9ABCDEF1,
    ),
    "a vector of both": (
        """
  %v = bitcast i64 %y to <2 x i32>
  %u = insertelement <2 x i32> <i32 -1, i32 poison>, i32 %x, i32 1
  %s = select i1 %c, <2 x i32> <i32 1, i32 7>, <2 x i32> %u
  %w = insertelement <2 x i32> <i32 poison, i32 -1>, i32 %x, i32 0
  %o = or <2 x i32> %s, %w
  %r = bitcast <2 x i32> %o to i64""",
        0xFFFFFFFF00000013,
    ),
    "bytes": (
        """
  %v = bitcast i64 %y to <8 x i8>
  %o = or <8 x i8> %v, <i8 5, i8 3, i8 1, i8 1, i8 -1, i8 -1, i8 -1, i8 -1>
  %r = bitcast <8 x i8> %o to i64""",
        0xFFFFFFFF9BBDDFF5,
    ),
    "three of 16 bits": (
        """
  %v = bitcast i64 %y to <4 x i16>
  %k = shufflevector <4 x i16> %v, <4 x i16> poison, <3 x i32> <i32 0, i32 1, i32 2>
  %o = or <3 x i16> %k, <i16 3, i16 7, i16 -1>
  %l = shufflevector <3 x i16> %o, <3 x i16> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 2>
  %r = bitcast <4 x i16> %l to i64""",
        0xFFFFFFFF9ABFDEF3,
    ),
    "a number": (
        """
  %a = or i64 %y, -4294967296
  %b = xor i64 %a, 5
  %z = zext i32 %x to i64
  %w = mul i64 %z, 4294967298
  %r = or i64 %w, %b""",
        0xFFFFFFFF9ABCDEF5,
    ),
    "numbers that are selected": (
        "\n  %s = select i1 %c, i64 -4294967295, i64 -2\n  %r = or i64 %y, %s",
        0xFFFFFFFF9ABCDEF1,
    ),
    "a number of 48 bits": (
        """
  %a = trunc i64 %y to i48
  %b = or i48 %a, -4294967296
  %d = xor i48 %b, 9
  %e = sext i32 %x to i48
  %o = or i48 %d, %e
  %r = zext i48 %o to i64""",
        0x0000FFFF9ABCDEFB,
    ),
    "a write at an index": (
        """
  %i = and i32 %x, 2
  %v = insertelement <4 x i16> <i16 -1, i16 -1, i16 1, i16 7>, i16 -1, i32 %i
  %r = bitcast <4 x i16> %v to i64""",
        0x0007FFFFFFFFFFFF,
    ),
    "a write of a byte at an index": (
        """
  %i = and i32 %x, 6
  %u = insertelement <8 x i8> <i8 3, i8 -1, i8 1, i8 7, i8 -1, i8 -1, i8 -1, i8 -1>, i8 -1, i32 %i
  %r = bitcast <8 x i8> %u to i64""",
        0xFFFFFFFF07FFFF03,
    ),
    "the lowest word": (
        """
  %a = or i64 %y, 4294967295
  %b = xor i64 %a, 21474836480
  %z = zext i32 %x to i64
  %w = mul i64 %z, 4294967298
  %r = or i64 %w, %b""",
        0x1234567FFFFFFFFF,
    ),
}


def kernel_of_or(way: str) -> str:
    return f"""define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr i64, ptr addrspace(1) %in, i32 %t
  %y = load i64, ptr addrspace(1) %at
  %next = getelementptr i64, ptr addrspace(1) %at, i32 64
  %x64 = load i64, ptr addrspace(1) %next
  %x = trunc i64 %x64 to i32
  %c = icmp eq i32 %x, 18{ORS[way][0]}
  %to = getelementptr i64, ptr addrspace(1) %out, i32 %t
  store i64 %r, ptr addrspace(1) %to
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""


def of_or(hsaco: bytes, listing: str) -> set[int]:
    given = np.repeat(np.array([0x123456789ABCDEF0, 0x12], np.uint64), 64)
    return set(run(hsaco, listing, np.zeros(64, np.uint64), given).tolist())


@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("way", ORS)
@pytest.mark.diagonal(4)
def test_an_or_with_a_word_of_ones(way: str, opt_level: int) -> None:
    code = compile_llvm_ir(kernel_of_or(way), GFX942, opt_level=opt_level)
    assert of_or(code.hsaco, code.listing) == {ORS[way][1]}


@pytest.mark.parametrize("way", ["a vector", "a number", "the lowest word"])
def test_llvm_still_loses_a_word_of_ones(way: str) -> None:
    assert of_or(*of_llvm_alone(kernel_of_or(way))) != {ORS[way][1]}, (
        "this LLVM keeps x | -1: flydsl/codegen/llvm_bugs/known_ones.py is not needed any more"
    )


# What is divided, of what LLVM knows to be small.
DIVIDED = {
    "a constant": ("i32", "%n = freeze i32 -1"),
    "a byte with its sign": ("i32", "%b = trunc i32 %x to i8\n  %n = sext i8 %b to i32"),
    "64 bits": ("i64", "%m = add i32 0, -1\n  %n = zext i32 %m to i64"),
    "two": ("<2 x i32>", "%n = insertelement <2 x i32> <i32 -1, i32 -1>, i32 -2, i32 1"),
}


def kernel_of_division(way: str) -> str:
    kind, numerator = DIVIDED[way]
    divisor = {"i32": "%d = and i32 %s, 2147483647", "i64": "%d = zext i32 %s to i64"}.get(
        kind, "%d = insertelement <2 x i32> <i32 7, i32 31>, i32 %s, i32 0"
    )
    first = "%r = extractelement <2 x i32> %q, i32 0" if kind.startswith("<") else f"%r = add {kind} %q, 0"
    return f"""define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %x) #0 {{
  %z = call i32 @llvm.ctlz.i32(i32 %x, i1 false)
  %s = or i32 %z, 1
  {numerator}
  {divisor}
  %q = udiv {kind} %n, %d
  {first}
  store {kind if kind != "<2 x i32>" else "i32"} %r, ptr addrspace(1) %out
  ret void
}}
declare i32 @llvm.ctlz.i32(i32, i1)
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""


def of_division(hsaco: bytes, listing: str, x: int) -> int:
    return int(run(hsaco, listing, np.zeros(1, np.uint64), np.uint32(x))[0]) & 0xFFFFFFFF


@pytest.mark.parametrize("opt_level", [0, 1, 2])
@pytest.mark.parametrize("way", DIVIDED)
@pytest.mark.diagonal(3)
def test_an_unsigned_division(way: str, opt_level: int) -> None:
    code = compile_llvm_ir(kernel_of_division(way), GFX942, opt_level=opt_level)
    x = 0x000000F0  # 24 zeros before it
    expected = {"a byte with its sign": 0xFFFFFFF0}.get(way, 0xFFFFFFFF) // 25
    assert of_division(code.hsaco, code.listing, x) == expected


def test_llvm_still_takes_ones_for_a_small_number() -> None:
    llvm_ir = kernel_of_division("a constant")
    assert of_division(*of_llvm_alone(llvm_ir, 0), 0xF0) != 0xFFFFFFFF // 25, (
        "this LLVM divides 0xffffffff: flydsl/codegen/llvm_bugs/numerators.py is not needed any more"
    )


CONDITIONS = {
    "i32": """
  %none = icmp eq i32 %a, %b
  %bit = zext i1 %none to i32
  %below = icmp slt i32 %a, %bit""",
    "i64": """
  %x = sext i32 %a to i64
  %y = sext i32 %b to i64
  %below = icmp slt i64 %x, %y""",
    "float": """
  %x = sitofp i32 %a to float
  %y = sitofp i32 %b to float
  %below = fcmp olt float %x, %y""",
}


def kernel_of_condition(condition: str, then: str, otherwise: str) -> str:
    return f"""
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %a, i32 %b, i32 %n) #0 {{
entry:{condition}
  %choice = select i1 %below, i32 %n, i32 0
  br i1 %below, label %{then}, label %{otherwise}
first:
  store i32 1, ptr addrspace(1) %out
  br label %second
second:
  %last = phi i32 [ %choice, %entry ], [ 7, %first ]
  %p = getelementptr i32, ptr addrspace(1) %out, i32 1
  store i32 %last, ptr addrspace(1) %p
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""


def choices(hsaco: bytes, listing: str) -> list[list[int]]:
    return [
        run(hsaco, listing, np.zeros(2, np.int32), *map(np.int32, (a, b, 9))).tolist() for a, b in ((-2, 3), (4, 1))
    ]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx1201"])
@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.diagonal(3)
def test_a_branch_and_a_choice_by_one_condition(condition: str, opt_level: int, arch: str) -> None:
    for branch, expected in ((("first", "second"), [[1, 7], [0, 0]]), (("second", "first"), [[0, 9], [1, 7]])):
        llvm_ir = kernel_of_condition(CONDITIONS[condition], *branch)
        code = compile_llvm_ir(llvm_ir, get_arch(arch), opt_level=opt_level)
        assert choices(code.hsaco, code.listing) == expected


def test_llvm_still_drops_the_mask_of_a_choice() -> None:
    alone = of_llvm_alone(kernel_of_condition(CONDITIONS["float"], "second", "first"))
    assert choices(*alone) != [[0, 9], [1, 7]], (
        "this LLVM keeps masks whose SCC is read: flydsl/codegen/llvm_bugs/branch_masks.py is not needed any more"
    )


def test_masks_that_may_be_dropped_are_seen_and_no_others() -> None:
    def is_seen(*between: str, behind: str = "s_endpgm") -> bool:
        lines = ["\tv_cmp_lt_f32_e32 vcc, s0, v0", *(f"\t{line}" for line in between), "\ts_cbranch_vccnz .LBB0_2"]
        return branch_masks.may_be_dropped("\n".join([*lines, f"\t{behind}", ".LBB0_2:", "\ts_endpgm"]))

    assert is_seen("s_cselect_b32 s1, s2, 0")
    assert is_seen("s_mov_b32 s3, 0 ; s_and_b64", behind="s_cselect_b32 s1, s2, 0")
    assert not is_seen("s_and_b64 vcc, exec, vcc", "s_cselect_b32 s1, s2, 0")
    assert not is_seen("s_mov_b32 s3, 0", behind="s_cmp_eq_u32 s1, s2")
    assert not is_seen("s_and_b64 vcc, exec, s[4:5]", behind="s_cselect_b32 s1, s2, 0")
