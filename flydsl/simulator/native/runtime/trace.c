// Tracing: handlers that go before an instruction's own one and append its number to the wave's stream, and the observer
// that appends what an access touches. A word with a clear highest bit is an instruction. The words after it are its
// accesses: LDS passes, or a line of memory, of LINE_BYTES, counted through all buffers.
//
// It stands behind count.c, whose patterns tell the passes.

#define LDS_WORD 0x80000000u
#define LINE_WORD 0xC0000000u
#define LDS_BYTES_PER_PASS 128

static Stream *stream_of(const Wave *wave) {
  const CountingBlock *counting = wave->counting;
  return &counting->streams[(u64)((const u8 *)wave - counting->first_wave) / WAVE_STRIDE];
}

static void append(Stream *stream, u32 word) {
  if (stream->at < stream->end) *stream->at = word;
  stream->at++;
}

static u32 number_of(const Wave *wave, const Record *record) { return (u32)(record - wave->records); }

void trace(Wave *wave, const Record *record) {
  append(stream_of(wave), number_of(wave, record));
  GO_ON;
}

void trace_access(Wave *wave, const Record *record) {
  append(stream_of(wave), number_of(wave, record));
  wave->counting->entry = (Entry *)(wave->counting + 1) + (record - wave->records);
  wave->counting->part = 0;
  GO_ON;
}

// For an instruction whose result decides neither where a wave goes nor what it touches: it is not executed.
void trace_only(Wave *wave, const Record *record) {
  append(stream_of(wave), number_of(wave, record));
  __attribute__((musttail)) return record[1].handler(wave, record + 1);
}

// What an access takes at least, whatever the order of its lanes: a cycle of its bank for each dword, and for each lane
// of an atomic operation.
static u64 least_passes(CountingBlock *counting, const Pattern *pattern, u64 active, u64 size, const u64 *addresses) {
  u64 most = ((u64)__builtin_popcountll(active) * size + LDS_BYTES_PER_PASS - 1) / LDS_BYTES_PER_PASS;
  if (!counting->lds_banks) return most;
  counting->stamp++;
  __builtin_memset(counting->ways, 0, sizeof counting->ways);
  for (u64 rest = active; rest; rest &= rest - 1) {
    u64 first = addresses[first_lane(rest)];
    for (u64 dword = first / 4; dword <= (first + size - 1) / 4; dword++) {
      u64 *ways = &counting->ways[dword % counting->lds_banks];
      *ways += insert(counting, dword) | pattern->is_atomic;
      most = *ways > most ? *ways : most;
    }
  }
  return most;
}

static void record_lds(Wave *wave, u64 active, u64 size) {
  CountingBlock *counting = wave->counting;
  Pattern *pattern = counting->entry->pattern;
  const u64 *addresses = wave->workspace->addresses;
  if (!is_known(pattern, active, *(const u64x64 *)addresses, 3)) {
    if (pattern->rule) find_passes(counting, pattern, active, addresses);
    if (!pattern->rule || pattern->unaligned) pattern->result = least_passes(counting, pattern, active, size, addresses);
  }
  append(stream_of(wave), LDS_WORD | (u32)pattern->result);
}

// The number of an address's line among those of all buffers. Memory at its address on the host begins with a line,
// wherever that is: in every process it has the same lines.
static u64 line_of(const Wave *wave, u64 address) {
  const BufferEntry *buffer = buffer_at(wave, address);
  const u32 *first = wave->counting->line_base;
  u64 slot = (u64)(buffer - wave->buffers);
  if (slot < wave->buffer_count) return first[slot] + (address - buffer->base / LINE_BYTES * LINE_BYTES) / LINE_BYTES;
  return first[wave->buffer_count + (u64)(buffer - wave->in_place->entries)] + (address - buffer->base) / LINE_BYTES;
}

static void record_lines(Wave *wave, u64 active, u64 size) {
  CountingBlock *counting = wave->counting;
  Stream *stream = stream_of(wave);
  u64 before = ~0ull;
  if (!counting->part++) counting->stamp++;
  for (u64 rest = active; rest; rest &= rest - 1) {
    u64 address = wave->workspace->addresses[first_lane(rest)];
    u64 first = line_of(wave, address), last = line_of(wave, address + size - 1);
    for (u64 line = first; line <= last; line++) {
      if (line != before && insert(counting, line)) append(stream, LINE_WORD | (u32)line);
      before = line;
    }
  }
}

void record_access(Wave *wave, u64 active, u64 size, u64 space) {
  u64x64 aperture = addresses_of(wave->workspace) & ~0xFFFFFFFFull;
  u64 lds = space == SPACE_LDS ? active : 0, scratch = space == SPACE_SCRATCH ? active : 0;
  if (space == SPACE_FLAT) {
    lds = active & LANES_WHERE(aperture == SHARED_APERTURE);
    scratch = active & LANES_WHERE(aperture == PRIVATE_APERTURE);
  }
  u64 global = active & ~(lds | scratch);
  if (lds) record_lds(wave, lds, size);
  if (global) record_lines(wave, global, size);
}
