// The scalar cache of a compute unit, whose lines have half the size of those of the other caches. Whoever asks for a line
// on its way waits for it, too.

static u64 scalar_line(Replay *replay, ScalarCache *cache, u64 line, u64 time) {
  const Gpu *gpu = replay->gpu;
  int found;
  u64 place = place_of(cache->tags, cache->used, line % SCALAR_SETS, SCALAR_WAYS, line, &found);
  cache->used[place] = (u32)++replay->clock;
  if (found) return later(time + gpu->scalar_hit_latency, cache->filled[place]);
  cache->tags[place] = (u32)line + 1;
  return cache->filled[place] = l2_read(replay, line / (LINE_BYTES / WORDS_LINE), time, gpu->scalar_miss_latency);
}

// When a load ends that reads the lines `words`; one of the clock has none.
static u64 scalar_access(Replay *replay, ComputeUnit *unit, const u32 *words, u64 count, u64 time) {
  u64 done = time + replay->gpu->scalar_hit_latency;
  for (u64 i = 0; i < count; i++) done = later(done, scalar_line(replay, &unit->scalar, words[i] & ~LINE_WORD, time));
  return done;
}
