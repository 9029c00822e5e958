"""fly-rocdl-cluster-attr: cluster dimensions of a launch as a kernel attribute for the backend (gfx1250).

A kernel's `rocdl.cluster_dims` is also given as the attribute `amdgpu-cluster-dims` of its function in LLVM:

    gpu.module @kernels {
      gpu.func @k() kernel attributes {rocdl.cluster_dims = "2,1,1"} {
        gpu.return
      }
    }

becomes

    gpu.module @kernels {
      gpu.func @k() kernel
          attributes {passthrough = [["amdgpu-cluster-dims", "2,1,1"]], rocdl.cluster_dims = "2,1,1"} {
        gpu.return
      }
    }
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch

name = "fly-rocdl-cluster-attr"
CLUSTER = "rocdl.cluster_dims"
_PASSTHROUGH, _LLVM_NAME = "passthrough", "amdgpu-cluster-dims"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Attach the dimensions to the functions that have them."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.module":
            for function in op.regions[0].blocks[0].operations:
                if CLUSTER in function.operation.attributes:
                    _attach(function.operation)


def _attach(function: ir.Operation) -> None:
    given = function.attributes[CLUSTER]
    sizes = given.value if isinstance(given, ir.StringAttr) else ",".join(map(str, ir.DenseI32ArrayAttr(given)))
    known = list(ir.ArrayAttr(function.attributes[_PASSTHROUGH])) if _PASSTHROUGH in function.attributes else []
    entry = ir.ArrayAttr.get([ir.StringAttr.get(_LLVM_NAME), ir.StringAttr.get(sizes)])
    function.attributes[_PASSTHROUGH] = ir.ArrayAttr.get([*known, entry])
