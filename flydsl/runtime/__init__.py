"""Running compiled kernels: the device, and how a launcher reaches it.

`device` chooses by where the tensors are, `host` runs the compiled launcher, for the CPU that `host_target` has for all
hosts, `simulated` and `hip` are the devices.
`device_runtime` has FlyDSL's names for kinds of devices, which are importable from here, too.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = [
    "COMPILE_BACKEND_TO_RUNTIME_KIND",
    "DeviceRuntime",
    "RocmDeviceRuntime",
    "ensure_compile_runtime_compatible",
    "ensure_compile_runtime_pairing_from_env",
    "get_device_runtime",
    "register_compile_runtime_mapping",
    "register_device_runtime",
]


def __getattr__(name: str) -> Any:
    """FlyDSL's names; imported when they are asked for, as few programs do."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("flydsl.runtime.device_runtime"), name)
