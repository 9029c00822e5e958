"""The type of the simulator's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
