// Workgroups: where they go, and their barriers.

static void push(Replay *replay, u32 wave, u64 key);

static u64 emptiest_simd(const ComputeUnit *unit, u64 preferred) {
  u64 best = preferred % SIMDS;
  for (u64 i = 1; i < SIMDS; i++) {
    u64 simd = (preferred + i) % SIMDS;
    if (unit->waves_on_simd[simd] < unit->waves_on_simd[best]) best = simd;
  }
  return best;
}

static void start_workgroup(Replay *replay, u64 compute_unit, u64 time) {
  Workgroup *workgroup = &replay->workgroups[replay->next_workgroup++];
  ComputeUnit *unit = &replay->compute_units[compute_unit];
  workgroup->compute_unit = compute_unit;
  workgroup->start = time;
  workgroup->running = workgroup->wave_count;
  unit->resident++;
  for (u64 w = 0; w < workgroup->wave_count; w++) {
    Wave *wave = &replay->waves[workgroup->first_wave + w];
    wave->compute_unit = compute_unit;
    wave->simd = emptiest_simd(unit, w);
    wave->slot = unit->waves_on_simd[wave->simd]++;
    wave->start = wave->ready = time;
    wave->reason = NONE;
    push(replay, (u32)(workgroup->first_wave + w), time);
  }
}

// As many as fit, one die's compute units in turn.
static void start_first_workgroups(Replay *replay) {
  const Gpu *gpu = replay->gpu;
  u64 room = gpu->compute_units * gpu->workgroups_per_compute_unit, time = 0;
  for (u64 i = 0; i < room && replay->next_workgroup < replay->workgroup_count; i++) {
    time += gpu->dispatch_cycles * replay->workgroups[replay->next_workgroup].wave_count;
    start_workgroup(replay, i % gpu->compute_units, time);
  }
}

static void release_barrier(Replay *replay, Workgroup *workgroup, u64 time) {
  for (u64 w = 0; w < workgroup->wave_count; w++) {
    Wave *wave = &replay->waves[workgroup->first_wave + w];
    if (!wave->at_barrier) continue;
    wave->at_barrier = 0;
    wave->barrier_stall = time - wave->ready;
    wave->ready = time + replay->gpu->barrier_cycles;
    push(replay, (u32)(workgroup->first_wave + w), wave->ready);
  }
  workgroup->at_barrier = 0;
}

static void end_wave(Replay *replay, Wave *wave, u64 time) {
  Workgroup *workgroup = &replay->workgroups[wave->workgroup];
  ComputeUnit *unit = &replay->compute_units[wave->compute_unit];
  unit->waves_on_simd[wave->simd]--;
  wave->ended = time;
  workgroup->end = later(workgroup->end, time);
  if (--workgroup->running) {
    if (workgroup->at_barrier == workgroup->running) release_barrier(replay, workgroup, time);
    return;
  }
  unit->resident--;
  if (replay->next_workgroup < replay->workgroup_count)
    start_workgroup(replay, wave->compute_unit, workgroup->end + replay->gpu->start_cycles);
}

// The last wave to arrive lets all of them go on.
static void arrive_at_barrier(Replay *replay, Wave *wave, u64 time) {
  Workgroup *workgroup = &replay->workgroups[wave->workgroup];
  wave->ready = time;
  wave->at_barrier = 1;
  if (++workgroup->at_barrier == workgroup->running) release_barrier(replay, workgroup, time);
}
