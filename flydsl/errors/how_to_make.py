"""Hints that say how to make a value of each kind, for errors that got a value of another."""

from __future__ import annotations

TENSOR = "pass a parameter of the kernel, or make one: fx.make_view(pointer, layout), fx.make_rmem_tensor(shape, dtype)"
HOST_TENSOR = "pass a tensor, such as torch.zeros(64)"
GLOBAL_TENSOR = "pass a tensor parameter of the kernel, or a part of it"
LAYOUT = "make one with fx.make_layout(shape, stride)"
VECTOR = "make one with tensor.load(), fx.Vector.filled(4, 0.0, fx.Float32) or fx.Vector.from_elements([x, y])"
NUMBER = "pass a number of Python or of the device, such as fx.Int32(1), a vector, or a result of an operation"
POINTER = "take a tensor's with fx.get_iter(tensor)"
ELEMENT_POINTER = "take that of element i with fx.get_iter(tensor) + i"
SHARED_POINTER = (
    "take one from fx.get_dyn_shared(dtype), fx.SharedAllocator(), or fx.get_iter(tensor) of a tensor in LDS"
)
BUFFER = "make one with fx.buffer_ops.create_buffer_resource(tensor)"
COPY_ATOM = "make one with fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)"
MMA_ATOM = "make one with fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32))"
TILED_COPY = "make one with fx.make_tiled_copy(atom, layout_tv, tile)"
RESULT = "omit the result type, or name this one"
