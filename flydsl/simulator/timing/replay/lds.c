// The LDS of a compute unit: a pass a cycle, of all waves together whose workgroups are behind the same pipe.

static u64 lds_access(const Replay *replay, ComputeUnit *unit, u64 pipe, const u32 *words, u64 count, u64 time) {
  u64 passes = 0;
  for (u64 i = 0; i < count; i++) passes += words[i] & ~LINE_WORD;
  return (u64)fitted(&unit->lds[pipe], (double)time, (double)later(passes, 1)) + replay->gpu->lds_latency;
}
