"""The simulator alone: code objects from files, numpy arrays, no compiler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from flydsl import simulator
from flydsl.errors import ArgumentError, LaunchError, SimulatorError, SourceLocation
from flydsl.hsaco import HsacoError, read_hsaco
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import LdsRace, ListingError, MemoryFault, Program, UnknownInstruction, checking
from flydsl.simulator.loading import LoadedModule
from tests.metadata import metadata_of, with_metadata
from tests.simulator import mistaken_kernels as kernels

ROOT = Path(__file__).parents[2]
SCALE = """
define amdgpu_kernel void @scale(ptr addrspace(1) %out, ptr addrspace(1) %in, float %factor, i64 %n, half %h, i32 %i) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %w, 64
  %t = add i32 %b, %x
  %wide = zext i32 %t to i64
  %inside = icmp ult i64 %wide, %n
  br i1 %inside, label %then, label %end
then:
  %p = getelementptr float, ptr addrspace(1) %in, i32 %t
  %v = load float, ptr addrspace(1) %p
  %scaled = fmul float %v, %factor
  %e = fpext half %h to float
  %j = sitofp i32 %i to float
  %s1 = fadd float %scaled, %e
  %s2 = fadd float %s1, %j
  %q = getelementptr float, ptr addrspace(1) %out, i32 %t
  store float %s2, ptr addrspace(1) %q
  br label %end
end:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
"""

TABLE = """
@table = internal addrspace(4) constant [5 x i32] [i32 3, i32 1, i32 4, i32 1, i32 5], align 4
define amdgpu_kernel void @look_up(ptr addrspace(1) %out, i32 %i) {
  %p = getelementptr i32, ptr addrspace(4) @table, i32 %i
  %v = load i32, ptr addrspace(4) %p
  store i32 %v, ptr addrspace(1) %out
  ret void
}
"""


@pytest.fixture
def files(compile_ir, tmp_path: Path) -> Path:
    hsaco, listing = compile_ir(SCALE)
    (tmp_path / "scale.hsaco").write_bytes(hsaco)
    (tmp_path / "scale.s").write_text(listing)
    return tmp_path


def operands() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(100, np.float32), np.arange(100, dtype=np.float32)


def test_a_file_and_the_listing_beside_it(files: Path) -> None:
    kernel = simulator.load(files / "scale.hsaco").kernel("scale")
    assert [p.size for p in kernel.parameters] == [8, 8, 4, 8, 2, 4]
    out, x = operands()
    statistics = kernel.launch((2, 1, 1), (64, 1, 1), [out, x, 2.0, 100, np.float16(0.5), -1])
    np.testing.assert_array_equal(out, 2 * x - 0.5)
    assert statistics.waves == 2


def test_bytes_and_text(files: Path) -> None:
    hsaco, listing = (files / "scale.hsaco").read_bytes(), (files / "scale.s").read_text()
    for module in (simulator.load(hsaco, listing), simulator.load(hsaco, files / "scale.s")):
        out, x = operands()
        module.kernels["scale"].launch((2, 1, 1), (64, 1, 1), [out, x, np.float32(1), np.int64(7), b"\0\0", b"\0" * 4])
        np.testing.assert_array_equal(out[:7], x[:7])
        assert not out[7:].any()


def test_single_steps(files: Path) -> None:
    out, x = operands()
    args = [out, x, 3.0, 100, np.float16(0), 0]
    sim = (
        simulator.load(files / "scale.hsaco").kernel("scale").simulate((2, 1, 1), (64, 1, 1), args, workgroup=(1, 0, 0))
    )
    np.testing.assert_array_equal(out[:64], 3 * x[:64])
    sim.step(3).run()
    np.testing.assert_array_equal(out, 3 * x)


def test_a_kernel_of_the_dsl_and_its_listing_without_the_barrier() -> None:
    """Both texts of an artifact do; and what is in the text is what runs."""
    a, reversed_ = kernels.operands()
    artifact = kernels.reverse.lower(a, reversed_).artifact
    x, size = a.numpy(), kernels.THREADS
    for listing in (artifact.code.listing, artifact.isa):
        out = np.zeros_like(x)
        launch = ((1, 1, 1), (size, 1, 1), [x, size, out, size], 4 * size)
        with checking():
            simulator.load(artifact.hsaco, listing).kernel(artifact.kernels[0].name).launch(*launch)
        np.testing.assert_array_equal(out, x[::-1])
        forgetful = simulator.load(artifact.hsaco, listing.replace("s_barrier", "s_nop 0"), check_listing=False)
        with checking(), pytest.raises(LdsRace):
            forgetful.kernel(artifact.kernels[0].name).launch(*launch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({2: 1}, None),
        ({2: "2"}, r"factor has 4 bytes, and '2' does not say its type"),
        ({4: 0.5}, r"h has 2 bytes, and 0.5 does not say its type"),
        ({2: np.float64(1)}, r"factor must be 4 bytes, got 8"),
        ({5: 2**40}, r"i: 1099511627776 does not fit 4 bytes"),
        ({0: 5}, r"out is a pointer and must be a numpy array or a Struct, got 5"),
        ({2: np.zeros(1)}, r"factor must be a value of 4 bytes, got an array"),
    ],
)
def test_arguments(files: Path, change: dict[int, object], message: str | None) -> None:
    kernel = simulator.load(files / "scale.hsaco").kernel("scale")
    out, x = operands()
    args = [out, x, 2.0, 100, np.float16(0), 0]
    for position, value in change.items():
        args[position] = value
    if message is None:
        kernel.launch((1, 1, 1), (64, 1, 1), args)
        return
    with pytest.raises(ArgumentError, match=message):
        kernel.launch((1, 1, 1), (64, 1, 1), args)
    assert not out.any()


def test_what_goes_wrong(files: Path) -> None:
    module = simulator.load(files / "scale.hsaco")
    kernel = module.kernel("scale")
    out, x = operands()
    with pytest.raises(ArgumentError, match=r"takes 6 arguments \(out, in, factor, n, h, i\), got 1"):
        kernel.launch((1, 1, 1), (64, 1, 1), [out])
    with pytest.raises(ArgumentError, match="no kernel 'other'"):
        module.kernel("other")
    with pytest.raises(LaunchError, match="65537 bytes of LDS"):
        kernel.launch((1, 1, 1), (64, 1, 1), [out, x, 2.0, 100, np.float16(0), 0], smem=65537)
    with pytest.raises(MemoryFault, match="outside of in "):
        kernel.launch((2, 1, 1), (64, 1, 1), [out, x[:99], 2.0, 100, np.float16(0), 0])
    x.flags.writeable = False
    with pytest.raises(MemoryFault, match=r"in out .*, which is read-only"):
        kernel.launch((1, 1, 1), (64, 1, 1), [x, out, 2.0, 100, np.float16(0), 0])


def test_without_a_listing(files: Path) -> None:
    (files / "scale.s").unlink()
    with pytest.raises(ListingError, match=r"no scale.s beside scale.hsaco(.|\n)*hint: .*artifact.code.listing"):
        simulator.load(files / "scale.hsaco")
    with pytest.raises(ListingError, match="a code object alone is not enough"):
        simulator.load((files / "scale.hsaco").read_bytes())
    with pytest.raises(HsacoError, match="not a code object"):
        simulator.load(b"something else", "k:\n")
    with pytest.raises(FileNotFoundError):
        simulator.load(files / "missing.hsaco")


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("v_mul_f32", "v_add_f32", "differs first at byte"),
        ("\ts_endpgm", "\ts_nop 0\n" * 100 + "\ts_endpgm", r"bytes in the code object, \d+ by the listing"),
    ],
)
def test_the_listing_of_another_version_is_refused(files: Path, old: str, new: str, difference: str) -> None:
    listing = (files / "scale.s").read_text()
    assert old in listing
    changed = listing.replace(old, new)
    with pytest.raises(ListingError, match=rf"not the listing of this code object: .text .*{difference}(.|\n)*hint"):
        simulator.load(files / "scale.hsaco", changed)
    simulator.load(files / "scale.hsaco", changed, check_listing=False)


def test_what_the_assembler_does_not_accept_is_refused_in_its_words(files: Path) -> None:
    listing = (files / "scale.s").read_text().replace("\ts_endpgm", "\tv_unheard_of v0\n\ts_endpgm", 1)
    with pytest.raises(ListingError, match=r"the assembler does not accept this listing:(.|\n)*v_unheard_of"):
        simulator.load(files / "scale.hsaco", listing)


def test_without_an_assembler_nothing_is_compared_and_that_is_said(files: Path, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="was not compared with the code object: there is no assembler"):
        simulator.load(files / "scale.hsaco")


def test_a_module_shows_its_kernels(files: Path) -> None:
    assert repr(simulator.load(files / "scale.hsaco")) == "LoadedModule(gfx942: scale)"


@pytest.mark.parametrize("target", ["amdgpu9.42-amd-amdhsa-unknown-gfx942", "amdgcn-amd-amdhsa-unknown-gfx942"])
def test_every_spelling_of_the_target_is_understood(files: Path, target: str) -> None:
    listing = (files / "scale.s").read_text().replace("amdgcn-amd-amdhsa--gfx942", target)
    assert target in listing
    simulator.load(files / "scale.hsaco", listing)
    with pytest.raises(ListingError, match=r"not the listing of this code object: \.text"):
        simulator.load(
            files / "scale.hsaco", listing.replace("v_mul_f32", "v_sub_f32").replace("v_fma_f32", "v_mul_f32")
        )


def test_a_listing_for_another_processor(files: Path) -> None:
    listing = (files / "scale.s").read_text().replace("--gfx942", "--gfx90a")
    with pytest.raises(ListingError, match="the listing is for gfx90a, the code object for gfx942"):
        simulator.load(files / "scale.hsaco", listing)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('.include "/etc/passwd"', "does not take in other files"),
        ('x: .INCBIN "/etc/passwd"', "does not take in other files"),
        (".rept 100000000", "the directive .rept is unknown"),
        (".long 0xbf810000", "the directive .long is unknown"),
        (".fill 1000000000, 8, 0", "so much padding"),
        (".p2align 60", "so much padding"),
        (".data\n.zero 99999999999", "bytes of data at most"),
        (".data\n.fill 1000000000, 8, 0", "bytes of data at most"),
        (".data\n.p2align 40", "aligns data to"),
        (".data\n.8byte 5", "the directive .8byte is unknown"),
        ("s_nop 0 /* comment */", "comments begin with"),
        ("s_nop \0", "a control character"),
        ("v_mov_b32_e32 v0, v[1000000:10]", "there are no registers"),
        ("s_mov_b64 s[144:10], 0", "there are no registers"),
    ],
)
def test_lines_that_no_listing_may_have(files: Path, line: str, message: str) -> None:
    """Refused when it is read: no assembler sees it, and nothing is allocated."""
    listing = (files / "scale.s").read_text().replace("\ts_endpgm", f"\t{line}\n\ts_endpgm", 1)
    with pytest.raises(ListingError, match=message):
        simulator.load(files / "scale.hsaco", listing, check_listing=False)


def test_lines_end_where_the_assembler_ends_them(files: Path) -> None:
    listing = (files / "scale.s").read_text()
    simulator.load(files / "scale.hsaco", listing.replace("\n", "\r\n"))
    simulator.load(files / "scale.hsaco", listing.replace("\ts_endpgm", "\ts_endpgm ; \u2028 .zero 8", 1))


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_registers_that_the_kernel_was_not_given(files: Path, monkeypatch, backend: str) -> None:
    """The same clear error in both backends, when a wave comes there."""
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    text = (files / "scale.s").read_text()
    args = [*operands(), 2.0, 100, np.float16(0), 0]
    for operand in ("v200", "a3"):
        instruction = f"v_accvgpr_write_b32 {operand}, v0" if operand == "a3" else f"v_mov_b32_e32 {operand}, v0"
        changed = text.replace("\ts_endpgm", f"\t{instruction}\n\ts_endpgm", 1)
        kernel = simulator.load(files / "scale.hsaco", changed, check_listing=False).kernel("scale")
        for checks in (nullcontext(), checking()):
            with (
                checks,
                pytest.raises(simulator.RegisterFault, match=rf"uses registers that .* was not given(.|\n)*{operand}"),
            ):
                kernel.launch((2, 1, 1), (64, 1, 1), args)


@pytest.mark.parametrize("backend", ["native", "lockstep"])
@pytest.mark.parametrize(
    "instruction",
    [
        "v_cvt_pk_fp8_f32 s100, v1, v1",
        "v_pk_add_f32 s[100:101], v[0:1], v[0:1]",
        "v_add_f32_sdwa s100, v1, v1 dst_sel:BYTE_1 src0_sel:DWORD src1_sel:DWORD",
        "v_add_f32_e32 s100, v0, v0",
        "v_mov_b64_e32 v[255:256], v[0:1]",
        "v_mov_b64_e32 v255, v[0:1]",
        "v_mov_b64_e32 v[1:2], v[0:1]",
        "v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,9]",
        "v_mov_b32_dpp v0, v1 row_newbcast:200",
        "v_pk_add_f16 v0, v1, v2 op_sel:[7,9]",
        "v_add_f32_sdwa v0, v1, v1 dst_sel:BYTE_9",
        "ds_write_b32 v0, s1",
        "global_store_dword s[0:1], v0, off",
        "global_load_dword v0, v[0:1], off offset:999999999999",
        "s_load_dwordx4 v[0:3], s[0:1], 0x0",
        "s_movk_i32 s0, 99999999999999999999",
        "v_mul_f32_e32 v0, 1e300, v0",
        "s_branch nowhere",
    ],
)
def test_instructions_that_no_assembler_accepts(files: Path, monkeypatch, backend: str, instruction: str) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    listing = (files / "scale.s").read_text().replace("\ts_endpgm", f"\t{instruction}\n\ts_endpgm", 1)
    kernel = simulator.load(files / "scale.hsaco", listing, check_listing=False).kernel("scale")
    with pytest.raises(UnknownInstruction, match="the simulator does not know this form of"):
        kernel.launch((2, 1, 1), (64, 1, 1), [*operands(), 2.0, 100, np.float16(0), 0])


def test_the_addresses_of_constants_are_the_linkers(compile_ir) -> None:
    """The code object has addresses where the assembled listing has none yet."""
    simulator.load(*compile_ir(TABLE))


def test_neither_mlir_nor_torch_is_needed(files: Path) -> None:
    script = f"""
        import sys
        import numpy as np

        class Forbidden:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("mlir", "torch"):
                    raise ImportError("this test forbids " + name)

        sys.meta_path.insert(0, Forbidden())
        from flydsl import simulator

        kernel = simulator.load({str(files / "scale.hsaco")!r}).kernel("scale")
        out, x = np.zeros(100, np.float32), np.arange(100, dtype=np.float32)
        args = [out, x, 2.0, 100, np.float16(0), 0]
        kernel.launch((2, 1, 1), (64, 1, 1), args)
        assert (out == 2 * x).all()
        with simulator.checking():
            kernel.simulate((2, 1, 1), (64, 1, 1), args).run(until="barrier")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


GROUPED = """
%group = type { ptr addrspace(1), i32, i32 }
define amdgpu_kernel void @grouped(ptr addrspace(1) %tables, %group %own, ptr addrspace(1) %out) {
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr %group, ptr addrspace(1) %tables, i32 %w
  %array = load ptr addrspace(1), ptr addrspace(1) %at
  %np = getelementptr %group, ptr addrspace(1) %tables, i32 %w, i32 1
  %n = load i32, ptr addrspace(1) %np
  %p = getelementptr i32, ptr addrspace(1) %array, i32 %x
  %v = load i32, ptr addrspace(1) %p
  %own_array = extractvalue %group %own, 0
  %factor = extractvalue %group %own, 1
  %op = getelementptr i32, ptr addrspace(1) %own_array, i32 %x
  %u = load i32, ptr addrspace(1) %op
  %uf = mul i32 %u, %factor
  %sum = add i32 %v, %uf
  %all = add i32 %sum, %n
  %row = mul i32 %w, 64
  %i = add i32 %row, %x
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %all, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
"""


def test_pointers_inside_of_arrays_and_structs(compile_ir) -> None:
    kernel = simulator.load(*compile_ir(GROUPED)).kernel("grouped")
    first, second, own = (np.arange(64, dtype=np.int32) * k for k in (1, 10, 100))
    groups = [simulator.Struct(first, np.int32(5), bytes(4)), simulator.Struct(second, np.int32(7), bytes(4))]
    out = np.zeros((2, 64), np.int32)
    mine = simulator.Struct(own, np.int32(3), np.int32(0))
    kernel.launch((2, 1, 1), (64, 1, 1), [simulator.Struct(*groups), mine, out])
    np.testing.assert_array_equal(out, [first + 3 * own + 5, second + 3 * own + 7])
    with pytest.raises(ArgumentError, match=r"own must be 16 bytes, got a Struct whose parts have 12"):
        kernel.launch((2, 1, 1), (64, 1, 1), [simulator.Struct(*groups), simulator.Struct(own, bytes(4)), out])
    with pytest.raises(ArgumentError, match=r"own\[1\]: 3 does not say its size"):
        kernel.launch((2, 1, 1), (64, 1, 1), [simulator.Struct(*groups), simulator.Struct(own, 3), out])
    with pytest.raises(MemoryFault, match=r"reads .* at 0x"):
        kernel.launch((1, 1, 1), (64, 1, 1), [simulator.Struct(None, np.int64(0)), mine, out])


HIDDEN = """
define amdgpu_kernel void @hidden(ptr addrspace(1) %out) {
  %implicit = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  call void @llvm.memcpy.p1.p4.i64(ptr addrspace(1) %out, ptr addrspace(4) %implicit, i64 80, i1 false)
  ret void
}
define amdgpu_kernel void @prints(ptr addrspace(1) %out) {
  %implicit = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %implicit, i64 80
  %buffer = load ptr addrspace(1), ptr addrspace(4) %at
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %buffer, i32 %x
  store i32 %x, ptr addrspace(1) %p
  ret void
}
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.memcpy.p1.p4.i64(ptr addrspace(1), ptr addrspace(4), i64, i1)
"""


def test_hidden_arguments_are_those_of_the_launch(compile_ir) -> None:
    """Code object version 5: AMDGPUUsage, "Code Object V5 Kernel Argument Metadata", by offset."""
    out = np.zeros(80, np.uint8)
    kernel = simulator.load(*compile_ir(HIDDEN)).kernel("hidden")
    kernel.launch((3, 5, 2), (8, 4, 2), [out])
    assert out[:12].view(np.uint32).tolist() == [3, 5, 2]  # block counts
    assert out[12:24].view(np.uint16).tolist() == [8, 4, 2, 0, 0, 0]  # group sizes; the grid has no rest
    assert out[40:64].view(np.uint64).tolist() == [0, 0, 0]  # global offsets
    for grid, dimensions in (((3, 5, 2), 3), ((3, 5, 1), 2), ((3, 1, 1), 1)):
        kernel.launch(grid, (8, 1, 1), [out])
        assert out[64:66].view(np.uint16)[0] == dimensions


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_a_kernel_that_wants_to_call_the_host(compile_ir, monkeypatch, backend: str) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    kernel = simulator.load(*compile_ir(HIDDEN)).kernel("prints")
    with pytest.raises(MemoryFault, match=r"asks for hidden_hostcall_buffer \(calls of the host, by printf"):
        kernel.launch((1, 1, 1), (64, 1, 1), [np.zeros(80, np.uint8)])


def test_a_listing_may_not_name_what_is_no_file_for_its_source(files: Path) -> None:
    """An error shows a line of the source: reading it must neither wait for ever nor take all memory."""
    os.mkfifo(files / "pipe")
    for name in (files / "pipe", "/dev/zero", "\0"):
        assert SourceLocation(str(name), 1).source_line is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({".vgpr_count": 600}, "600 VGPRs and 0 AGPRs by its metadata, and by its descriptor 8 of both"),
        ({".vgpr_count": 520, ".agpr_count": 512}, "5 VGPRs and 512 AGPRs by its metadata"),
        ({".private_segment_fixed_size": 1 << 30}, "1073741824 bytes of scratch; a thread has at most 131056"),
        ({".group_segment_fixed_size": 1 << 30}, "1073741824 bytes of LDS: .* more than the 65536"),
        ({".wavefront_size": 32}, "waves of 32 lanes"),
    ],
)
def test_a_code_object_that_asks_for_what_no_device_has(files: Path, changes: dict[str, int], message: str) -> None:
    data = (files / "scale.hsaco").read_bytes()
    header, metadata = metadata_of(data)
    metadata["amdhsa.kernels"][0].update(changes)
    kernel = simulator.load(with_metadata(data, header, metadata), files / "scale.s").kernel("scale")
    with pytest.raises(LaunchError, match=message):
        kernel.launch((1, 1, 1), (64, 1, 1), [*operands(), 2.0, 100, np.float16(0), 0])


def test_a_kernel_beside_one_with_waves_that_no_device_has(files: Path) -> None:
    kernels = dict(read_hsaco((files / "scale.hsaco").read_bytes()).kernels)
    kernels["odd"] = kernels["scale"]._replace(name="odd", wave_size=128)
    listing = (files / "scale.s").read_text().replace("scale:", "odd:\nscale:")
    module = LoadedModule(Program.from_listing(kernels, read_listing(listing)))
    arguments = [*operands(), 2.0, 100, np.float16(0), 0]
    module.kernel("scale").launch((1, 1, 1), (64, 1, 1), arguments)
    with pytest.raises(LaunchError, match="waves of 128 lanes"):
        module.kernel("odd").launch((1, 1, 1), (64, 1, 1), arguments)


def test_steps_behind_the_end_of_the_code(files: Path) -> None:
    listing = (files / "scale.s").read_text().replace("s_endpgm", "s_nop 0")
    kernel = simulator.load(files / "scale.hsaco", listing, check_listing=False).kernel("scale")
    simulation = kernel.simulate((1, 1, 1), (64, 1, 1), [*operands(), 2.0, 100, np.float16(0), 0])
    with pytest.raises(SimulatorError, match="ran past the end of the code"):
        simulation.step(200)


def test_a_listing_shows_no_lines_of_files_that_it_has_not_brought(files: Path, tmp_path_factory, monkeypatch) -> None:
    """Whoever wrote a listing chooses the file and the line that its errors name; the text is the user's own."""
    private = tmp_path_factory.mktemp("private") / "keys.txt"
    private.write_text("a secret\n")
    beside = files / "kernel.py"
    beside.write_text("a line of the kernel\n")
    (files / "link.py").symlink_to(private)
    for path, shown in ((private, False), (beside, True), (files / "link.py", False)):
        listing = (files / "scale.s").read_text()
        code = listing.index("\n", listing.index("s_load")) + 1
        foreign = f'{listing[:code]}.file 90 "{path}"\n.loc 90 1 1\ns_trap 2\n{listing[code:]}'
        (files / "foreign.s").write_text(foreign)
        module = simulator.load(files / "scale.hsaco", files / "foreign.s", check_listing=False)
        with pytest.raises(simulator.Trap, match=re.escape(f"{path}:1")) as caught:
            module.kernel("scale").launch((1, 1, 1), (64, 1, 1), [*operands(), 2.0, 100, np.float16(1), 3])
        assert ("secret" in str(caught.value), "a line of the kernel" in str(caught.value)) == (False, shown)


def test_labels_that_are_numbers() -> None:
    """`1f` is the next one, `1b` the last, as often as there are any of that number."""
    text = (
        "k:\n1: s_add_u32 s0, s0, 1\ns_cmp_lt_u32 s0, 3\ns_cbranch_scc1 1b\ns_branch 1f\ns_mov_b32 s0, 9\n1:\ns_nop 0\n"
    )
    found = read_listing(text + "2: s_cbranch_scc0 2b\n")
    branches = [i.text.split()[-1] for i in found.instructions if "branch" in i.text]
    assert [found.labels[name] for name in branches] == [0, 5, 6]


def test_a_name_like_those_of_numbered_labels_is_refused() -> None:
    with pytest.raises(ListingError, match="names like this one"):
        read_listing("k:\n.L1.1:\ns_endpgm\n")
