// Where a global address is on the host.

// Whether an access of `size` bytes touches a gap of a buffer: see gaps.py.
static int touches_gap(const BufferEntry *buffer, u64 offset, u64 size) {
  for (i64 i = 0; i < buffer->row_count; i++) {
    offset %= buffer->rows[i].stride;
    if (offset + size > buffer->rows[i].extent) return 1;
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

// Whether an access may reach the ends of dwords that are in a buffer in part: see memory.py.
static int has_whole_dwords(i64 size, u64 access) { return size >= 4 && access != STORES; }

// How many bytes from its base an access of `size` bytes may reach in a buffer.
static i64 reach(const BufferEntry *buffer, i64 size, u64 access) {
  if (!has_whole_dwords(size, access) || !buffer->size) return buffer->size;
  return (i64)((buffer->base + (u64)buffer->size + 3 & ~3ull) - buffer->base);
}

// Whether one of the four bytes of a dword belongs to an element.
static int holds_an_element(const BufferEntry *buffer, u64 offset) {
  for (u64 byte = 0; byte < 4; byte++)
    if (offset + byte < (u64)buffer->size && !touches_gap(buffer, offset + byte, 1)) return 1;
  return 0;
}

// Where `size` bytes at a global address are on the host, or 0. `row_size` bytes of them must lie in one row.
static u64 host_of(const Wave *wave, u64 address, i64 size, u64 row_size, u64 access) {
  const BufferEntry *buffer = buffer_at(wave, address);
  if (!buffer || (access != LOADS && !buffer->writable)) return 0;
  int whole = has_whole_dwords(size, access);
  u64 offset = address - buffer->base, lead = whole ? buffer->base & 3 : 0;
  i64 last = reach(buffer, size, access) - size + (i64)lead;
  if (last < 0 || offset + lead > (u64)last) return 0;
  int touches = buffer->row_count && (offset + lead < lead || touches_gap(buffer, offset, row_size));
  return touches && !(whole && size == 4 && holds_an_element(buffer, offset)) ? 0 : buffer->host + offset;
}
