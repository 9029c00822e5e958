// The L2 of a die: sets of lines, of which the one that was used longest ago makes room; channels by line.

static u64 l2_set(const Gpu *gpu, u64 line) { return (line ^ line / gpu->l2_sets * 7) % gpu->l2_sets; }

// The place of a line, or that of the one that makes room for it. `found` says which.
static u64 l2_place(const Replay *replay, u64 line, int *found) {
  u64 first = l2_set(replay->gpu, line) * replay->gpu->l2_ways, oldest = first;
  for (u64 way = first; way < first + replay->gpu->l2_ways; way++) {
    if (replay->l2_tags[way] == line + 1) {
      *found = 1;
      return way;
    }
    if (replay->l2_used[way] < replay->l2_used[oldest]) oldest = way;
  }
  *found = 0;
  return oldest;
}

static double l2_served(Replay *replay, u64 line, double time, double cycles) {
  u64 channel = (line ^ line / 16 ^ line / 256) % replay->gpu->l2_channels;
  return served(&replay->channel_free[channel], time, cycles);
}

// When a line that is asked for at `time` leaves the L2.
static u64 l2_read(Replay *replay, u64 line, u64 time) {
  int found;
  u64 place = l2_place(replay, line, &found);
  u64 done = (u64)l2_served(replay, line, (double)time, LINE_BYTES / replay->gpu->l2_read_bytes) + replay->gpu->l2_latency;
  replay->l2_requests++;
  replay->l2_used[place] = (u32)++replay->clock;
  if (found) return later(done, replay->l2_filled[place]);
  replay->l2_misses++;
  replay->l2_tags[place] = (u32)line + 1;
  replay->l2_dirty[place] = 0;
  return replay->l2_filled[place] = fetched(replay, line, time);
}

// When the L2 has taken a line from a store. Memory gets it back once for each time that it becomes dirty: not right then,
// but a launch among repeated ones writes back as much as it leaves behind.
static u64 l2_write(Replay *replay, u64 line, u64 time) {
  int found;
  u64 place = l2_place(replay, line, &found);
  double done = l2_served(replay, line, (double)time, LINE_BYTES / replay->gpu->l2_write_bytes);
  replay->l2_used[place] = (u32)++replay->clock;
  if (!found) {
    replay->l2_tags[place] = (u32)line + 1;
    replay->l2_filled[place] = (u64)done;
    replay->l2_dirty[place] = 0;
  }
  if (!replay->l2_dirty[place]) written_back(replay, line, time);
  replay->l2_dirty[place] = 1;
  return (u64)done + replay->gpu->l2_latency;
}

// When the L2 has added to a line, which must be there. requests: one for each half of the line.
static u64 l2_add(Replay *replay, u64 line, u64 requests, u64 time) {
  int found;
  u64 place = l2_place(replay, line, &found);
  if (!found) {
    replay->l2_tags[place] = (u32)line + 1;
    replay->l2_filled[place] = fetched(replay, line, time);
    replay->l2_dirty[place] = 0;
  }
  replay->l2_used[place] = (u32)++replay->clock;
  u64 done = (u64)l2_served(replay, line, (double)time, (double)(requests * replay->gpu->l2_atomic_cycles));
  if (!replay->l2_dirty[place]) written_back(replay, line, time);
  replay->l2_dirty[place] = 1;
  return later(done, replay->l2_filled[place]) + replay->gpu->l2_latency;
}
