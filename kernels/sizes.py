"""Tensors of the sizes that a launcher was built for: `flydsl.sizes`, whose errors here pass over lines of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flydsl import sizes
from kernels.kernels_common import require_tensors

require_rows = partial(sizes.require_rows, package="kernels")
require_pitch = partial(sizes.require_pitch, package="kernels")
require_elements = partial(sizes.require_elements, package="kernels")


def require_least(tensors: Mapping[str, Any], **wanted: tuple[Any, Any]) -> None:
    """Refuse tensors of other types, or of fewer elements: name -> (its type, or several in a tuple, elements)."""
    for name, (kinds, count) in wanted.items():
        require_tensors(tensors, **{name: kinds})
        require_elements(name, tensors[name], count, or_more=True)
