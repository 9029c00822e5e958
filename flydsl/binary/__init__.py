"""Programs of other compilers: code objects of any origin, launched on CPU tensors and shown like our own.

    module = open_binary("kernel.hsaco")  # with its assembly in kernel.s
    module.add(x, y, 1000, grid=4, block=256)

`compile_hip` and `compile_opencl` make such modules of source text; `flydsl.triton` launches Triton's kernels this way.
"""

from flydsl.binary.clang import compile_hip, compile_opencl
from flydsl.binary.module import BinaryKernel, BinaryLaunch, BinaryModule, capture_binary_launches
from flydsl.binary.opening import open_binary

__all__ = [
    "BinaryKernel", "BinaryLaunch", "BinaryModule", "capture_binary_launches", "compile_hip", "compile_opencl",
    "open_binary",
]  # fmt: skip
