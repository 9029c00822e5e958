"""GPUs by the names of products and architectures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def arch_names(names: Iterable[str]) -> list[str]:
    """The architectures of GPUs that are named by product or architecture, each once; "all": those of the simulator.

    Raises ArchError for an unknown name.

    >>> arch_names(["MI300X, gfx950", "rx 9070 xt", "mi325x"])
    ['gfx942', 'gfx950', 'gfx1201']
    """
    return list(dict.fromkeys(arch for name in _separated(names) for arch in _archs_of(name)))


def _separated(names: Iterable[str]) -> Iterator[str]:
    for text in names:
        yield from filter(None, (name.strip() for name in text.split(",")))


def _archs_of(name: str) -> list[str]:
    from flydsl.arch import ARCHS, get_arch
    from flydsl.arch.products import PRODUCTS, plain_name

    plain = plain_name(name)
    if plain == "all":
        return [arch.name for arch in ARCHS]
    return [get_arch(PRODUCTS[plain].arch if plain in PRODUCTS else name).name]
