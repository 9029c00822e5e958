// Checks the addresses of lanes, and finds what they mean on the host.
//
// resolve_<space>(wave, active lanes, bytes, loads, stores or atomic, host) reads 64 addresses from the workspace, and returns
// whether every active lane may access that many bytes; if so, `host` has an address of the host for every lane.

// Lanes are looked at eight at a time: LLVM takes a quarter of a second for the same code on 64 at once, which is no
// quicker then.
typedef u64 u64x8 __attribute__((ext_vector_type(8), aligned(64)));
typedef double f64x8 __attribute__((ext_vector_type(8), aligned(64)));
typedef _Bool Mask8 __attribute__((ext_vector_type(8)));

#define EACH_EIGHT_LANES _Pragma("clang loop unroll(disable)") for (u64 lane = 0; lane < LANES; lane += 8)

static Mask8 eight_of(u64 active, u64 lane) {
  u8 bits = (u8)(active >> lane);
  Mask8 mask;
  __builtin_memcpy(&mask, &bits, sizeof bits);
  return mask;
}

// The offsets of eight lanes from a base; 0 for those that are not active.
static u64x8 offsets_of(const Workspace *workspace, u64 active, u64 lane, u64 base) {
  u64x8 addresses = *(const u64x8 *)&workspace->addresses[lane];
  return eight_of(active, lane) ? addresses - base : 0;
}

static u64 furthest_offset(const Workspace *workspace, u64 active, u64 base) {
  u64x8 furthest = 0;
  EACH_EIGHT_LANES furthest = __builtin_elementwise_max(furthest, offsets_of(workspace, active, lane, base));
  return __builtin_reduce_max(furthest);
}

static f64x8 floor_quotient(f64x8 offsets, double stride) {
  return __builtin_elementwise_floor(offsets * (1.0 / stride));
}

// Whether one of eight accesses touches a gap of a buffer: see gaps.py. Offsets are below 2^35, so that doubles have
// them, and their products, exactly; what is beyond by one row because 1 / stride was rounded is put right. A double
// whose lowest bits count ones: an integer below 2^52, or'ed into 2^52, is added to it.
static int touch_gap(const BufferEntry *buffer, u64x8 starts, i64 size) {
  u64x8 shifted = starts | 0x4330000000000000;
  f64x8 offsets;
  __builtin_memcpy(&offsets, &shifted, sizeof offsets);
  offsets -= 0x1p52;
  for (i64 i = 0; i < buffer->row_count; i++) {
    double stride = (double)buffer->rows[i].stride;
    offsets -= floor_quotient(offsets, stride) * stride;
    offsets = offsets < 0.0 ? offsets + stride : offsets;
    offsets = offsets >= stride ? offsets - stride : offsets;
    Mask8 touches = __builtin_convertvector(offsets > (double)((i64)buffer->rows[i].extent - size), Mask8);
    if (__builtin_reduce_or(touches)) return 1;
  }
  return 0;
}

static int some_touch_gap(const Workspace *workspace, u64 active, const BufferEntry *buffer, i64 size) {
  EACH_EIGHT_LANES if (touch_gap(buffer, offsets_of(workspace, active, lane, buffer->base), size)) return 1;
  return 0;
}

// Where a scalar load reads; null where it may not.
const void *resolve_scalar(const Wave *wave, u64 address, i64 size, u64 takes_place) {
  if (!takes_place) return wave->workspace->nowhere;
  u64 host = host_of(wave, address, size, 1, LOADS);
  if (wave->observer && host) {
    wave->workspace->addresses[0] = address;
    wave->observer((Wave *)wave, 1, (u64)size, SPACE_SCALAR, LOADS, &host);
  }
  return (const void *)host;
}

// What stands in for the lanes that do not take part.
static u64 elsewhere(const Workspace *workspace, u64 access) {
  return (u64)(access == LOADS ? workspace->nowhere : workspace->dump);
}

// What the addresses of lanes mean whose memories begin `stride` bytes one after the other.
static void place(const Workspace *workspace, u64 active, u64 access, u64 *host, u64 base, u64 stride) {
  u64x8 memory = base + (u64x8){0, 1, 2, 3, 4, 5, 6, 7} * stride, other = elsewhere(workspace, access);
  EACH_EIGHT_LANES {
    u64x8 addresses = *(const u64x8 *)&workspace->addresses[lane];
    *(u64x8 *)&host[lane] = eight_of(active, lane) ? addresses + memory : other;
    memory += 8 * stride;
  }
}

// How many bytes of LDS an access of `size` bytes may reach: to the end of the last dword, as `reach` in place.c.
static i64 lds_reach(const Wave *wave, i64 size) {
  return size < 4 ? wave->lds_bytes : wave->lds_bytes + 3 & ~3ll;
}

// Lane by lane: the lanes may mean different buffers or memories. 0 for an address that may not be accessed.
static u64 flat_host_of(const Wave *wave, u64 lane, u64 address, i64 size, u64 access) {
  u64 aperture = address & ~0xFFFFFFFFull, offset = address & 0xFFFFFFFF;
  if (aperture == SHARED_APERTURE) return offset + (u64)size <= (u64)lds_reach(wave, size) ? wave->lds + offset : 0;
  if (aperture == PRIVATE_APERTURE)
    return offset + (u64)size <= (u64)wave->scratch_bytes ? wave->scratch + lane * (u64)wave->scratch_stride + offset : 0;
  return host_of(wave, address, size, (u64)size, access);
}

static u64 resolve_each(const Wave *wave, u64 active, i64 size, u64 access, u64 *host, int is_flat) {
  for (u64 lane = 0; lane < LANES; lane++) {
    host[lane] = elsewhere(wave->workspace, access);
    if (!(active >> lane & 1)) continue;
    u64 address = wave->workspace->addresses[lane];
    host[lane] = is_flat ? flat_host_of(wave, lane, address, size, access)
                         : host_of(wave, address, size, (u64)size, access);
    if (!host[lane]) return 0;
  }
  return 1;
}

// Most often all lanes mean one buffer of global memory, that of the first active lane: whether they do.
static int are_in_one_buffer(const Wave *wave, u64 active, i64 size, u64 access, u64 *host) {
  const BufferEntry *buffer = buffer_at(wave, wave->workspace->addresses[first_lane(active)]);
  if (!buffer || (access != LOADS && !buffer->writable) || reach(buffer, size, access) < size) return 0;
  if (furthest_offset(wave->workspace, active, buffer->base) > (u64)(reach(buffer, size, access) - size)) return 0;
  if (buffer->row_count && some_touch_gap(wave->workspace, active, buffer, size)) return 0;
  place(wave->workspace, active, access, host, buffer->host - buffer->base, 0);
  return 1;
}

static u64 resolve_any(const Wave *wave, u64 active, i64 size, u64 access, u64 *host, int is_flat) {
  if (!active) {
    place(wave->workspace, 0, access, host, 0, 0);
    return 1;
  }
  return are_in_one_buffer(wave, active, size, access, host) ||
         resolve_each(wave, active, size, access, host, is_flat);
}

u64 resolve_flat(const Wave *wave, u64 active, i64 size, u64 access, u64 *host) {
  return resolve_any(wave, active, size, access, host, 1);
}

u64 resolve_global(const Wave *wave, u64 active, i64 size, u64 access, u64 *host) {
  return resolve_any(wave, active, size, access, host, 0);
}

// LDS and scratch: offsets below a limit. Each lane has a part of its own, `stride` bytes after its neighbour's.
static u64 resolve_local(
    const Wave *wave, u64 active, i64 size, u64 access, u64 *host, u64 memory, u64 stride, i64 limit
) {
  if (active && furthest_offset(wave->workspace, active, 0) + (u64)size > (u64)limit) return 0;
  place(wave->workspace, active, access, host, memory, stride);
  return 1;
}

u64 resolve_lds(const Wave *wave, u64 active, i64 size, u64 access, u64 *host) {
  return resolve_local(wave, active, size, access, host, wave->lds, 0, lds_reach(wave, size));
}

u64 resolve_scratch(const Wave *wave, u64 active, i64 size, u64 access, u64 *host) {
  u64 stride = (u64)wave->scratch_stride;
  return resolve_local(wave, active, size, access, host, wave->scratch, stride, wave->scratch_bytes);
}
