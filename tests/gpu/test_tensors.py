"""Tensors on "cuda" where there is no GPU: what programs do with them is what torch does."""

# mypy: ignore-errors

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Iterator

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import flydsl.gpu
from flydsl.errors import DeviceError


@pytest.fixture(autouse=True)
def posing() -> Iterator[None]:
    with flydsl.gpu.pose("mi300x", count=2):
        yield


FACTORIES = {
    "ones": lambda **o: torch.ones(2, 3, **o),
    "randn": lambda **o: torch.randn(2, 3, **o),
    "empty": lambda **o: torch.empty(2, 3, **o).fill_(1),
    "full": lambda **o: torch.full((2, 3), 1.0, **o),
    "arange": lambda **o: torch.arange(6, **o),
    "linspace": lambda **o: torch.linspace(0, 1, 6, **o),
    "eye": lambda **o: torch.eye(3, **o),
    "randint": lambda **o: torch.randint(0, 5, (4,), **o),
    "randperm": lambda **o: torch.randperm(5, **o),
    "tensor": lambda **o: torch.tensor([1.0, 2.0], **o),
    "as_tensor": lambda **o: torch.as_tensor([1.0, 2.0], **o),
    "zeros_like": lambda **o: torch.zeros_like(torch.ones(3), **o),
    "asarray": lambda **o: torch.asarray([1.0, 2.0], **o),
    "tril_indices": lambda **o: torch.tril_indices(3, 3, **o),
    "new_ones": lambda **o: torch.ones(3).new_ones(2, **o),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_factories(make) -> None:
    torch.manual_seed(0)
    on_host = make()
    torch.manual_seed(0)
    on_gpu = make(device="cuda")
    assert (str(on_gpu.device), on_gpu.is_cuda, on_gpu.is_cpu, on_gpu.get_device()) == ("cuda:0", True, False, 0)
    assert torch.equal(on_gpu.cpu(), on_host)
    assert str(make(device="cuda:1").device) == "cuda:1"


def test_from_one_device_to_another_and_back() -> None:
    host = torch.randn(4, 5)
    for there in (host.cuda(), host.to("cuda"), host.to(device="cuda:0"), host.to(torch.ones(1, device="cuda"))):
        assert there.device == torch.device("cuda", 0)
        assert there.to("cuda") is there
        assert torch.equal(there.cpu(), host)
        assert type(there.to("cpu")) is torch.Tensor
    assert host.to("cuda", torch.float16).dtype is torch.float16
    assert str(host.cuda(1).device) == str(host.cuda().to("cuda:1").device) == "cuda:1"
    assert host.cuda().half().device.type == "cuda"
    assert torch.equal(torch.zeros(4, 5).copy_(host.cuda()), host)
    assert torch.equal(torch.zeros(4, 5, device="cuda").copy_(host).cpu(), host)


def test_pinned_memory() -> None:
    host = torch.ones(3)
    assert host.pin_memory().is_pinned()
    assert not host.is_pinned()
    assert host.pin_memory().to("cuda", non_blocking=True).is_cuda


def test_factories_of_pinned_memory_and_of_a_numbered_gpu() -> None:
    pinned = torch.empty(4, 4, pin_memory=True)
    assert pinned.is_pinned()
    assert pinned[0].is_pinned()
    assert not pinned.clone().is_pinned()
    assert [str(made.device) for made in (torch.ones(2, device=1), torch.tensor([1], device=0))] == ["cuda:1", "cuda:0"]
    dataset = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = [
        batch.to("cuda", non_blocking=True) for (batch,) in torch.utils.data.DataLoader(dataset, 4, pin_memory=True)
    ]
    assert torch.cat(batches).tolist() == [*range(8)]


def test_parameters() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, device="cuda"))
    written = io.BytesIO()
    torch.save(parameter, written)
    written.seek(0)
    pickled = pickle.loads(pickle.dumps(parameter))
    for other in (parameter, copy.deepcopy(parameter), pickled, torch.load(written, weights_only=True)):
        assert isinstance(other, torch.nn.Parameter)
        assert (str(other.device), other.requires_grad, other.tolist()) == ("cuda:0", True, [1.0, 1.0])
    assert repr(parameter).startswith("Parameter containing:\ntensor([1., 1.], device='cuda:0'")
    assert len([*copy.deepcopy(torch.nn.Linear(2, 3, device="cuda")).parameters()]) == 2


def test_attributes_go_with_copies() -> None:
    x = torch.ones(2, device="cuda:1")
    x.is_shuffled = True
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (other.is_shuffled, str(other.device)) == (True, "cuda:1")


def test_the_types_of_old_programs() -> None:
    x = torch.cuda.HalfTensor([1, 2])
    assert (x.dtype, x.is_cuda) == (torch.float16, True)
    assert isinstance(x, torch.cuda.HalfTensor)
    assert not isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.HalfTensor)


def test_torch_func() -> None:
    x = torch.ones(3, device="cuda")
    assert torch.func.jvp(lambda v: v**2, (x,), (x,))[1].tolist() == [2.0] * 3
    assert torch.vmap(torch.func.grad(lambda v: (v**3).sum()))(x[:, None]).is_cuda


def test_jacobians() -> None:
    x = torch.randn(3, device="cuda")
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        found = jacobian(torch.sin)(x)
        assert found.is_cuda
        assert torch.allclose(found, x.cos().diag())


def test_models_side_by_side() -> None:
    models = [torch.nn.Linear(3, 2).cuda() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    base, x = copy.deepcopy(models[0]).to("meta"), torch.randn(4, 3, device="cuda")

    def call(parameters, buffers) -> torch.Tensor:
        return torch.func.functional_call(base, (parameters, buffers), (x,))

    found = torch.vmap(call)(parameters, buffers)
    assert all(torch.allclose(one, model(x), atol=1e-6) for one, model in zip(found, models, strict=True))


def test_default_devices() -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).is_cuda
        assert torch.tensor([1]).is_cuda
        assert not torch.ones(2, device="cpu").is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.nn.Linear(2, 2).weight.is_cuda


def test_views_share_memory() -> None:
    x = torch.arange(12, device="cuda").view(3, 4)
    x[1].zero_()
    assert x.is_cuda
    assert x.cpu().sum() == 66 - 22
    assert x[2].data_ptr() == x.data_ptr() + 8 * 8


def test_several_devices_in_one_operation() -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.* cuda:0 and cpu!"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError, match=r"at least two devices, cuda:0 and cuda:1!"):
        torch.cat([x, x.to("cuda:1")])
    assert (x + torch.tensor(2.0)).is_cuda
    assert x[torch.tensor([0, 2])].is_cuda
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy"):
        x.numpy()


def test_gradients_go_where_their_tensors_are() -> None:
    on_gpu = torch.ones(3, device="cuda", requires_grad=True)
    (on_gpu.cpu() * 2).sum().backward()
    assert on_gpu.grad.is_cuda
    on_host = torch.ones(3, requires_grad=True)
    (on_host.cuda() * 2).sum().backward()
    assert not on_host.grad.is_cuda
    assert torch.equal(on_gpu.grad.cpu(), on_host.grad)


def test_a_model_trains_as_on_the_host() -> None:
    def trained(device: str) -> torch.Tensor:
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1)
        )
        optimizer = torch.optim.AdamW(model.parameters())  # before the model moves
        model.to(device)
        for _ in range(3):
            loss = model(torch.ones(2, 4, device=device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        assert all(isinstance(p, torch.nn.Parameter) and p.device.type == device for p in model.parameters())
        assert {value.device.type for value in model.state_dict().values()} == {device}
        return model[0].weight.detach().cpu()

    assert torch.equal(trained("cuda"), trained("cpu"))


def test_modules_of_other_kinds() -> None:
    assert torch.nn.LSTM(3, 4).cuda()(torch.randn(2, 1, 3, device="cuda"))[0].is_cuda
    layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).cuda()
    assert layer(torch.randn(2, 3, 8, device="cuda")).is_cuda
    assert torch.nn.Conv2d(1, 2, 3).cuda()(torch.randn(1, 1, 5, 5, device="cuda")).is_cuda
    assert torch.nn.BatchNorm1d(3).cuda()(torch.randn(4, 3, device="cuda")).is_cuda


def test_a_model_takes_weights_of_the_host_and_goes_back() -> None:
    model, other = torch.nn.Linear(2, 3).cuda(), torch.nn.Linear(2, 3)
    model.load_state_dict(other.state_dict())
    assert model.weight.is_cuda
    assert torch.equal(model.weight.cpu(), other.weight)
    assert not model.cpu().weight.is_cuda
    assert model.to("cuda", torch.bfloat16).bias.dtype is torch.bfloat16


def test_copies_and_files() -> None:
    x = torch.randn(3, device="cuda:1", requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert torch.equal(other, x)
        assert (other.device, other.requires_grad) == (x.device, True)
    file = io.BytesIO()
    torch.save({"x": x.detach(), "y": [torch.ones(2)]}, file)

    def read(**options):
        file.seek(0)
        return torch.load(file, **options)

    assert str(read()["x"].device) == "cuda:1"
    assert not read()["y"][0].is_cuda
    assert not read(map_location="cpu")["x"].is_cuda
    assert read(map_location="cuda")["y"][0].is_cuda


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.combinations(x[0]),
        lambda x: torch.quantile(x, 0.5, dim=0),
        lambda x: x.softmax(0, dtype=torch.float64),
        lambda x: torch.nn.functional.pad(x[None], (1, 1), mode="circular"),
        lambda x: torch.linalg.matrix_rank(x),
        lambda x: torch.stack(torch.meshgrid(x[0], x[0], indexing="ij")),
        lambda x: torch.sort(x).values,
        lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
        lambda x: torch.nn.functional.cross_entropy(x, torch.arange(4, device=x.device)),
    ],
)
def test_what_torch_composes_of_others_stays_on_the_gpu(call) -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(3))
    found = call(x.cuda())
    assert found.is_cuda
    assert torch.equal(found.cpu(), call(x))


def test_a_function_of_ones_own_has_gradients_on_the_gpu() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            assert gradient.is_cuda
            assert ctx.saved_tensors[0].is_cuda
            return 2 * gradient

    x = torch.ones(3, device="cuda", requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    assert x.grad.is_cuda


def test_generators() -> None:
    generator = torch.Generator(device="cuda").manual_seed(5)
    assert generator.device.type == "cuda"
    first = torch.randn(3, device="cuda", generator=generator)
    assert torch.equal(first, torch.randn(3, device="cuda", generator=generator.manual_seed(5)))


def test_threads_have_the_gpu() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append((torch.ones(2, device="cuda") * 2).device.type))
    thread.start()
    thread.join()
    assert found == ["cuda"]


def test_each_thread_has_a_gpu_and_a_stream_of_its_own() -> None:
    found = []

    def work() -> None:
        with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream()):
            found.append((torch.cuda.current_device(), str(torch.ones(1, device="cuda").device)))
            ready.set()
            checked.wait(10)

    ready, checked = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(10)
    here = torch.cuda.current_device(), torch.cuda.current_stream() == torch.cuda.default_stream()
    checked.set()
    thread.join()
    assert (found, here) == ([(1, "cuda:1")], (0, True))


def double(tensor: torch.Tensor, queue) -> None:
    """What the processes of the next test do."""
    tensor.mul_(2)
    queue.put((torch.cuda.get_device_name(), str(tensor.device), tensor.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_have_the_gpu_and_its_memory(method: str) -> None:
    context = torch.multiprocessing.get_context(method)
    x, queue = torch.ones(4, device="cuda:1"), context.Queue()
    assert x.untyped_storage().is_cuda
    process = context.Process(target=double, args=(x, queue))
    process.start()
    assert queue.get(timeout=120) == ("AMD Instinct MI300X", "cuda:1", [2.0] * 4)
    process.join()
    if method == "spawn":  # what is forked has a copy of all memory
        assert x.tolist() == [2.0] * 4


def test_autocast() -> None:
    x = torch.ones(4, 4, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        assert torch.is_autocast_enabled("cuda")
        assert not torch.is_autocast_enabled("cpu")
        assert (x @ x).dtype is torch.bfloat16
    with torch.autocast("cuda"):
        assert (x @ x).dtype is torch.float16
        assert (x.cpu() @ x.cpu()).dtype is torch.float32
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype is torch.float32
    assert (x @ x).dtype is torch.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: torch.nn.functional.log_softmax(x, -1),
        lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: x.exp(),
        lambda x: x**2,
        lambda x: x.sum(),
        lambda x: torch.cumsum(x, 0),
        lambda x: x.norm(),
        lambda x: torch.nn.functional.mse_loss(x, x),
    ],
)
def test_autocast_runs_in_f32_what_a_gpu_does(call) -> None:
    x = torch.rand(4, 4, dtype=torch.float16, device="cuda", requires_grad=True)
    with torch.autocast("cuda"):
        found = call(x)
    assert found.dtype is torch.float32
    assert torch.allclose(found, call(x.float()))
    found.sum().backward()
    assert x.grad.dtype is torch.float16
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.softmax(torch.ones(2, dtype=torch.bfloat16), 0).dtype is torch.bfloat16


def test_autocast_of_a_function_of_ones_own() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, x):
            assert x.dtype is torch.float32
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(3, dtype=torch.float16, device="cuda", requires_grad=True)
    with torch.autocast("cuda"):
        Doubled.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_a_tensor_prints_its_device() -> None:
    assert repr(torch.ones(2, device="cuda")) == "tensor([1., 1.], device='cuda:0')"
    assert repr(torch.ones(2, dtype=torch.int8, device="cuda")) == "tensor([1, 1], device='cuda:0', dtype=torch.int8)"
    x = torch.ones(1, device="cuda", requires_grad=True)
    assert repr(x) == "tensor([1.], device='cuda:0', requires_grad=True)"
    assert "grad_fn=<MulBackward0>" in repr(x * 2)
    assert f"{x.sum():.1f}" == "1.0"


def test_memory_ends_at_the_size_of_the_gpu() -> None:
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4 << 20
    assert torch.cuda.mem_get_info()[0] == (192 << 30) - torch.cuda.memory_allocated()
    with pytest.raises(
        torch.OutOfMemoryError, match=r"Tried to allocate 193.00 GiB. GPU 0 has a total capacity of 192"
    ):
        torch.empty(193 << 30, dtype=torch.uint8, device="cuda")
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + (4 << 20)
    found = torch.cuda.memory_stats()
    assert (found["active_bytes.all.current"], found["num_ooms"] > 0) == (before, True)


def test_operators_of_a_program_run_on_the_gpu() -> None:
    """What they make of their tensors is on the GPU, too, and a backward pass of their own is called."""

    @torch.library.custom_op("flydsl_test::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        seen.append((x[1:].device, torch.empty_like(x).device))
        return x * 2

    doubled.register_autograd(lambda context, gradient: gradient * 3)
    seen: list[tuple[torch.device, torch.device]] = []
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    y = doubled(x)
    y.sum().backward()
    assert seen == [(x.device, x.device)]
    assert y.device == x.device
    assert (y.tolist(), x.grad.tolist()) == ([2.0] * 3, [3.0] * 3)


def test_what_the_program_sees_of_memory_is_on_the_gpu() -> None:
    x = torch.arange(6.0, device="cuda:1")
    storage = x[2:].untyped_storage()
    assert (storage.device, storage.is_cuda, storage.data_ptr()) == (x.device, True, x.data_ptr())
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        assert x.storage().device == x.device
    clone = storage.clone()
    assert (clone.device, clone.nbytes(), clone.cpu().device.type) == (x.device, 24, "cpu")
    assert torch.empty(0, device="cuda:1").set_(clone.untyped(), 0, (24,)).device == x.device
    torch.save(storage, file := io.BytesIO())
    file.seek(0)
    for other in (copy.deepcopy(storage), torch.load(file, weights_only=False)):
        assert (other.device, other.tolist()) == (x.device, storage.tolist())
    assert x.share_memory_() is x
    assert torch.ones(2).untyped_storage().device.type == "cpu"


def test_operators_conjugate_within() -> None:
    x = torch.randn(5, 5, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(torch.linalg.pinv(x.cuda()).cpu(), torch.linalg.pinv(x), atol=1e-4)


def test_the_rank_goes_where_it_is_asked_to() -> None:
    rank = torch.zeros((), dtype=torch.int64, device="cuda")
    assert torch.linalg.matrix_rank(torch.eye(5, device="cuda"), out=rank) is rank
    assert rank.item() == 5


def test_factories_fill_what_they_are_given() -> None:
    x = torch.empty(3, device="cuda")
    for made in (torch.ones(3, device="cuda", out=x), torch.full((3,), 2.0, device=0, out=x), torch.zeros(3, out=x)):
        assert made is x
    assert torch.normal(0.0, 1.0, (3,), device="cuda", out=x) is x
    with pytest.raises(RuntimeError, match="does not match device type of out parameter"):
        torch.ones(3, device="cpu", out=x)


def test_operators_that_torch_has_for_gpus_alone() -> None:
    a, b = torch.randn(2, 4, 8, device="cuda").bfloat16(), torch.randn(2, 8, 4, device="cuda").bfloat16()
    c = torch.ones(2, 4, 4, device="cuda")
    wide = a.float() @ b.float()
    assert torch.equal(torch.mm(a[0], b[0], out_dtype=torch.float32), wide[0])
    assert torch.equal(torch.bmm(a, b, out_dtype=torch.float32), wide)
    assert torch.equal(torch.baddbmm(c, a, b, out_dtype=torch.float32, beta=2), 2 * c + wide)
    out = torch.empty(4, 4, device="cuda")
    assert torch.mm(a[0], b[0], out_dtype=torch.float32, out=out) is out
    assert torch.equal(out, wide[0])
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        chosen = torch.nn.functional.scaled_dot_product_attention(a, a, a)
    assert torch.allclose(chosen, torch.nn.functional.scaled_dot_product_attention(a, a, a), rtol=0.02, atol=0.02)


def test_where_a_function_sends_what_is_read_from_a_file() -> None:
    file = io.BytesIO()
    torch.save(torch.arange(3, device="cuda:1"), file)

    def read(map_location):
        file.seek(0)
        return str(torch.load(file, map_location=map_location).device)

    assert read(lambda storage, location: storage) == "cpu"
    assert read(lambda storage, location: storage.cuda(0)) == "cuda:0"
    assert read(lambda storage, location: None) == "cuda:1"


def test_storages_go_to_a_gpu() -> None:
    storage = torch.arange(3, dtype=torch.uint8).untyped_storage()
    assert (str(storage.cuda(1).device), list(storage.cuda(1))) == ("cuda:1", [0, 1, 2])


def test_memory_by_address() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    found = torch.as_tensor(Interface(x.__cuda_array_interface__), device="cuda")
    assert (found.is_cuda, found.data_ptr(), found.tolist()) == (True, x.data_ptr(), x.tolist())


class Interface:
    def __init__(self, interface) -> None:
        self.__cuda_array_interface__ = interface


def test_flexible_attention_as_it_is() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (torch.randn(1, 2, 128, 16, device="cuda", requires_grad=True) for _ in range(3))
    mask = create_block_mask(lambda batch, head, row, column: row >= column, None, None, 128, 128, device="cuda")
    found = flex_attention(q, k, v, block_mask=mask)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(found, expected, atol=1e-5)
    for one, other in zip(
        torch.autograd.grad(found.sum(), (q, k, v)), torch.autograd.grad(expected.sum(), (q, k, v)), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-5)


def test_old_types() -> None:
    x = torch.ones(2).type(torch.cuda.HalfTensor)
    assert (x.is_cuda, x.type(torch.cuda.FloatTensor).dtype) == (True, torch.float32)
    with pytest.raises(DeviceError, match=r"set_default_tensor_type\(FloatTensor\)"):
        torch.set_default_tensor_type(torch.cuda.FloatTensor)


def test_hessians() -> None:
    x = torch.randn(3, device="cuda")
    assert torch.allclose(torch.func.hessian(lambda v: (v**3).sum())(x), (6 * x).diag())


def test_data_of_another_device_moves_a_parameter() -> None:
    model, plain = torch.nn.Linear(2, 2), torch.ones(2)
    model.weight.loader = "the program's"
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.data = parameter.data.cuda()
    plain.data = torch.zeros(2, device="cuda:1")
    assert plain.device == torch.device("cuda:1")
    assert all(now is was and now.is_cuda for now, was in zip(model.parameters(), parameters, strict=True))
    assert isinstance(model.weight, torch.nn.Parameter)
    assert model.weight.loader == "the program's"
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    assert model.weight.grad.is_cuda
    model.weight.data = model.weight.data.to("cuda:1")
    assert model.weight.device == torch.device("cuda:1")
    model.bias.data = model.bias.data.cpu()
    assert type(model.bias) is torch.nn.Parameter


@pytest.mark.parametrize("recurrent", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN], ids=lambda kind: kind.__name__)
def test_packed_sequences(recurrent) -> None:
    torch.manual_seed(0)
    model, x, lengths = recurrent(4, 6, batch_first=True), torch.randn(3, 5, 4), torch.tensor([5, 2, 3])

    def run(module, sequences):
        packed = pack_padded_sequence(sequences, lengths, batch_first=True, enforce_sorted=False)
        assert (packed.data.device, packed.batch_sizes.device.type) == (sequences.device, "cpu")
        return pad_packed_sequence(module(packed)[0], batch_first=True)[0]

    wanted = run(model, x).detach()
    found = run(model.cuda(), x.cuda())
    assert torch.allclose(found.cpu(), wanted, atol=1e-6)
    assert pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False).to("cuda").data.is_cuda


def test_a_tensor_of_a_tensor_is_where_that_is() -> None:
    x = torch.ones(2, device="cuda:1")
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        copied = torch.tensor(x)
    assert (copied.device, copied.data_ptr() == x.data_ptr()) == (x.device, False)
    assert torch.tensor([x[0], 2.0]).device == torch.device("cpu")
    assert torch.tensor(1.0, device="meta").is_meta
    assert torch.tensor([1.0], device="cuda", requires_grad=True).requires_grad


def test_a_parameter_that_a_graph_holds_is_not_moved() -> None:
    model = torch.nn.Linear(2, 2)
    result = model(torch.ones(1, 2, requires_grad=True))
    with pytest.raises(DeviceError, match=r"Linear.weight cannot be moved to or from a posed GPU: a graph"):
        model.cuda()
    del result
    assert model.cuda().weight.is_cuda


def test_a_function_that_is_transformed_moves_tensors() -> None:
    x, weights = torch.randn(5, 3), torch.randn(3, 3, device="cuda")
    product, gradient = torch.func.vjp(lambda w: x.cuda() @ w, weights)
    assert torch.allclose(gradient(torch.ones_like(product))[0], x.cuda().T @ torch.ones_like(product))
    assert torch.func.grad(lambda w: w.cuda().square().sum())(x[0]).equal(2 * x[0])
    rows = torch.func.vmap(lambda row: row.cuda() * 2)(x)
    assert rows.is_cuda
    assert torch.equal(rows.cpu(), 2 * x)


def test_an_operator_that_a_program_registers_for_the_gpu() -> None:
    library = torch.library.Library("tests_of_posing", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: 2 * x if x.is_cuda else None, "CUDA")
    library.impl("twice", lambda x: -2 * x, "CPU")
    library.impl("thrice", lambda x: 3 * x, "CompositeExplicitAutograd")
    operators = torch.ops.tests_of_posing
    assert operators.twice(torch.ones(2, device="cuda")).tolist() == [2, 2]
    assert operators.twice(torch.ones(2)).tolist() == [-2, -2]
    assert operators.thrice(torch.ones(2, device="cuda")).tolist() == [3, 3]
    assert operators.twice(torch.ones(2, device="cuda")).is_cuda
    library._destroy()
