// Checks addresses, and finds what they mean on the host.
//
// resolve_<space>(wave, active lanes, bytes, is a write, host) reads 64 addresses from the workspace, and returns
// whether every active lane may access that many bytes; if so, `host` has an address of the host for every lane.

// Whether an access of `size` bytes touches a gap of a buffer: see gaps.py.
static int touches_gap(const BufferEntry *buffer, u64 offset, u64 size) {
  for (i64 i = 0; i < buffer->row_count; i++) {
    offset %= buffer->rows[i].stride;
    if (offset + size > buffer->rows[i].extent) return 1;
  }
  return 0;
}

static f64x64 floor_quotient(f64x64 offsets, double stride) {
  return __builtin_elementwise_floor(offsets * (1.0 / stride));
}

// Whether one of 64 accesses does. Offsets are below 2^35, so that doubles have them, and their products, exactly; what
// is beyond by one row because 1 / stride was rounded is put right. A double whose lowest bits count ones: an integer
// below 2^52, or'ed into 2^52, is added to it.
static int some_touch_gap(const BufferEntry *buffer, u64x64 starts, i64 size) {
  u64x64 shifted = starts | 0x4330000000000000;
  f64x64 offsets;
  __builtin_memcpy(&offsets, &shifted, sizeof offsets);
  offsets -= 0x1p52;
  for (i64 i = 0; i < buffer->row_count; i++) {
    double stride = (double)buffer->rows[i].stride;
    offsets -= floor_quotient(offsets, stride) * stride;
    offsets = offsets < 0.0 ? offsets + stride : offsets;
    offsets = offsets >= stride ? offsets - stride : offsets;
    if (LANES_WHERE(offsets > (double)((i64)buffer->rows[i].extent - size))) return 1;
  }
  return 0;
}

// The last entry that begins at or below an address, or null.
static const BufferEntry *in_place_at(const InPlace *in_place, u64 address) {
  u64 end = __atomic_load_n(&in_place->count, __ATOMIC_ACQUIRE), first = 0;
  const BufferEntry *entries = __atomic_load_n(&in_place->entries, __ATOMIC_RELAXED);
  while (first < end) {
    u64 middle = (first + end) / 2;
    if (entries[middle].base <= address) first = middle + 1;
    else end = middle;
  }
  return first ? &entries[first - 1] : 0;
}

// The entry for an address, or null for an address of no buffer.
static const BufferEntry *buffer_at(const Wave *wave, u64 address) {
  u64 slot = address >> SLOT_SHIFT;
  if (slot < wave->buffer_count && wave->buffers[slot].host) return &wave->buffers[slot];
  return in_place_at(wave->in_place, address);
}

// How many bytes from its base an access of `size` bytes may reach in a buffer: to the end of its last dword, or its
// own. See memory.py.
static i64 reach(const BufferEntry *buffer, i64 size) {
  if (size < 4 || !buffer->size) return buffer->size;
  return (i64)(((u64)buffer->base + (u64)buffer->size + 3 & ~3ull) - (u64)buffer->base);
}

// Where `size` bytes at a global address are on the host, or 0. `row_size` bytes of them must lie in one row.
static u64 host_of(const Wave *wave, u64 address, i64 size, u64 row_size, u64 is_write) {
  const BufferEntry *buffer = buffer_at(wave, address);
  if (!buffer || (is_write && !buffer->writable)) return 0;
  u64 offset = address - buffer->base;
  i64 last = reach(buffer, size) - size;
  if (last < 0 || offset > (u64)last || touches_gap(buffer, offset, row_size)) return 0;
  return buffer->host + offset;
}

// Where a scalar load reads; null where it may not.
const void *resolve_scalar(const Wave *wave, u64 address, i64 size, u64 takes_place) {
  if (!takes_place) return wave->workspace->nowhere;
  return (const void *)host_of(wave, address, size, 1, 0);
}

// What stands in for the lanes that do not take part.
static u64 elsewhere(const Workspace *workspace, u64 is_write) {
  return (u64)(is_write ? workspace->dump : workspace->nowhere);
}

// Lane by lane: the lanes may mean different buffers or memories. 0 for an address that may not be accessed.
static u64 flat_host_of(const Wave *wave, u64 lane, u64 address, i64 size, u64 is_write) {
  u64 aperture = address & ~0xFFFFFFFFull, offset = address & 0xFFFFFFFF;
  if (aperture == SHARED_APERTURE) return offset + (u64)size <= (u64)wave->lds_bytes ? wave->lds + offset : 0;
  if (aperture == PRIVATE_APERTURE)
    return offset + (u64)size <= (u64)wave->scratch_bytes ? wave->scratch + lane * (u64)wave->scratch_stride + offset : 0;
  return host_of(wave, address, size, (u64)size, is_write);
}

static u64 resolve_each(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host, int is_flat) {
  for (u64 lane = 0; lane < LANES; lane++) {
    host[lane] = elsewhere(wave->workspace, is_write);
    if (!(active >> lane & 1)) continue;
    u64 address = wave->workspace->addresses[lane];
    host[lane] = is_flat ? flat_host_of(wave, lane, address, size, is_write)
                         : host_of(wave, address, size, (u64)size, is_write);
    if (!host[lane]) return 0;
  }
  return 1;
}

// Most often all lanes mean one buffer of global memory, that of the first active lane: whether they do.
static int are_in_one_buffer(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host) {
  const BufferEntry *buffer = buffer_at(wave, wave->workspace->addresses[first_lane(active)]);
  if (!buffer || (is_write && !buffer->writable) || reach(buffer, size) < size) return 0;
  u64x64 offsets = addresses_of(wave->workspace) - buffer->base;
  u64x64 relevant = mask_of(active) ? offsets : 0;
  if (__builtin_reduce_max(relevant) > (u64)(reach(buffer, size) - size)) return 0;
  if (buffer->row_count && some_touch_gap(buffer, relevant, size)) return 0;
  *(u64x64 *)host = mask_of(active) ? offsets + buffer->host : elsewhere(wave->workspace, is_write);
  return 1;
}

static u64 resolve_any(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host, int is_flat) {
  if (!active) {
    *(u64x64 *)host = elsewhere(wave->workspace, is_write);
    return 1;
  }
  return are_in_one_buffer(wave, active, size, is_write, host) ||
         resolve_each(wave, active, size, is_write, host, is_flat);
}

u64 resolve_flat(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host) {
  return resolve_any(wave, active, size, is_write, host, 1);
}

u64 resolve_global(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host) {
  return resolve_any(wave, active, size, is_write, host, 0);
}

// LDS and scratch: offsets below a limit. Each lane has a part of its own, `stride` bytes after its neighbour's.
static u64 resolve_local(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host, u64x64 memory, i64 limit) {
  u64x64 offsets = addresses_of(wave->workspace);
  u64 furthest = __builtin_reduce_max(mask_of(active) ? offsets : 0);
  if (active && furthest + (u64)size > (u64)limit) return 0;
  *(u64x64 *)host = mask_of(active) ? offsets + memory : elsewhere(wave->workspace, is_write);
  return 1;
}

u64 resolve_lds(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host) {
  return resolve_local(wave, active, size, is_write, host, wave->lds, wave->lds_bytes);
}

u64 resolve_scratch(const Wave *wave, u64 active, i64 size, u64 is_write, u64 *host) {
  u64x64 memory = LANE_NUMBERS * (u64)wave->scratch_stride + wave->scratch;
  return resolve_local(wave, active, size, is_write, host, memory, wave->scratch_bytes);
}
