// Beyond the L2: the Infinity Cache and the memory behind it, of which a die has its share. Reads and writes of memory
// take turns.

static int was_seen(Replay *replay, u64 line) {
  u8 bit = (u8)(1 << line % 8), before = replay->seen[line / 8] & bit;
  replay->seen[line / 8] |= bit;
  return before != 0;
}

// A number in [0, 1) for a line, the same one each time.
static double chance_of(u64 line) { return (double)(line * 0x9E3779B97F4A7C15ull >> 11) * 0x1p-53; }

// The part of a line's buffer that this die is the first one to ask for.
static double first_share(const Replay *replay, u64 line) {
  u64 low = 0, high = replay->buffer_count;
  while (high - low > 1) {
    u64 middle = (low + high) / 2;
    if (replay->bases[middle] <= line * (LINE_BYTES / WORDS_LINE)) low = middle;
    else high = middle;
  }
  return replay->first_shares[low];
}

// When a line that the L2 does not have is there. One that another die asks for, too, is read from memory once.
static u64 fetched(Replay *replay, u64 line, u64 time) {
  const Gpu *gpu = replay->gpu;
  int seen = was_seen(replay, line);
  double chance = chance_of(line);
  double done = served(&replay->cache_free, (double)time, LINE_BYTES / gpu->cache_bytes_per_cycle);
  replay->cache_bytes += LINE_BYTES;
  int is_kept = seen && chance < gpu->cache_keeps;
  if (is_kept) return (u64)done + gpu->cache_latency;
  if (seen || chance < first_share(replay, line)) {
    done = later_of(done, served(&replay->memory_free, (double)time, LINE_BYTES / gpu->read_bytes_per_cycle));
    replay->read_bytes += LINE_BYTES;
  }
  return (u64)done + gpu->memory_latency;
}

// A line that will be written back. The wave does not wait for it. A cache without dirty lines takes it.
static void written_back(Replay *replay, u64 line, u64 time) {
  was_seen(replay, line);
  if (chance_of(line) < replay->gpu->cache_takes) {
    replay->cache_bytes += LINE_BYTES;
    served(&replay->cache_free, (double)time, LINE_BYTES / replay->gpu->cache_bytes_per_cycle);
    return;
  }
  replay->write_bytes += LINE_BYTES;
  served(&replay->memory_free, (double)time, LINE_BYTES / replay->gpu->write_bytes_per_cycle);
}
