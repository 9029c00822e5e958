"""The simulator alone: code objects from files, numpy arrays, no compiler."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from flydsl import simulator
from flydsl.errors import ArgumentError, LaunchError
from flydsl.hsaco import HsacoError
from flydsl.simulator import LdsRace, ListingError, MemoryFault, checking
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
        ({2: "2"}, r"factor has 4 bytes, and '2' does not say which"),
        ({4: 0.5}, r"h has 2 bytes, and 0.5 does not say which"),
        ({2: np.float64(1)}, r"factor has 4 bytes; .* has 8"),
        ({5: 2**40}, r"i: 1099511627776 does not fit 4 bytes"),
        ({0: 5}, r"out is a pointer and takes a numpy array, not 5"),
        ({2: np.zeros(1)}, r"factor has 4 bytes: it is no pointer"),
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
    with pytest.raises(ArgumentError, match=r"takes 6 arguments \(out, in, factor, n, h, i\), not 1"):
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


def test_what_cannot_be_compared_is_said(files: Path) -> None:
    listing = (files / "scale.s").read_text()
    with pytest.warns(UserWarning, match="was not compared with the code object: (.|\n)*v_unheard_of"):
        simulator.load(files / "scale.hsaco", listing.replace("\ts_endpgm", "\tv_unheard_of v0\n\ts_endpgm", 1))


def test_the_addresses_of_constants_are_the_linkers(compile_ir) -> None:
    """The code object has addresses where the assembled listing has none yet."""
    simulator.load(*compile_ir(TABLE))


def test_neither_mlir_nor_torch_is_needed(files: Path) -> None:
    script = f"""
        import sys
        import numpy as np

        class Forbidden:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("mlir", "torch", "ziglang"):
                    raise ImportError("this test forbids " + name)

        sys.meta_path.insert(0, Forbidden())
        import warnings
        from flydsl import simulator

        warnings.filterwarnings("ignore", "the listing was not compared .* no assembler")
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
