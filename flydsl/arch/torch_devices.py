"""The architectures of torch's devices, under FlyDSL's names."""

from __future__ import annotations

from typing import Any

from flydsl.errors import ArgumentError


def get_gcn_arch(device: Any = None) -> str:
    """The architecture of a torch device, by default "cuda", in lower case without its features; "" for none.

    >>> get_gcn_arch("cpu")
    ''
    """
    import torch

    at = torch.device("cuda" if device is None else device)
    if at.type != "cuda" or not torch.cuda.is_available():
        return ""
    return torch.cuda.get_device_properties(at).gcnArchName.lower().split(":")[0]


def is_gfx120x_arch(arch: str | None) -> bool:
    """True if an architecture is of RDNA 4.

    >>> is_gfx120x_arch("gfx1201"), is_gfx120x_arch("gfx1250"), is_gfx120x_arch(None)
    (True, False, False)
    """
    return (arch or "").startswith("gfx120")


def is_gfx120x(device: Any = None) -> bool:
    """True if a torch device, by default "cuda", is of RDNA 4."""
    return is_gfx120x_arch(get_gcn_arch(device))


def require_gfx120x(device: Any = None, *, what: str = "this gfx120x kernel") -> None:
    """Raise ArgumentError, a ValueError, unless a torch device, by default "cuda", is of RDNA 4."""
    if not is_gfx120x(device):
        found = get_gcn_arch(device) or "no GPU"
        hint = "workbench run --gpu rx9070xt poses as one"
        raise ArgumentError(f"{what} must run on RDNA 4 (gfx120x), got {found}", hint=hint)
