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

OTHER_NAMES: dict[str, str] = {
    name: hint
    for hint, names in {
        _BARRIER: "syncthreads __syncthreads sync_threads debug_barrier sync threadfence workgroup_barrier s_barrier",
        _THREAD: "threadIdx thread_index tid get_thread_id local_id thread_position_in_threadgroup",
        _BLOCK: "blockIdx program_id block_index bid group_id workgroup_id cta_id",
        _BLOCK_SIZE: "blockDim block_size num_threads",
        _GRID_SIZE: "gridDim num_programs grid_size",
        _LANE: "lane_id lane_idx laneid lane",
        _WAVE: "warp_id warp_idx warpid wave_id wave_idx",
        _CHOICE: "where ternary cond",
        _CONVERT: "astype cast type_as float half int long bfloat16 item",
        _SHARED: "shared_array shared_memory alloc_shared alloc_smem __shared__ smem",
        _SHUFFLE: "shfl shfl_down shfl_up shfl_xor __shfl_down_sync __shfl_xor_sync shuffle_sync_bfly",
        _LOAD: "load store tl_load tl_store",
        _TILE: "dot matmul mma wmma einsum",
        _ARANGE: "arange iota linspace",
        _REDUCE: "sum mean amax amin prod",
        _ELEMENTS: "numel nelement ndim",
        "(n + 63) // 64 rounds up, as fx.ceil_div(n, 64) does": "cdiv ceildiv divup",
        "1.0 / (1.0 + fx.exp(-x)) is the sigmoid": "sigmoid silu swish",
        "fx.max(x, 0.0) is relu": "relu maximum",
        "fx.min(x, y) is the smaller one": "minimum",
        "fx.atomic_add(pointer, value) adds": "atomicAdd atomic_addf",
        "fx.math has the functions of floats": "softmax tanhf expf sqrtf fabs abs pow",
        "fx.make_rmem_tensor(4, fx.Float32) is a tensor in registers": "empty zeros ones local_array",
        "a layout in another order is the transpose: fx.select(layout, [1, 0])": "T transpose permute",
        "fx.make_view(fx.get_iter(tensor), layout) gives a tensor another layout": "reshape view flatten contiguous",
    }.items()
    for name in names.split()
}
