"""Read the output of LLVM and LLD: a code object (HSACO) and its assembly listing.

An HSACO is an ELF64 shared object. Three of its parts matter here:

- the note `NT_AMDGPU_METADATA`, a MessagePack map that lists kernels, arguments and register counts,
- the 64-byte kernel descriptor `<kernel>.kd` in `.rodata`, which the command processor reads at dispatch,
- `.text`, the machine code.

How to read this package: `elf` reads the file, `descriptor` a kernel's descriptor, `kernels` the metadata and all of it
together. `listing` reads the assembly text, with `data` for its data directives and `operands` for the operands of an
instruction. `assembler` is clang's, `same_code` compares a listing with a code object.

Source: LLVM, AMDGPUUsage ("Code Object", "Code Object Metadata", "Kernel Descriptor") and AMDHSAKernelDescriptor.h.
"""

from flydsl.hsaco.descriptor import KernelDescriptor, UserSgpr, decode_kernel_descriptor
from flydsl.hsaco.elf import Contents, HsacoError, read_contents, read_symbols
from flydsl.hsaco.kernels import Hsaco, KernelArg, KernelInfo, read_hsaco

__all__ = [
    "Contents", "Hsaco", "HsacoError", "KernelArg", "KernelDescriptor", "KernelInfo", "UserSgpr",
    "decode_kernel_descriptor", "read_contents", "read_hsaco", "read_symbols",
]  # fmt: skip
