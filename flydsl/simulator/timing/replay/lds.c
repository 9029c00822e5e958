// The LDS of a compute unit: a pass a cycle, of all waves together.

static u64 lds_access(const Replay *replay, ComputeUnit *unit, const u32 *words, u64 count, u64 time) {
  u64 passes = 0;
  for (u64 i = 0; i < count; i++) passes += words[i] & ~LINE_WORD;
  return (u64)served(&unit->lds_free, (double)time, (double)later(passes, 1)) + replay->gpu->lds_latency;
}
