"""Tensors of the sizes that a launcher was built for: `flydsl.sizes`, whose errors here pass over lines of kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flydsl import sizes

require_rows = partial(sizes.require_rows, package="kernels")
require_pitch = partial(sizes.require_pitch, package="kernels")
require_elements = partial(sizes.require_elements, package="kernels")
require_least: Callable[..., None] = partial(sizes.require_least, package="kernels")
