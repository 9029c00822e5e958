from __future__ import annotations

import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import CodeObject, compile_llvm_ir
from flydsl.codegen.assemble import assemble
from flydsl.codegen.link import link
from flydsl.errors import CompileError, SourceLocation
from flydsl.hsaco import read_hsaco

pytestmark = pytest.mark.slow

GFX942 = get_arch("gfx942")
EVERY_ARCH = pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)


def llvm_occupancy(code: CodeObject) -> int:
    found = re.search(r"^; Occupancy: (\d+)$", code.listing, re.M)
    assert found
    return int(found[1])


@EVERY_ARCH
@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.diagonal(4)
def test_llvm_ir_becomes_a_code_object_that_describes_its_kernel(
    arch: Arch, opt_level: int, loop_with_lines: str
) -> None:
    code = compile_llvm_ir(loop_with_lines, arch, opt_level=opt_level)
    assert code.contents.arch_name == arch.name
    (kernel,) = code.kernels
    assert kernel.name == "row_sum"
    assert kernel.info.wave_size == arch.wave_size
    assert kernel.info.max_workgroup_size == 256
    assert [arg.size for arg in kernel.info.args][:3] == [8, 8, 4]
    assert kernel.resources.lds_bytes == 1024
    assert kernel.resources.vgprs > 0
    assert 0 < kernel.resources.code_bytes <= len(code.contents.text)
    assert kernel.occupancy.waves_per_simd == llvm_occupancy(code)


@EVERY_ARCH
@pytest.mark.parametrize("kind", ["listing", "isa"])
@pytest.mark.parametrize("source", ["vector_add", "loop_with_lines"])
@pytest.mark.diagonal(2)
def test_assembly_is_what_the_object_holds(arch: Arch, kind: str, source: str, request: pytest.FixtureRequest) -> None:
    code = compile_llvm_ir(request.getfixturevalue(source), arch)
    text = getattr(code, kind)
    assert read_hsaco(link(assemble(text, arch))).text == code.contents.text


@EVERY_ARCH
def test_resources_are_llvms(arch: Arch, loop_with_lines: str) -> None:
    code = compile_llvm_ir(loop_with_lines, arch)
    comments = dict(re.findall(r"^; (\w+): (\d+)", code.listing, re.M))
    resources = code.kernels[0].resources
    assert resources.vgprs == int(comments["NumVgprs"])
    assert resources.agprs == int(comments.get("NumAgprs", 0))
    assert resources.sgprs == int(comments["TotalNumSgprs"])
    assert resources.scratch_bytes == int(comments["ScratchSize"])
    assert resources.lds_bytes == int(comments["LDSByteSize"])


def test_same_source_gives_same_bytes(vector_add: str) -> None:
    assert compile_llvm_ir(vector_add, GFX942).hsaco == compile_llvm_ir(vector_add, GFX942).hsaco


@EVERY_ARCH
@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.diagonal(2)
def test_line_tables_do_not_change_the_code(arch: Arch, opt_level: int, loop_with_lines: str) -> None:
    without_lines = re.sub(r",? !dbg !\d+|^!.*(\n +.*)?$", "", loop_with_lines, flags=re.M)
    assert "!" not in without_lines
    plain = compile_llvm_ir(without_lines, arch, opt_level=opt_level)
    with_lines = compile_llvm_ir(loop_with_lines, arch, opt_level=opt_level)
    kept = compile_llvm_ir(loop_with_lines, arch, opt_level=opt_level, debug_info=True)
    assert plain.contents.text == with_lines.contents.text == kept.contents.text
    assert b".debug_line" in kept.hsaco
    assert b".debug_line" not in with_lines.hsaco


def test_optimized_llvm_ir_is_after_the_pipeline(vector_add: str) -> None:
    stored = vector_add.replace("store float %z", "%z1 = fadd float %z, -0.0 store float %z1")
    assert "%z1" not in compile_llvm_ir(stored, GFX942).optimized_llvm_ir
    assert "define amdgpu_kernel void @vector_add" in compile_llvm_ir(stored, GFX942).optimized_llvm_ir


def test_threads_compile_at_once(vector_add: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda arch: compile_llvm_ir(vector_add, arch), ARCHS * 3))
    for code, arch in zip(codes, ARCHS * 3, strict=True):
        assert code.hsaco == compile_llvm_ir(vector_add, arch).hsaco
        assert code.listing


def test_two_kernels_in_one_module(vector_add: str) -> None:
    second = vector_add.split("declare")[0].replace("@vector_add", "@second")
    code = compile_llvm_ir(vector_add + second, GFX942)
    assert [kernel.name for kernel in code.kernels] == ["vector_add", "second"]
    assert code.contents.code("vector_add") == code.contents.code("second") != b""


def test_a_module_without_kernels(vector_add: str) -> None:
    assert compile_llvm_ir("define void @f() { ret void }", GFX942).kernels == ()


def test_survives_pickling(vector_add: str) -> None:
    code = compile_llvm_ir(vector_add, GFX942)
    copy = pickle.loads(pickle.dumps(code))
    assert copy == code
    assert copy.isa == code.isa


KERNEL = "define amdgpu_kernel void @k(ptr addrspace(1) %p) {{ {} ret void }}\n"
BAD_IR = {
    "syntax": ("define void @f( { ret void }", r"expected type"),
    "types": (KERNEL.format("store float 1, ptr addrspace(1) %p"), r"floating point constant|integer constant"),
    "verifier": (
        "define void @f(i1 %c) { entry: br i1 %c, label %a, label %b\n a: %x = add i32 1, 2 br label %b\n"
        " b: %y = add i32 %x, 1 ret void }",
        r"dominate",
    ),
    "an instruction the GPU lacks": (
        KERNEL.format(
            "%v = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> zeroinitializer,"
            " <4 x half> zeroinitializer, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)"
            " store <4 x float> %v, ptr addrspace(1) %p"
        )
        + "declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)",
        r"gfx1201: Cannot select: intrinsic %llvm\.amdgcn\.mfma",
    ),
    "too much LDS": (
        "@s = internal addrspace(3) global [70000 x i8] poison\n"
        + KERNEL.format("store volatile i8 0, ptr addrspace(3) @s"),
        r"gfx1201: local memory \(70000\) exceeds limit \(65536\)",
    ),
    "no library": (
        "declare float @llvm.tan.f32(float)\n"
        + KERNEL.format(
            "%x = load float, ptr addrspace(1) %p %y = call float @llvm.tan.f32(float %x)"
            " store float %y, ptr addrspace(1) %p"
        ),
        r"no libcall available for ftan",
    ),
    "inline assembly": (
        KERNEL.format('call void asm sideeffect "v_mfma_f32_32x32x1_2b_f32", ""()'),
        r"cannot be assembled for gfx1201: instruction not supported",
    ),
    "an undefined function": ("declare void @nowhere()\n" + KERNEL.format("call void @nowhere()"), r"nowhere"),
}


@pytest.mark.parametrize("name", BAD_IR)
def test_bad_ir_is_an_error_and_the_process_lives_on(name: str, vector_add: str) -> None:
    ir, message = BAD_IR[name]
    with pytest.raises(CompileError, match=message):
        compile_llvm_ir(ir, get_arch("gfx1201"))
    assert compile_llvm_ir(vector_add, get_arch("gfx1201")).kernels[0].name == "vector_add"


def test_an_error_names_the_users_line(loop_with_lines: str) -> None:
    store = "store float %w, ptr addrspace(1) %o"
    assert store in loop_with_lines
    call = "%gone = call float @llvm.amdgcn.log.clamp.f32(float %w), !dbg !12\n store float %gone, ptr addrspace(1) %o"
    ir = loop_with_lines.replace(store, call) + "declare float @llvm.amdgcn.log.clamp.f32(float)\n"
    with pytest.raises(CompileError, match="intrinsic not supported") as error:
        compile_llvm_ir(ir, GFX942)
    assert error.value.at == SourceLocation("/home/user/kernels/row_sum.py", 11, 1)


@pytest.mark.parametrize("level", [-1, 4])
def test_bad_opt_level(level: int, vector_add: str) -> None:
    with pytest.raises(CompileError, match=str(level)):
        compile_llvm_ir(vector_add, GFX942, opt_level=level)
