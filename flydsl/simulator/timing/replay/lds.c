// The LDS of a compute unit: a pass a cycle, of all waves together whose workgroups are behind the same pipe. Addresses and
// data come and go through ports, one for each pair of SIMDs.

static u64 lds_access(const Replay *replay, ComputeUnit *unit, const Wave *wave, const Instruction *instruction, const u32 *words, u64 count, u64 time) {
  u64 pair = wave->simd / 2, passes = 0;
  for (u64 i = 0; i < count; i++) passes += words[i] & ~LINE_WORD;
  Calendar *pipe = &unit->lds[replay->workgroups[wave->workgroup].lds_pipe];
  double done = fitted(pipe, (double)time, (double)later(passes, 1));
  done = later_of(done, fitted(&unit->lds_in[pair], (double)time, instruction->lds_in));
  done = later_of(done, fitted(&unit->lds_out[pair], (double)time, instruction->lds_out));
  return (u64)done + replay->gpu->lds_latency;
}
