"""`fx`: the functions and types that a kernel body uses.

import flydsl.expr as fx
"""

# ruff: noqa: F401, F403 - this module is the namespace `fx`
from flydsl.expr import (
    arith,
    buffer_ops,
    coop,
    derived,
    extern,
    gpu,
    llvm,
    math,
    numeric,
    primitive,
    random,
    rocdl,
    typing,
    utils,
    vector,
)
from flydsl.expr.arith import (
    andi,
    cmpf,
    cmpi,
    constant,
    constant_vector,
    index,
    index_cast,
    int_to_fp,
    maximumf,
    maxnumf,
    minimumf,
    minnumf,
    shli,
    shrui,
    sitofp,
    trunc_f,
    unwrap,
    xori,
)
from flydsl.expr.coop import (
    BlockReduce,
    BlockScan,
    ReductionOp,
    WarpReduce,
    WarpScan,
    block_reduce,
    vector_reduce,
    warp_broadcast,
    warp_exclusive_scan,
    warp_inclusive_scan,
    warp_reduce,
    warp_scan,
    warp_scan_with_aggregate,
    warp_size,
)
from flydsl.expr.derived import (
    gather,
    make_layout_tv,
    make_rmem_tensor,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    scatter,
)
from flydsl.expr.flydsl_names import as_submodules as _as_submodules
from flydsl.expr.flydsl_names import enum, mem_ops, meta, tdm_ops
from flydsl.expr.flydsl_names.names import public_names as _public_names
from flydsl.expr.flydsl_names.names import unknown_name as _unknown_name
from flydsl.expr.gpu import (
    Tuple3D,
    barrier,
    block_dim,
    block_id,
    block_idx,
    grid_dim,
    known_block_size,
    lds_space,
    num_warp_threads,
    shuffle_down,
    shuffle_idx,
    shuffle_up,
    shuffle_xor,
    smem_space,
    thread_id,
    thread_idx,
)
from flydsl.expr.llvm import (
    AtomicOrdering,
    SyncScope,
    atomic_cas,
    generic_load,
    generic_store,
    memory_fence,
    to_llvm_ptr,
)
from flydsl.expr.math import *
from flydsl.expr.memory.global_load import global_load
from flydsl.expr.memory.shared_allocator import SharedAllocator
from flydsl.expr.memory.storage import Arena, Storage
from flydsl.expr.numbers import value_methods
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.fastmath_flags import FastMathFlags, fastmath
from flydsl.expr.numbers.operators import ceildiv, max, min
from flydsl.expr.numbers.raw_values import as_dsl_value, as_ir_value
from flydsl.expr.numbers.rounding_mode import RoundingMode
from flydsl.expr.numbers.vector_alias import VectorAlias
from flydsl.expr.numbers.vector_alias import vector_names as _vector_names
from flydsl.expr.numeric import Integer, NumericMeta, as_numeric
from flydsl.expr.primitive import *
from flydsl.expr.rocdl.lane import lane_id
from flydsl.expr.struct import (
    Align,
    Array,
    Empty,
    Struct,
    Union,
    is_composite_type,
    is_specializable_struct_type,
    is_struct_type,
    struct,
    union,
)
from flydsl.expr.typing import *

_as_submodules(__name__, enum, mem_ops, meta, tdm_ops)

_INSTRUCTION_TYPES = ("CopyOpUniversalAtomicType", "CopyOpUniversalCopyType", "MmaOpUniversalFMAType")
__getattr__ = _vector_names(
    _unknown_name(__name__, globals(), dict.fromkeys(_INSTRUCTION_TYPES, "flydsl.expr.rocdl.instruction_types"))
)

# The modules that programs use by name; the others are where the names of this one come from.
_MODULES = {
    "arith", "buffer_ops", "coop", "extern", "gpu", "llvm", "math", "random", "rocdl", "tdm_ops", "utils", "vector",
}  # fmt: skip
_OF_PYTHON = {"max", "min", "random", "range"}

# What `from flydsl.expr import *` brings: as FlyDSL's, it leaves Python's own functions and `random` alone.
__all__ = [name for name in [*_public_names(globals(), _MODULES), *_INSTRUCTION_TYPES] if name not in _OF_PYTHON]


def __dir__() -> list[str]:
    return _public_names(globals(), _MODULES)
