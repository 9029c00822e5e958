"""A tensor's `ir.Value`, which programs take by `.value`, is as good as the tensor where functions take one."""

from __future__ import annotations

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import buffer_ops
from flydsl.expr.typing import T
from tests.launchers import launcher_of


def test_functions_take_the_values_of_tensors_and_pointers() -> None:
    @flyc.kernel
    def kernel(a: fx.Tensor, out: fx.Tensor):
        a, raw_out = a.value, out.value
        lane = fx.thread_idx.x
        resource = buffer_ops.create_buffer_resource(a, max_size=False)
        x = fx.Float32(buffer_ops.buffer_load(resource, lane, vec_width=1, dtype=T.f32))
        pointer = fx.get_iter(raw_out).value
        address = fx.Int64(fx.ptrtoint(pointer)) - fx.Int64(buffer_ops.extract_base_index(raw_out))
        buffered = fx.rocdl.make_buffer_tensor(a)
        again = fx.Vector.load(T.vec(1, T.f32), a, [lane])[0]
        fx.Vector.from_elements([x + buffered[lane] + again + address.to(fx.Float32)]).store(raw_out, [lane])
        fx.atomic_add(fx.add_offset(pointer, lane).value, fx.Float32(1))

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.arange(64.0), torch.zeros(64)
    launch(a, out)
    assert torch.equal(out, 3 * a + 1)
