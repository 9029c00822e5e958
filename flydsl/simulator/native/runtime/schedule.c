// The scheduler: the loops over groups, each a workgroup or a cluster of them, and over the waves of one.

// A handler returns to the scheduler, `steps` instructions after its own begin.
void leave(Wave *wave, const Record *record, u64 steps, u32 status) {
  wave->executed += (u64)(record - wave->run_start) + steps;
  wave->pc = (Record *)record + steps;
  wave->status = status;
}

// The handler of everything that has no other one.
void fall_back(Wave *wave, const Record *record) { leave(wave, record, 0, FALL_BACK); }

static Wave *wave_of(const Group *group, u64 w) { return (Wave *)(group->waves + w * WAVE_STRIDE); }

static void set_id(Wave *wave, i64 offset, u64 id, u64 bytes) {
  if (offset >= 0) __builtin_memcpy((u8 *)wave + offset, &id, bytes == 2 ? 2 : 4);
}

static void start_wave(const Group *group, u64 w) {
  const LaunchState *launch = group->launch;
  Wave *wave = wave_of(group, w);
  u64 lds = wave->lds, scratch = wave->scratch;
  Workspace *workspace = wave->workspace;
  CountingBlock *counting = wave->counting;
  Snapshot *snapshot = wave->snapshot;
  __builtin_memset(wave->vgpr[0], 0, launch->vgpr_bytes);
  __builtin_memset(wave->vgpr[ACCUMULATION_ROW], 0, launch->agpr_bytes);
  __builtin_memcpy(wave, launch->template + w * TEMPLATE_BYTES, TEMPLATE_BYTES);
  wave->lds = lds, wave->scratch = scratch, wave->workspace = workspace, wave->counting = counting;
  wave->snapshot = snapshot;
  wave->number = group->number * launch->wave_count + w;
  if (snapshot) snapshot->pc = 0, snapshot->executed = 0;
  set_id(wave, launch->id_x, group->number % launch->groups_x, 4);
  set_id(wave, launch->id_y, group->number / launch->groups_x % launch->groups_y, launch->id_yz_bytes);
  set_id(wave, launch->id_z, group->number / launch->groups_x / launch->groups_y, launch->id_yz_bytes);
  wave->workspace->signals = wave->workspace->cluster_signals = 0;
}

// Put the next workgroup or cluster into the group block. False if there is none.
static int start_group(Group *group) {
  LaunchState *launch = group->launch;
  u64 id = __atomic_fetch_add(&launch->next, 1, __ATOMIC_RELAXED);
  if (id >= launch->group_count) return 0;
  __builtin_memset(group->lds, 0, launch->lds_bytes);
  __builtin_memset(group->scratch, 0, launch->scratch_bytes);
  group->number = id;
  for (u64 w = 0; w < launch->wave_count; w++) start_wave(group, w);
  group->active = 1;
  group->wave = group->moved = 0;
  return 1;
}

// Continue a wave in the program bound to its new MODE. False if there is none yet.
static int enter_mode(Wave *wave, const LaunchState *launch) {
  for (u64 i = 0; i < launch->mode_count; i++) {
    if (launch->modes[i].bits != wave->mode) continue;
    wave->pc = launch->modes[i].records + (wave->pc - wave->records);
    wave->records = launch->modes[i].records;
    wave->status = RUNNING;
    return 1;
  }
  return 0;
}

static int is_as_before(const LaunchState *launch, const Wave *wave, const Snapshot *before) {
  return wave->pc == before->pc && wave->scc == before->scc &&
         !__builtin_memcmp(wave->sgpr, before->sgpr, sizeof wave->sgpr) &&
         !__builtin_memcmp(wave->vgpr[0], before->vgpr[0], launch->vgpr_bytes) &&
         !__builtin_memcmp(wave->vgpr[ACCUMULATION_ROW], before->vgpr[ACCUMULATION_ROW], launch->agpr_bytes);
}

// For how many instructions a snapshot is kept: longer if much was executed before, so that a wave that does not wait
// is not slowed down.
static u64 lifetime(const Snapshot *snapshot) {
  u64 long_enough = snapshot->executed / 8;
  if (long_enough < SNAPSHOT_INSTRUCTIONS) return SNAPSHOT_INSTRUCTIONS;
  return long_enough < MOST_SNAPSHOT_INSTRUCTIONS ? long_enough : MOST_SNAPSHOT_INSTRUCTIONS;
}

// Whether a wave that had its turn is where it was, with the same registers. Then it goes round a loop until memory
// changes, and what it executed meanwhile does not count.
static int is_waiting(const LaunchState *launch, Wave *wave) {
  Snapshot *before = wave->snapshot;
  if (is_as_before(launch, wave, before)) {
    wave->executed = before->executed;
    return 1;
  }
  if (before->pc && wave->executed - before->executed < lifetime(before)) return 0;
  before->pc = wave->pc, before->scc = wave->scc, before->executed = wave->executed;
  __builtin_memcpy(before->sgpr, wave->sgpr, sizeof wave->sgpr);
  __builtin_memcpy(before->vgpr[0], wave->vgpr[0], launch->vgpr_bytes);
  __builtin_memcpy(before->vgpr[ACCUMULATION_ROW], wave->vgpr[ACCUMULATION_ROW], launch->agpr_bytes);
  return 0;
}

// Let a wave go on until it leaves, or its turn or its group's slice is over.
static void take_turn(Group *group, Wave *wave) {
  u64 before = wave->executed, limit = group->launch->limit, turn = group->launch->turn;
  u64 end = before + (0 < group->budget && (u64)group->budget < turn ? (u64)group->budget : turn);
  wave->stop_at = end < limit ? end : limit;
  wave->run_start = wave->pc;
  wave->pc->handler(wave, wave->pc);
  group->budget -= (i64)(wave->executed - before);
  if (wave->snapshot && !(wave->status == RUNNING && is_waiting(group->launch, wave))) group->moved = 1;
}

// The waves' turns from where they are on. Why they stopped before the last one, or 0.
static u64 take_turns(Group *group) {
  LaunchState *launch = group->launch;
  for (; group->wave < launch->wave_count; group->wave++) {
    Wave *wave = wave_of(group, group->wave);
    if (wave->status == RUNNING) {
      do take_turn(group, wave);
      while (wave->status == MODE_CHANGED && enter_mode(wave, launch));
      if (wave->status > ENDED) return wave->status;
      if (wave->executed >= launch->limit + (wave->status == ENDED)) return LIMIT_REACHED;
    }
    if (group->budget <= 0) {
      group->wave++;
      return SLICE_OVER;
    }
  }
  group->wave = 0;
  return 0;
}

// Whether so many waves have arrived at their workgroup's barrier as have not ended: the hardware waits for no others.
static int is_complete(const Group *group, u64 first) {
  u64 each = group->launch->waves_per_workgroup, signals = wave_of(group, first)->workspace->signals;
  if (!signals || signals == each) return signals == each;
  for (u64 w = first; w < first + each; w++) signals += wave_of(group, w)->status == ENDED;
  return signals >= each;
}

// Those that wait at a workgroup's barrier go on, the others may pass it when they come to it.
static void complete_barrier(Group *group, u64 first) {
  for (u64 w = first; w < first + group->launch->waves_per_workgroup; w++) {
    Wave *wave = wave_of(group, w);
    if (wave->status == AT_BARRIER)
      wave->status = RUNNING;
    else
      wave->may_pass = 1;
  }
  wave_of(group, first)->workspace->signals = 0;
}

// Complete the barriers of workgroups at which all waves have arrived that are to. True if there are any.
static int complete_barriers(Group *group) {
  u64 each = group->launch->waves_per_workgroup;
  int any = 0;
  for (u64 first = 0; first < group->launch->wave_count; first += each) {
    if (!is_complete(group, first)) continue;
    complete_barrier(group, first);
    any = 1;
  }
  return any;
}

// The same of a cluster's barrier, at which its workgroups arrive.
static int complete_cluster_barrier(Group *group) {
  u64 count = group->launch->wave_count, each = group->launch->waves_per_workgroup;
  if (count == each) return 0;
  for (u64 first = 0; first < count; first += each)
    if (!wave_of(group, first)->workspace->cluster_signals) return 0;
  for (u64 w = 0; w < count; w++) {
    Wave *wave = wave_of(group, w);
    if (wave->status == AT_CLUSTER_BARRIER)
      wave->status = RUNNING;
    else
      wave->may_pass_cluster = 1;
    wave->workspace->cluster_signals = 0;
  }
  return 1;
}

// Every wave had its turn: whether the group is stuck at a barrier, passes one, is done, or just goes on.
static u64 survey(Group *group) {
  u64 executed = 0, seen[ENDED + 1] = {};
  for (u64 w = 0; w < group->launch->wave_count; w++) {
    seen[wave_of(group, w)->status]++;
    executed += wave_of(group, w)->executed;
  }
  if (complete_barriers(group) | complete_cluster_barrier(group)) return 0;
  if (seen[RUNNING]) {
    u64 is_waiting = wave_of(group, 0)->snapshot && !group->moved;
    group->moved = 0;
    return is_waiting ? WAITING : 0;
  }
  if (seen[AT_BARRIER] || seen[AT_CLUSTER_BARRIER]) return DEADLOCK;
  group->active = 0;
  group->executed += executed;
  return 0;
}

// Run until all groups have ended, the budget is spent, or something needs attention; says which.
u64 run(Group *group) {
  for (;;) {
    if (!group->active && !start_group(group)) return DONE;
    u64 reason = take_turns(group);
    if (!reason) reason = survey(group);
    if (reason) return reason;
  }
}
