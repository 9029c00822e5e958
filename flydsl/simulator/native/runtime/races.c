// Races: an observer that remembers who accessed each place last, and handlers that go before the instructions that
// order waves. Together they prove that a launch has no race, or doubt it; that there is one they never claim.
//
// A stamp is of a wave at a time. Stamps from a floor on are not ordered before the present access, except for those of
// the present wave, which equal its own in the bits of a `field`. In LDS, whose accesses barriers order, a stamp is the
// number of barriers that its wave has arrived at, and the wave. Elsewhere nothing orders waves, and a stamp is a wave.

typedef u32 u32x8 __attribute__((ext_vector_type(8), aligned(4)));

enum { READ = 1, WRITE = 2, UPDATE = 4 };
enum { MOST_STORED_BYTES = 16 };
enum { LDS_WAVE_BITS = 6, LDS_FIELD = (1 << LDS_WAVE_BITS) - 1, MOST_EPOCHS = 1 << (32 - LDS_WAVE_BITS) };

// now: the first stamp since the wave's last barrier. serial: of the instruction, where lanes may store to one place; else 0.
typedef struct {
  u32 own, floor, now, field, serial;
  u64 kind;
} Access;

// Where an access may race; and where it stores to a place that it stored to for another lane.
typedef struct {
  u32x8 bad, together;
} Found;

// A launch that is watched counts nothing; this is in the place of what it would count in.
static RaceBlock *block_of(const Wave *wave) { return (RaceBlock *)wave->counting; }

static void doubt(RaceBlock *block, u64 reason) {
  if (!block->doubt) block->doubt = reason;
}

// --- cells, eight at a time

static u32x8 unordered(u32x8 stamps, Access access) {
  return (u32x8)(stamps >= access.floor) & (u32x8)(((stamps ^ access.own) & access.field) != 0);
}

// What remains of earlier accesses and this one: of several waves that are not ordered, a stamp that is no wave's.
static u32x8 joined(u32x8 stamps, Access access) {
  u32x8 last = stamps > access.own ? stamps : access.own;
  return unordered(stamps, access) ? last | access.field : access.own;
}

static u32x8 *at(u32 *cells, u64 cell) { return (u32x8 *)(cells + cell); }

static void put(u32 *cells, u64 cell, u32x8 is_meant, u32x8 stamps) {
  u32x8 *place = at(cells, cell);
  *place = is_meant ? stamps : *place;
}

// Record a store of one instruction. Where several lanes store to a place that the wave, or any other, has read since its
// barrier, each may add to what was there: then one of the sums is lost.
static void note_store(const RaceRegion *region, u64 cell, u32x8 is_meant, Access access, Found *found) {
  put(region->writers, cell, is_meant, access.own);
  if (!access.serial) return;
  u32x8 together = (u32x8)(*at(region->serials, cell) == access.serial) & is_meant;
  found->together |= together;
  if (region->seen & READ) found->bad |= together & (u32x8)(*at(region->readers, cell) >= access.now);
  put(region->serials, cell, is_meant, access.serial);
}

// Record an access to some of eight cells.
__attribute__((always_inline)) static inline void visit_cells(
    const RaceRegion *region, u64 cell, u32x8 is_meant, u64 kind, Access access, Found *found
) {
  u32x8 bad = 0;
  if (region->seen & WRITE) bad |= unordered(*at(region->writers, cell), access);
  if (kind != READ && region->seen & READ) bad |= unordered(*at(region->readers, cell), access);
  if (kind != UPDATE && region->seen & UPDATE) bad |= unordered(*at(region->updaters, cell), access);
  found->bad |= bad & is_meant;
  if (kind == WRITE) {
    note_store(region, cell, is_meant, access, found);
    return;
  }
  u32 *cells = kind == READ ? region->readers : region->updaters;
  put(cells, cell, is_meant, joined(*at(cells, cell), access));
}

__attribute__((always_inline)) static inline Found visit_all(
    const RaceRegion *region, u64 cell, u64 end, u64 kind, Access access
) {
  Found found = {};
  for (; cell < end; cell += 8) {
    u32 count = end - cell < 8 ? (u32)(end - cell) : 8;
    visit_cells(region, cell, (u32x8)((u32x8){0, 1, 2, 3, 4, 5, 6, 7} < count), kind, access, &found);
  }
  return found;
}

// --- regions of memory

// Replace each cell by two. What holds already is not written: it may be memory that nothing has touched.
static void halve(u32 *cells, u64 count) {
  for (u64 i = count; i--;) {
    u32 stamp = cells[i];
    if (cells[2 * i + 1] != stamp) cells[2 * i + 1] = stamp;
    if (cells[2 * i] != stamp) cells[2 * i] = stamp;
  }
}

// Make cells so small that they end where an access begins and ends.
static void refine(RaceRegion *region, u64 bounds) {
  for (; region->shift && bounds & ((1ull << region->shift) - 1); region->shift--) {
    u64 count = (region->size >> region->shift) + 1;
    if (region->seen & WRITE) halve(region->writers, count), halve(region->serials, count);
    if (region->seen & READ) halve(region->readers, count);
    if (region->seen & UPDATE) halve(region->updaters, count);
  }
}

// Keep what bytes of a region hold, before it is changed for the first time.
static void save(const RaceRegion *region, u64 start, u64 end) {
  for (u64 page = start / PAGE_BYTES; page * PAGE_BYTES < end; page++) {
    if (region->saved[page]) continue;
    u64 first = page * PAGE_BYTES, rest = region->size - first;
    __builtin_memcpy(region->copy + first, (const u8 *)region->start + first, rest < PAGE_BYTES ? rest : PAGE_BYTES);
    region->saved[page] = 1;
  }
}

// Record an access to bytes of a region, from `start` to `end`. Whether it stores to some of them for several lanes.
static int visit_bytes(RaceBlock *block, RaceRegion *region, u64 start, u64 end, Access access) {
  if (access.kind != READ && region->copy) save(region, start, end);
  refine(region, start | end);
  u64 first = start >> region->shift, last = end >> region->shift;
  Found found = access.kind == READ    ? visit_all(region, first, last, READ, access)
                : access.kind == WRITE ? visit_all(region, first, last, WRITE, access)
                                       : visit_all(region, first, last, UPDATE, access);
  region->seen |= access.kind;
  if (__builtin_reduce_or(found.bad)) doubt(block, DOUBT_UNORDERED);
  return __builtin_reduce_or(found.together) != 0;
}

// The region that an address of the host lies in; null for memory that nothing writes.
static RaceRegion *region_at(RaceBlock *block, u64 address) {
  for (u64 i = 0; i < block->region_count; i++) {
    u64 which = (block->last + i) % block->region_count;
    RaceRegion *region = &block->regions[which];
    if (address - region->start >= region->size) continue;
    block->last = which;
    return region;
  }
  return 0;
}

// Record an access of neighbouring lanes to global memory: buffers may follow each other on the host.
static int visit_global(RaceBlock *block, u64 start, u64 end, u64 size, Access access) {
  int together = 0;
  while (start < end) {
    RaceRegion *region = region_at(block, start);
    if (!region) {
      if (access.kind != READ) doubt(block, DOUBT_UNKNOWN);
      start += size;
      continue;
    }
    u64 stop = region->start + region->size;
    stop = stop < end ? stop : end;
    together |= visit_bytes(block, region, start - region->start, stop - region->start, access);
    start = stop;
  }
  return together;
}

// --- accesses of a wave

// Move on to the workgroup of a wave: for the ones before it every time is long ago.
static void enter_workgroup(RaceBlock *block, const Wave *wave) {
  u64 workgroup = (u32)wave->number / (u32)block->waves_per_workgroup;
  if (workgroup == block->workgroup) return;
  block->workgroup = workgroup;
  block->first_epoch = ++block->epoch;
  block->ended = 0;
  if (block->epoch >= MOST_EPOCHS) doubt(block, DOUBT_TOO_LONG);
}

static Access access_of(RaceBlock *block, const Wave *wave, u64 kind, int is_lds) {
  Access access = {(u32)wave->number + 1, 1, 1, ~0u, (u32)block->serial, kind};
  if (is_lds) {
    u32 number = (u32)wave->number % (u32)block->waves_per_workgroup;
    access.now = (u32)(block->first_epoch + wave->arrivals) << LDS_WAVE_BITS;
    access.own = access.now | number;
    access.floor = (u32)(block->first_epoch + wave->passes) << LDS_WAVE_BITS;
    access.field = LDS_FIELD;
  }
  return access;
}

// Whether every lane accesses what lies after that of the lane before: then no two of them access one place.
static int are_apart(u64 active, u64 size, const u64 *host) {
  u64 end = 0;
  for (u64 rest = active; rest; rest &= rest - 1) {
    u64 start = host[first_lane(rest)];
    if (start < end) return 0;
    end = start + size;
  }
  return 1;
}

// Record what lanes access, those whose memories follow each other at once. Whether several store to one place.
static int visit_lanes(RaceBlock *block, u64 active, u64 size, const u64 *host, Access access, int is_lds) {
  int together = 0;
  if (access.kind == WRITE && are_apart(active, size, host)) access.serial = 0;
  for (u64 rest = active; rest;) {
    u64 start = host[first_lane(rest)], end = start + size;
    for (rest &= rest - 1; rest && host[first_lane(rest)] == end; rest &= rest - 1) end += size;
    together |= is_lds ? visit_bytes(block, &block->lds, start - block->lds.start, end - block->lds.start, access)
                       : visit_global(block, start, end, size, access);
  }
  return together;
}

// What a lane stores, from a row of the workspace on.
static void value_of(const Workspace *workspace, u64 row, u64 lane, u64 size, u8 *value) {
  for (u64 byte = 0; byte < size; byte++)
    value[byte] = ((const u8 *)&workspace->data[row + byte / 4][lane])[byte % 4];
}

// Whether lanes that store to one place store the same: if all of them have stored, each finds there what it stored.
// The instruction stores it once more.
static int agree(const Workspace *workspace, u64 active, u64 size, const u64 *host) {
  u64 row = (u64)(host - workspace->host[0]) / LANES;
  u8 value[MOST_STORED_BYTES];
  if (size > MOST_STORED_BYTES) return 0;
  for (u64 rest = active; rest; rest &= rest - 1) {
    value_of(workspace, row, first_lane(rest), size, value);
    __builtin_memcpy((u8 *)host[first_lane(rest)], value, size);
  }
  for (u64 rest = active; rest; rest &= rest - 1) {
    value_of(workspace, row, first_lane(rest), size, value);
    if (__builtin_memcmp((const u8 *)host[first_lane(rest)], value, size)) return 0;
  }
  return 1;
}

void watch_access(Wave *wave, u64 active, u64 size, u64 space, u64 access, const u64 *host) {
  RaceBlock *block = block_of(wave);
  u64 kind = access == LOADS ? READ : access == STORES ? WRITE : UPDATE;
  u64 lds = space == SPACE_LDS ? active : 0, scratch = space == SPACE_SCRATCH ? active : 0;
  if (space == SPACE_FLAT) {
    u64x64 aperture = addresses_of(wave->workspace) & ~0xFFFFFFFFull;
    lds = active & LANES_WHERE(aperture == SHARED_APERTURE);
    scratch = active & LANES_WHERE(aperture == PRIVATE_APERTURE);
  }
  if (space == SPACE_TENSOR_GLOBAL || space == SPACE_TENSOR_LDS) doubt(block, DOUBT_UNKNOWN);
  enter_workgroup(block, wave);
  if (!(u32)++block->serial) doubt(block, DOUBT_TOO_LONG);
  u64 global = active & ~(lds | scratch);
  int together = 0;
  if (lds) together |= visit_lanes(block, lds, size, host, access_of(block, wave, kind, 1), 1);
  if (global) together |= visit_lanes(block, global, size, host, access_of(block, wave, kind, 0), 0);
  if (together && !agree(wave->workspace, lds | global, size, host)) doubt(block, DOUBT_TOGETHER);
}

// --- before instructions

static void arrive(Wave *wave) {
  RaceBlock *block = block_of(wave);
  enter_workgroup(block, wave);
  if (wave->arrivals++ != wave->passes) doubt(block, DOUBT_BARRIERS);
  u64 epoch = block->first_epoch + wave->arrivals;
  if (epoch > block->epoch) block->epoch = epoch;
  if (epoch >= MOST_EPOCHS) doubt(block, DOUBT_TOO_LONG);
}

void watch_signal(Wave *wave, const Record *record) {
  arrive(wave);
  GO_ON;
}

// What a wave executes after it has waited comes after all arrivals at that barrier.
void watch_wait(Wave *wave, const Record *record) {
  wave->passes = wave->arrivals;
  GO_ON;
}

void watch_barrier(Wave *wave, const Record *record) {
  arrive(wave);
  wave->passes = wave->arrivals;
  GO_ON;
}

// A barrier does not wait for waves that have ended, so those that end before others pass one are not ordered by it.
void watch_end(Wave *wave, const Record *record) {
  RaceBlock *block = block_of(wave);
  enter_workgroup(block, wave);
  if (block->ended++ && block->last_arrivals != wave->arrivals) doubt(block, DOUBT_BARRIERS);
  block->last_arrivals = wave->arrivals;
  GO_ON;
}
