// What HIP kernels use of ROCm's header, by clang's builtins: positions, shared memory, barriers, shuffles, atomics,
// vectors and mathematics. There is no host side: kernels are launched from Python.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define FLYDSL_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define FLYDSL_BOUNDS_2(threads, waves) FLYDSL_BOUNDS_1(threads) __attribute__((amdgpu_waves_per_eu(waves)))
#define FLYDSL_BOUNDS(one, two, which, ...) which
#define __launch_bounds__(...) FLYDSL_BOUNDS(__VA_ARGS__, FLYDSL_BOUNDS_2, FLYDSL_BOUNDS_1)(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define FLYDSL_D static __device__ inline __attribute__((always_inline))

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef unsigned int uint;
typedef _Float16 __half;
typedef _Float16 half;
typedef __bf16 __hip_bfloat16;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define warpSize ((int)__builtin_amdgcn_wavefrontsize())

struct dim3 {
  unsigned x, y, z;
};

// --- positions -------------------------------------------------------------------------------------------------------

#define FLYDSL_POSITION(name, read)                                          \
  struct name##_t {                                                          \
    __declspec(property(get = _x)) unsigned x;                               \
    __declspec(property(get = _y)) unsigned y;                               \
    __declspec(property(get = _z)) unsigned z;                               \
    __device__ unsigned _x() const { return read(x); }                        \
    __device__ unsigned _y() const { return read(y); }                        \
    __device__ unsigned _z() const { return read(z); }                        \
    __device__ operator dim3() const { return {read(x), read(y), read(z)}; }    \
  };                                                                         \
  static const __device__ name##_t name = {};

#define FLYDSL_THREAD(d) __builtin_amdgcn_workitem_id_##d()
#define FLYDSL_BLOCK(d) __builtin_amdgcn_workgroup_id_##d()
#define FLYDSL_BLOCK_SIZE(d) __builtin_amdgcn_workgroup_size_##d()
#define FLYDSL_GRID_SIZE(d) (__builtin_amdgcn_grid_size_##d() / __builtin_amdgcn_workgroup_size_##d())

FLYDSL_POSITION(threadIdx, FLYDSL_THREAD)
FLYDSL_POSITION(blockIdx, FLYDSL_BLOCK)
FLYDSL_POSITION(blockDim, FLYDSL_BLOCK_SIZE)
FLYDSL_POSITION(gridDim, FLYDSL_GRID_SIZE)

// --- synchronization -------------------------------------------------------------------------------------------------

FLYDSL_D void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
FLYDSL_D void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
FLYDSL_D void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
FLYDSL_D void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

// --- lanes -----------------------------------------------------------------------------------------------------------

FLYDSL_D unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

template <typename T> FLYDSL_D T flydsl_of_lane(T value, int lane) {
  static_assert(sizeof(T) % 4 == 0 || sizeof(T) < 4, "a shuffle moves 1, 2, 4, 8, ... bytes");
  int words[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (int &word : words)
    word = __builtin_amdgcn_ds_bpermute(4 * lane, word);
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
template <typename T> FLYDSL_D T __shfl(T value, int source, int width = warpSize) {
  int self = __lane_id();
  return flydsl_of_lane(value, (self & ~(width - 1)) + (source & (width - 1)));
}
template <typename T> FLYDSL_D T __shfl_up(T value, unsigned delta, int width = warpSize) {
  int self = __lane_id(), from = self - (int)delta;
  return flydsl_of_lane(value, from < (self & ~(width - 1)) ? self : from);
}
template <typename T> FLYDSL_D T __shfl_down(T value, unsigned delta, int width = warpSize) {
  int self = __lane_id(), from = self + (int)delta;
  return flydsl_of_lane(value, (self & (width - 1)) + (int)delta >= width ? self : from);
}
template <typename T> FLYDSL_D T __shfl_xor(T value, int mask, int width = warpSize) {
  int self = __lane_id(), from = self ^ mask;
  return flydsl_of_lane(value, from >= ((self + width) & ~(width - 1)) ? self : from);
}
FLYDSL_D unsigned long long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
FLYDSL_D int __any(int predicate) { return __ballot(predicate) != 0; }
FLYDSL_D int __all(int predicate) { return __ballot(!predicate) == 0; }

// --- atomics ---------------------------------------------------------------------------------------------------------

// Values take the type of the place, as with HIP's overloads: atomicAdd(&of_unsigned, 1).
template <typename T> struct FlydslSame {
  typedef T type;
};
#define FLYDSL_SAME typename FlydslSame<T>::type
#define FLYDSL_ATOMIC(name, operation)                                          \
  template <typename T> FLYDSL_D T name(T *place, FLYDSL_SAME value) {          \
    return operation(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
FLYDSL_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
FLYDSL_ATOMIC(atomicMin, __hip_atomic_fetch_min)
FLYDSL_ATOMIC(atomicMax, __hip_atomic_fetch_max)
FLYDSL_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
FLYDSL_ATOMIC(atomicOr, __hip_atomic_fetch_or)
FLYDSL_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
FLYDSL_ATOMIC(atomicExch, __hip_atomic_exchange)
template <typename T> FLYDSL_D T atomicSub(T *place, FLYDSL_SAME value) { return atomicAdd(place, (T)-value); }
template <typename T> FLYDSL_D T atomicCAS(T *place, FLYDSL_SAME expected, FLYDSL_SAME value) {
  __hip_atomic_compare_exchange_strong(place, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

// --- vectors ---------------------------------------------------------------------------------------------------------

#define FLYDSL_VECTORS(type, name)                                                                       \
  typedef type name##2 __attribute__((ext_vector_type(2)));                                              \
  typedef type name##4 __attribute__((ext_vector_type(4)));                                              \
  struct name##3 {                                                                                       \
    type x, y, z;                                                                                        \
  };                                                                                                     \
  FLYDSL_D name##2 make_##name##2(type x, type y) { return (name##2){x, y}; }                            \
  FLYDSL_D name##3 make_##name##3(type x, type y, type z) { return (name##3){x, y, z}; }                 \
  FLYDSL_D name##4 make_##name##4(type x, type y, type z, type w) { return (name##4){x, y, z, w}; }
FLYDSL_VECTORS(float, float)
FLYDSL_VECTORS(double, double)
FLYDSL_VECTORS(int, int)
FLYDSL_VECTORS(unsigned, uint)
FLYDSL_VECTORS(short, short)
FLYDSL_VECTORS(unsigned char, uchar)

// --- mathematics -----------------------------------------------------------------------------------------------------

#define FLYDSL_MATH(name, builtin)                                            \
  FLYDSL_D float name##f(float x) { return builtin(x); }                      \
  FLYDSL_D float name(float x) { return builtin(x); }
FLYDSL_MATH(exp, __builtin_elementwise_exp)
FLYDSL_MATH(exp2, __builtin_elementwise_exp2)
FLYDSL_MATH(log, __builtin_elementwise_log)
FLYDSL_MATH(log2, __builtin_elementwise_log2)
FLYDSL_MATH(log10, __builtin_elementwise_log10)
FLYDSL_MATH(sqrt, __builtin_elementwise_sqrt)
FLYDSL_MATH(sin, __builtin_elementwise_sin)
FLYDSL_MATH(cos, __builtin_elementwise_cos)
FLYDSL_MATH(floor, __builtin_elementwise_floor)
FLYDSL_MATH(ceil, __builtin_elementwise_ceil)
FLYDSL_MATH(trunc, __builtin_elementwise_trunc)
FLYDSL_MATH(rint, __builtin_elementwise_rint)
FLYDSL_MATH(round, __builtin_elementwise_round)
FLYDSL_MATH(fabs, __builtin_elementwise_abs)
FLYDSL_D float rsqrtf(float x) { return 1.0f / sqrtf(x); }
FLYDSL_D float rsqrt(float x) { return 1.0f / sqrtf(x); }
FLYDSL_D float __expf(float x) { return expf(x); }
FLYDSL_D float __logf(float x) { return logf(x); }
FLYDSL_D float __sinf(float x) { return sinf(x); }
FLYDSL_D float __cosf(float x) { return cosf(x); }
FLYDSL_D float powf(float x, float y) { return __builtin_elementwise_exp2(y * __builtin_elementwise_log2(x)); }
FLYDSL_D float tanhf(float x) { return 1.0f - 2.0f / (expf(2.0f * x) + 1.0f); }
FLYDSL_D float fmaf(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
FLYDSL_D double fma(double a, double b, double c) { return __builtin_elementwise_fma(a, b, c); }
FLYDSL_D double sqrt(double x) { return __builtin_elementwise_sqrt(x); }
FLYDSL_D double fabs(double x) { return __builtin_elementwise_abs(x); }
FLYDSL_D double floor(double x) { return __builtin_elementwise_floor(x); }
FLYDSL_D double ceil(double x) { return __builtin_elementwise_ceil(x); }
FLYDSL_D double trunc(double x) { return __builtin_elementwise_trunc(x); }
FLYDSL_D double rint(double x) { return __builtin_elementwise_rint(x); }
FLYDSL_D double round(double x) { return __builtin_elementwise_round(x); }
FLYDSL_D double rsqrt(double x) { return 1.0 / sqrt(x); }
FLYDSL_D double fmax(double a, double b) { return __builtin_elementwise_maxnum(a, b); }
FLYDSL_D double fmin(double a, double b) { return __builtin_elementwise_minnum(a, b); }
// Without these a double would become a float on the way, and nobody would know.
#define FLYDSL_ABSENT(name) \
  FLYDSL_D double name(double x) __attribute__((unavailable("there is no " #name " of double here: take a float")));
FLYDSL_ABSENT(exp)
FLYDSL_ABSENT(exp2)
FLYDSL_ABSENT(log)
FLYDSL_ABSENT(log2)
FLYDSL_ABSENT(log10)
FLYDSL_ABSENT(sin)
FLYDSL_ABSENT(cos)
FLYDSL_D float fmaxf(float a, float b) { return __builtin_elementwise_maxnum(a, b); }
FLYDSL_D float fminf(float a, float b) { return __builtin_elementwise_minnum(a, b); }
FLYDSL_D int abs(int x) { return x < 0 ? -x : x; }
FLYDSL_D long abs(long x) { return x < 0 ? -x : x; }
FLYDSL_D long long abs(long long x) { return x < 0 ? -x : x; }
FLYDSL_D float abs(float x) { return __builtin_elementwise_abs(x); }
FLYDSL_D double abs(double x) { return __builtin_elementwise_abs(x); }
template <typename T> FLYDSL_D T max(T a, T b) { return a < b ? b : a; }
template <typename T> FLYDSL_D T min(T a, T b) { return b < a ? b : a; }
FLYDSL_D int __popc(unsigned x) { return __builtin_popcount(x); }
FLYDSL_D int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
FLYDSL_D int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
FLYDSL_D int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
FLYDSL_D int __ffs(int x) { return __builtin_ffs(x); }
FLYDSL_D int __ffsll(long long x) { return __builtin_ffsll(x); }
FLYDSL_D unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
FLYDSL_D unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
FLYDSL_D int __mulhi(int a, int b) { return (long long)a * b >> 32; }
FLYDSL_D unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
FLYDSL_D long long __mul64hi(long long a, long long b) { return (__int128)a * b >> 64; }
FLYDSL_D unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned __int128)a * b >> 64;
}
FLYDSL_D float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
FLYDSL_D int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
FLYDSL_D float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
FLYDSL_D unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
FLYDSL_D double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
FLYDSL_D long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
FLYDSL_D float __half2float(__half x) { return (float)x; }
FLYDSL_D __half __float2half(float x) { return (__half)x; }
template <typename T> FLYDSL_D T __ldg(const T *place) { return *place; }
