// The counters of accesses under way: of vector memory, which end in order, and of LDS and scalar memory.

static void begin_vector(Wave *wave, u64 done) {
  u64 last = wave->vector_count ? wave->vector_done[(wave->vector_first + wave->vector_count - 1) % QUEUE] : 0;
  wave->vector_done[(wave->vector_first + wave->vector_count++) % QUEUE] = later(done, last);
}

static void begin_scalar(Wave *wave, u64 done) {
  u64 last = wave->scalar_count ? wave->scalar_done[(wave->scalar_first + wave->scalar_count - 1) % SCALAR_QUEUE] : 0;
  wave->scalar_done[(wave->scalar_first + wave->scalar_count++) % SCALAR_QUEUE] = later(done, last);
}

// Forget what has ended.
static void settle(Wave *wave, u64 time) {
  for (; wave->vector_count && wave->vector_done[wave->vector_first] <= time; wave->vector_count--)
    wave->vector_first = (wave->vector_first + 1) % QUEUE;
  for (; wave->scalar_count && wave->scalar_done[wave->scalar_first] <= time; wave->scalar_count--)
    wave->scalar_first = (wave->scalar_first + 1) % SCALAR_QUEUE;
  if (!wave->scalar_count) wave->scalar_loads = 0;
}

// When no more than `limit` are under way.
static u64 vector_waited(const Wave *wave, u64 limit) {
  if (wave->vector_count <= limit) return 0;
  return wave->vector_done[(wave->vector_first + wave->vector_count - limit - 1) % QUEUE];
}

static u64 scalar_waited(const Wave *wave, u64 limit) {
  if (wave->scalar_count <= limit) return 0;
  return wave->scalar_done[(wave->scalar_first + wave->scalar_count - limit - 1) % SCALAR_QUEUE];
}
