from __future__ import annotations

import llvmlite.binding as binding
import pytest

from flydsl.arch import ARCHS, GFX942, GFX950, GFX1201, Arch
from flydsl.codegen import compile_llvm_ir
from flydsl.codegen.assemble import PendingAssembly, assemble
from flydsl.errors import CompileError
from flydsl.hsaco import read_contents
from tests.codegen.conftest import VECTOR_ADD

pytestmark = pytest.mark.slow


def text_of_llvms_own_object(bitcode: bytes, arch: Arch) -> bytes:
    """What LLVM's back end makes of a module by itself, without a listing between."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch.name, reloc="pic")
    obj = machine.emit_object(binding.parse_bitcode(bitcode, binding.create_context()))
    return read_contents(obj).sections[".text"]


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.diagonal(2)
def test_the_assembler_makes_the_code_that_llvm_makes(arch: Arch, loop_with_lines: str) -> None:
    code = compile_llvm_ir(loop_with_lines, arch)
    own = text_of_llvms_own_object(code.bitcode, arch)
    assert read_contents(assemble(code.listing, arch)).sections[".text"] == own
    assert read_contents(code.hsaco).sections[".text"].startswith(own)  # the linker fills the last page


@pytest.mark.parametrize(
    ("features", "arch", "wave_size", "target"),
    [
        ("+xnack", GFX942, 64, ":xnack+"),
        ("+sramecc,-xnack", GFX950, 64, ":sramecc+:xnack-"),
        ("+wavefrontsize64", GFX1201, 64, ""),
        ("+cumode", GFX1201, 32, ""),
    ],
)
def test_the_assembler_is_told_of_a_functions_own_features(
    features: str, arch: Arch, wave_size: int, target: str, loop_with_lines: str
) -> None:
    own = f'"256,256" "target-features"="{features}"'
    code = compile_llvm_ir(loop_with_lines.replace('"256,256"', own), arch)
    assert code.kernels[0].info.wave_size == wave_size
    assert f'"amdgcn-amd-amdhsa--{arch.name}{target}"' in code.listing


def test_a_number_of_16_bits_is_that_of_the_listing() -> None:
    """LLVM 22.1 would write 0xfffffc18 into an object of its own. The instruction takes the lower half."""
    subtraction = """\
        define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
          %x = call i32 @llvm.amdgcn.workitem.id.x()
          %place = getelementptr i16, ptr addrspace(1) %p, i32 %x
          %v = load i16, ptr addrspace(1) %place
          %less = add i16 %v, -1000
          store i16 %less, ptr addrspace(1) %place
          ret void
        }
        declare i32 @llvm.amdgcn.workitem.id.x()
        attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
        """
    code = compile_llvm_ir(subtraction, GFX942)
    assert "0xfc18" in code.listing
    assert bytes.fromhex("18fc0000") in read_contents(code.hsaco).sections[".text"]


def test_what_cannot_be_assembled_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"(?s)gfx942.*v_nonsense"):
        assemble("\tv_nonsense v0\n", GFX942)
    pending = PendingAssembly(GFX942)
    try:
        with pytest.raises(CompileError, match=r"(?s)gfx942.*v_nonsense"):
            pending.finish("\tv_nonsense v0\n")
    finally:
        pending.end()


def test_without_an_assembler_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flydsl.hsaco.assembler.find_zig", lambda: None)
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    with pytest.raises(CompileError, match="no assembler"):
        assemble("\ts_endpgm\n", GFX942)
    with pytest.raises(CompileError, match=r"no assembler[\s\S]*pip install ziglang"):
        compile_llvm_ir(VECTOR_ADD, GFX942)
