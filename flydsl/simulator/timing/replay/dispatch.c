// Workgroups: where they go, and their barriers.

static void push(Replay *replay, u32 wave, u64 key);

static u64 emptiest_simd(const ComputeUnit *unit, u64 simds, u64 preferred) {
  u64 best = preferred % simds;
  for (u64 i = 1; i < simds; i++) {
    u64 simd = (preferred + i) % simds;
    if (unit->waves_on_simd[simd] < unit->waves_on_simd[best]) best = simd;
  }
  return best;
}

static void start_workgroup(Replay *replay, u64 compute_unit, u64 time) {
  Workgroup *workgroup = &replay->workgroups[replay->next_workgroup++];
  ComputeUnit *unit = &replay->compute_units[compute_unit];
  workgroup->compute_unit = compute_unit;
  workgroup->lds_pipe = unit->started++ % replay->gpu->lds_pipes;
  workgroup->start = time;
  workgroup->running = workgroup->wave_count;
  unit->resident++;
  for (u64 w = 0; w < workgroup->wave_count; w++) {
    Wave *wave = &replay->waves[workgroup->first_wave + w];
    wave->compute_unit = compute_unit;
    wave->simd = emptiest_simd(unit, replay->gpu->simds, w);
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

// All waves have come to the barrier: those that wait for it go on.
static void complete_barrier(Replay *replay, Workgroup *workgroup, u64 time) {
  workgroup->signalled = 0;
  workgroup->phase++;
  for (u64 w = 0; w < workgroup->wave_count; w++) {
    Wave *wave = &replay->waves[workgroup->first_wave + w];
    if (!wave->at_barrier) continue;
    wave->at_barrier = 0;
    wave->barrier_stall = time - wave->ready;
    wave->ready = time + replay->gpu->barrier_cycles;
    push(replay, (u32)(workgroup->first_wave + w), wave->ready);
  }
}

static void signal_barrier(Replay *replay, Wave *wave, u64 time) {
  Workgroup *workgroup = &replay->workgroups[wave->workgroup];
  wave->signals++;
  if (++workgroup->signalled == workgroup->running) complete_barrier(replay, workgroup, time);
}

// Whether the wave must wait for others at the barrier that it came to last.
static int waits_at_barrier(const Replay *replay, const Wave *wave) {
  return replay->workgroups[wave->workgroup].phase < wave->signals;
}

static void wait_at_barrier(Wave *wave, u64 time) {
  wave->ready = time;
  wave->at_barrier = 1;
}

static void end_wave(Replay *replay, Wave *wave, u64 time) {
  Workgroup *workgroup = &replay->workgroups[wave->workgroup];
  ComputeUnit *unit = &replay->compute_units[wave->compute_unit];
  unit->waves_on_simd[wave->simd]--;
  wave->ended = time;
  replay->end = later(replay->end, time);
  workgroup->end = later(workgroup->end, time);
  if (--workgroup->running) {
    if (workgroup->signalled >= workgroup->running) complete_barrier(replay, workgroup, time);
    return;
  }
  unit->resident--;
  if (replay->next_workgroup < replay->workgroup_count)
    start_workgroup(replay, wave->compute_unit, workgroup->end + replay->gpu->start_cycles);
}
