"""The products that an architecture is sold as.

Source: AMD's product pages, and LLVM's list of processors (AMDGPUUsage).
"""

from __future__ import annotations

from collections.abc import Mapping

PRODUCTS: Mapping[str, str] = {
    "mi210": "gfx90a", "mi250": "gfx90a", "mi250x": "gfx90a",
    "mi300a": "gfx942", "mi300x": "gfx942", "mi308x": "gfx942", "mi325x": "gfx942",
    "mi350x": "gfx950", "mi355x": "gfx950",
    "rx9060": "gfx1200", "rx9060xt": "gfx1200", "rx9070": "gfx1201", "rx9070xt": "gfx1201",
}  # fmt: skip
"""Product, in small letters and without spaces -> architecture."""
