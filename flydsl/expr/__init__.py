"""`fx`: what a kernel body calls.

import flydsl.expr as fx
"""

# ruff: noqa: F401, F403 - this module is the namespace `fx`
from flydsl.expr import arith, derived, gpu, numeric, primitive, typing, vector
from flydsl.expr.derived import make_rmem_tensor
from flydsl.expr.gpu import barrier, block_dim, block_id, block_idx, grid_dim, thread_id, thread_idx
from flydsl.expr.numeric import ArithValue
from flydsl.expr.primitive import *
from flydsl.expr.typing import *
