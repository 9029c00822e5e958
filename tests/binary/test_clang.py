"""HIP and OpenCL C sources: compiled by ziglang's clang, launched on the simulator, errors at their lines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from flydsl.arch import get_arch
from flydsl.binary import BinaryModule, compile_hip, compile_opencl
from flydsl.errors import ArgumentError, CompileError, FlyError, LaunchError, SimulatorError
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import checking, counting
from flydsl.simulator.waits.missing import missing_waits

pytestmark = pytest.mark.slow

HIP = """\
#include <hip/hip_runtime.h>
template <typename T> __device__ T twice(T x) { return x + x; }
__global__ void scale(const float *x, float *y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = twice(x[i]) * factor;
}
__global__ void count(const int *values, int *bins) {
  atomicAdd(&bins[values[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
extern __shared__ float shared[];
__global__ void sum_and_largest(const float *x, float *out) {
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  float largest = x[threadIdx.x];
  for (int step = warpSize / 2; step > 0; step >>= 1) largest = fmaxf(largest, __shfl_xor(largest, step));
  if (threadIdx.x == 0) out[0] = shared[0], out[1] = largest, out[2] = expf(x[0]), out[3] = sqrtf(fabsf(x[1]));
}
__global__ void from_table(const float *const *table, float *y) {
  y[threadIdx.x] = table[threadIdx.x & 1][threadIdx.x];
}
struct Pair { float a; int b; };
__global__ void by_value(double d, long l, unsigned char c, half h, Pair pair, float4 v, double *out) {
  out[0] = d, out[1] = l, out[2] = c, out[3] = h, out[4] = pair.a, out[5] = pair.b, out[6] = v.w;
}
"""

OPENCL = """\
kernel void scale(global const float *x, global float *y, float factor, int n) {
  size_t i = get_global_id(0);
  if (i < n) y[i] = 2 * x[i] * factor;
}
kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void reversed_in_groups(global const float *x, global float *y, global int *count) {
  local float tile[64];
  tile[get_local_id(0)] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = fmax(tile[get_local_size(0) - 1 - get_local_id(0)], 0.0f) + exp((float)get_group_id(0));
  atomic_inc(count);
}
kernel void wide_atomics(global ulong *most, global atomic_ulong *sum, local uint *seen) {
  uint i = get_local_id(0);
  seen[i] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  atom_max(most, (ulong)seen[63 - i] << 33);
  atomic_fetch_add_explicit(sum, (ulong)i << 33, memory_order_relaxed, memory_scope_device);
  if (atomic_cmpxchg(seen, 0u, 5u) == 5u) atomic_fetch_sub(sum, 1ul);
}
"""


@pytest.fixture(scope="module")
def hip() -> BinaryModule:
    return compile_hip(HIP)


@pytest.fixture(scope="module")
def opencl() -> BinaryModule:
    return compile_opencl(OPENCL)


@pytest.mark.parametrize("language", ["hip", "opencl"])
def test_a_kernel_of_either_language(language: str, request: pytest.FixtureRequest) -> None:
    module = request.getfixturevalue(language)
    x, y = torch.randn(300), torch.zeros(300)
    module.scale(x, y, 3, 300, grid=5, block=64)
    torch.testing.assert_close(y, 6 * x)
    assert [p.name for p in module.scale.parameters] == ["x", "y", "factor", "n"]


def test_atomics(hip: BinaryModule) -> None:
    values, bins = torch.randint(0, 8, (512,), dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    hip.count(values, bins, grid=2, block=256)
    assert torch.equal(bins, torch.bincount(values, minlength=8).int())


def test_pointers_in_memory(hip: BinaryModule) -> None:
    """As those that grouped products take: addresses of tensors that are no arguments themselves."""
    x, y = torch.randn(2, 64), torch.zeros(64)
    rows = [x[0].clone(), x[1].clone()]
    hip.from_table(torch.tensor([row.data_ptr() for row in rows]), y, grid=1, block=64)
    assert torch.equal(y.view(-1, 2).t(), torch.stack([x[0, ::2], x[1, 1::2]]))
    with pytest.raises(SimulatorError, match="in no buffer"):
        hip.from_table(torch.tensor([rows[0].data_ptr(), 1 << 40]), y, grid=1, block=64)


def test_dynamic_shared_memory_shuffles_and_mathematics(hip: BinaryModule) -> None:
    x, out = torch.randn(64), torch.zeros(4)
    hip.sum_and_largest(x, out, grid=1, block=64, smem=256)
    torch.testing.assert_close(out, torch.stack([x.sum(), x.max(), x[0].exp(), x[1].abs().sqrt()]))


def test_arguments_by_value_have_the_types_of_the_source(hip: BinaryModule) -> None:
    import numpy as np

    from flydsl.simulator import Struct

    out = torch.zeros(7, dtype=torch.float64)
    pair, vector = Struct(np.float32(4.5), np.int32(-5)), np.array([1, 2, 3, 7.25], np.float32).tobytes()
    hip.by_value(1, -(2**40), 200, 0.5, pair, vector, out, grid=1, block=1)
    assert out.tolist() == [1, -(2**40), 200, 0.5, 4.5, -5, 7.25]


def test_barriers_and_groups_of_opencl(opencl: BinaryModule) -> None:
    x, y, count = torch.randn(128), torch.zeros(128), torch.zeros(1, dtype=torch.int32)
    opencl.reversed_in_groups(x, y, count, grid=2, block=64)
    groups = torch.arange(2.0).exp().repeat_interleave(64)
    torch.testing.assert_close(y, x.view(2, 64).flip(1).flatten().clamp(min=0) + groups)
    assert count.item() == 128
    with pytest.raises(LaunchError, match="compiled for at most 64"):
        opencl.reversed_in_groups(x, y, count, grid=1, block=128)


def test_wide_atomics_and_shared_memory_by_argument(opencl: BinaryModule) -> None:
    most, total = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    opencl.wide_atomics(most, total, 512, grid=1, block=64, smem=768)
    assert (most.item(), total.item()) == (63 << 33, (sum(range(64)) << 33) - 63)
    with pytest.raises(FlyError, match="seen must be an offset in LDS of 4 bytes, got a tensor"):
        opencl.wide_atomics(most, total, most, grid=1, block=64, smem=256)


def test_other_targets_and_options() -> None:
    assert compile_hip(HIP, arch="gfx1201").code.arch.name == "gfx1201"
    tile = compile_hip("__global__ void f(int *p) { p[0] = TILE; }", options=["-DTILE=16", "-O1"])
    out = torch.zeros(1, dtype=torch.int32)
    tile.f(out, grid=1, block=1)
    assert (out.item(), tile.code.opt_level) == (16, 1)


@pytest.mark.parametrize("arch", ["gfx1201", "gfx1250"])
@pytest.mark.parametrize(("compiled", "source"), [(compile_hip, HIP), (compile_opencl, OPENCL)])
@pytest.mark.diagonal(2)
def test_clang_waits_itself_without_optimization(compiled: Callable[..., BinaryModule], source: str, arch: str) -> None:
    code = compiled(source, arch=arch, options=["-O0"]).code
    assert missing_waits(read_listing(code.listing), code.arch) == []


def test_a_source_that_is_not_optimized() -> None:
    place = "__global__ void f(int *p) { p[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x + threadIdx.x; }"
    out = torch.zeros(128, dtype=torch.int32)
    compile_hip(place, options=["-O0"]).f(out, grid=2, block=64)
    assert torch.equal(out, (2 + torch.arange(64)).repeat(2).int())


SUMS = """#include <hip/hip_runtime.h>
__global__ void f(const double *x, double *sum, unsigned *count, int *next) {
  unsigned long long *place = (unsigned long long *)sum, old = *place, seen;
  do {
    seen = old;
    old = atomicCAS(place, seen, __double_as_longlong(x[threadIdx.x] + __longlong_as_double(seen)));
  } while (old != seen);
  atomicAdd(count, 1);
  next[threadIdx.x] = __shfl_down((int)threadIdx.x, 2) + __umulhi(__brev(threadIdx.x), 64);
}"""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx1100", "gfx1201"])
def test_doubles_are_added_by_compare_and_swap_and_shuffles_end_with_the_wave(arch: str) -> None:
    x = torch.arange(64, dtype=torch.float64) / 3
    total, count, following = x.new_zeros(1), torch.zeros(1, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    compile_hip(SUMS, arch=arch).f(x, total, count, following, grid=1, block=64)
    torch.testing.assert_close(total, x.sum(0, keepdim=True))
    assert count.item() == 64
    size = get_arch(arch).wave_size
    turned = [int(f"{i:032b}"[::-1], 2) * 64 >> 32 for i in range(64)]
    assert following.tolist() == [i + (2 if i % size + 2 < size else 0) + turned[i] for i in range(64)]


INTEGERS = """kernel void f(global const int *x, global int *y, global long *z) {
  int i = get_global_id(0), a = x[i], b = x[i ^ 1];
  y[i] = clz(a) + 3 * ctz((uint)b) + mul_hi(a, b) + mul_hi((uint)a, (uint)b) + rotate(a, b) + rhadd(a, b);
  z[i] = mul_hi((long)a << 30, (long)b << 20) + add_sat(a, b) + abs_diff(a, b) + hadd((ulong)a, ~0ul);
}"""


def test_integers_of_opencl() -> None:
    x = [0, -(2**31), 1, 2**31 - 1, -1, 12345678, 0x7F00FF00, -77777] * 8
    y, z = torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int64)
    compile_opencl(INTEGERS).f(torch.tensor(x, dtype=torch.int32), y, z, grid=1, block=64)
    for i, a in enumerate(x):
        b = x[i ^ 1]
        c, d = a % 2**32, b % 2**32
        turned = (c << d % 32 | c >> 32 - d % 32) % 2**32
        zeros = 32 - c.bit_length() + 3 * ((d & -d).bit_length() - 1 if d else 32)
        assert (y[i].item() - zeros - (a * b >> 32) - (c * d >> 32) - turned - (a + b + 1 >> 1)) % 2**32 == 0
        saturated = max(-(2**31), min(2**31 - 1, a + b))
        half = (a % 2**64 + 2**64 - 1) >> 1
        assert (z[i].item() - (a * b >> 14) - saturated - abs(a - b) - half) % 2**64 == 0


def test_a_private_array_is_in_scratch() -> None:
    source = """kernel void f(global int *out, int n) {
      int own[8], i = get_global_id(0);
      for (int j = 0; j < n; j++) own[j] = i * j;
      for (int j = 1; j < n; j++) own[(i + j) % n] += own[(i + j - 1) % n];
      out[i] = own[i % n];
    }"""
    module, out = compile_opencl(source, arch="gfx90a", options=["-O0"]), torch.zeros(128, dtype=torch.int32)
    with checking():
        module.f(out, 7, grid=2, block=64)
    own = torch.arange(128)[:, None] * torch.arange(7)
    for j in range(1, 7):
        at = torch.arange(128)
        own[at, (at + j) % 7] += own[at, (at + j - 1) % 7]
    assert torch.equal(out, own[torch.arange(128), torch.arange(128) % 7].int())
    with counting() as counters:
        module.f(out, 7, grid=2, block=64)
    assert counters.launches[0].totals.scratch_bytes > 4 * 7 * 128


@pytest.mark.parametrize(
    ("source", "says", "line"),
    [
        ("__global__ void f(int *p) {\n  p[0] = nothing;\n}", "undeclared identifier 'nothing'", 2),
        ("__global__ void f(int *p) {\n  p[0] = 1\n}", "expected ';'", 2),
        ("\n\n#include <nowhere.h>", "'nowhere.h' file not found", 3),
    ],
)
def test_an_error_of_clang_is_at_the_line_of_the_source(source: str, says: str, line: int) -> None:
    with pytest.raises(CompileError) as caught:
        compile_hip(source)
    assert says in caught.value.message
    assert caught.value.at.line == line
    assert caught.value.at.source_line == source.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("__device__ int g(int);\n__global__ void f(int *p) { p[0] = g(3); }", "g(int) is used and defined nowhere"),
        ("int x;", "there is no kernel"),
        ("", "there is no kernel"),
    ],
)
def test_a_source_without_what_it_needs(source: str, says: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_hip(source)
    assert says in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((1.0,), "takes 4 arguments (x, y, factor, n), got 1"),
        ((torch.zeros(4), 3, 2.0, 4), "y is a pointer and must be a tensor, got 3"),
        ((torch.zeros(4), torch.zeros(4), 2.0, 4.5), "n must be of type i32, got 4.5"),
        ((torch.zeros(4), torch.zeros(4), 2.0, 1 << 40), "which 1099511627776 does not fit"),
        ((torch.zeros(4), torch.zeros(4), "2", 4), "factor must be a number of 4 bytes, got '2'"),
        ((torch.zeros(4), torch.zeros(4, device="meta"), 2.0, 4), "y is on meta"),
        ((torch.zeros(4), torch.zeros(4), torch.zeros(1), 4), "factor must be a number of 4 bytes, got a tensor"),
    ],
)
def test_arguments_that_do_not_fit(hip: BinaryModule, arguments: tuple, says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        hip.scale(*arguments, grid=1, block=64)
    assert says in caught.value.message
    assert caught.value.at is not None


def test_an_access_outside_of_a_tensor_is_at_the_line_of_the_source(hip: BinaryModule) -> None:
    with pytest.raises(SimulatorError, match=r"outside of x \(float32\[100\]") as caught:
        hip.scale(torch.zeros(100), torch.zeros(128), 1.0, 128, grid=2, block=64)
    assert "twice(x[i]) * factor" in str(caught.value.at.source_line)


@pytest.mark.parametrize("size", [0, (1, 2, 3, 4), "4", 2.0, True])
def test_wrong_sizes(hip: BinaryModule, size: object) -> None:
    with pytest.raises(LaunchError):
        hip.scale(torch.zeros(4), torch.zeros(4), 1.0, 4, grid=size, block=64)


def test_bounds_of_a_launch_hold() -> None:
    bounded = compile_hip(
        "#include <cmath>\n__global__ void __launch_bounds__(128) f(float *p) { p[threadIdx.x] = 1; }"
    )
    with pytest.raises(LaunchError, match="compiled for at most 128"):
        bounded.f(torch.zeros(256), grid=1, block=256)


@pytest.mark.parametrize(
    ("statement", "hint"), [('printf("%d", *p)', "write to a tensor"), ("hipMalloc(0)", "host's side is Python")]
)
def test_what_kernels_do_elsewhere(statement: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_hip(f"#include <cstdio>\n__global__ void f(int *p) {{ {statement}; }}")
    assert hint in str(caught.value.hint)


def test_a_kernel_that_is_not_there(hip: BinaryModule) -> None:
    with pytest.raises(AttributeError, match="did you mean scale"):
        hip.scal  # noqa: B018
    with pytest.raises(FlyError, match="no kernel 'nothing'"):
        hip.kernel("nothing")


# --- doubles

ROOTS = {
    "hip": """#include <hip/hip_runtime.h>
__global__ void roots(const double *x, double *y) { int i = threadIdx.x; y[i] = EXPRESSION; }""",
    "opencl": """__kernel void roots(__global const double *x, __global double *y) {
  int i = get_local_id(0); y[i] = EXPRESSION; }""",
}
COMPILE = {"hip": compile_hip, "opencl": compile_opencl}


@pytest.mark.parametrize("language", ROOTS)
def test_a_double_stays_one(language: str) -> None:
    expression = "sqrt(fabs(x[i])) + floor(2.5 * x[i]) * rsqrt(x[i] * x[i] + 1) + fmax(rint(x[i]), ceil(x[i]))"
    module = COMPILE[language](ROOTS[language].replace("EXPRESSION", expression))
    x = torch.linspace(-3, 3, 64, dtype=torch.float64)
    y = torch.zeros_like(x)
    module.roots(x, y, grid=1, block=64)
    expected = x.abs().sqrt() + (2.5 * x).floor() * (x * x + 1).rsqrt() + torch.maximum(x.round(), x.ceil())
    assert torch.allclose(y, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "exp2"])
@pytest.mark.parametrize("language", ROOTS)
def test_what_is_there_for_floats_alone_refuses_a_double(language: str, name: str) -> None:
    with pytest.raises(CompileError, match=f"no {name} of double here: take a float"):
        COMPILE[language](ROOTS[language].replace("EXPRESSION", f"{name}(x[i])"))
