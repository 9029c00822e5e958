// The vector memory path of a compute unit: addresses, the vector L1, and the way from the L2.

static u64 l1_place(const Gpu *gpu, const ComputeUnit *unit, u64 line, int *found) {
  u64 first = line % gpu->l1_sets * gpu->l1_ways, oldest = first;
  for (u64 way = first; way < first + gpu->l1_ways; way++) {
    if (unit->tags[way] == line + 1) {
      *found = 1;
      return way;
    }
    if (unit->used[way] < unit->used[oldest]) oldest = way;
  }
  *found = 0;
  return oldest;
}

static u64 line_read(Replay *replay, ComputeUnit *unit, u64 line, u64 time) {
  const Gpu *gpu = replay->gpu;
  int found;
  u64 place = l1_place(gpu, unit, line, &found);
  replay->l1_requests++;
  unit->used[place] = (u32)++replay->clock;
  if (found) return later(time + gpu->l1_latency, unit->filled[place]);
  u64 there = l2_read(replay, line, time);
  u64 done = (u64)served(&unit->return_free, (double)there, LINE_BYTES / gpu->l1_bytes_per_cycle);
  unit->tags[place] = (u32)line + 1;
  return unit->filled[place] = done;
}

// Bypasses the L1, which loses its line.
static u64 line_write(Replay *replay, ComputeUnit *unit, u64 line, u64 time) {
  int found;
  u64 place = l1_place(replay->gpu, unit, line, &found);
  if (found) unit->tags[place] = 0;
  return l2_write(replay, line, time);
}

// When an access of a wave ends. `words` are its lines, of half the size of those of the caches.
static u64 vector_access(Replay *replay, ComputeUnit *unit, u32 kind, const u32 *words, u64 count, u64 time) {
  const Gpu *gpu = replay->gpu;
  double bytes = (double)(count * WORDS_LINE), cycles = later_of((double)gpu->l1_address_cycles, bytes / gpu->l1_bytes_per_cycle);
  double addressed = served(&unit->l1_free, (double)time, cycles);
  u64 start = (u64)(addressed - cycles), done = (u64)addressed + gpu->l1_latency;
  for (u64 i = 0; i < count; i++) {
    u64 line = (words[i] & ~LINE_WORD) / (LINE_BYTES / WORDS_LINE);
    int is_repeated = i && (words[i - 1] & ~LINE_WORD) / (LINE_BYTES / WORDS_LINE) == line;
    if (is_repeated) continue;
    done = later(done, kind == STORE || kind == ATOMIC ? line_write(replay, unit, line, start) : line_read(replay, unit, line, start));
  }
  if (kind == LOAD_TO_LDS) done = later(done, (u64)served(&unit->lds_free, (double)done, bytes / LDS_BYTES_PER_CYCLE));
  return done;
}
