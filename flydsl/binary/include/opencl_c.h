// What kernels of OpenCL C use of its library, by clang's builtins: positions, barriers, atomics and mathematics.
#pragma once

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define FLYDSL_VECTORS(type)                             \
  typedef type type##2 __attribute__((ext_vector_type(2))); \
  typedef type type##3 __attribute__((ext_vector_type(3))); \
  typedef type type##4 __attribute__((ext_vector_type(4))); \
  typedef type type##8 __attribute__((ext_vector_type(8))); \
  typedef type type##16 __attribute__((ext_vector_type(16)));
FLYDSL_VECTORS(char)
FLYDSL_VECTORS(uchar)
FLYDSL_VECTORS(short)
FLYDSL_VECTORS(ushort)
FLYDSL_VECTORS(int)
FLYDSL_VECTORS(uint)
FLYDSL_VECTORS(long)
FLYDSL_VECTORS(ulong)
FLYDSL_VECTORS(half)
FLYDSL_VECTORS(float)
FLYDSL_VECTORS(double)

#define FLYDSL_F static inline __attribute__((overloadable, always_inline))

// --- positions -------------------------------------------------------------------------------------------------------

#define FLYDSL_BY_DIMENSION(builtin) (d == 0 ? builtin##_x() : d == 1 ? builtin##_y() : d == 2 ? builtin##_z() : 0)
#define FLYDSL_SIZE(builtin) (d == 0 ? builtin##_x() : d == 1 ? builtin##_y() : d == 2 ? builtin##_z() : 1)
FLYDSL_F size_t get_local_id(uint d) { return FLYDSL_BY_DIMENSION(__builtin_amdgcn_workitem_id); }
FLYDSL_F size_t get_group_id(uint d) { return FLYDSL_BY_DIMENSION(__builtin_amdgcn_workgroup_id); }
FLYDSL_F size_t get_local_size(uint d) { return FLYDSL_SIZE(__builtin_amdgcn_workgroup_size); }
FLYDSL_F size_t get_global_size(uint d) { return FLYDSL_SIZE(__builtin_amdgcn_grid_size); }
FLYDSL_F size_t get_num_groups(uint d) { return get_global_size(d) / get_local_size(d); }
FLYDSL_F size_t get_global_offset(uint d) { return 0; }
FLYDSL_F size_t get_global_id(uint d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }
FLYDSL_F uint get_sub_group_local_id(void) {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

// --- synchronization and atomics -------------------------------------------------------------------------------------

typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2

FLYDSL_F __attribute__((convergent)) void barrier(cl_mem_fence_flags flags) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
FLYDSL_F __attribute__((convergent)) void work_group_barrier(cl_mem_fence_flags flags) { barrier(flags); }
FLYDSL_F void mem_fence(cl_mem_fence_flags flags) { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }

#define FLYDSL_ATOMIC(name, operation, space, type) \
  FLYDSL_F type name(volatile space type *place, type value) { return operation(place, value, __ATOMIC_RELAXED); }
#define FLYDSL_ATOMICS_OF(name, operation, a, b)  \
  FLYDSL_ATOMIC(name, operation, global, a)       \
  FLYDSL_ATOMIC(name, operation, global, b)       \
  FLYDSL_ATOMIC(name, operation, local, a)        \
  FLYDSL_ATOMIC(name, operation, local, b)
#define FLYDSL_ATOMICS(name, operation)                    \
  FLYDSL_ATOMICS_OF(atomic_##name, operation, int, uint)   \
  FLYDSL_ATOMICS_OF(atom_##name, operation, int, uint)     \
  FLYDSL_ATOMICS_OF(atom_##name, operation, long, ulong)
FLYDSL_ATOMICS(add, __atomic_fetch_add)
FLYDSL_ATOMICS(sub, __atomic_fetch_sub)
FLYDSL_ATOMICS(min, __atomic_fetch_min)
FLYDSL_ATOMICS(max, __atomic_fetch_max)
FLYDSL_ATOMICS(and, __atomic_fetch_and)
FLYDSL_ATOMICS(or, __atomic_fetch_or)
FLYDSL_ATOMICS(xor, __atomic_fetch_xor)
FLYDSL_ATOMICS(xchg, __atomic_exchange_n)
#define atomic_inc(place) atomic_add(place, 1)
#define atomic_dec(place) atomic_sub(place, 1)
#define atom_inc(place) atom_add(place, 1)
#define atom_dec(place) atom_sub(place, 1)

#define FLYDSL_COMPARE(name, space, type)                                                          \
  FLYDSL_F type name(volatile space type *place, type expected, type value) {                      \
    __atomic_compare_exchange_n(place, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return expected;                                                                               \
  }
FLYDSL_COMPARE(atomic_cmpxchg, global, int)
FLYDSL_COMPARE(atomic_cmpxchg, global, uint)
FLYDSL_COMPARE(atomic_cmpxchg, local, int)
FLYDSL_COMPARE(atomic_cmpxchg, local, uint)
FLYDSL_COMPARE(atom_cmpxchg, global, int)
FLYDSL_COMPARE(atom_cmpxchg, global, uint)
FLYDSL_COMPARE(atom_cmpxchg, global, long)
FLYDSL_COMPARE(atom_cmpxchg, global, ulong)
FLYDSL_COMPARE(atom_cmpxchg, local, long)
FLYDSL_COMPARE(atom_cmpxchg, local, ulong)

typedef enum {
  memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
  memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
  memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
  memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
} memory_scope;
typedef enum {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST,
} memory_order;
#define atomic_init(place, value) __opencl_atomic_init(place, value)
#define atomic_load_explicit(place, order, scope) __opencl_atomic_load(place, order, scope)
#define atomic_store_explicit(place, value, order, scope) __opencl_atomic_store(place, value, order, scope)
#define atomic_exchange_explicit(place, value, order, scope) __opencl_atomic_exchange(place, value, order, scope)
#define atomic_compare_exchange_strong_explicit(place, expected, value, success, failure, scope) \
  __opencl_atomic_compare_exchange_strong(place, expected, value, success, failure, scope)
#define atomic_compare_exchange_weak_explicit(place, expected, value, success, failure, scope) \
  __opencl_atomic_compare_exchange_weak(place, expected, value, success, failure, scope)
#define atomic_fetch_add_explicit(place, value, order, scope) __opencl_atomic_fetch_add(place, value, order, scope)
#define atomic_fetch_sub_explicit(place, value, order, scope) __opencl_atomic_fetch_sub(place, value, order, scope)
#define atomic_fetch_min_explicit(place, value, order, scope) __opencl_atomic_fetch_min(place, value, order, scope)
#define atomic_fetch_max_explicit(place, value, order, scope) __opencl_atomic_fetch_max(place, value, order, scope)
#define atomic_fetch_and_explicit(place, value, order, scope) __opencl_atomic_fetch_and(place, value, order, scope)
#define atomic_fetch_or_explicit(place, value, order, scope) __opencl_atomic_fetch_or(place, value, order, scope)
#define atomic_fetch_xor_explicit(place, value, order, scope) __opencl_atomic_fetch_xor(place, value, order, scope)
#define FLYDSL_WHOLE memory_order_seq_cst, memory_scope_device
#define atomic_load(place) __opencl_atomic_load(place, FLYDSL_WHOLE)
#define atomic_store(place, value) __opencl_atomic_store(place, value, FLYDSL_WHOLE)
#define atomic_exchange(place, value) __opencl_atomic_exchange(place, value, FLYDSL_WHOLE)
#define atomic_fetch_add(place, value) __opencl_atomic_fetch_add(place, value, FLYDSL_WHOLE)
#define atomic_fetch_sub(place, value) __opencl_atomic_fetch_sub(place, value, FLYDSL_WHOLE)
#define atomic_fetch_min(place, value) __opencl_atomic_fetch_min(place, value, FLYDSL_WHOLE)
#define atomic_fetch_max(place, value) __opencl_atomic_fetch_max(place, value, FLYDSL_WHOLE)

// --- mathematics -----------------------------------------------------------------------------------------------------

#define FLYDSL_MATH_OF(name, builtin, type) FLYDSL_F type name(type x) { return builtin(x); }
#define FLYDSL_MATH(name, builtin)          \
  FLYDSL_MATH_OF(name, builtin, float)      \
  FLYDSL_MATH_OF(name, builtin, float2)     \
  FLYDSL_MATH_OF(name, builtin, float4)
FLYDSL_MATH(exp, __builtin_elementwise_exp)
FLYDSL_MATH(exp2, __builtin_elementwise_exp2)
FLYDSL_MATH(log, __builtin_elementwise_log)
FLYDSL_MATH(log2, __builtin_elementwise_log2)
FLYDSL_MATH(sqrt, __builtin_elementwise_sqrt)
FLYDSL_MATH(sin, __builtin_elementwise_sin)
FLYDSL_MATH(cos, __builtin_elementwise_cos)
FLYDSL_MATH(floor, __builtin_elementwise_floor)
FLYDSL_MATH(ceil, __builtin_elementwise_ceil)
FLYDSL_MATH(trunc, __builtin_elementwise_trunc)
FLYDSL_MATH(rint, __builtin_elementwise_rint)
FLYDSL_MATH(round, __builtin_elementwise_round)
FLYDSL_MATH(fabs, __builtin_elementwise_abs)
FLYDSL_MATH(native_exp, __builtin_elementwise_exp)
FLYDSL_MATH(native_log, __builtin_elementwise_log)
FLYDSL_MATH(native_sqrt, __builtin_elementwise_sqrt)
// Without these a double would become a float on the way, and nobody would know.
#define FLYDSL_ABSENT(name) \
  FLYDSL_F double name(double x) __attribute__((unavailable("there is no " #name " of double here: take a float")));
FLYDSL_MATH_OF(sqrt, __builtin_elementwise_sqrt, double)
FLYDSL_MATH_OF(floor, __builtin_elementwise_floor, double)
FLYDSL_MATH_OF(ceil, __builtin_elementwise_ceil, double)
FLYDSL_MATH_OF(trunc, __builtin_elementwise_trunc, double)
FLYDSL_MATH_OF(rint, __builtin_elementwise_rint, double)
FLYDSL_MATH_OF(round, __builtin_elementwise_round, double)
FLYDSL_MATH_OF(fabs, __builtin_elementwise_abs, double)
FLYDSL_ABSENT(exp)
FLYDSL_ABSENT(exp2)
FLYDSL_ABSENT(log)
FLYDSL_ABSENT(log2)
FLYDSL_ABSENT(sin)
FLYDSL_ABSENT(cos)
FLYDSL_ABSENT(tanh)
FLYDSL_ABSENT(native_exp)
FLYDSL_ABSENT(native_log)
FLYDSL_ABSENT(native_sqrt)
FLYDSL_ABSENT(native_rsqrt)
FLYDSL_ABSENT(native_recip)
FLYDSL_F double pow(double x, double y) __attribute__((unavailable("there is no pow of double here: take floats")));
FLYDSL_F double rsqrt(double x) { return 1.0 / sqrt(x); }
FLYDSL_F double fma(double a, double b, double c) { return __builtin_elementwise_fma(a, b, c); }
FLYDSL_F double mad(double a, double b, double c) { return a * b + c; }
FLYDSL_F double fmax(double a, double b) { return __builtin_elementwise_maxnum(a, b); }
FLYDSL_F double fmin(double a, double b) { return __builtin_elementwise_minnum(a, b); }
FLYDSL_F double max(double a, double b) { return __builtin_elementwise_maxnum(a, b); }
FLYDSL_F double min(double a, double b) { return __builtin_elementwise_minnum(a, b); }
FLYDSL_F double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }
FLYDSL_F float rsqrt(float x) { return 1.0f / sqrt(x); }
FLYDSL_F float native_rsqrt(float x) { return 1.0f / sqrt(x); }
FLYDSL_F float native_recip(float x) { return 1.0f / x; }
FLYDSL_F float pow(float x, float y) { return __builtin_elementwise_exp2(y * __builtin_elementwise_log2(x)); }
FLYDSL_F float tanh(float x) { return 1.0f - 2.0f / (exp(2.0f * x) + 1.0f); }
FLYDSL_F float fma(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
FLYDSL_F float mad(float a, float b, float c) { return a * b + c; }
FLYDSL_F float fmax(float a, float b) { return __builtin_elementwise_maxnum(a, b); }
FLYDSL_F float fmin(float a, float b) { return __builtin_elementwise_minnum(a, b); }
FLYDSL_F float max(float a, float b) { return __builtin_elementwise_maxnum(a, b); }
FLYDSL_F float min(float a, float b) { return __builtin_elementwise_minnum(a, b); }
FLYDSL_F float clamp(float x, float low, float high) { return fmin(fmax(x, low), high); }
FLYDSL_F float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
FLYDSL_F int max(int a, int b) { return a > b ? a : b; }
FLYDSL_F int min(int a, int b) { return a < b ? a : b; }
FLYDSL_F uint max(uint a, uint b) { return a > b ? a : b; }
FLYDSL_F uint min(uint a, uint b) { return a < b ? a : b; }
FLYDSL_F long max(long a, long b) { return a > b ? a : b; }
FLYDSL_F long min(long a, long b) { return a < b ? a : b; }
FLYDSL_F ulong max(ulong a, ulong b) { return a > b ? a : b; }
FLYDSL_F ulong min(ulong a, ulong b) { return a < b ? a : b; }
FLYDSL_F int clamp(int x, int low, int high) { return min(max(x, low), high); }
FLYDSL_F uint clamp(uint x, uint low, uint high) { return min(max(x, low), high); }
FLYDSL_F long clamp(long x, long low, long high) { return min(max(x, low), high); }
FLYDSL_F ulong clamp(ulong x, ulong low, ulong high) { return min(max(x, low), high); }
FLYDSL_F uint abs(int x) { return x < 0 ? -(uint)x : x; }
FLYDSL_F ulong abs(long x) { return x < 0 ? -(ulong)x : x; }
FLYDSL_F int popcount(int x) { return __builtin_popcount(x); }
FLYDSL_F uint popcount(uint x) { return __builtin_popcount(x); }
FLYDSL_F long popcount(long x) { return __builtin_popcountl(x); }
FLYDSL_F ulong popcount(ulong x) { return __builtin_popcountl(x); }
// type has so many bits; larger and unsigned_ are the integers of twice the size, and without a sign.
#define FLYDSL_INTEGER(type, unsigned_, larger, bits)                                                       \
  FLYDSL_F type clz(type x) { return __builtin_clzg((unsigned_)x, bits); }                                  \
  FLYDSL_F type ctz(type x) { return __builtin_ctzg((unsigned_)x, bits); }                                  \
  FLYDSL_F type mul_hi(type a, type b) { return ((larger)a * b) >> bits; }                                  \
  FLYDSL_F type mad_hi(type a, type b, type c) { return (unsigned_)mul_hi(a, b) + (unsigned_)c; }           \
  FLYDSL_F type hadd(type a, type b) { return ((larger)a + b) >> 1; }                                       \
  FLYDSL_F type rhadd(type a, type b) { return ((larger)a + b + 1) >> 1; }                                  \
  FLYDSL_F type add_sat(type a, type b) { return __builtin_elementwise_add_sat(a, b); }                     \
  FLYDSL_F type sub_sat(type a, type b) { return __builtin_elementwise_sub_sat(a, b); }                     \
  FLYDSL_F unsigned_ abs_diff(type a, type b) { return a > b ? (unsigned_)a - b : (unsigned_)b - a; }       \
  FLYDSL_F type rotate(type x, type n) { return __builtin_rotateleft##bits((unsigned_)x, (unsigned_)n); }
FLYDSL_INTEGER(int, uint, long, 32)
FLYDSL_INTEGER(uint, uint, ulong, 32)
FLYDSL_INTEGER(long, ulong, __int128, 64)
FLYDSL_INTEGER(ulong, ulong, unsigned __int128, 64)
FLYDSL_F uint abs(uint x) { return x; }
FLYDSL_F ulong abs(ulong x) { return x; }
FLYDSL_F float mix(float x, float y, float a) { return x + (y - x) * a; }
FLYDSL_F float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
FLYDSL_F float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f; }
FLYDSL_F int mad24(int a, int b, int c) { return a * b + c; }
FLYDSL_F int mul24(int a, int b) { return a * b; }

#define convert_float(x) ((float)(x))
#define convert_int(x) ((int)(x))
#define convert_uint(x) ((uint)(x))
#define convert_half(x) ((half)(x))
#define convert_float4(x) __builtin_convertvector(x, float4)
#define convert_int4(x) __builtin_convertvector(x, int4)
#define as_float(x) __builtin_astype(x, float)
#define as_int(x) __builtin_astype(x, int)
#define as_uint(x) __builtin_astype(x, uint)
#define as_half(x) __builtin_astype(x, half)
#define as_short(x) __builtin_astype(x, short)
#define as_ushort(x) __builtin_astype(x, ushort)
#define as_long(x) __builtin_astype(x, long)
#define as_ulong(x) __builtin_astype(x, ulong)
#define as_double(x) __builtin_astype(x, double)

#define FLYDSL_VECTOR_LOAD(type, n, space)                    \
  FLYDSL_F type##n vload##n(size_t i, const space type *p) { \
    type##n v;                                               \
    __builtin_memcpy(&v, p + n * i, sizeof(type) * n);       \
    return v;                                                \
  }
#define FLYDSL_VECTOR_STORE(type, n, space) \
  FLYDSL_F void vstore##n(type##n v, size_t i, space type *p) { __builtin_memcpy(p + n * i, &v, sizeof(type) * n); }
#define FLYDSL_VECTOR_MEMORY(type, n)    \
  FLYDSL_VECTOR_LOAD(type, n, constant)  \
  FLYDSL_VECTOR_LOAD(type, n, global)    \
  FLYDSL_VECTOR_LOAD(type, n, local)     \
  FLYDSL_VECTOR_LOAD(type, n, private)   \
  FLYDSL_VECTOR_STORE(type, n, global)   \
  FLYDSL_VECTOR_STORE(type, n, local)    \
  FLYDSL_VECTOR_STORE(type, n, private)
FLYDSL_VECTOR_MEMORY(float, 2)
FLYDSL_VECTOR_MEMORY(float, 4)
FLYDSL_VECTOR_MEMORY(int, 2)
FLYDSL_VECTOR_MEMORY(int, 4)
FLYDSL_VECTOR_MEMORY(half, 4)
FLYDSL_VECTOR_MEMORY(half, 8)
