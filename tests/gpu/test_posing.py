"""A GPU poses, and torch is afterwards what it was."""

# mypy: ignore-errors

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import CodeType

import pytest
import torch
import torch.fx.experimental.proxy_tensor

import flydsl.compiler as flyc
import flydsl.expr as fx
import flydsl.gpu
from flydsl.arch.products import PRODUCTS
from flydsl.errors import ArchError, ArgumentError, DeviceError
from flydsl.gpu.streams import time_ms
from flydsl.runtime.device import get_gcn_arch, is_gfx120x, is_gfx120x_arch
from flydsl.simulator import checking, counting, launching
from kernels.vector_add import vector_add
from tests.processes import run_python

PLACES = (
    torch,
    torch.nn.Module,
    torch.accelerator,
    torch.autograd,
    torch._utils,
    torch.autograd.graph,
    torch.autograd.profiler,
    torch.backends.cuda,
    torch.backends.cuda.cuFFTPlanCacheManager,
    torch.backends.cudnn,
    torch.cuda,
    torch.cuda.graphs,
    torch.cuda.memory,
    torch.cuda.nccl,
    torch.cuda.random,
    torch.cuda.streams,
    torch.cuda.tunable,
    torch.nested,
    torch.nn.parallel.comm,
    torch.fx.experimental.proxy_tensor,
    torch.profiler,
    torch.storage,
    torch.storage._StorageBase,
    torch.utils.dlpack,
    torch._C,
    torch._C._dynamo.guards,
    torch.Tensor,
    torch.version,
    torch.serialization,
)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.diagonal(3)
def test_what_torch_says_of_each_product(name: str) -> None:
    with flydsl.gpu.pose(name):
        assert torch.cuda.is_available()
        assert torch.version.hip
        found = torch.cuda.get_device_properties(0)
        assert (found.name, found.gcnArchName) == (PRODUCTS[name].name, PRODUCTS[name].arch)
        assert torch.cuda.get_device_name() == found.name
        assert torch.cuda.get_device_capability() == (found.major, found.minor)
        assert (found.pci_bus_id, found.uuid.int, found.max_threads_per_block) == (0, 0, 1024)
        assert get_gcn_arch() == get_gcn_arch(torch.device("cuda", 0)) == PRODUCTS[name].arch
        assert is_gfx120x() is is_gfx120x_arch(PRODUCTS[name].arch)
        assert found.warp_size == (32 if found.gcnArchName.startswith(("gfx11", "gfx12")) else 64)
        assert torch.cuda.mem_get_info()[1] == found.total_memory
        assert (torch.accelerator.is_available(), torch.accelerator.current_accelerator().type) == (True, "cuda")


def test_afterwards_torch_is_what_it_was() -> None:
    def namespaces():
        return [dict(vars(place)) for place in PLACES], [*torch.serialization._package_registry]

    before = namespaces()
    with flydsl.gpu.pose("mi355x"):
        x = torch.ones(3, device="cuda")
        with flydsl.gpu.pose("mi210"):
            assert flydsl.gpu.posed().arch == "gfx90a"
        assert flydsl.gpu.posed().arch == "gfx950"
        assert torch.ones(3, device="cuda").is_cuda
    after = namespaces()
    assert [sorted(names) for names in after[0]] == [sorted(names) for names in before[0]]
    assert all(now[n] is was[n] for was, now in zip(before[0], after[0], strict=True) for n in was if n != "__dict__")
    assert after[1] == before[1]
    assert flydsl.gpu.posed() is None
    assert not torch.cuda.is_available()
    with pytest.raises(Exception, match=r"CUDA|NVIDIA"):
        torch.ones(3, device="cuda")
    assert torch.equal(x.cpu(), torch.ones(3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_afterwards_every_function_and_class_of_torch_is_its_own() -> None:
    train_a_step()  # so that all is loaded that torch loads on the way, and then adds to its own classes
    before = functions_of_torch()
    posed = train_a_step()
    after = functions_of_torch()
    assert posed["torch.cuda"]["is_available"] is not before["torch.cuda"]["is_available"]
    other = [(place, name) for place, was in before.items() for name in was if after[place].get(name) is not was[name]]
    more = [(place, name) for place, was in before.items() for name in after[place].keys() - was.keys()]
    assert (other, more) == ([], [])
    assert [(place, name) for place, now in after.items() for name in now if is_ours(now[name])] == []
    assert is_ours(posed["torch.cuda"]["is_available"])
    assert is_ours(posed["torch.cuda"]["Stream"])


def train_a_step() -> dict[str, dict[str, object]]:
    """Work on a posed GPU. Returns the functions of torch during it."""
    with flydsl.gpu.pose("mi300x"):
        x = torch.ones(4, 4, device="cuda", requires_grad=True)
        with torch.autocast("cuda", dtype=torch.float16):
            torch.nn.Linear(4, 4).cuda()(x).sum().backward()
        return functions_of_torch()


def is_ours(value: object) -> bool:
    """True if flydsl has written a function or a class."""
    code = getattr(value, "__code__", None)
    own = getattr(value, "__module__", None) or ""
    if isinstance(code, CodeType):
        return str(Path(flydsl.gpu.__file__).parent) in code.co_filename
    return str(own).startswith("flydsl")


def functions_of_torch() -> dict[str, dict[str, object]]:
    """What can be called in torch's modules and their classes, by the names of both.

    Modules that Inductor writes for a program are not torch's: they keep what torch was like when they were loaded.
    """
    modules = {
        name: vars(module)
        for name, module in sys.modules.items()
        if name.split(".")[0] == "torch" and not name.startswith("torch._inductor.runtime.compile_tasks.")
    }
    classes = {
        f"{name}.{of_class}": vars(value)
        for name, content in modules.items()
        for of_class, value in dict(content).items()
        if issubclass(type(value), type) and value.__module__.split(".")[0] == "torch"
    }
    return {
        place: {
            name: value for name, value in dict(content).items() if callable(value) or hasattr(type(value), "__get__")
        }
        for place, content in (modules | classes).items()
    }


class OneLoader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A loader of several modules, like pytest's. Each keeps whether torch had a GPU as it was loaded."""

    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.endswith("_by_one_loader") else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.had_gpu = torch.cuda.is_available()


def test_what_loads_a_compiler_of_torch_loads_other_modules_with_the_gpu(monkeypatch) -> None:
    loader = OneLoader()
    monkeypatch.setattr(sys, "meta_path", [loader, *sys.meta_path])
    with flydsl.gpu.pose("mi300x"):
        compiler = importlib.import_module("torch._dynamo_by_one_loader")
        module = importlib.import_module("another_by_one_loader")
    assert (compiler.had_gpu, module.had_gpu) == (False, True)
    assert compiler.__loader__ is compiler.__spec__.loader is loader
    for each in (compiler, module):
        del sys.modules[each.__name__]


def test_names_and_numbers_that_are_wrong() -> None:
    with pytest.raises(ArchError, match=r"no GPU is called 'mi35'"):
        flydsl.gpu.use("mi35")
    with pytest.raises(ArgumentError, match=r"must be 1 to 64, got 0"):
        flydsl.gpu.use("mi300x", 0)
    with flydsl.gpu.pose("mi300x"), pytest.raises(RuntimeError, match=r"invalid device ordinal: 1; there are 1 GPUs"):
        torch.cuda.set_device(1)


def test_a_launch_compiles_for_the_gpu_and_takes_its_tensors() -> None:
    with flydsl.gpu.pose("mi355x"):
        x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
        z = torch.empty_like(x)
        vector_add(x, y, z)
        assert torch.equal(z, x + y)
        assert vector_add.lower(x, y, z).artifact.code.arch.name == "gfx950"


@flyc.kernel
def move_kernel(source: fx.Int64, target: fx.Int64):
    lane = fx.thread_idx.x
    numbers = fx.PointerType.get(fx.Int32.ir_type, fx.AddressSpace.Global, 4)
    fx.ptr_store(fx.ptr_load(fx.inttoptr(numbers, source) + lane) + 1, fx.inttoptr(numbers, target) + lane)


@flyc.jit
def move(source: fx.Int64, target: fx.Int64):
    move_kernel(source, target).launch(grid=1, block=8)


def test_kernels_take_the_addresses_of_tensors_as_numbers() -> None:
    with flydsl.gpu.pose("mi355x"):
        x, y = torch.arange(16, dtype=torch.int32, device="cuda"), torch.zeros(8, dtype=torch.int32, device="cuda")
        move(x.data_ptr(), y.data_ptr())
        assert y.tolist() == list(range(1, 9))
        move(x[::2].contiguous().data_ptr(), y.data_ptr())  # what torch frees, its allocator keeps for later
        assert y.tolist() == list(range(1, 17, 2))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            move((x + 1)[:8].contiguous().data_ptr(), y.data_ptr())
        y.zero_().data_ptr()
        graph.replay()
        assert y.tolist() == list(range(2, 10))


def test_each_gpu_gets_code_of_its_own() -> None:
    x = torch.ones(1000)
    for name, arch in (("mi300x", "gfx942"), ("mi355x", "gfx950"), ("rx9070xt", "gfx1201"), ("mi300x", "gfx942")):
        with flydsl.gpu.pose(name), counting() as counted:
            vector_add(x.cuda(), x.cuda(), torch.empty(1000, device="cuda"))
        assert counted.launches[0].program.arch.name == arch


def test_events_read_the_clock_of_the_gpu() -> None:
    with flydsl.gpu.pose("mi300x"):
        x, y = torch.randn(1 << 16, device="cuda"), torch.randn(1 << 16, device="cuda")
        z = torch.empty_like(x)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def time_ms(repetitions: int) -> float:
            start.record()
            for _ in range(repetitions):
                vector_add(x, y, z)
            end.record()
            torch.cuda.synchronize()
            return start.elapsed_time(end)

        once = time_ms(1)
        assert 0.0005 < once < 0.1
        assert time_ms(20) == pytest.approx(20 * once)
        assert "vector_add_kernel_0" in flydsl.gpu.report()
        x.fill_(2)
        vector_add(x, y, z)  # which is like the ones before, but memory is not
        assert torch.equal(z, x + y)


def test_torchs_own_work_takes_the_time_that_bandwidth_allows() -> None:
    with flydsl.gpu.pose("mi300x"):
        host = torch.ones(16 << 20, dtype=torch.uint8)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def time_us(work) -> float:
            start.record()
            work()
            end.record()
            return 1000 * start.elapsed_time(end)

        x = host.cuda()
        assert time_us(lambda: x.view(4, -1)) == 0
        assert time_us(lambda: x + x) == pytest.approx(5 + 3 * (16 << 20) / 5.3e6)
        for copy in (host.cuda, x.cpu, lambda: x.copy_(host), lambda: host.copy_(x)):
            assert time_us(copy) == pytest.approx(5 + (16 << 20) / 50e3)


def test_a_benchmark_that_rotates_through_copies_is_simulated_once_for_all(monkeypatch) -> None:
    with flydsl.gpu.pose("mi300x"):
        flydsl.gpu.watch()
        x = torch.randn(1000, device="cuda")
        y = torch.randn(1000, device="cuda")
        sets = [(x.clone(), y.clone(), x + y) for _ in range(8)]
        for _ in range(2):
            vector_add(*sets[0])
        executed, around = [], launching._around

        def counted(dispatch, kernarg, memory, run):
            return around(dispatch, kernarg, memory, lambda: executed.append(dispatch) or run())

        monkeypatch.setattr(launching, "_around", counted)
        for tensors in sets:
            vector_add(*tensors)
        assert not executed
        sets[3][0].fill_(1)
        vector_add(*sets[3])
        assert len(executed) == 1
        assert torch.equal(sets[3][2], 1 + sets[3][1])


def test_a_kernel_that_adds_to_its_own_result_is_repeated() -> None:
    with flydsl.gpu.pose("mi300x"):
        flydsl.gpu.watch()
        x, total = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")
        for _ in range(5):
            vector_add(x, total, total)
        assert total.cpu().tolist() == [5.0] * 256


def test_a_graph_is_replayed_on_what_is_in_memory() -> None:
    with flydsl.gpu.pose("mi300x"):
        x, y = torch.ones(256, device="cuda"), torch.ones(256, device="cuda")
        z = torch.empty_like(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            vector_add(x, y, z)
            doubled = z * 2
        x.fill_(4)
        graph.replay()
        assert doubled.cpu().tolist() == [10.0] * 256


def test_a_step_of_training_is_captured() -> None:
    with flydsl.gpu.pose("mi300x"):
        model, x = torch.nn.Linear(4, 1).cuda(), torch.randn(8, 4, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x).square().mean().backward()
            optimizer.step()
        on_host = torch.nn.Linear(4, 1)
        on_host.load_state_dict({name: value.cpu() for name, value in model.state_dict().items()})
        step = torch.optim.SGD(on_host.parameters(), lr=0.1).step
        x.copy_(torch.randn(8, 4))
        graph.replay()
        on_host(x.cpu()).square().mean().backward()
        step()
        assert torch.allclose(model.weight.cpu(), on_host.weight, atol=1e-6)


@pytest.mark.slow
def test_what_is_not_there_says_so() -> None:
    with flydsl.gpu.pose("mi300x"):
        x = torch.ones(2, device="cuda")
        with torch.cuda.nvtx.range("a part"), pytest.raises(RuntimeError, match=r"cannot pin 'torch.cuda.FloatTensor'"):
            x.pin_memory()
        for absent in (
            torch.cuda.current_blas_handle,
            torch.cuda.nccl.version,
            torch.cuda.utilization,
            torch.cuda.MemPool,
            torch.cuda.memory._record_memory_history,
            torch.cuda.tunable.enable,
        ):
            with pytest.raises(
                DeviceError, match=r"torch\.cuda\..* is unsupported on a posed GPU\n  at .*test_posing.py:\d+"
            ):
                absent()
        with pytest.raises(
            DeviceError, match=r"torch\.nested\.nested_tensor of tensors on a GPU is unsupported on a posed GPU"
        ):
            torch.nested.nested_tensor([x, x], layout=torch.jagged)
        assert torch.nested.nested_tensor([x.cpu(), x.cpu()], layout=torch.jagged).is_nested
        with pytest.raises(DeviceError, match=r"aten::_scaled_grouped_mm: torch has it for GPUs only"):
            torch._scaled_grouped_mm(x[None], x[None], x, x)
        from torch.utils import cpp_extension

        with pytest.raises(DeviceError, match=r"load_inline with CUDA sources is unsupported on a posed GPU"):
            cpp_extension.load_inline("mine", cpp_sources="", cuda_sources="__global__ void k() {}")
        with pytest.raises(RuntimeError, match=r"DataParallel|scatter"):
            torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda())(x)


@pytest.mark.slow
def test_the_profiler_has_the_kernels_by_the_clock_of_the_gpu(tmp_path: Path) -> None:
    with flydsl.gpu.pose("mi300x"):
        x = torch.ones(1 << 14, device="cuda")
        y = torch.empty_like(x)
        both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=both, with_stack=True) as profile:
            for _ in range(3):
                vector_add(x, x, y)
            y.mul_(2)
        vector_add(x, x, y)
        kernels = [event for event in profile.events() if "vector_add" in event.name]
        assert len(kernels) == 3
        assert {str(event.device_type) for event in kernels} == {"DeviceType.CUDA"}
        (average,) = (each for each in profile.key_averages() if "vector_add" in each.key)
        assert average.count == 3
        assert average.device_time_total == pytest.approx(sum(event.self_device_time_total for event in kernels))
        assert "aten.mul_" in profile.key_averages().table(sort_by="cuda_time_total", row_limit=10)
        profile.export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["AMD Instinct MI300X", "stream 0"]
        assert sum(event["name"] == "vector_add_kernel_0" for event in events) == 3
        with torch.profiler.profile(activities=both[:1]) as of_host:
            torch.ones(2).add_(1)
        assert any("add_" in event.name for event in of_host.events())


def test_a_schedule_of_the_profiler() -> None:
    with flydsl.gpu.pose("mi300x"):
        ready = []
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        with torch.profiler.profile(
            schedule=schedule, on_trace_ready=lambda p: ready.append(len(p.events()))
        ) as profile:
            x = torch.ones(16, device="cuda")
            for _ in range(6):
                x.add_(1)
                profile.step()
        assert ready == [2]
        ready.clear()
        repeated = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
        with torch.profiler.profile(
            schedule=repeated, on_trace_ready=lambda p: ready.append(len(p.events()))
        ) as profile:
            for _ in range(9):
                x.add_(1)
                profile.step()
        assert ready == [2, 2]
        assert profile.key_averages().total_average().count == 2


def test_streams() -> None:
    with flydsl.gpu.pose("mi300x"):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream() == stream
            torch.ones(4, device="cuda").mul_(2)
        torch.cuda.current_stream().wait_stream(stream)
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        with pytest.raises(RuntimeError, match=r"enable_timing=True"):
            torch.cuda.Event().elapsed_time(torch.cuda.Event())


@flyc.kernel
def sum_kernel(lengths: fx.Tensor, x: fx.Tensor, total: fx.Tensor):
    found = fx.Float32(0)
    for i in range(lengths[0]):
        found += x[i]
    total[0] = found


@flyc.jit
def sum_of_first(lengths: fx.Tensor, x: fx.Tensor, total: fx.Tensor):
    sum_kernel(lengths, x, total).launch(grid=(1,), block=(1,))


def test_the_time_of_a_launch_depends_on_the_lengths_in_its_tensors() -> None:
    with flydsl.gpu.pose("mi300x"):
        x, total = torch.ones(1000, device="cuda"), torch.zeros(1, device="cuda")
        times = [
            time_ms(lambda n=n: sum_of_first(torch.tensor([n], dtype=torch.int32, device="cuda"), x, total))
            for n in (1, 1000, 1)
        ]
    assert times[1] > 5 * times[0]
    assert times[2] == pytest.approx(times[0])


def test_torchs_own_benchmark_reads_the_clock_of_the_gpu() -> None:
    from torch.utils import benchmark

    with flydsl.gpu.pose("mi300x"):
        x, z = torch.ones(1 << 14, device="cuda"), torch.zeros(1 << 14, device="cuda")
        timer = benchmark.Timer("add(x, x, z)", globals={"add": vector_add, "x": x, "z": z})
        assert timer.timeit(100).mean == pytest.approx(time_ms(lambda: vector_add(x, x, z)) / 1000)
        assert timer.blocked_autorange().median == pytest.approx(timer.timeit(2).mean)
        assert torch.equal(z.cpu(), torch.full((1 << 14,), 2.0))
        assert 0 < benchmark.Timer("sum(range(1000))").timeit(10).mean < 0.1


def test_launches_under_checks_are_timed() -> None:
    """On a copy, as checks take other times than a GPU."""
    with flydsl.gpu.pose("mi300x"):
        x = torch.arange(64.0, device="cuda")
        times = []
        for checks in (checking("races"), nullcontext()):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            z = torch.zeros_like(x)
            with checks:
                start.record()
                vector_add(x, x, z)
                end.record()
            times.append(start.elapsed_time(end))
            assert torch.equal(z.cpu(), 2 * torch.arange(64.0))
        assert times[0] == times[1] > 0
        assert flydsl.gpu.summary().launches == 2
        assert not flydsl.gpu.summary().untimed


def test_launches_that_are_not_timed_are_counted() -> None:
    with flydsl.gpu.pose("mi300x"):
        x = torch.arange(64.0, device="cuda")
        vector_add(x, x, torch.zeros_like(x))
        assert flydsl.gpu.summary().untimed == ["1 launch is not timed: the program did not measure time yet"]
        assert "1 launch is not timed" in flydsl.gpu.report()


PROGRAM = """\
import sys
import torch
from kernels.vector_add import vector_add
x = torch.arange(int(sys.argv[1]), dtype=torch.float32, device="cuda")
z = torch.empty_like(x)
vector_add(x, x, z)
print(torch.cuda.get_device_properties(0).gcnArchName, z.sum().item())
sys.exit(int(z.shape[0] == 3))
"""


@pytest.mark.slow
def test_a_program_runs_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = run_python("-m", "flydsl.gpu", "mi355x", "--report", str(file), "100")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "gfx950 9900.0")
    assert "vector_add_kernel_0" in done.stdout
    page = tmp_path / "report.html"
    done = run_python("-m", "workbench", "run", "--report", str(page), str(file), "100")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "gfx942 9900.0")
    text = page.read_text("utf-8")
    assert "<code>vector_add_kernel_0</code>" in text
    assert "Every launch is timed." in text
    done = run_python("-m", "flydsl.gpu", "mi355x", "--report", str(page), str(file), "100")
    assert (done.returncode, "workbench run --report report.html" in done.stderr) == (1, True)
    done = run_python("-m", "workbench", "run", "--gpu", "RX 9070 XT", "--check", "races,index", str(file), "3")
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "gfx1201 6.0")
    done = run_python("-m", "workbench", "run", "--trace", str(tmp_path / "trace.json"), str(file), "100")
    assert (done.returncode, "vector_add_kernel_0" in (tmp_path / "trace.json").read_text()) == (0, True)
    done = run_python("-m", "workbench", "run", "--gpu", "local", str(file), "100")
    assert (done.returncode, "torch has no GPU here" in done.stderr) == (1, True)
    done = run_python("-m", "flydsl.gpu", "mi355x", str(tmp_path / "other.py"))
    assert (done.returncode, "there is no such file" in done.stderr) == (1, True)
