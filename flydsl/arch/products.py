"""The products that an architecture is sold as, and what torch says of them.

Sources: AMD's product pages and data sheets, and LLVM's list of processors (AMDGPUUsage). On RDNA, HIP counts the
workgroup processors, of two compute units each, as multiprocessors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flydsl.errors import ArchError, did_you_mean


@dataclass(frozen=True)
class Product:
    """One GPU as a program sees it; of an MI250 one of its two dies. multiprocessors: as HIP counts them.

    memory_gb_per_s: at most, in 10**9 bytes. dies: with compute units (XCDs).
    """

    name: str
    arch: str
    multiprocessors: int
    memory_gib: int
    l2_mib: int
    clock_mhz: int
    memory_gb_per_s: int
    dies: int = 1


PRODUCTS: Mapping[str, Product] = {
    "mi210": Product("AMD Instinct MI210", "gfx90a", 104, 64, 8, 1700, 1638),
    "mi250": Product("AMD Instinct MI250", "gfx90a", 104, 64, 8, 1700, 1638),
    "mi250x": Product("AMD Instinct MI250X", "gfx90a", 110, 64, 8, 1700, 1638),
    "mi300a": Product("AMD Instinct MI300A", "gfx942", 228, 128, 4, 2100, 5300, 6),
    "mi300x": Product("AMD Instinct MI300X", "gfx942", 304, 192, 4, 2100, 5300, 8),
    # The dies of the MI308X are not published: 80 compute units are 4 dies with 20 each, of the MI300X's 38.
    "mi308x": Product("AMD Instinct MI308X", "gfx942", 80, 192, 4, 2100, 5300, 4),
    "mi325x": Product("AMD Instinct MI325X", "gfx942", 304, 256, 4, 2100, 6000, 8),
    "mi350x": Product("AMD Instinct MI350X", "gfx950", 256, 288, 4, 2200, 8000, 8),
    "mi355x": Product("AMD Instinct MI355X", "gfx950", 256, 288, 4, 2400, 8000, 8),
    # Announced with its memory; the rest is not published, and assumed to be that of its predecessor.
    "mi455x": Product("AMD Instinct MI455X", "gfx1250", 256, 432, 4, 2400, 19600),
    # RDNA 3: compute units, memory and L2 as ROCm's "AMD GPU specifications" have them; clock and bandwidth as named.
    "rx7600": Product("AMD Radeon RX 7600", "gfx1102", 16, 8, 2, 2655, 288),  # launch, May 2023; GPU-Z
    "rx7600xt": Product("AMD Radeon RX 7600 XT", "gfx1102", 16, 16, 2, 2755, 288),  # launch, January 2024
    "rx7700xt": Product("AMD Radeon RX 7700 XT", "gfx1101", 27, 12, 4, 2544, 432),  # Tom's Hardware; 192 bits, 18 Gbps
    "rx7800xt": Product("AMD Radeon RX 7800 XT", "gfx1101", 30, 16, 4, 2430, 624),  # the same; 256 bits, 19.5 Gbps
    "rx7900gre": Product("AMD Radeon RX 7900 GRE", "gfx1100", 40, 16, 6, 2245, 576),  # gimilut.com; 256 bits, 18 Gbps
    "rx7900xt": Product("AMD Radeon RX 7900 XT", "gfx1100", 42, 20, 6, 2400, 800),  # hardwaredb.net; 320 bits, 20 Gbps
    "rx7900xtx": Product("AMD Radeon RX 7900 XTX", "gfx1100", 48, 24, 6, 2500, 960),  # AMD, November 2022; guru3d
    # The graphics of processors use the system's memory: with as much of it, and as fast, as they are mostly sold.
    "780m": Product("AMD Radeon 780M", "gfx1103", 6, 16, 2, 2700, 90),  # Ryzen 7 7840U; 128 bits of DDR5-5600
    "860m": Product("AMD Radeon 860M", "gfx1152", 4, 16, 1, 3000, 128),  # fpsbench.com; 128 bits of LPDDR5X-8000
    "890m": Product("AMD Radeon 890M", "gfx1150", 8, 16, 2, 2900, 120),  # fpsbench.com; 128 bits of LPDDR5X-7500
    "8060s": Product("AMD Radeon 8060S", "gfx1151", 20, 96, 2, 2900, 256),  # Ryzen AI Max+ 395; 256 bits, LPDDR5X-8000
    # RDNA 4: the memory's bandwidth is computed, from 20 Gbps (RX 9060: 18) on 256 and 128 bits.
    "rx9060": Product("AMD Radeon RX 9060", "gfx1200", 14, 8, 4, 2990, 288),
    "rx9060xt": Product("AMD Radeon RX 9060 XT", "gfx1200", 16, 16, 4, 3130, 320),
    "rx9070": Product("AMD Radeon RX 9070", "gfx1201", 28, 16, 8, 2520, 640),
    "rx9070xt": Product("AMD Radeon RX 9070 XT", "gfx1201", 32, 16, 8, 2970, 640),
}
"""In small letters and without spaces -> product."""

_OF_ARCH = {"gfx90a": "mi250x", "gfx942": "mi300x", "gfx950": "mi355x", "gfx1200": "rx9060xt", "gfx1201": "rx9070xt",
            "gfx1250": "mi455x", "gfx1100": "rx7900xtx", "gfx1101": "rx7800xt", "gfx1102": "rx7600", "gfx1103": "780m",
            "gfx1150": "890m", "gfx1151": "8060s", "gfx1152": "860m", "rx7900": "rx7900xtx"}  # fmt: skip


def product_of(name: str) -> Product:
    """The product of that name, or the best known one of an architecture.

    Raises ArchError for other names.

    >>> product_of("RX 9070 XT").arch, product_of("gfx950").name
    ('gfx1201', 'AMD Instinct MI355X')
    """
    plain = plain_name(name)
    found = PRODUCTS.get(_OF_ARCH.get(plain, plain))
    if found is None:
        known = [*PRODUCTS, *_OF_ARCH]
        raise ArchError(f"no GPU is called {name!r}", hint=f"{did_you_mean(plain, known)}known: {', '.join(known)}")
    return found


def is_sold(arch: str) -> bool:
    """True if the figures of a product of this architecture are known; of gfx1153 none are.

    >>> is_sold("gfx1152"), is_sold("gfx1153")
    (True, False)
    """
    return arch in _OF_ARCH


def plain_name(name: str) -> str:
    """A product's name as `PRODUCTS` has it.

    >>> plain_name("RX 9070-XT")
    'rx9070xt'
    """
    return name.lower().replace(" ", "").replace("-", "")
