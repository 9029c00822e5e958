"""HIP and OpenCL C for waves of 64 lanes on GPUs whose waves have 32 by default, in both backends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import torch

from flydsl import env
from flydsl.binary import BinaryModule, compile_hip, compile_opencl

pytestmark = pytest.mark.slow

LANES = 64
HIP = """\
#include <hip/hip_runtime.h>
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float4_ __attribute__((ext_vector_type(4)));
typedef int int4_ __attribute__((ext_vector_type(4)));

template <typename F> __device__ float over_the_group(float x, float *parts, F both) {
  for (int step = warpSize / 2; step > 0; step >>= 1) x = both(x, __shfl_xor(x, step));
  __syncthreads();
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = x;
  __syncthreads();
  x = parts[0];
  for (int i = 1; i < blockDim.x / warpSize; i++) x = both(x, parts[i]);
  return x;
}
__global__ void softmax(const float *x, float *y, int columns) {
  __shared__ float parts[16];
  const float *row = x + blockIdx.x * columns;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
  most = over_the_group(most, parts, [](float a, float b) { return fmaxf(a, b); });
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - most);
  sum = over_the_group(sum, parts, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}
__global__ void exchanges(const int *x, int *out, unsigned long long *votes) {
  int t = threadIdx.x, value = x[t];
  out[t] = __shfl(value, 63 - t);
  out[64 + t] = __shfl_up(value, 33);
  out[128 + t] = __shfl_down(value, 31);
  out[192 + t] = __builtin_amdgcn_ds_bpermute(4 * ((t + 40) & 63), value);
  out[256 + t] = __builtin_amdgcn_ds_permute(4 * ((t + 40) & 63), value);
  out[320 + t] = __builtin_amdgcn_update_dpp(-1, value, 0x111, 0xf, 0xf, false);  // row_shr:1
  out[384 + t] = __builtin_amdgcn_update_dpp(-1, value, 0x163, 0xf, 0xf, false);  // row_xmask:3
  out[448 + t] = __builtin_amdgcn_permlanex16(0, value, 0x76543210, 0xfedcba98, true, false);
  out[512 + t] = __builtin_amdgcn_permlane64(value);
  out[576 + t] = __builtin_amdgcn_mbcnt_hi(-1, __builtin_amdgcn_mbcnt_lo(-1, 0));
  out[640 + t] = __builtin_amdgcn_readlane(value, 45) + __builtin_amdgcn_readfirstlane(value);
  votes[0] = __ballot(value & 1);
  if (t >= 40) votes[1] = __ballot(1), out[704 + t] = __shfl_xor(value, 1);
  else out[704 + t] = -1;
  int steps = 0;
  for (int left = t; left > 0; left /= 2) steps++;
  out[768 + t] = steps;
}
__global__ void product(const _Float16 *a, const _Float16 *b, float *c, const int *ai, const int *bi, int *ci) {
  int lane = threadIdx.x % 16, first = threadIdx.x / 16;
  half16 row, column;
  for (int k = 0; k < 16; k++) row[k] = a[lane * 16 + k], column[k] = b[lane * 16 + k];
  float4_ sums = {1, 1, 1, 1};
  sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w64(row, column, sums);
  for (int i = 0; i < 4; i++) c[(4 * i + first) * 16 + lane] = sums[i];
  int4_ bytes_a = ((const int4_ *)ai)[lane], bytes_b = ((const int4_ *)bi)[lane], total = {0, 0, 0, 0};
  total = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w64(true, bytes_a, false, bytes_b, total, false);
  for (int i = 0; i < 4; i++) ci[(4 * i + first) * 16 + lane] = total[i];
}
"""
OPENCL = """\
kernel void sums(global const int *x, global int *out, local int *part) {
  int t = get_local_id(0), n = get_local_size(0);
  part[t] = x[get_global_id(0)];
  for (int step = n / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < step) part[t] += part[t + step];
  }
  if (t == 0) out[get_group_id(0)] = part[0];
  int lane = (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  if (t % 64 == 63) atomic_add(&out[get_num_groups(0)], lane);
}
"""


@cache
def hip(arch: str) -> BinaryModule:
    return compile_hip(HIP, arch=arch, options=["-mwavefrontsize64"])


@pytest.fixture(params=["gfx1100", "gfx1151"])
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["native", "lockstep"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[None]:
    with env.replaced({"FLYDSL_SIMULATOR_BACKEND": request.param}):
        yield


@pytest.mark.parametrize("threads", [64, 192])
@pytest.mark.diagonal(2)
def test_softmax(arch: str, threads: int) -> None:
    x = torch.randn(3, 200, generator=torch.Generator().manual_seed(0)) * 4
    y = torch.full_like(x, torch.nan)
    hip(arch).softmax(x, y, 200, grid=3, block=threads)
    torch.testing.assert_close(y, x.softmax(1), atol=1e-6, rtol=1e-5)


def test_exchanges_between_lanes(arch: str) -> None:
    x = torch.randint(0, 1000, (LANES,), generator=torch.Generator().manual_seed(1), dtype=torch.int32)
    out, votes = torch.zeros(832, dtype=torch.int32), torch.zeros(2, dtype=torch.int64)
    hip(arch).exchanges(x, out, votes, grid=1, block=LANES)
    t = torch.arange(LANES)
    in_row = torch.where(t % 16 == 0, -1, x[(t - 1).clamp(min=0)])
    expected = [
        x.flip(0),
        torch.where(t < 33, x, x[(t - 33).clamp(min=0)]),
        torch.where(t + 31 > 63, x, x[(t + 31).clamp(max=63)]),
        x[(t + 40) % 64],
        x[(t - 40) % 64],
        in_row,
        x[t ^ 3],
        x[t ^ 16],
        x[t ^ 32],
        t,
        (x[45] + x[0]).repeat(LANES),
        torch.where(t >= 40, x[t ^ 1], -1),
        torch.tensor([int(i).bit_length() for i in t]),
    ]
    for got, want in zip(out.view(-1, LANES), expected, strict=True):
        assert got.tolist() == want.tolist()
    odd = sum(int(bit) << lane for lane, bit in enumerate(x & 1))
    assert [vote % 2**64 for vote in votes.tolist()] == [odd, 2**64 - 2**40]


def test_matrix_products(arch: str) -> None:
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randint(-4, 5, (16, 16), generator=generator).half() for _ in range(2))
    ai = torch.randint(-128, 128, (16, 16), generator=generator).to(torch.int8)
    bi = torch.randint(0, 256, (16, 16), generator=generator).to(torch.uint8)
    c, ci = torch.zeros(16, 16), torch.zeros(16, 16, dtype=torch.int32)
    hip(arch).product(a, b, c, ai.view(torch.int32), bi.view(torch.int32), ci, grid=1, block=LANES)
    assert torch.equal(c, a.float() @ b.float().T + 1)
    assert torch.equal(ci.long(), ai.long() @ bi.long().T)


@pytest.mark.diagonal(2)
def test_groups_of_opencl(arch: str) -> None:
    module = compile_opencl(OPENCL, arch=arch, options=["-mwavefrontsize64"])
    x = torch.randint(-1000, 1000, (2, 128), generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    out = torch.zeros(3, dtype=torch.int32)
    module.sums(x, out, 0, grid=2, block=128, smem=512)
    assert out.tolist() == [*x.sum(1).tolist(), 4 * 63]
