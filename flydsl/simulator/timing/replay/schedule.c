// The loop over all waves of a die, in the order of time: a heap of waves by the time at which they are looked at.

static int is_before(const Replay *replay, u32 a, u32 b) {
  u64 first = replay->waves[a].key, second = replay->waves[b].key;
  return first != second ? first < second : a < b;
}

static void push(Replay *replay, u32 wave, u64 key) {
  u32 *heap = replay->heap;
  u64 at = replay->heap_count++;
  replay->waves[wave].key = key;
  for (; at && is_before(replay, wave, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = wave;
}

// Put a wave where the first one was.
static void sift(Replay *replay, u32 wave) {
  u32 *heap = replay->heap;
  u64 at = 0, count = replay->heap_count;
  for (u64 child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && is_before(replay, heap[child + 1], heap[child])) child++;
    if (!is_before(replay, heap[child], wave)) break;
    heap[at] = heap[child];
  }
  heap[at] = wave;
}

static void remove_first(Replay *replay) {
  u32 last = replay->heap[--replay->heap_count];
  if (replay->heap_count) sift(replay, last);
}

static void record(Replay *replay, u32 number, u32 instruction, u64 time, u64 latency, u64 stall, u64 reason) {
  Wave *wave = &replay->waves[number];
  if (wave->compute_unit >= replay->recorded_compute_units) return;
  if (replay->event_count++ >= replay->event_room) return;
  Event event = {number, instruction, time, (u32)latency, (u32)stall, (u32)(stall ? reason : NONE), 0};
  replay->events[replay->event_count - 1] = event;
}

// When an access of the wave's instruction ends. `words` follow it in the stream.
static u64 accessed(Replay *replay, Wave *wave, const Instruction *instruction, u64 count, u64 time) {
  ComputeUnit *unit = &replay->compute_units[wave->compute_unit];
  i64 signal = signal_of(wave);
  const u32 *words = wave->at + 1 + (signal >= 0);
  u64 done = time + instruction->latency;
  count -= signal >= 0;
  if (instruction->unit == VECTOR_MEMORY) {
    done = vector_access(replay, unit, wave, instruction, words, count, time);
    replay->last_access = later(replay->last_access, done);
  } else if (instruction->unit == LDS) {
    done = lds_access(replay, unit, wave, instruction, words, count, time);
  } else if (instruction->unit == SCALAR_MEMORY) {
    done = scalar_access(replay, unit, words, count, time);
    wave->scalar_loads = 1;
  }
  if (signal >= 0) replay->written[signal] = done;
  begin_access(wave, instruction->counter, done);
  return done;
}

static void issue(Replay *replay, u32 number, Wave *wave, u64 time) {
  u32 index = *wave->at;
  const Instruction *instruction = &replay->instructions[index];
  u64 words = 0;
  while (wave->at + 1 + words < wave->end && wave->at[1 + words] >> 31) words++;
  settle(wave, time);
  u64 done = executed(&replay->compute_units[wave->compute_unit], wave, instruction, time);
  if (instruction->unit == VECTOR_MEMORY || instruction->unit == LDS || instruction->unit == SCALAR_MEMORY)
    done = accessed(replay, wave, instruction, words, time);
  else
    set_registers(wave, instruction, done);
  u64 latency = instruction->unit == MATRIX ? instruction->busy : done - time;
  u64 reason = wave->barrier_stall ? BARRIER : wave->reason;
  record(replay, number, index, time, latency, time - wave->ready + wave->barrier_stall, reason);
  replay->executed++;
  replay->busy[instruction->unit] += instruction->busy;
  int is_taken = instruction->unit == BRANCH && wave->at + 1 < wave->end && wave->at[1] != index + 1;
  wave->barrier_stall = 0;
  wave->reason = NONE;
  wave->ready = time + instruction->after;
  wave->fetched = is_taken ? time + instruction->latency : 0;
  wave->at += 1 + words;
}

// Go on for some steps. How many waves are left.
u64 replay(Replay *replay, u64 steps) {
  if (!replay->started) start_first_workgroups(replay);
  replay->started = 1;
  for (; replay->heap_count && steps; steps--) {
    u32 number = replay->heap[0];
    Wave *wave = &replay->waves[number];
    u64 time = wave->key;
    if (wave->at == wave->end) {
      remove_first(replay);
      end_wave(replay, wave, time);
      continue;
    }
    Bound bound = earliest(replay, wave);
    if (bound.time > time) {
      if (wave->reason == NONE || (bound.reason != NO_SLOT && wave->reason != SIGNAL)) wave->reason = bound.reason;
      wave->key = bound.time;
      sift(replay, number);
      continue;
    }
    if (waits_for_signal(replay, wave, time)) {
      sift(replay, number);
      continue;
    }
    u32 kind = replay->instructions[*wave->at].kind;
    issue(replay, number, wave, time);
    if (kind == BARRIER_KIND || (kind == BARRIER_WAIT && waits_at_barrier(replay, wave))) {
      remove_first(replay);
      wait_at_barrier(wave, time);
      if (kind == BARRIER_KIND) signal_barrier(replay, wave, time);
      continue;
    }
    wave->key = wave->ready;
    if (kind == BARRIER_SIGNAL) signal_barrier(replay, wave, time);
    sift(replay, number);
  }
  if (!replay->heap_count) replay->end = l2_clean(replay, later(replay->end, replay->last_access));
  return replay->heap_count;
}
