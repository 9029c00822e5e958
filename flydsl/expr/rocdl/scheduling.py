"""Control of the compiler's scheduler and the wave's issue order: barriers, priorities and waits.

`sched_group_barrier` asks for an order of kinds of instructions: a sequence of calls is a pipeline, "2 LDS reads, then
4 matrix instructions, ...", that the scheduler fills with the instructions of the block. Source: LLVM, AMDGPUUsage,
"llvm.amdgcn.sched.group.barrier".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA, GFX12, GFX1250, RDNA3
from flydsl.expr.llvm import memory_fence
from flydsl.expr.memory.memory_order import AtomicOrdering
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import call, call_intrinsic, i16_attribute, i32_attribute, require_target
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.immediates import immediate

MASK_MFMA = 0x008
MASK_VMEM_READ = 0x020
MASK_DS_READ = 0x100
MASK_DS_WRITE = 0x200
mask_mfma, mask_vmem_rd, mask_dsrd, mask_dswr = MASK_MFMA, MASK_VMEM_READ, MASK_DS_READ, MASK_DS_WRITE
_MASK_ALL = 0x7FF
_COUNT_MAX = 0x7FFF_FFFF


def sched_barrier(mask: int = 0) -> None:
    """Keep the scheduler from moving instructions across this point, except the kinds in `mask`. 0: all stay."""
    call("sched.barrier", [], attributes={"mask": i32_attribute(immediate("sched_barrier", mask, 0, _MASK_ALL))})


def sched_group_barrier(mask: int, size: int, group_id: int = 0) -> None:
    """Put the next `size` instructions of the kinds in `mask` next in the schedule.

    mask: 0x1 all ALU, 0x2 VALU, 0x4 SALU, 0x8 MFMA, 0x10 all VMEM, 0x20 VMEM read, 0x40 VMEM write, 0x80 all DS,
    0x100 DS read, 0x200 DS write, 0x400 transcendental. group_id: groups of different ids are independent.
    """
    attributes = {
        "mask": i32_attribute(immediate("the mask of sched_group_barrier", mask, 0, _MASK_ALL)),
        "size": i32_attribute(immediate("the size of sched_group_barrier", size, 0, _COUNT_MAX)),
        "groupId": i32_attribute(immediate("the group_id of sched_group_barrier", group_id, 0, _COUNT_MAX)),
    }
    call("sched.group.barrier", [], attributes=attributes)


def sched_mfma(cnt: int) -> None:
    """Put the next `cnt` matrix instructions next in the schedule."""
    sched_group_barrier(MASK_MFMA, cnt)


def sched_vmem(cnt: int) -> None:
    """Put the next `cnt` reads of global memory next in the schedule."""
    sched_group_barrier(MASK_VMEM_READ, cnt)


def sched_dsrd(cnt: int) -> None:
    """Put the next `cnt` reads of LDS next in the schedule."""
    sched_group_barrier(MASK_DS_READ, cnt)


def sched_dswr(cnt: int) -> None:
    """Put the next `cnt` writes to LDS next in the schedule."""
    sched_group_barrier(MASK_DS_WRITE, cnt)


def iglp_opt(variant: int) -> None:
    """Let LLVM interleave the block's instructions by a strategy. 0, 1: for small GEMMs; 2, 3: for attention."""
    call("iglp.opt", [], attributes={"variant": i32_attribute(immediate("iglp_opt", variant, 0, 3))})


def barrier() -> None:
    """The workgroup barrier, with a fence for LDS and global memory around it; the same as `gpu.barrier`."""
    call("barrier", [])


def s_barrier() -> None:
    """The bare workgroup barrier instruction. It does not wait for memory operations; safe code uses `gpu.barrier`."""
    call("s.barrier", [])


def s_setprio(priority: int) -> None:
    """Set the wave's priority on its SIMD, 0 to 3: the lowest two of 16 bits."""
    call("s.setprio", [], attributes={"priority": i16_attribute(immediate("s_setprio", priority, 0, 0x7FFF))})


_SCHED_MODE_DISABLE_STALL = 26 | 4 << 6  # s_setreg's operand: hardware register 26, bit 4, one bit wide


def disable_xdl_arb_stall() -> None:
    """Let matrix instructions follow each other without the stall that leaves room for other waves. gfx1250.

    It sets bit 4 of the register SCHED_MODE for the rest of the wave.
    """
    require_target("disable_xdl_arb_stall", GFX1250)
    call_intrinsic("llvm.amdgcn.s.setreg", [Int32(_SCHED_MODE_DISABLE_STALL).ir_value(), Int32(1).ir_value()])


def s_prefetch_inst_burst(num_pages: int, page_bytes: int = 4096) -> None:
    """Bring the code after this place into the instruction cache: 4 KiB at each of `num_pages` steps. gfx1250.

    page_bytes: the step. All of it must be code of the program: the hardware faults beyond its end.
    """
    require_target("s_prefetch_inst_burst", GFX1250)
    count = immediate("the num_pages of s_prefetch_inst_burst", num_pages, 1, 64)
    step = immediate("the page_bytes of s_prefetch_inst_burst", page_bytes, 1, 65536)
    text = "\n".join(f"s_prefetch_inst_pc_rel {step * page}, null, 31" for page in range(count))
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(""),
        "has_side_effects": ir.UnitAttr.get(),
    }
    emit("llvm.inline_asm", attributes=attributes)


def s_nop(count: int) -> None:
    """Wait for `count` + 1 cycles, at most 16."""
    call("s.nop", [], attributes={"count": i16_attribute(immediate("s_nop", count, 0, 15))})


def s_sleep(count: int) -> None:
    """Sleep for about 64 * `count` cycles, count at most 127."""
    call("s.sleep", [], attributes={"count": i32_attribute(immediate("s_sleep", count, 0, 127))})


def s_waitcnt(bitfield: int) -> None:
    """Wait until counters are low enough. bitfield: in the encoding of the instruction.

    On CDNA: vmcnt bits 0 to 3 and 14 to 15, expcnt 4 to 6, lgkmcnt 8 to 11; on RDNA 3 expcnt 0 to 2, lgkmcnt 4 to 9,
    vmcnt 10 to 15. All ones means no wait.
    """
    require_target("s_waitcnt", (*CDNA, *RDNA3))
    call("s.waitcnt", [], attributes={"bitfield": i32_attribute(immediate("s_waitcnt", bitfield, 0, 0xFFFF))})


def _wait(counter: str, meaning: str, archs: tuple[str, ...]) -> Callable[[int], None]:
    name = f"s_wait_{counter}"

    def wait(count: int = 0) -> None:
        require_target(name, archs)
        call(f"s.wait.{counter}", [], attributes={"count": i16_attribute(immediate(name, count, 0, 0x3F))})

    return described(wait, name, f"Wait until at most `count` {meaning} are under way. {', '.join(archs)}.")


def _wait_for_lds(counter: str, meaning: str) -> Callable[[int], None]:
    """A wait for copies to LDS, which LLVM does not know to write there: reads stay after it."""
    only_wait = _wait(counter, meaning, GFX1250)

    def wait(count: int = 0) -> None:
        only_wait(count)
        memory_fence(syncscope="singlethread", ordering=AtomicOrdering.AcqRel)

    return described(wait, only_wait.__name__, only_wait.__doc__)


s_wait_loadcnt: Any = _wait("loadcnt", "loads", GFX12)
s_wait_storecnt: Any = _wait("storecnt", "stores", GFX12)
s_wait_dscnt: Any = _wait("dscnt", "LDS operations", GFX12)
s_wait_expcnt: Any = _wait("expcnt", "exports", GFX12)
s_wait_asynccnt: Any = _wait_for_lds("asynccnt", "asynchronous copies")
s_wait_tensorcnt: Any = _wait_for_lds("tensorcnt", "tensor copies")

__all__ = [
    "barrier", "disable_xdl_arb_stall", "iglp_opt", "mask_dsrd", "mask_dswr", "mask_mfma", "mask_vmem_rd",
    "s_barrier", "s_nop", "s_prefetch_inst_burst", "s_setprio", "s_sleep", "s_wait_asynccnt", "s_wait_dscnt",
    "s_wait_expcnt",
    "s_wait_loadcnt", "s_wait_storecnt", "s_wait_tensorcnt", "sched_barrier", "sched_dsrd", "sched_dswr",
    "sched_group_barrier", "sched_mfma", "sched_vmem",
]  # fmt: skip
