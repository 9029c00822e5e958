"""Names from other kernel languages, and the names to use here instead."""

from __future__ import annotations

_BARRIER = "fx.barrier() waits for the threads of a workgroup"
_THREAD = "fx.thread_idx.x is the thread's index"
_BLOCK = "fx.block_idx.x is the workgroup's index"
_BLOCK_SIZE = "fx.block_dim.x is the size of a workgroup"
_GRID_SIZE = "fx.grid_dim.x is the number of workgroups"
_LANE = "fx.thread_idx.x % 64 is the lane of a wave of 64, and fx.rocdl.lane_id() the lane of any"
_WAVE = "fx.thread_idx.x // 64 is the wave of a block with one dimension, and fx.rocdl.wave_id() that of any"
_CHOICE = "`a if condition else b` chooses between values"
_CONVERT = "value.to(fx.Float32) converts"
_SHARED = "fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]) is shared memory"
_SHUFFLE = "value.shuffle_xor(1, 64), shuffle_up and shuffle_down read other lanes"
_LOAD = "tensor[i] reads an element, and tensor[i] = value writes one; fx.copy moves tiles"
_TILE = "fx.gemm(tiled_mma, d, a, b, c) multiplies fragments"
_ARANGE = "a kernel says what one thread does: its index is fx.thread_idx.x"
_REDUCE = "a loop over a tensor's elements, or fragment.load().reduce(...), adds them up"
_ELEMENTS = "tensor.shape has the extents of a tensor, fx.size(tensor.shape) their product"
_GLOBAL_ID = "fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x numbers the threads of the grid"
_OF_WAVE = "fx.warp_reduce(value, fx.ReductionOp.ADD) combines the values of a wave's lanes"
_OF_BLOCK = "fx.coop.BlockReduce and fx.coop.BlockScan work with all threads of a block"
_SCAN = "fx.warp_inclusive_scan(value, fx.ReductionOp.ADD) scans a wave, fx.coop.BlockScan a block"
_TO_BLOCK = "one thread writes a value to shared memory, and all read it after fx.barrier()"
_UNROLL = "range_constexpr(n) unrolls a loop, and range(n) is a loop on the device"
_FENCE = 'fx.barrier() orders the accesses of a workgroup, fx.memory_fence(syncscope="agent") those of more'
_IN_STEP = "the lanes of a wave run in step; fx.barrier() waits for the waves of a workgroup"
_TO_LDS = "fx.copy moves tiles into shared memory, through registers; fx.barrier() then waits for all of them"
_PARTS = "fx.zipped_divide(tensor, fx.make_tile(8, 8))[None, i] is a tile; thr_copy.partition_S(tile) a thread's part"
_MODULE = "fx is the language, and its names are in it: fx.make_layout, fx.copy, fx.gemm"
_PRINT = 'fx.printf("{}", x) prints on the device; print runs while tracing'
_ASSERT = "`assert` checks what is known at compile time; the device cannot stop, so write a flag to a tensor"
_RANDOM = "fx.random.rand(seed, offset) is a number from 0 to 1; fx.random has randn and randint, too"
_DYNAMIC_SHARED = "fx.get_dyn_shared(fx.Float32) is the memory that launch(..., smem=bytes) gives"
_ON_HOST = "the launcher says it: kernel(...).launch(grid=..., block=...)"
_EIGHT_BITS = "fx.Float8E4M3FNUZ is a type of CDNA 3, fx.Float8E4M3FN of CDNA 4, and fx.Float8E5M2 has the wider range"
_LOGIC = "`a and b`, `a or b` and `not a` work on runtime values"
_CAS = "fx.atomic_cas(pointer, expected, value) exchanges where memory holds what is expected"
_VIEW = "fx.make_view(pointer, layout) makes a tensor, fx.make_rmem_tensor(4, fx.Float32) one in registers"
_ANY_INDEX = "a tensor is indexed by any runtime index: tensor[index]"


def _of_type(name: str) -> str:
    return f"fx.{name} is the type, and value.to(fx.{name}) converts"


OTHER_NAMES: dict[str, str] = {
    name: hint
    for hint, names in {
        _BARRIER: "syncthreads __syncthreads sync_threads debug_barrier sync workgroup_barrier s_barrier barrier_sync",
        _IN_STEP: "syncwarp __syncwarp sync_warp",
        _FENCE: "fence mem_fence threadfence __threadfence __threadfence_block membar",
        _THREAD: "threadIdx thread_index tid get_thread_id get_local_id local_id thread_position_in_threadgroup "
        "thread_id_x thread_idx_x",
        _BLOCK: "blockIdx program_id block_index bid group_id get_group_id workgroup_id cta_id block_id_x block_idx_x",
        _BLOCK_SIZE: "blockDim block_size num_threads get_local_size",
        _GRID_SIZE: "gridDim num_programs grid_size get_num_groups",
        _GLOBAL_ID: "get_global_id global_id global_idx global_thread_id",
        _LANE: "lane_id lane_idx laneid lane",
        _WAVE: "warp_id warp_idx warpid wave_id wave_idx",
        "fx.warp_size() is the number of lanes of a wave": "warpSize WARP_SIZE wave_size WAVE_SIZE wavefront_size",
        _CHOICE: "where ternary cond",
        _CONVERT: "astype cast type_as float long item",
        _of_type("Float32"): "f32 fp32 float32",
        _of_type("Float16"): "f16 fp16 float16 half",
        _of_type("BFloat16"): "bf16 bfloat16",
        _of_type("Float64"): "f64 fp64 float64 double",
        _of_type("Int32"): "i32 s32 int32 int",
        _of_type("Int64"): "i64 s64 int64",
        _of_type("Int16"): "i16 s16 int16",
        _of_type("Int8"): "i8 s8 int8 char",
        _of_type("Uint32"): "u32 uint32 unsigned",
        _of_type("Uint8"): "u8 uint8",
        _of_type("Boolean"): "i1 bool bool_ Bool int1",
        _EIGHT_BITS: "Float8 float8 fp8 f8 float8_e4m3fn float8e4nv",
        "value.bitcast(fx.Int32) gives the same bits as another type": "view_as reinterpret_cast __float_as_int",
        _SHARED: "shared shared_array shared_memory alloc_shared alloc_smem __shared__ smem make_smem_tensor "
        "allocate_tensor",
        _DYNAMIC_SHARED: "extern_shared dyn_smem dynamic_shared get_dynamic_shared_memory",
        _SHUFFLE: "shfl shfl_down shfl_up shfl_xor __shfl __shfl_xor __shfl_up __shfl_down __shfl_sync "
        "__shfl_down_sync __shfl_up_sync __shfl_xor_sync shuffle_sync_bfly shuffle_sync warp_shuffle",
        _LOAD: "load store tl_load tl_store ldg __ldg",
        _ANY_INDEX: "gather_nd take_along_axis index_select",
        _TILE: "dot matmul mma wmma einsum tl_dot",
        _ARANGE: "arange iota linspace meshgrid",
        _REDUCE: "sum mean amax amin prod",
        _OF_WAVE: "warp_sum warp_max warp_reduce_sum warp_reduce_max wave_reduce simd_sum reduce reduce_sum",
        _OF_BLOCK: "block_reduce block_sum block_reduce_sum blockReduceSum block_scan",
        _TO_BLOCK: "block_broadcast broadcast_block BlockBroadcast BlockShuffle",
        _SCAN: "cumsum scan associative_scan inclusive_scan prefix_sum warp_prefix_sum",
        _ELEMENTS: "numel nelement ndim size",
        _UNROLL: "unroll static_range range_static range_dynamic fori_loop for_range serial grid",
        _LOGIC: "any all logical_and logical_or logical_not",
        _PARTS: "local_tile local_partition thread_partition",
        _TO_LDS: "cp_async cp_async_wait cp_async_commit tma_load async_copy_global_to_shared memcpy autovec_copy "
        "basic_copy",
        _MODULE: "cute cutlass tl triton cuda hip arch",
        _PRINT: "print device_print static_print debug_print",
        _ASSERT: "assert_ device_assert static_assert trap",
        _RANDOM: "rand randn random randint philox",
        _ON_HOST: "num_warps num_stages launch_bounds __launch_bounds__",
        _CAS: "atomicCAS atomic_compare_exchange",
        _VIEW: "make_tensor make_gmem_tensor make_tensor_ptr make_block_ptr Tensor1D",
        "fx.make_fragment_like(tensor) is a register tensor of its shape": "make_fragment make_tensor_like",
        "(n + 63) // 64 rounds up, as fx.ceil_div(n, 64) does": "cdiv divup",
        "1.0 / (1.0 + fx.exp(-x)) is the sigmoid": "sigmoid silu swish",
        "0.5 * x * (1.0 + fx.erf(x * 0.70710678)) is gelu": "gelu",
        "fx.max(x, 0.0) is relu": "relu",
        "fx.max(x, y) is the larger one": "maximum fmaxf fmax",
        "fx.min(x, y) is the smaller one": "minimum fminf fmin",
        "fx.min(fx.max(x, low), high) limits a number": "clamp clip",
        "a + (b - a) * t interpolates": "lerp mix",
        'float("inf") and float("nan") are numbers of Python, which operators take': "inf nan INFINITY NAN infinity",
        "Python's math.pi is a number that operators take": "pi PI M_PI",
        "fx.atomic_add(pointer, value) adds": "atomicAdd atomic_addf atomicSub",
        "fx.atomic_max(pointer, value) and fx.atomic_min(pointer, value)": "atomicMax atomicMin",
        "fx.atomic_xchg(pointer, value) exchanges": "atomicExch atomic_exchange",
        "fx.ctpop(x) counts the bits that are set": "popcount popc __popc bit_count",
        "fx.ctlz(x) counts leading zeros, fx.cttz(x) trailing ones": "clz __clz ffs __ffs",
        "fx.rocdl.ballot(fx.Int64, condition) has a bit per lane": "ballot __ballot_sync __ballot vote warp_vote",
        "fx.warp_broadcast(value, lane) is one lane's value, for all of a wave": "broadcast readlane read_lane",
        "fx.fma(a, b, c) is a * b + c, rounded once": "fmaf mad multiply_add",
        "fx.math has the functions of floats": "softmax tanhf expf sqrtf logf sinf cosf __expf",
        "x ** n is a power; fx.powf, fx.fpowi and fx.ipowi by name": "pow power",
        "abs(x) is the magnitude; fx.absf of floats and fx.absi of integers by name": "abs fabs fabsf",
        "fx.absf(x - y) < 1e-5 compares": "isclose allclose",
        "fx.make_rmem_tensor(4, fx.Float32) is a tensor in registers": "empty zeros ones local_array zeros_tensor",
        "from flydsl._mlir.dialects import llvm: llvm.inline_asm(...)": "inline_asm asm inline_assembly",
        "a layout in another order is the transpose: fx.select(layout, [1, 0])": "T transpose permute trans",
        "fx.make_view(fx.get_iter(tensor), layout) gives a tensor another layout": "reshape view flatten contiguous",
    }.items()
    for name in names.split()
}
