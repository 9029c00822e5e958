// The vector memory path: addresses, a vector L1 of the compute unit, and the way from the L2.

static u64 l1_place(const Gpu *gpu, const VectorCache *cache, u64 line, int *found) {
  return place_of(cache->tags, cache->used, line % gpu->l1_sets, gpu->l1_ways, line, found);
}

static u64 line_read(Replay *replay, VectorCache *cache, u64 line, u64 time) {
  const Gpu *gpu = replay->gpu;
  int found;
  u64 place = l1_place(gpu, cache, line, &found);
  replay->l1_requests++;
  cache->used[place] = (u32)++replay->clock;
  if (found) return later(time + gpu->l1_latency, cache->filled[place]);
  replay->l1_misses++;
  u64 there = l2_read(replay, line, time, gpu->l2_latency);
  u64 done = (u64)fitted(&cache->from_l2, (double)there, LINE_BYTES / gpu->l1_fill_bytes_per_cycle);
  cache->tags[place] = (u32)line + 1;
  return cache->filled[place] = done;
}

// Bypasses the L1, which loses its line.
// adds: how many halves of the line an atomic operation adds to.
static u64 line_write(Replay *replay, VectorCache *cache, u64 line, u64 adds, u64 time) {
  int found;
  u64 place = l1_place(replay->gpu, cache, line, &found);
  if (found) cache->tags[place] = 0;
  return adds ? l2_add(replay, line, adds, time) : l2_write(replay, line, time);
}

static u64 line_at(u32 word) { return (word & ~LINE_WORD) / (LINE_BYTES / WORDS_LINE); }

// When an access of a wave ends. `words` are its lines, of half the size of those of the caches.
static u64 vector_access(Replay *replay, ComputeUnit *unit, const Wave *wave, const Instruction *instruction, const u32 *words, u64 count, u64 time) {
  const Gpu *gpu = replay->gpu;
  VectorCache *cache = &unit->l1[wave->simd * gpu->l1_caches / gpu->simds];
  int is_atomic = instruction->kind == ATOMIC, is_write = is_atomic || instruction->kind == STORE;
  double bytes = (double)(count * WORDS_LINE), cycles = later_of((double)instruction->addressing, bytes / gpu->l1_bytes_per_cycle);
  double addressed = served(&cache->free, (double)time, cycles);
  u64 start = (u64)(addressed - cycles), done = (u64)addressed + gpu->l1_latency;
  for (u64 i = 0, same; i < count; i += same) {
    u64 line = line_at(words[i]);
    for (same = 1; i + same < count && line_at(words[i + same]) == line;) same++;
    u64 adds = is_atomic ? same : 0;
    u64 there = is_write ? line_write(replay, cache, line, adds, start) : line_read(replay, cache, line, start);
    done = later(done, there);
  }
  if (instruction->kind != LOAD_TO_LDS) return done;
  Calendar *pipe = &unit->lds[replay->workgroups[wave->workgroup].lds_pipe];
  return (u64)fitted(pipe, (double)done, bytes / gpu->lds_bytes_per_cycle);
}
