// A unit that serves requests when they are due, whatever the order in which they were made: data that comes late does
// not keep it from others. Time is cut into spans, of which each has room for its own cycles; requests within a span
// take turns.

static double fitted(Calendar *calendar, double time, double cycles) {
  double end = time;
  for (u64 span = (u64)time / SPAN_CYCLES; cycles > 0; span++) {
    u64 slot = span % SPANS;
    double start = (double)(span * SPAN_CYCLES);
    if (calendar->span[slot] > span) continue;  // the ring has gone round: its span is past
    if (calendar->span[slot] < span) calendar->used[slot] = 0;
    calendar->span[slot] = span;
    double first = later_of(calendar->used[slot], time - start), room = SPAN_CYCLES - first;
    if (room <= 0) continue;
    double taken = room < cycles ? room : cycles;
    calendar->used[slot] = first + taken;
    cycles -= taken;
    end = start + first + taken;
  }
  return end;
}
