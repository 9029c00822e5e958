"""Kernels in LLVM IR that measure the simulator: vector add, a tiled f16 GEMM on the matrix cores, row-wise softmax.

They stand in for what the DSL will compile to: LDS tiles and barriers, MFMA, cross-lane reductions, a divergent tail.
"""

from __future__ import annotations

TILE = 64
"""Rows and columns of C per workgroup of four waves."""
DEPTH = 32
"""Columns of A and rows of B per step."""

_HEADER = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare void @llvm.amdgcn.s.barrier()
"""
_BARRIER = """  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
"""


class _Lines:
    """Text of LLVM IR with numbered names."""

    def __init__(self) -> None:
        self.text = ""
        self._count = 0

    def __call__(self, expression: str) -> str:
        self._count += 1
        self.text += f"  %v{self._count} = {expression}\n"
        return f"%v{self._count}"

    def do(self, statement: str) -> None:
        self.text += statement if statement.endswith(":\n") else f"  {statement}\n"


def vector_add() -> str:
    """c = a + b of f32, 256 elements per workgroup. Arguments: a, b, c."""
    line = _Lines()
    thread = line("call i32 @llvm.amdgcn.workitem.id.x()")
    first = line(f"shl i32 {line('call i32 @llvm.amdgcn.workgroup.id.x()')}, 8")
    index = line(f"add i32 {first}, {thread}")
    places = [line(f"getelementptr float, ptr addrspace(1) {pointer}, i32 {index}") for pointer in ("%a", "%b", "%c")]
    a, b = (line(f"load float, ptr addrspace(1) {place}") for place in places[:2])
    line.do(f"store float {line(f'fadd float {a}, {b}')}, ptr addrspace(1) {places[2]}")
    return f"""{_HEADER}
define amdgpu_kernel void @vector_add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) #0 {{
entry:
{line.text}  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="256,256" }}
"""


def gemm(n: int) -> str:
    """C = A @ B.T, f32 = f16 times f16, all n x n in row-major order; n is a multiple of 64.

    A workgroup of 256 threads computes a 64 x 64 tile of C; each of its four waves 16 rows of it, by four MFMAs of
    16 x 16 x 16 per 16 columns. Arguments: A, B, C.
    """
    padded = DEPTH + 8  # halves per row in LDS, so that the rows of a fragment lie in different banks
    line = _Lines()
    thread = line("call i32 @llvm.amdgcn.workitem.id.x()")
    block_x, block_y = line("call i32 @llvm.amdgcn.workgroup.id.x()"), line("call i32 @llvm.amdgcn.workgroup.id.y()")
    row0, column0 = line(f"mul i32 {block_y}, {TILE}"), line(f"mul i32 {block_x}, {TILE}")
    # Each thread brings eight halves of A and of B: 64 rows of 32, four threads a row.
    bring_row, bring_part = line(f"lshr i32 {thread}, 2"), line(f"and i32 {thread}, 3")
    bring_column = line(f"shl i32 {bring_part}, 3")
    sources = []
    for first, pointer in ((row0, "%a"), (column0, "%b")):
        row = line(f"add i32 {first}, {bring_row}")
        start = line(f"mul i32 {row}, {n}")
        offset = line(f"add i32 {start}, {bring_column}")
        sources.append(line(f"getelementptr half, ptr addrspace(1) {pointer}, i32 {offset}"))
    in_row = line(f"mul i32 {bring_row}, {padded}")
    place = line(f"add i32 {in_row}, {bring_column}")
    targets = [line(f"getelementptr half, ptr addrspace(3) @{tile}, i32 {place}") for tile in ("tile_a", "tile_b")]
    # A lane's fragment: row lane % 16, four halves from 4 * (lane / 16) on.
    lane, wave = line(f"and i32 {thread}, 63"), line(f"lshr i32 {thread}, 6")
    lane_row, lane_group = line(f"and i32 {lane}, 15"), line(f"lshr i32 {lane}, 4")
    fragment_column = line(f"shl i32 {lane_group}, 2")
    wave_row = line(f"mul i32 {wave}, 16")
    fragments = []
    for tile, first in [("tile_a", wave_row), *(("tile_b", str(16 * j)) for j in range(4))]:
        row = line(f"add i32 {first}, {lane_row}")
        start = line(f"mul i32 {row}, {padded}")
        offset = line(f"add i32 {start}, {fragment_column}")
        fragments.append(line(f"getelementptr half, ptr addrspace(3) @{tile}, i32 {offset}"))
    line.do("br label %loop")
    line.do("loop:\n")
    line.do("%k = phi i32 [ 0, %entry ], [ %k_next, %loop ]")
    for j in range(4):
        line.do(f"%c{j} = phi <4 x float> [ zeroinitializer, %entry ], [ %d{j}, %loop ]")
    for source, target in zip(sources, targets, strict=True):
        here = line(f"getelementptr half, ptr addrspace(1) {source}, i32 %k")
        eight = line(f"load <8 x half>, ptr addrspace(1) {here}, align 16")
        line.do(f"store <8 x half> {eight}, ptr addrspace(3) {target}, align 16")
    line.text += _BARRIER
    totals = [f"%c{j}" for j in range(4)]
    for step in range(DEPTH // 16):
        loaded = []
        for fragment in fragments:
            here = line(f"getelementptr half, ptr addrspace(3) {fragment}, i32 {16 * step}")
            loaded.append(line(f"load <4 x half>, ptr addrspace(3) {here}, align 8"))
        a, *columns = loaded
        for j, b in enumerate(columns):
            call = "call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16"
            totals[j] = line(f"{call}(<4 x half> {a}, <4 x half> {b}, <4 x float> {totals[j]}, i32 0, i32 0, i32 0)")
    for j, total in enumerate(totals):
        line.do(f"%d{j} = bitcast <4 x float> {total} to <4 x float>")
    line.text += _BARRIER
    line.do(f"%k_next = add i32 %k, {DEPTH}")
    line.do(f"%done = icmp eq i32 %k_next, {n}")
    line.do("br i1 %done, label %end, label %loop")
    line.do("end:\n")
    # A lane holds rows 4 * (lane / 16) + 0..3 of column lane % 16.
    rows_of_wave = line(f"add i32 {row0}, {wave_row}")
    first_row = line(f"add i32 {rows_of_wave}, {fragment_column}")
    column = line(f"add i32 {column0}, {lane_row}")
    for i in range(4):
        row = line(f"add i32 {first_row}, {i}")
        start = line(f"mul i32 {row}, {n}")
        at = line(f"add i32 {start}, {column}")
        for j in range(4):
            pointer = line(f"getelementptr float, ptr addrspace(1) %c, i32 {at}")
            shifted = line(f"getelementptr float, ptr addrspace(1) {pointer}, i32 {16 * j}")
            number = line(f"extractelement <4 x float> %d{j}, i64 {i}")
            line.do(f"store float {number}, ptr addrspace(1) {shifted}")
    return f"""{_HEADER}
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)
@tile_a = internal addrspace(3) global [{TILE * padded} x half] undef, align 16
@tile_b = internal addrspace(3) global [{TILE * padded} x half] undef, align 16
define amdgpu_kernel void @gemm(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c) #0 {{
entry:
{line.text}  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="256,256" }}
"""


def softmax(columns: int) -> str:
    """y = softmax(x) along rows of `columns` f32, one wave per row. Arguments: x, y.

    The last step of a row is divergent where 64 does not divide `columns`. Reductions go by DPP within 16 lanes, by
    ds_swizzle within 32, by ds_bpermute across.
    """
    steps = -(-columns // 64)
    line = _Lines()
    lane = line("call i32 @llvm.amdgcn.workitem.id.x()")
    row = line("call i32 @llvm.amdgcn.workgroup.id.x()")
    start = line(f"mul i32 {row}, {columns}")
    first = line(f"add i32 {start}, {lane}")
    values = [_load_or(line, f"l{s}", first, lane, s, columns) for s in range(steps)]
    largest = values[0]
    for value in values[1:]:
        largest = line(f"call float @llvm.maxnum.f32(float {largest}, float {value})")
    largest = _reduce(line, lane, largest, "call float @llvm.maxnum.f32(float {x}, float {y})")
    powers = []
    for value in values:
        difference = line(f"fsub float {value}, {largest}")
        scaled = line(f"fmul float {difference}, 0x3FF7154760000000")
        powers.append(line(f"call float @llvm.amdgcn.exp2.f32(float {scaled})"))
    total = powers[0]
    for power in powers[1:]:
        total = line(f"fadd float {total}, {power}")
    total = _reduce(line, lane, total, "fadd float {x}, {y}")
    factor = line(f"call float @llvm.amdgcn.rcp.f32(float {total})")
    for s, power in enumerate(powers):
        result = line(f"fmul float {power}, {factor}")
        _store(line, f"s{s}", first, lane, s, columns, result)
    return f"""{_HEADER}
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.amdgcn.exp2.f32(float)
declare float @llvm.amdgcn.rcp.f32(float)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
define amdgpu_kernel void @softmax(ptr addrspace(1) %x, ptr addrspace(1) %y) #0 {{
entry:
{line.text}  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""


def _is_partial(step: int, columns: int) -> bool:
    return 64 * (step + 1) > columns


def _load_or(line: _Lines, name: str, first: str, lane: str, step: int, columns: int) -> str:
    """x[first + 64 * step], or -infinity beyond the row."""
    index = line(f"add i32 {first}, {64 * step}")
    pointer = line(f"getelementptr float, ptr addrspace(1) %x, i32 {index}")
    if not _is_partial(step, columns):
        return line(f"load float, ptr addrspace(1) {pointer}")
    inside = line(f"icmp ult i32 {lane}, {columns - 64 * step}")
    line.do(f"br label %{name}_from")
    line.do(f"{name}_from:\n")
    line.do(f"br i1 {inside}, label %{name}_load, label %{name}_after")
    line.do(f"{name}_load:\n")
    loaded = line(f"load float, ptr addrspace(1) {pointer}")
    line.do(f"br label %{name}_after")
    line.do(f"{name}_after:\n")
    return line(f"phi float [ {loaded}, %{name}_load ], [ 0xFFF0000000000000, %{name}_from ]")


def _store(line: _Lines, name: str, first: str, lane: str, step: int, columns: int, value: str) -> None:
    index = line(f"add i32 {first}, {64 * step}")
    pointer = line(f"getelementptr float, ptr addrspace(1) %y, i32 {index}")
    if not _is_partial(step, columns):
        line.do(f"store float {value}, ptr addrspace(1) {pointer}")
        return
    inside = line(f"icmp ult i32 {lane}, {columns - 64 * step}")
    line.do(f"br i1 {inside}, label %{name}_store, label %{name}_after")
    line.do(f"{name}_store:\n")
    line.do(f"store float {value}, ptr addrspace(1) {pointer}")
    line.do(f"br label %{name}_after")
    line.do(f"{name}_after:\n")


def _reduce(line: _Lines, lane: str, value: str, operation: str) -> str:
    """Combine a number of every lane; every lane gets the result."""
    for distance in (1, 2, 4, 8, 16, 32):
        bits = line(f"bitcast float {value} to i32")
        if distance < 16:  # row_ror
            control = 0x120 + distance
            moved = line(
                f"call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 {bits}, i32 {control}, i32 15, i32 15, i1 1)"
            )
        elif distance == 16:  # swap the 16 lanes: xor-mask 16, and-mask 31
            moved = line(f"call i32 @llvm.amdgcn.ds.swizzle(i32 {bits}, i32 {16 << 10 | 31})")
        else:
            other = line(f"xor i32 {lane}, 32")
            address = line(f"shl i32 {other}, 2")
            moved = line(f"call i32 @llvm.amdgcn.ds.bpermute(i32 {address}, i32 {bits})")
        other_value = line(f"bitcast i32 {moved} to float")
        value = line(operation.format(x=value, y=other_value))
    return value
