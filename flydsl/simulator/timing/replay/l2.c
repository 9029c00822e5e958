// The L2 of a die: sets of lines, of which the one that was used longest ago makes room; channels by line.

enum { CLEAN, DIRTY, WRITTEN };  // WRITTEN: it has gone back beforehand, as too many lines waited to

static u64 l2_set(const Gpu *gpu, u64 line) { return (line ^ line / gpu->l2_sets * 7) % gpu->l2_sets; }

static u64 l2_place(const Replay *replay, u64 line, int *found) {
  return place_of(replay->l2_tags, replay->l2_used, l2_set(replay->gpu, line), replay->gpu->l2_ways, line, found);
}

static double l2_served(Replay *replay, u64 line, double time, double cycles) {
  u64 channel = (line ^ line / 16 ^ line / 256) % replay->gpu->l2_channels;
  return served(&replay->channel_free[channel], time, cycles);
}

// Bring a line to a place, whose dirty line goes back to memory.
static void l2_bring(Replay *replay, u64 place, u64 line, u64 filled, u64 time) {
  if (replay->l2_dirty[place] == DIRTY) {
    written_back(replay, replay->l2_tags[place] - 1, time);
    replay->l2_dirty_count--;
  }
  replay->l2_tags[place] = (u32)line + 1;
  replay->l2_filled[place] = filled;
  replay->l2_dirty[place] = CLEAN;
}

// When a line is there that a cache in front of the L2 asks for at `time`. latency: of a line that the L2 has.
static u64 l2_read(Replay *replay, u64 line, u64 time, u64 latency) {
  int found;
  u64 place = l2_place(replay, line, &found);
  u64 done = (u64)l2_served(replay, line, (double)time, LINE_BYTES / replay->gpu->l2_read_bytes) + latency;
  replay->l2_requests++;
  replay->l2_used[place] = (u32)++replay->clock;
  if (found) return later(done, replay->l2_filled[place]);
  replay->l2_misses++;
  l2_bring(replay, place, line, fetched(replay, line, time), time);
  return replay->l2_filled[place];
}

// A line is dirty until it makes room or the launch ends. Where a part of the die's work is replayed, no more lines wait
// than are its share. A line goes back once, however often it is stored to.
static void l2_soil(Replay *replay, u64 place, u64 line, u64 time) {
  if (replay->l2_dirty[place] != CLEAN) return;
  if (replay->l2_dirty_count == replay->gpu->l2_dirty_lines) {
    written_back(replay, line, time);
    replay->l2_dirty[place] = WRITTEN;
    return;
  }
  replay->l2_dirty[place] = DIRTY;
  replay->l2_dirty_count++;
}

// When the L2 has taken a line from a store.
static u64 l2_write(Replay *replay, u64 line, u64 time) {
  int found;
  u64 place = l2_place(replay, line, &found);
  double done = l2_served(replay, line, (double)time, LINE_BYTES / replay->gpu->l2_write_bytes);
  replay->l2_used[place] = (u32)++replay->clock;
  if (!found) l2_bring(replay, place, line, (u64)done, time);
  l2_soil(replay, place, line, time);
  return (u64)done + replay->gpu->l2_latency;
}

// When the L2 has added to a line, which must be there. requests: one for each half of the line.
static u64 l2_add(Replay *replay, u64 line, u64 requests, u64 time) {
  int found;
  u64 place = l2_place(replay, line, &found);
  if (!found) l2_bring(replay, place, line, fetched(replay, line, time), time);
  replay->l2_used[place] = (u32)++replay->clock;
  u64 done = (u64)l2_served(replay, line, (double)time, (double)(requests * replay->gpu->l2_atomic_cycles));
  l2_soil(replay, place, line, time);
  return later(done, replay->l2_filled[place]) + replay->gpu->l2_latency;
}

// The end of the launch: other dies must find what it wrote, so that dirty lines go back. When they are there.
static u64 l2_clean(Replay *replay, u64 time) {
  const Gpu *gpu = replay->gpu;
  if (!replay->l2_dirty_count) return time;
  for (u64 place = 0; place < gpu->l2_sets * gpu->l2_ways; place++)
    if (replay->l2_dirty[place] == DIRTY) written_back(replay, replay->l2_tags[place] - 1, time);
  return (u64)later_of(replay->memory_free, replay->cache_free) + gpu->cache_latency - gpu->l2_latency;
}
