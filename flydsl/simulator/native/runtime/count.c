// Counting: two handlers that go before an instruction's own one, and the observer of accesses.
//
// Lines of lanes in order are counted at once. Any other pattern of addresses mostly comes back: the next iteration,
// the next wave. What it costs depends on the distances between lanes and on where the first one lies in a line (a
// dword, for LDS), so it is worked out once and recognized after that.

static Entry *count_execution(const Wave *wave, const Record *record) {
  Entry *entry = (Entry *)(wave->counting + 1) + (record - wave->records);
  entry->executions++;
  entry->active_lanes += (u64)__builtin_popcountll(exec_of(wave));
  return entry;
}

void count(Wave *wave, const Record *record) {
  count_execution(wave, record);
  GO_ON;
}

void count_access(Wave *wave, const Record *record) {
  wave->counting->entry = count_execution(wave, record);
  wave->counting->part = 0;
  GO_ON;
}

// Whether the pattern is the last one of this instruction. If not, it is so from now on.
static int is_known(Pattern *pattern, u64 active, u64x64 addresses, u64 low_mask) {
  u64 base = addresses[first_lane(active)], low = base & low_mask;
  u64x64 relative = mask_of(active) ? addresses - base : 0, *last = (u64x64 *)pattern->relative;
  if (pattern->active == active && pattern->low == low && !LANES_WHERE(*last != relative)) return 1;
  pattern->active = active;
  pattern->low = low;
  *last = relative;
  return 0;
}

// --- a set of numbers: what is in it and has another stamp is not in it

// 2^64 divided by the golden ratio: spreads consecutive numbers.
static const u64 SPREAD = 0x9E3779B97F4A7C15;

// Put a number into the set. 1 if it was not there, else 0.
static u64 insert(CountingBlock *counting, u64 number) {
  u64 i = number * SPREAD >> (64 - SET_SIZE_LOG2);
  for (; counting->set[i].stamp == counting->stamp; i = (i + 1) % (1 << SET_SIZE_LOG2))
    if (counting->set[i].number == number) return 0;
  counting->set[i] = (Stamped){number, counting->stamp};
  return 1;
}

// --- lines of global memory

// How many lines the lanes touch if all are active, each touches one, and none one before its neighbour's; else 0.
static u64 ordered_lines(u64 active, u64 size, u64x64 addresses) {
  u64x64 lines = addresses / LINE_BYTES, ends = (addresses + (size - 1)) / LINE_BYTES;
  u64x64 before = __builtin_shufflevector(lines, lines, LANE_BEFORE);
  if (~active | LANES_WHERE(lines < before) | LANES_WHERE(lines != ends)) return 0;
  return (u64)__builtin_popcountll(LANES_WHERE(lines != before)) + 1;
}

// How many lines the last part touches that the parts before it do not.
static u64 new_lines(CountingBlock *counting, u64 last_part, u64 size) {
  u64 fresh = 0;
  counting->stamp++;
  for (u64 part = 0; part <= last_part; part++) {
    fresh = 0;
    for (u64 rest = counting->masks[part]; rest; rest &= rest - 1) {
      u64 address = counting->rows[part][first_lane(rest)];
      for (u64 line = address / LINE_BYTES; line <= (address + size - 1) / LINE_BYTES; line++)
        fresh += insert(counting, line);
    }
  }
  return fresh;
}

// The lanes that touch a line which the part before this one did not in the same lane.
static u64 suspects(const CountingBlock *counting, u64 active, u64 size, u64x64 addresses) {
  u64 previous = counting->part - 1;
  u64x64 there = *(const u64x64 *)counting->rows[previous];
  u64x64 apart = (addresses ^ there) | ((addresses + (size - 1)) ^ there);
  return active & (~counting->masks[previous] | LANES_WHERE(apart >= LINE_BYTES));
}

static u64 first_lines(CountingBlock *counting, Pattern *pattern, u64 active, u64 size, u64x64 addresses) {
  u64 lines = ordered_lines(active, size, addresses);
  if (lines) return lines;
  if (!is_known(pattern, active, addresses, LINE_BYTES - 1)) pattern->result = new_lines(counting, 0, size);
  return pattern->result;
}

// An instruction may make several accesses of the same lanes: a line that more than one of them touches counts once.
static void count_global(CountingBlock *counting, u64 active, u64 size, u64x64 addresses) {
  Entry *entry = counting->entry;
  u64 part = counting->part;
  entry->global_bytes += (u64)__builtin_popcountll(active) * size;
  counting->masks[part] = active;
  *(u64x64 *)counting->rows[part] = addresses;
  if (!part)
    entry->global_lines += first_lines(counting, entry->pattern, active, size, addresses);
  else if (suspects(counting, active, size, addresses))
    entry->global_lines += new_lines(counting, part, size);
  counting->part = part + 1;
}

// --- bank conflicts of LDS, by the rule that the instruction's pattern points to

// What one phase costs: the most different dwords that are wanted from one bank.
static u64 phase_passes(CountingBlock *counting, const Rule *rule, u64 phase, u64 active, const u64 *addresses) {
  u64 most = 0;
  counting->stamp++;
  __builtin_memset(counting->ways, 0, sizeof counting->ways);
  for (u64 i = 0; i < rule->lanes_per_phase; i++) {
    u64 lane = rule->lanes[phase * rule->lanes_per_phase + i];
    if (!(active >> lane & 1)) continue;
    for (u64 k = 0; k < rule->dwords; k++) {
      u64 dword = addresses[lane] / 4 + k, *ways = &counting->ways[dword % rule->banks];
      *ways += insert(counting, dword);
      most = *ways > most ? *ways : most;
    }
  }
  return most;
}

// What a pattern costs.
static void find_passes(CountingBlock *counting, Pattern *pattern, u64 active, const u64 *addresses) {
  pattern->result = pattern->phases = 0;
  pattern->unaligned = (LANES_WHERE((*(const u64x64 *)addresses & 3) != 0) & active) != 0;
  if (pattern->unaligned) return;
  for (u64 phase = 0; phase < pattern->rule->phases; phase++) {
    u64 passes = phase_passes(counting, pattern->rule, phase, active, addresses);
    pattern->result += passes;
    pattern->phases += passes != 0;
    pattern->max_ways = passes > pattern->max_ways ? passes : pattern->max_ways;
  }
}

static void count_lds(CountingBlock *counting, u64 active, u64 size, const u64 *addresses) {
  Entry *entry = counting->entry;
  Pattern *pattern = entry->pattern;
  entry->lds_bytes += (u64)__builtin_popcountll(active) * size;
  if (!pattern->rule) return;
  if (!is_known(pattern, active, *(const u64x64 *)addresses, 3)) find_passes(counting, pattern, active, addresses);
  entry->lds_passes += pattern->result;
  entry->lds_phases += pattern->phases;
  pattern->uncounted += pattern->unaligned;
}

// --- the observer

static void count_scratch(CountingBlock *counting, u64 active, u64 size) {
  counting->entry->pattern->scratch_bytes += (u64)__builtin_popcountll(active) * size;
}

void observe(Wave *wave, u64 active, u64 size, u64 space, u64, const u64 *) {
  CountingBlock *counting = wave->counting;
  if (space == SPACE_SCALAR) return;
  if (space == SPACE_TENSOR_LDS || space == SPACE_TENSOR_GLOBAL) {
    *(space == SPACE_TENSOR_LDS ? &counting->entry->lds_bytes : &counting->entry->global_bytes) += size;
    counting->entry->global_lines += active;
    return;
  }
  u64x64 addresses = addresses_of(wave->workspace), aperture = addresses & ~0xFFFFFFFFull;
  u64 lds = space == SPACE_LDS ? active : 0, scratch = space == SPACE_SCRATCH ? active : 0;
  if (space == SPACE_FLAT) {
    lds = active & LANES_WHERE(aperture == SHARED_APERTURE);
    scratch = active & LANES_WHERE(aperture == PRIVATE_APERTURE);
  }
  u64 global = active & ~(lds | scratch);
  if (scratch) count_scratch(counting, scratch, size);
  if (lds) count_lds(counting, lds, size, wave->workspace->addresses);
  if (global) count_global(counting, global, size, addresses);
}
