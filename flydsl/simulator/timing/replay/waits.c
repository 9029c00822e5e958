// The counters of accesses under way: those of a counter end in order.

static void begin_access(Wave *wave, u64 counter, u64 done) {
  u64 *queue = &wave->done[counter * QUEUE], next = wave->first[counter] + wave->count[counter];
  u64 last = wave->count[counter] ? queue[(next - 1) % QUEUE] : 0;
  queue[next % QUEUE] = later(done, last);
  wave->count[counter]++;
}

// Forget what has ended.
static void settle(Wave *wave, u64 time) {
  for (u64 counter = 0; counter < COUNTERS; counter++)
    for (; wave->count[counter] && wave->done[counter * QUEUE + wave->first[counter]] <= time; wave->count[counter]--)
      wave->first[counter] = (wave->first[counter] + 1) % QUEUE;
  if (!wave->count[LDS_COUNTER]) wave->scalar_loads = 0;
}

// When no more than `limit` are under way.
static u64 waited(const Wave *wave, u64 counter, u64 limit) {
  if (wave->count[counter] <= limit) return 0;
  return wave->done[counter * QUEUE + (wave->first[counter] + wave->count[counter] - limit - 1) % QUEUE];
}

static u64 reason_of(const Wave *wave, u64 counter) {
  if (counter == SCALAR_COUNTER || (counter == LDS_COUNTER && wave->scalar_loads)) return WAIT_SCALAR;
  return counter == LDS_COUNTER ? WAIT_LDS : WAIT_VECTOR_MEMORY;
}
