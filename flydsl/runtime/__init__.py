"""Running compiled kernels: the device, and how a launcher reaches it.

`device` chooses by where the tensors are, `host` runs the compiled launcher, for the CPU that `host_target` has for all
hosts, `simulated` and `hip` are the devices.
`device_runtime` has FlyDSL's names for kinds of devices, which are importable from here, too.
"""

from __future__ import annotations

from flydsl.system.lazy_names import lazy_names

_NAMES = """
    COMPILE_BACKEND_TO_RUNTIME_KIND DeviceRuntime RocmDeviceRuntime ensure_compile_runtime_compatible
    ensure_compile_runtime_pairing_from_env get_device_runtime register_compile_runtime_mapping
    register_device_runtime
"""
__getattr__ = lazy_names(__name__, {"flydsl.runtime.device_runtime": _NAMES})  # few programs ask for them
