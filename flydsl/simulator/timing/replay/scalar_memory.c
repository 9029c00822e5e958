// The scalar cache. Addresses of scalar loads are not recorded: the first execution of an instruction on a compute unit
// misses, the first one on the die goes to memory, and whoever asks before its data is there waits for it, too.

static u64 scalar_access(Replay *replay, ComputeUnit *unit, u32 instruction, u64 time) {
  const Gpu *gpu = replay->gpu;
  u64 *there = &unit->scalar_filled[instruction], *of_die = &replay->scalar_filled[instruction];
  if (!*of_die) *of_die = time + gpu->memory_latency;
  if (!*there) *there = later(time + gpu->scalar_miss_latency, *of_die);
  return later(time + gpu->scalar_hit_latency, *there);
}
