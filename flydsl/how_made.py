"""Hints that say how a value of each kind is made, for errors that got a value of another."""

from __future__ import annotations

TENSOR = (
    "a parameter of the kernel is one; fx.make_view(pointer, layout) and fx.make_rmem_tensor(shape, dtype) make one"
)
HOST_TENSOR = "pass a tensor, such as torch.zeros(64)"
GLOBAL_TENSOR = "a tensor parameter of the kernel is one, and a part of it"
LAYOUT = "fx.make_layout(shape, stride) makes one"
VECTOR = "tensor.load() gives one, fx.Vector.filled(4, 0.0, fx.Float32) and fx.Vector.from_elements([x, y]) make one"
NUMBER = "a number of Python or of the device, such as fx.Int32(1), a vector, or a result of an operation"
POINTER = "fx.get_iter(tensor) is a tensor's"
ELEMENT_POINTER = "fx.get_iter(tensor) + i is that of element i"
SHARED_POINTER = (
    "fx.get_dyn_shared(dtype) and fx.SharedAllocator() give one, fx.get_iter(tensor) that of a tensor in LDS"
)
BUFFER = "fx.buffer_ops.create_buffer_resource(tensor) makes one"
COPY_ATOM = "fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32) makes one"
MMA_ATOM = "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)) makes one"
TILED_COPY = "fx.make_tiled_copy(atom, layout_tv, tile) makes one"
RESULT = "omit the result type, or name this one"
