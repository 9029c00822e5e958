// What all units begin with. Before it stand the integer types, the constants and the structures of layout.py.
//
// Times are cycles. A unit that serves one request after the other has a time at which it is free; a request starts
// then or when it comes, whichever is later, so that the end of an access is known when it is made.

#define LINE_BYTES 128
#define WORDS_LINE 64  // bytes of a line in a stream

static u64 later(u64 a, u64 b) { return a > b ? a : b; }
static double later_of(double a, double b) { return a > b ? a : b; }

// The place of a line in its set of a cache, or that of the one that was used longest ago, which makes room for it.
// `found` says which.
static u64 place_of(const u32 *tags, const u32 *used, u64 set, u64 ways, u64 line, int *found) {
  u64 first = set * ways, oldest = first;
  for (u64 way = first; way < first + ways; way++) {
    if (tags[way] == line + 1) {
      *found = 1;
      return way;
    }
    if (used[way] < used[oldest]) oldest = way;
  }
  *found = 0;
  return oldest;
}

// When a unit is done with a request that comes at `time` and takes `cycles`.
static double served(double *free, double time, double cycles) {
  *free = later_of(*free, time) + cycles;
  return *free;
}
