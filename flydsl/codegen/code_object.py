"""A compiled module: the HSACO, its kernels with their resources, and its assembly text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from flydsl.arch import Arch, Occupancy, Usage, llvm_workgroup_size, waves_by_descriptor
from flydsl.codegen import cache, inline_assembly, llvm
from flydsl.codegen.assemble import PendingAssembly
from flydsl.codegen.isa import readable_isa
from flydsl.codegen.link import PendingLink
from flydsl.codegen.llvm_process import Job
from flydsl.errors import CompileError
from flydsl.errors.missing_attributes import Explained
from flydsl.hsaco import Hsaco, KernelInfo, read_hsaco
from flydsl.hsaco.listing import read_listing

# The fields of a code object that are kept on disk.
_KEPT = ("bitcode", "hsaco", "listing", "diagnostics")


@dataclass(frozen=True)
class Resources:
    """The resources of one wave. vgprs, agprs and sgprs are LLVM's NumVgprs, NumAgprs and TotalNumSgprs.

    lds_bytes is per workgroup and static; scratch_bytes is per thread; spills count registers; code_bytes is the size
    of the machine code.
    """

    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    code_bytes: int


@dataclass(frozen=True)
class Kernel(Explained):
    """One kernel of a code object.

    arch: as the kernel sees it, which may have been compiled for one half of a pair of compute units.
    dynamic_lds_bytes: what its launch adds to the LDS of a workgroup, None where that is known at run time only.
    min_workgroup_size: the smallest workgroup that it was compiled for; the largest is in `info`.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        **{name: f"it is .resources.{name}" for name in ("vgprs", "agprs", "sgprs", "lds_bytes", "code_bytes")},
        **dict.fromkeys(("isa", "hsaco"), "the code object has all kernels': p.artifact.isa, p.artifact.hsaco"),
    }

    arch: Arch
    info: KernelInfo
    dynamic_lds_bytes: int | None = 0
    min_workgroup_size: int = 1

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def resources(self) -> Resources:
        info = self.info
        start, stop = info.code_range
        return Resources(
            vgprs=info.vgprs,
            agprs=info.agprs,
            sgprs=info.sgprs,
            lds_bytes=info.lds_bytes,
            scratch_bytes=info.scratch_bytes,
            vgpr_spills=info.vgpr_spills,
            sgpr_spills=info.sgpr_spills,
            code_bytes=stop - start,
        )

    @property
    def workgroup_size(self) -> int:
        """Threads of the workgroups that `occupancy` assumes; LLVM's choice if the kernel takes several sizes."""
        info = self.info
        sizes = self.min_workgroup_size, info.max_workgroup_size
        return llvm_workgroup_size(self.arch, *sizes, lds_bytes=info.lds_bytes, wave_size=info.wave_size)

    @property
    def usage(self) -> Usage:
        """The amounts that decide the occupancy, including the LDS that the launch adds, if known."""
        static = self._static_usage
        return replace(static, lds_bytes=static.lds_bytes + (self.dynamic_lds_bytes or 0))

    @property
    def occupancy(self) -> Occupancy:
        """The occupancy that LLVM reports: it does not count dynamic LDS."""
        return self._static_usage.occupancy

    @property
    def waves_per_eu(self) -> int | None:
        """The cap on waves per SIMD set by `amdgpu-waves-per-eu`, or None.

        LLVM enforces it by allocating more registers than the kernel uses. It also does so where something else limits
        the waves, and then the registers set no cap of their own.
        """
        waves = waves_by_descriptor(self.arch, self.info.descriptor.vgpr_granules, self.info.wave_size)
        return waves if waves < self._uncapped_usage.occupancy.waves_per_simd else None

    @property
    def _static_usage(self) -> Usage:
        return replace(self._uncapped_usage, waves_per_eu=self.waves_per_eu)

    @property
    def _uncapped_usage(self) -> Usage:
        info = self.info
        return Usage(
            self.arch,
            vgprs=info.vgprs,
            agprs=info.agprs,
            sgprs=info.sgprs,
            lds_bytes=info.lds_bytes,
            workgroup_size=self.workgroup_size,
            wave_size=info.wave_size,
        )


@dataclass(frozen=True)
class CodeObject:
    """A module compiled to AMD machine code.

    hsaco is what the device loads.
    listing: LLVM's assembly as it comes, with `.loc` and debug sections where the LLVM IR has line tables. It assembles
    to the machine code of the HSACO.
    diagnostics: LLVM's warnings and remarks, mostly empty. from_cache: whether an earlier process compiled it.
    dynamic_lds: kernels by name, and the bytes that their launches add, None where that is known at run time only.
    """

    arch: Arch
    llvm_ir: str = field(repr=False)
    opt_level: int
    bitcode: bytes = field(repr=False)
    hsaco: bytes = field(repr=False)
    listing: str = field(repr=False)
    diagnostics: str = ""
    from_cache: bool = False
    dynamic_lds: tuple[tuple[str, int | None], ...] = ()

    @cached_property
    def optimized_llvm_ir(self) -> str:
        """The LLVM IR after the optimization pipeline."""
        return llvm.disassemble(self.bitcode)

    @cached_property
    def isa(self) -> str:
        """The assembly for readers: source lines as comments, no debug directives. It assembles to the same code."""
        return readable_isa(self.listing)

    def mnemonics(self, *prefixes: str) -> list[str]:
        """The names of the machine instructions, in order; with prefixes such as "v_mfma" those that begin so."""
        names = (instruction.text.split(None, 1)[0] for instruction in read_listing(self.listing).instructions)
        return [name for name in names if name.startswith(prefixes or "")]

    @cached_property
    def contents(self) -> Hsaco:
        """The HSACO, read back."""
        return read_hsaco(self.hsaco)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, in the order of the code object's metadata."""
        dynamic, smallest = dict(self.dynamic_lds), llvm.smallest_workgroups(self.llvm_ir)
        return tuple(
            Kernel(self._arch_of(info), info, dynamic.get(info.name, 0), smallest.get(info.name, 1))
            for info in self.contents.kernels.values()
        )

    def _arch_of(self, info: KernelInfo) -> Arch:
        in_cu_mode = self.arch.has_cu_mode and not info.descriptor.wgp_mode
        return self.arch.in_cu_mode() if in_cu_mode else self.arch


class PendingCodeObject:
    """A code object that another process is compiling from LLVM IR; see `start_llvm_ir`."""

    def __init__(
        self, llvm_ir: str, arch: Arch, opt_level: int, debug_info: bool, llvm_options: tuple[str, ...] = ()
    ) -> None:
        if opt_level not in range(4):
            raise CompileError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
        self._llvm_ir, self._arch, self._opt_level = llvm_ir, arch, opt_level
        self._key = cache.key(llvm_ir, arch.name, opt_level, debug_info, llvm_options)
        self._kept = cache.find(self._key, _KEPT)
        self._work: Job | None = None
        self._assembly: PendingAssembly | None = None
        self._link: PendingLink | None = None
        if self._kept is None:
            try:
                self._work = llvm.start(llvm_ir, arch, opt_level, llvm_options)
                self._assembly = PendingAssembly(arch)
                self._link = PendingLink(keep_debug_info=debug_info)
            except BaseException:  # a KeyboardInterrupt, mostly
                self.end()
                raise

    def result(self) -> CodeObject:
        """Wait for the code object, once. Raises CompileError with LLVM's or the linker's message."""
        if self._kept is not None:
            return CodeObject(self._arch, self._llvm_ir, self._opt_level, **self._kept, from_cache=True)
        assert self._work is not None
        assert self._assembly is not None
        assert self._link is not None
        try:
            made = llvm.finish(self._work, self._llvm_ir, self._arch)
            listing = made.listing
            if inline_assembly.occurs_in(self._llvm_ir):
                listing = inline_assembly.canonical(listing, self._arch)
            hsaco = self._link.finish(self._assembly.finish(listing))
        finally:
            self.end()
        code = CodeObject(self._arch, self._llvm_ir, self._opt_level, made.bitcode, hsaco, listing, made.diagnostics)
        cache.add(self._key, {name: getattr(code, name) for name in _KEPT})
        return code

    def end(self) -> None:
        """End the processes that have not ended, and close what is open. Without effect after `result`."""
        for part in (self._work, self._assembly, self._link):
            if part is not None:
                part.end()


def start_llvm_ir(
    llvm_ir: str, arch: Arch, *, opt_level: int = 2, debug_info: bool = False, llvm_options: tuple[str, ...] = ()
) -> PendingCodeObject:
    """Start to compile LLVM IR text for one architecture, and return at once; see `compile_llvm_ir`.

    llvm_options: of LLVM's command line, such as "--enable-post-misched=false"; they hold for this compilation.
    """
    return PendingCodeObject(llvm_ir, arch, opt_level, debug_info, llvm_options)


def compile_llvm_ir(llvm_ir: str, arch: Arch, *, opt_level: int = 2, debug_info: bool = False) -> CodeObject:
    """Compile LLVM IR text for one architecture.

    opt_level: 0 to 3, for the IR pipeline and the backend alike. debug_info: keep line tables in the HSACO; they never
    change the machine code. Kernel attributes such as `amdgpu-flat-work-group-size` are taken as they stand.
    Raises CompileError with LLVM's or the linker's message; bad IR never ends the process.
    """
    return start_llvm_ir(llvm_ir, arch, opt_level=opt_level, debug_info=debug_info).result()
