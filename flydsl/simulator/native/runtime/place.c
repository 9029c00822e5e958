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
