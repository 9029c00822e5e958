"""Two ways to run machine code: instructions on given registers, and kernels compiled from LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from flydsl.arch import Arch, get_arch
from flydsl.codegen.link import link
from flydsl.hsaco.listing import read_listing
from flydsl.hsaco.operands import EXEC, VCC
from flydsl.simulator import Memory, Program
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import CODE_BASE, INSTRUCTION_BYTES
from flydsl.simulator.waves import Waves
from tests.simulator import backends

DEFAULT_MODE = 0x3F0  # round to nearest, denormals kept, DX10_CLAMP, IEEE


@dataclass
class Registers:
    """The registers after some instructions: vector registers of all waves in a row, scalar ones of the first."""

    waves: Waves

    def v(self, first: int, dtype: Any = np.uint32) -> Array:
        """A vector register (or a pair, for a 64-bit dtype), one number per lane; AGPRs start at 256."""
        raw = self.waves.vgpr[first].reshape(-1)
        if np.dtype(dtype).itemsize == 8:
            pair = np.stack([raw, self.waves.vgpr[first + 1].reshape(-1)], axis=-1)
            return np.ascontiguousarray(pair).view(dtype)[:, 0]
        return raw.view(dtype)[:: 4 // np.dtype(dtype).itemsize]

    def s(self, first: int, count: int = 1) -> int:
        return sum(int(self.waves.sgpr[0, first + i]) << (32 * i) for i in range(count))

    @property
    def scc(self) -> bool:
        return bool(self.waves.scc[0, 0])

    @property
    def vcc(self) -> int:
        return self.s(VCC, 2)

    @property
    def exec(self) -> int:
        return self.s(EXEC, 2)


def run_instructions(
    text: str,
    *,
    v: Mapping[int, Any] | None = None,
    s: Mapping[int, int] | None = None,
    exec_bits: int | None = None,
    mode: int = DEFAULT_MODE,
    memory: Memory | None = None,
    lds: bytes = b"",
    scratch_bytes: int = 0,
    end: str = "s_endpgm",
    arch: str | Arch = "gfx942",
    lanes: int | None = None,
) -> Registers:
    """Run instructions, in both backends, which must agree.

    `v` gives vector registers (one number per lane; 64-bit numbers fill pairs; more lanes than a
    wave has make more waves of one workgroup), `s` scalar ones (ints up to 64 bits). `exec_bits`: all lanes by default;
    `lanes`: of a wave, by default as many as waves of the GPU have."""
    vectors = {register: np.asarray(values) for register, values in (v or {}).items()}
    gpu = get_arch(arch) if isinstance(arch, str) else arch
    lanes = lanes or gpu.wave_size
    wave_count = max([1, *(values.size // lanes for values in vectors.values())])
    listing = read_listing(f"k:\n{text}\n{end}\n")
    program = Program.from_listing({}, listing, gpu, lanes)
    waves = Waves(
        [(0, 0, 0)],
        (lanes * wave_count, 1, 1),
        vgprs=gpu.addressable_vgprs,
        agprs=256 if gpu.addressable_vgprs == 256 else 0,
        lds_bytes=len(lds),
        scratch_bytes=scratch_bytes,
        entry=0,
        mode=mode,
        lanes=lanes,
    )
    waves.lds[: len(lds)] = np.frombuffer(lds, np.uint8)
    exec_bits = (1 << lanes) - 1 if exec_bits is None else exec_bits
    waves.sgpr[:, EXEC : EXEC + 2] = [exec_bits & 0xFFFFFFFF, exec_bits >> 32]
    for register, value in (s or {}).items():
        for i in range(2 if value >> 32 else 1):
            waves.sgpr[:, register + i] = (value >> (32 * i)) & 0xFFFFFFFF
    for register, values in vectors.items():
        _set_vector(waves, register, values)
    symbols = {name: CODE_BASE + INSTRUCTION_BYTES * index for name, index in program.labels.items()}
    backends.run_both(program, waves, memory or Memory(), symbols)
    return Registers(waves)


def _set_vector(waves: Waves, register: int, values: Array) -> None:
    lanes = waves.count * waves.lanes
    values = np.ascontiguousarray(np.broadcast_to(values, lanes) if values.size == 1 else np.resize(values, lanes))
    size = values.dtype.itemsize
    if size < 4:
        waves.vgpr[register] = values.view(f"u{size}").astype(np.uint32).reshape(-1, waves.lanes)
        return
    dwords = values.view(np.uint32).reshape(waves.count, waves.lanes, size // 4)
    for i in range(size // 4):
        waves.vgpr[register + i] = dwords[..., i]


@cache
def compile_llvm_ir(source: str, arch: str = "gfx942") -> tuple[bytes, str]:
    """Compile LLVM IR to a code object and its listing."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch, opt=3, reloc="pic")
    module = llvm.parse_assembly(source)
    module.triple, module.data_layout = "amdgcn-amd-amdhsa", str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    bitcode = module.as_bitcode()
    listing = machine.emit_assembly(llvm.parse_bitcode(bitcode))
    return link(machine.emit_object(llvm.parse_bitcode(bitcode))), listing


@pytest.fixture(scope="session")
def run() -> Callable[..., Registers]:
    return run_instructions


@pytest.fixture(scope="session")
def compile_ir() -> Callable[..., tuple[bytes, str]]:
    return compile_llvm_ir


@pytest.fixture(scope="session")
def compiled_double(compile_ir: Callable[..., tuple[bytes, str]]) -> tuple[bytes, str]:
    """y[i] = x[i] + x[i] for i < n; block of 256. Arguments: x, y, n."""
    return compile_ir("""
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %m = mul i32 %w, 256
  %i = add i32 %m, %t
  %ok = icmp slt i32 %i, %n
  br i1 %ok, label %body, label %end
body:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px
  %r = fadd float %v, %v
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  store float %r, ptr addrspace(1) %py
  br label %end
end:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
""")


@pytest.fixture(autouse=True)
def _references_may_overflow() -> Iterator[None]:
    """The references compute with infinities and NaNs on purpose."""
    with np.errstate(all="ignore"):
        yield
