"""The atoms and buffer tensors of `fx.rocdl` under the path that FlyDSL programs also use."""

from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.layouts.algebra import cosize
from flydsl.expr.memory.tensors import AddressSpace as TargetAddressSpace
from flydsl.expr.memory.tensors import get_iter, get_layout, make_ptr, make_view
from flydsl.expr.rocdl.buffer_atomic import *  # noqa: F403
from flydsl.expr.rocdl.buffer_atomic import __all__ as _atomic
from flydsl.expr.rocdl.buffer_tensor import *  # noqa: F403
from flydsl.expr.rocdl.buffer_tensor import __all__ as _tensor
from flydsl.expr.rocdl.instruction_types import *  # noqa: F403
from flydsl.expr.rocdl.instruction_types import __all__ as _types
from flydsl.expr.rocdl.matrix_atoms import *  # noqa: F403
from flydsl.expr.rocdl.matrix_atoms import __all__ as _matrix
from flydsl.expr.rocdl.waits import SyncScope, asyncmark, s_waitcnt, wait_asyncmark

__all__ = [
    "SyncScope", "TargetAddressSpace", "asyncmark", "cosize", "get_iter", "get_layout", "make_ptr", "make_view",
    "s_waitcnt", "wait_asyncmark", *_atomic, *_tensor, *_types, *_matrix,
]  # fmt: skip

__getattr__ = unknown_name("flydsl.expr.rocdl.universal", globals())
