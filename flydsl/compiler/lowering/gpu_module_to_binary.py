"""gpu-module-to-binary: the GPU module's body becomes machine code, and a `gpu.binary` takes the module's place.

The MLIR build has no AMDGPU backend, so the body is translated to LLVM IR and handed to `flydsl.codegen`. This is the
external-LLVM mode of the architecture guide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.passmanager import PassManager

from flydsl.codegen import CodeObject, Kernel, start_llvm_ir
from flydsl.codegen.bitcode import linked
from flydsl.compiler.debugging.missing_waits import warn_of_missing_waits
from flydsl.compiler.lowering.compilation import Compilation
from flydsl.compiler.lowering.inline_assembly import check_inline_assembly
from flydsl.compiler.lowering.translation import to_llvm_ir
from flydsl.errors import CompileError

# How a byte is written in a string of MLIR's, unless it is there as it is.
_ESCAPES = {byte: f"\\{byte:02X}" for byte in range(256) if not 32 <= byte < 127 or byte in b'"\\'}
_DEBUG_SCOPES = "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}"


def gpu_module_to_binary(compilation: Compilation) -> None:
    """Compile `gpu.module @kernels`, unless that is done, and replace it by the result."""
    gpu_module = gpu_module_of(compilation.module)
    if compilation.code is None:
        compilation.code = _compile(gpu_module.operation, compilation)
    binary = _binary(compilation.code)
    with ir.InsertionPoint(gpu_module), gpu_module.location:
        for op in binary.body.operations:
            op.operation.clone()
    gpu_module.operation.erase()


def gpu_module_of(module: ir.Operation) -> ir.OpView:
    """The `gpu.module` with the kernels. Raises CompileError if there is none."""
    top_level = module.regions[0].blocks[0].operations
    gpu_module = next((op for op in top_level if op.operation.name == "gpu.module"), None)
    if gpu_module is None:
        raise CompileError("the module has no gpu.module to compile")
    return gpu_module


def device_llvm_ir(
    gpu_module: ir.Operation, libraries: Sequence[bytes], prepare: Callable[[ir.Module], None] = lambda device: None
) -> str:
    """The LLVM IR of a `gpu.module` in the LLVM dialect. prepare: is given the module that is translated."""
    with ir.Location.unknown():
        device = ir.Module.create()
        for op in gpu_module.regions[0].blocks[0].operations:
            device.body.append(op.operation.clone())
        prepare(device)
        # The listing needs source lines, whether or not the HSACO keeps them.
        PassManager.parse(f"builtin.module({_DEBUG_SCOPES})").run(device.operation)
    check_inline_assembly(device)
    llvm_ir = to_llvm_ir(device)
    return linked(llvm_ir, libraries) if libraries else llvm_ir


def _compile(gpu_module: ir.Operation, compilation: Compilation) -> CodeObject:
    llvm_ir = device_llvm_ir(gpu_module, compilation.libraries)
    code = start_llvm_ir(
        llvm_ir,
        compilation.arch,
        opt_level=compilation.opt_level,
        debug_info=compilation.debug_info,
        llvm_options=compilation.llvm_options,
    )
    try:
        compilation.meanwhile()
        result = code.result()
    finally:
        code.end()
    warn_of_missing_waits(result)
    return result


def _binary(code: CodeObject) -> ir.Module:
    """`gpu.binary @kernels`, parsed from text: building the attribute from parts can abort on a bad one."""
    escaped = code.hsaco.decode("latin-1").translate(_ESCAPES)
    table = ", ".join(_metadata(kernel) for kernel in code.kernels)
    kernels = f"kernels = <[{table}]>, " if table else ""
    return ir.Module.parse(
        f'gpu.binary @kernels [#gpu.object<#rocdl.target<chip = "{code.arch.name}">, {kernels}bin = "{escaped}">]'
    )


def _metadata(kernel: Kernel) -> str:
    """The facts in MLIR's own binaries about a kernel, by the names that AMD's metadata has."""
    found = kernel.resources
    numbers = {
        "agpr_count": found.agprs,
        "group_segment_fixed_size": found.lds_bytes,
        "max_flat_workgroup_size": kernel.info.max_workgroup_size,
        "private_segment_fixed_size": found.scratch_bytes,
        "sgpr_count": found.sgprs,
        "sgpr_spill_count": found.sgpr_spills,
        "vgpr_count": found.vgprs,
        "vgpr_spill_count": found.vgpr_spills,
        "wavefront_size": kernel.info.wave_size,
    }
    text = ", ".join(f"{name} = {number} : i64" for name, number in numbers.items() if number is not None)
    return f'#gpu.kernel_metadata<"{kernel.name}", !llvm.func<void ()>, metadata = {{{text}}}>'
