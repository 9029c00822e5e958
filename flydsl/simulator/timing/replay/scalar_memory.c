// The scalar cache. Addresses of scalar loads are not recorded: the first execution of an instruction on a compute unit
// misses, the first one on the die goes to memory.

static u64 scalar_access(Replay *replay, ComputeUnit *unit, u32 instruction, u64 time) {
  const Gpu *gpu = replay->gpu;
  u64 latency = gpu->scalar_hit_latency;
  if (!unit->scalar_seen[instruction])
    latency = replay->scalar_seen[instruction] ? gpu->scalar_miss_latency : gpu->memory_latency;
  unit->scalar_seen[instruction] = replay->scalar_seen[instruction] = 1;
  return time + latency;
}
