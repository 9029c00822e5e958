"""Operations that the lanes of a wave, or the threads of a block, do together: `fx.coop`.

    total = fx.coop.warp_reduce(x, fx.ReductionOp.ADD)

    Sum = fx.coop.BlockReduce[fx.Float32, 256]
    storage = fx.SharedAllocator().allocate(Sum.SharedStorage)
    total = Sum.reduce(x, fx.ReductionOp.ADD, storage)

Reductions, scans, loads and stores of tiles, exchanges, sorts, selections, histograms, run-length decoding.

op: a `ReductionOp`, its name, or an associative function of two values, whose operands keep their order unless it has
`commutative = True`. Maximum and minimum leave NaNs out. Values are scalars of up to 64 bits. All lanes of a group, or
threads of a block, take part in a call; groups are `width` neighbouring lanes, a power of two, by default the wave.
Every thread gets the result of a reduction.

Floats are added in an order that depends on the width, the same in every lane.
"""

from __future__ import annotations

from flydsl.expr.coop.block_reductions import (
    BlockReduce,
    BlockReduceAlgorithm,
    BlockScan,
    BlockScanAlgorithm,
    block_reduce,
    vector_reduce,
)
from flydsl.expr.coop.exchange import BlockExchange, BlockExchangeAlgorithm, WarpExchange, WarpExchangeAlgorithm
from flydsl.expr.coop.histogram import BlockHistogram, BlockHistogramAlgorithm
from flydsl.expr.coop.loading import (
    BlockLoad,
    BlockLoadAlgorithm,
    BlockStore,
    BlockStoreAlgorithm,
    WarpLoad,
    WarpLoadAlgorithm,
    WarpStore,
    WarpStoreAlgorithm,
)
from flydsl.expr.coop.operations import combination as combination
from flydsl.expr.coop.operations import warp_size
from flydsl.expr.coop.radix import (
    BlockRadixRank,
    BlockRadixRankAlgorithm,
    BlockRadixSort,
    BlockRadixSortAlgorithm,
)
from flydsl.expr.coop.run_lengths import BlockRunLengthDecode, BlockRunLengthDecodeAlgorithm
from flydsl.expr.coop.selection import BlockTopK, BlockTopKAlgorithm
from flydsl.expr.coop.shifting import (
    BlockAdjacentDifference,
    BlockDiscontinuity,
    BlockShuffle,
    BlockShuffleAlgorithm,
)
from flydsl.expr.coop.shorthands import (
    warp_exclusive_sum,
    warp_head_segmented_sum,
    warp_inclusive_sum,
    warp_max,
    warp_min,
    warp_sum,
    warp_sum_batched,
    warp_sum_batched_to_blocked,
    warp_sum_batched_to_striped,
    warp_tail_segmented_sum,
)
from flydsl.expr.coop.sorting import (
    BlockMergeSort,
    BlockMergeSortAlgorithm,
    WarpBitonicSort,
    WarpMergeSort,
    warp_bitonic_sort,
    warp_merge_sort,
)
from flydsl.expr.coop.warp_reductions import (
    WarpReduce,
    WarpReduceBatched,
    WarpScan,
    warp_broadcast,
    warp_exclusive_scan,
    warp_head_segmented_reduce,
    warp_inclusive_scan,
    warp_reduce,
    warp_reduce_batched,
    warp_reduce_batched_to_blocked,
    warp_reduce_batched_to_striped,
    warp_scan,
    warp_scan_with_aggregate,
    warp_tail_segmented_reduce,
)
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numbers.vector_value import ReductionOp

__all__ = [
    "BlockAdjacentDifference", "BlockDiscontinuity", "BlockExchange", "BlockExchangeAlgorithm", "BlockHistogram",
    "BlockHistogramAlgorithm", "BlockLoad", "BlockLoadAlgorithm", "BlockMergeSort", "BlockMergeSortAlgorithm",
    "BlockRadixRank", "BlockRadixRankAlgorithm", "BlockRadixSort", "BlockRadixSortAlgorithm", "BlockReduce",
    "BlockReduceAlgorithm", "BlockRunLengthDecode", "BlockRunLengthDecodeAlgorithm", "BlockScan", "BlockScanAlgorithm",
    "BlockShuffle", "BlockShuffleAlgorithm", "BlockStore", "BlockStoreAlgorithm", "BlockTopK", "BlockTopKAlgorithm",
    "ReductionOp", "WarpBitonicSort", "WarpExchange", "WarpExchangeAlgorithm", "WarpLoad", "WarpLoadAlgorithm",
    "WarpMergeSort", "WarpReduce", "WarpReduceBatched", "WarpScan", "WarpStore", "WarpStoreAlgorithm", "block_reduce",
    "vector_reduce", "warp_bitonic_sort", "warp_broadcast", "warp_exclusive_scan",
    "warp_exclusive_sum", "warp_head_segmented_reduce", "warp_head_segmented_sum", "warp_inclusive_scan",
    "warp_inclusive_sum", "warp_max", "warp_merge_sort", "warp_min", "warp_reduce", "warp_reduce_batched",
    "warp_reduce_batched_to_blocked", "warp_reduce_batched_to_striped", "warp_scan", "warp_scan_with_aggregate",
    "warp_size", "warp_sum", "warp_sum_batched", "warp_sum_batched_to_blocked", "warp_sum_batched_to_striped",
    "warp_tail_segmented_reduce", "warp_tail_segmented_sum",
]  # fmt: skip

__getattr__ = unknown_name("flydsl.extension.coop", globals())
