"""What a posed GPU does not have is refused by name, at the user's line."""

# mypy: ignore-errors

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest
import torch
from torch.sparse import to_sparse_semi_structured

import flydsl.gpu
from flydsl.errors import DeviceError
from flydsl.gpu import factories


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x"):
        yield


class Unit(torch.Tensor):
    """A class of the program's own."""


def attend():
    from torch.nn.attention.varlen import varlen_attn  # brings torch's compilers

    q, ends = torch.ones(8, 2, 16, device="cuda"), torch.tensor([0, 4, 8], device="cuda", dtype=torch.int32)
    return varlen_attn(q, q, q, ends, ends, 4, 4)


def compress():
    return to_sparse_semi_structured(torch.tensor([0, 0, 1, 1], device="cuda", dtype=torch.float16).tile(128, 32))


def limit_plans():
    torch.backends.cuda.cufft_plan_cache.max_size = 3


def shard():
    from torch.distributed.fsdp import fully_shard  # which few programs need

    fully_shard(torch.nn.Linear(2, 2).cuda())


REFUSED = {
    "NCCL": (
        lambda: torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:1", rank=0, world_size=1),
        'torch.distributed with backend="nccl" is unsupported',
    ),
    "a group of NCCL": (
        lambda: torch.distributed.new_group([0], backend="cpu:gloo,cuda:nccl"),
        'torch.distributed with backend="nccl" is unsupported',
    ),
    "sharded parameters": (shard, "torch.distributed.fsdp.fully_shard is unsupported"),
    "a kernel in CUDA": (lambda: torch.cuda._compile_kernel("", "f"), "torch.cuda._compile_kernel is unsupported"),
    "an operator in CUDA": (
        lambda: torch.cuda.jiterator._create_jit_fn("")(torch.ones(2, device="cuda")),
        "an operator of torch.cuda.jiterator._create_jit_fn is unsupported",
    ),
    "an event of another process": (
        lambda: torch.cuda.Event(interprocess=True).ipc_handle(),
        "torch.cuda.Event for another process is unsupported",
    ),
    "a handle of HIP": (lambda: torch.cuda.Event().cuda_event, "torch.cuda.Event.cuda_event is unsupported"),
    "a drawing of a graph": (
        lambda: torch.cuda.CUDAGraph().debug_dump("graph.dot"),
        "torch.cuda.CUDAGraph.debug_dump is unsupported",
    ),
    "stacks of a profile": (
        lambda: torch.profiler.profile().export_stacks("stacks"),
        "torch.profiler's export of stacks and memory is unsupported",
    ),
    "a lazy module": (lambda: torch.nn.LazyLinear(2).cuda(), "a parameter of a lazy module, which has no shape yet"),
    "a module of torch.jit": (
        lambda: torch.jit.script(torch.nn.Linear(2, 2)).cuda(),
        "a module of torch.jit with parameters is unsupported",
    ),
    "marks for NVIDIA's profiler": (
        lambda: torch.autograd.profiler.emit_nvtx(),
        "torch.autograd.profiler.emit_nvtx is unsupported",
    ),
    "attention below a function of torch": (attend, "aten::_flash_attention_forward: torch has it for GPUs only"),
    "sparsity below a function of torch": (compress, "aten::_cslt_compress: torch has it for GPUs only"),
    "a class": (lambda: torch.ones(2, device="cuda").as_subclass(Unit), "as_subclass(Unit) of a tensor on a posed GPU"),
    "size of plans": (lambda: torch.backends.cuda.cufft_plan_cache.max_size, "torch.backends.cuda.cufft_plan_cache is"),
    "plans of a GPU": (lambda: torch.backends.cuda.cufft_plan_cache[0].size, "torch.backends.cuda.cufft_plan_cache is"),
    "limit of plans": (limit_plans, "torch.backends.cuda.cufft_plan_cache is unsupported"),
    "clearing plans": (
        lambda: torch.backends.cuda.cufft_plan_cache.clear(),
        "torch.backends.cuda.cufft_plan_cache is unsupported",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_at_the_users_line(call, message: str) -> None:
    with pytest.raises(DeviceError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(message)
    assert f"\n  at {__file__}:" in text
    assert "registered at" not in "".join(traceback.format_exception(caught.value))


def test_where_the_host_has_no_memory_the_gpu_has_none(monkeypatch) -> None:
    def empty(*sizes, **options):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes")

    monkeypatch.setattr(factories.torch, "empty_strided", empty)
    with pytest.raises(torch.OutOfMemoryError, match=r"memory of a posed GPU is the host's, which has no more: \[enf"):
        factories._empty_strided((1,), (1,), torch.float32, device=torch.device("cuda"))


def test_a_tensor_is_of_its_own_classes() -> None:
    x = torch.ones(2, device="cuda")
    assert x.as_subclass(torch.Tensor).is_cuda
