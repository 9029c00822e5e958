// Tracing: handlers that go before an instruction's own one and append its number to the wave's stream, and the observer
// that appends what an access touches. A word with a clear highest bit is an instruction. The words after it are its
// accesses: LDS passes, or a line of memory, of LINE_BYTES, counted through all buffers.
//
// It stands behind count.c, whose patterns tell the passes.

#define LDS_WORD 0x80000000u
#define LINE_WORD 0xC0000000u
#define LDS_BYTES_PER_PASS 128
#define MOST_SIGNALS 16
#define LONGEST_WAIT_LOOP 512  // words, as signals.py has it

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

static void record_scalar_lines(Wave *wave, u64 size) {
  u64 address = wave->workspace->addresses[0], last = line_of(wave, address + size - 1);
  for (u64 line = line_of(wave, address); line <= last; line++) append(stream_of(wave), LINE_WORD | (u32)line);
}

static SignalAccess signal_access(const Wave *wave, u64 lane, u64 size, i64 compared) {
  const CountingBlock *counting = wave->counting;
  u64 address = wave->workspace->addresses[lane];
  SignalAccess access = {.address = address, .at = (u64)stream_of(wave)->at, .group = counting->group, .bytes = (u32)size};
  access.wave = (u32)(((const u8 *)wave - counting->first_wave) / WAVE_STRIDE);
  access.instruction = (u32)(counting->entry - (const Entry *)(counting + 1));
  if (compared >= (i64)__builtin_offsetof(Wave, vgpr)) compared += (i64)(4 * lane);
  access.compared = *(const u32 *)((const u8 *)wave + compared);
  const BufferEntry *buffer = buffer_at(wave, address);
  __builtin_memcpy(&access.value, (const u8 *)(buffer->host + (address - buffer->base)), size);
  return access;
}

// Whether accesses are those that the wave logged last, made again after a round of a short loop.
static int is_same_look(const Stream *stream, const SignalAccess *accesses, u64 count) {
  if (!stream->look || (u64)(stream->look_end - stream->look) != count) return 0;
  for (u64 i = 0; i < count; i++) {
    const SignalAccess *a = &accesses[i], *b = &stream->look[i];
    if (a->instruction != b->instruction || a->address != b->address || a->value != b->value) return 0;
    if (a->compared != b->compared || (i64)(a->at - b->at) > (i64)(LONGEST_WAIT_LOOP * sizeof(u32))) return 0;
  }
  return 1;
}

// A signal is a dword or two that few lanes access: a flag, a counter, a ticket.
static void record_signals(Wave *wave, u64 active, u64 size) {
  const CountingBlock *counting = wave->counting;
  SignalLog *log = counting->signals;
  if (!log || (size != 4 && size != 8) || __builtin_popcountll(active) > MOST_SIGNALS) return;
  u64 instruction = (u64)(counting->entry - (const Entry *)(counting + 1)), count = 0;
  i64 compared = log->watched[instruction];
  SignalAccess found[MOST_SIGNALS];
  for (u64 rest = compared < 0 ? 0 : active; rest; rest &= rest - 1) {
    found[count] = signal_access(wave, first_lane(rest), size, compared);
    count += !count || found[count].address != found[count - 1].address;
  }
  if (!count) return;
  Stream *stream = stream_of(wave);
  if (is_same_look(stream, found, count)) {
    for (u64 i = 0; i < count; i++) stream->look[i].at = found[i].at;
    return;
  }
  int is_kept = (u64)(log->end - log->at) >= count && log->at <= log->end;
  if (is_kept) __builtin_memcpy(log->at, found, count * sizeof *found);
  stream->look = is_kept && log->looks[instruction] ? log->at : 0;
  stream->look_end = log->at + count;
  log->at += count;
}

void record_access(Wave *wave, u64 active, u64 size, u64 space, u64, const u64 *) {
  if (space == SPACE_SCALAR) {
    record_scalar_lines(wave, size);
    return;
  }
  u64x64 aperture = addresses_of(wave->workspace) & ~0xFFFFFFFFull;
  u64 lds = space == SPACE_LDS ? active : 0, scratch = space == SPACE_SCRATCH ? active : 0;
  if (space == SPACE_FLAT) {
    lds = active & LANES_WHERE(aperture == SHARED_APERTURE);
    scratch = active & LANES_WHERE(aperture == PRIVATE_APERTURE);
  }
  u64 global = active & ~(lds | scratch);
  if (lds) record_lds(wave, lds, size);
  if (global) record_signals(wave, global, size);
  if (global) record_lines(wave, global, size);
}
