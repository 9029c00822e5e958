"""Code objects from files: with their listing, or disassembled; launched, and refused where they are something else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from flydsl.binary import BinaryModule, capture_binary_launches, compile_hip, open_binary
from flydsl.binary.disassembly import find_objdumps
from flydsl.errors import CompileError, FlyError

SOURCE = """\
__global__ void scale(const float *x, float *y, float factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * factor;
}
"""


def saved(module: BinaryModule, folder: Path, *, listing: bool = True) -> Path:
    file = folder / "scale.hsaco"
    file.write_bytes(module.hsaco)
    if listing:
        file.with_suffix(".s").write_text(module.code.listing)
    return file


def doubles(module: BinaryModule) -> bool:
    x, y = torch.randn(300), torch.zeros(300)
    symbol = next(iter(module.kernels))
    module.kernel(symbol)(x, y, 2.0, 300, grid=2, block=64)
    return torch.equal(y, 2 * x)


@pytest.fixture(scope="module")
def made() -> BinaryModule:
    return compile_hip(SOURCE)


def test_a_code_object_with_its_listing(made: BinaryModule, tmp_path: Path) -> None:
    module = open_binary(saved(made, tmp_path))
    assert doubles(module)
    assert module.scale.resources.resources == made.scale.resources.resources
    assert module.scale.resources.occupancy == made.scale.resources.occupancy


def test_a_listing_that_was_changed_on_purpose(made: BinaryModule, tmp_path: Path) -> None:
    file = saved(made, tmp_path)
    file.with_suffix(".s").write_text(made.code.listing.replace("s_endpgm", "s_nop 0\n\ts_endpgm"))
    with pytest.raises(FlyError, match="not the listing of this code object"):
        open_binary(file)
    assert doubles(open_binary(file, check_listing=False))


def test_launches_are_captured_and_counted(made: BinaryModule) -> None:
    with capture_binary_launches(counted=True) as launches:
        assert doubles(made)
        assert doubles(made)
    assert [len(launch.counters) for launch in launches] == [1, 0]
    assert launches[0].counters[0].totals.global_bytes == 2 * 4 * 300


def test_steps_end_with_the_same_result(made: BinaryModule) -> None:
    x, y = torch.randn(64), torch.zeros(64)
    simulation = made.scale.simulate(x, y, 2.0, 64, grid=1, block=64)
    simulation.step()
    assert torch.equal(y, torch.zeros(64))
    simulation.run()
    assert torch.equal(y, 2 * x)


def test_a_code_object_without_a_listing_is_disassembled(tmp_path: Path) -> None:
    if not list(find_objdumps()):
        pytest.skip("there is no llvm-objdump")
    assert doubles(open_binary(saved(compile_hip(SOURCE, arch="gfx90a"), tmp_path, listing=False)))


def test_without_a_listing_and_a_disassembler_resources_are_known_and_the_rest_says_what_to_do(
    made: BinaryModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flydsl.binary.disassembly.find_objdumps", lambda: iter(()))
    module = open_binary(saved(made, tmp_path, listing=False))
    assert module.scale.resources.occupancy == made.scale.resources.occupancy
    for use in (lambda: doubles(module), lambda: module.isa):
        with pytest.raises(CompileError, match="no listing, and no disassembler for gfx942") as caught:
            use()
        assert caught.value.hint is not None
        assert "put its assembly beside it" in caught.value.hint


def test_a_wait_that_somebody_took_out_is_seen_when_it_is_opened(made: BinaryModule, tmp_path: Path) -> None:
    file = saved(made, tmp_path)
    listing = file.with_suffix(".s")
    listing.write_text(listing.read_text().replace("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(63)"))
    with pytest.warns(UserWarning, match=r"wait is missing: v_mul_f32\S* .* before it has arrived.*global_load_dword"):
        open_binary(file, check_listing=False)


def test_a_wait_that_inline_assembly_lacks_is_seen() -> None:
    with pytest.warns(UserWarning, match=r"a wait is missing: v_add_f32"):
        compile_hip(
            "__global__ void k(const float *x, float *y) {\n  float a, b;\n"
            '  asm volatile("global_load_dword %1, %2, off\\n\\tv_add_f32 %0, %1, %1" : "=v"(a), "=&v"(b) : "v"(x));\n'
            "  y[threadIdx.x] = a;\n}",
        )


def test_a_listing_of_other_code_is_refused(made: BinaryModule, tmp_path: Path) -> None:
    file = saved(made, tmp_path)
    listing = file.with_suffix(".s")
    listing.write_text(listing.read_text().replace("v_mul_f32", "v_add_f32"))
    with pytest.raises(FlyError, match="not the listing of this code object"):
        open_binary(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        (b"", "ELF"),
        (b"\\x7fELF" + bytes(100), ""),
        (b"__CLANG_OFFLOAD_BUNDLE__" + bytes(64), "is a bundle of code objects"),
        (b"hello", "ELF"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, content: bytes | None, says: str) -> None:
    file = tmp_path / "kernel.hsaco"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(FlyError) as caught:
        open_binary(file)
    assert says in caught.value.message
