// When a wave may issue its next instruction, and why not before.

typedef struct {
  u64 time, reason;
} Bound;

static void raise_bound(Bound *bound, u64 time, u64 reason) {
  if (time <= bound->time) return;
  bound->time = time;
  bound->reason = reason;
}

static u64 registers_ready(const Wave *wave, const Range *ranges, u64 count) {
  u64 ready = 0;
  for (u64 i = 0; i < count; i++)
    for (u64 r = ranges[i].first; r < ranges[i].first + ranges[i].count; r++) ready = later(ready, wave->registers[r]);
  return ready;
}

static void set_registers(Wave *wave, const Instruction *instruction, u64 time) {
  for (u64 i = 0; i < instruction->write_count; i++)
    for (u64 r = 0; r < instruction->writes[i].count; r++) wave->registers[instruction->writes[i].first + r] = time;
}

static void wait_for_registers(const Wave *wave, const Instruction *instruction, Bound *bound) {
  raise_bound(bound, registers_ready(wave, instruction->reads, instruction->read_count), DEPENDENCY);
  u64 results = registers_ready(wave, instruction->writes, instruction->write_count);
  if (results > instruction->early) raise_bound(bound, results - instruction->early, DEPENDENCY);
}

static u64 *port_of(ComputeUnit *unit, const Wave *wave, u64 port) { return &unit->ports[wave->simd * PORTS + port]; }

// Matrix and transcendental instructions are issued through the port of the vector ALU, and have a unit of their own.
static int has_own_unit(const Instruction *instruction) {
  return instruction->unit == TRANSCENDENTAL || instruction->unit == MATRIX;
}

static u64 port_number(const Instruction *instruction) { return has_own_unit(instruction) ? VALU : instruction->unit; }

static void wait_for_unit(ComputeUnit *unit, const Wave *wave, const Instruction *instruction, Bound *bound) {
  if (instruction->unit == MESSAGE) return;
  if (has_own_unit(instruction))
    raise_bound(bound, *port_of(unit, wave, instruction->unit), instruction->unit == MATRIX ? MATRIX_BUSY : NO_SLOT);
  raise_bound(bound, *port_of(unit, wave, port_number(instruction)), NO_SLOT);
}

static void wait_for_accesses(const Wave *wave, const Instruction *instruction, Bound *bound) {
  if (instruction->kind == WAIT)
    for (u64 counter = 0; counter < COUNTERS; counter++)
      raise_bound(bound, waited(wave, counter, instruction->limits[counter]), reason_of(wave, counter));
  if (instruction->room)
    raise_bound(bound, waited(wave, instruction->counter, instruction->room - 1), instruction->unit == LDS ? LDS_BUSY : MEMORY_BUSY);
}

static Bound earliest(Replay *replay, const Wave *wave) {
  const Instruction *instruction = &replay->instructions[*wave->at];
  Bound bound = {wave->ready, NONE};
  raise_bound(&bound, wave->fetched, INSTRUCTION_FETCH);
  wait_for_registers(wave, instruction, &bound);
  wait_for_accesses(wave, instruction, &bound);
  wait_for_unit(&replay->compute_units[wave->compute_unit], wave, instruction, &bound);
  return bound;
}

// Hold the unit and its port. When the result is there.
static u64 executed(ComputeUnit *unit, const Wave *wave, const Instruction *instruction, u64 time) {
  if (instruction->unit != MESSAGE) *port_of(unit, wave, instruction->unit) = time + instruction->busy;
  if (has_own_unit(instruction)) *port_of(unit, wave, VALU) = time + instruction->held;
  return time + instruction->latency;
}
