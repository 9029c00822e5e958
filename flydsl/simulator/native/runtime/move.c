// Moves numbers between rows and host addresses, and between lanes; makes them wider.
//
// gather<n>(host, rows) and scatter<n>(host, rows) move n dwords per lane between 64 host addresses and n rows;
// gather_bytes<n> and scatter_bytes<n> move the low n bytes of one row.

typedef u32 Row[LANES];
typedef u16 u16_anywhere __attribute__((aligned(1)));
typedef u32 u32_anywhere __attribute__((aligned(1)));
typedef u32x64 u32x64_at_dword __attribute__((aligned(4)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef double f64x16 __attribute__((ext_vector_type(16)));
typedef u64 u64x2 __attribute__((ext_vector_type(2)));

// Whether the lanes access consecutive dwords.
static int is_run(const u64 *host) {
  return __builtin_reduce_or(*(const u64x64 *)host ^ (LANE_NUMBERS * 4 + host[0])) == 0;
}

void gather1(const u64 *host, Row *rows) {
  if (is_run(host))
    *(u32x64 *)rows = *(const u32x64_at_dword *)host[0];
  else
    for (u64 lane = 0; lane < LANES; lane++) rows[0][lane] = *(const u32_anywhere *)host[lane];
}

void scatter1(const u64 *host, const Row *rows) {
  if (is_run(host))
    *(u32x64_at_dword *)host[0] = *(const u32x64 *)rows;
  else
    for (u64 lane = 0; lane < LANES; lane++) *(u32_anywhere *)host[lane] = rows[0][lane];
}

#define SMALL(bytes, type)                                                                         \
  void gather_bytes##bytes(const u64 *host, Row *rows) {                                           \
    for (u64 lane = 0; lane < LANES; lane++) rows[0][lane] = *(const type *)host[lane];            \
  }                                                                                                \
  void scatter_bytes##bytes(const u64 *host, const Row *rows) {                                    \
    for (u64 lane = 0; lane < LANES; lane++) *(type *)host[lane] = (type)rows[0][lane];            \
  }
SMALL(1, u8)
SMALL(2, u16_anywhere)

// Four lanes at a time, transposed in registers. Only the bytes of the access are touched: lanes may overlap, and the
// next byte may be nobody's.
static inline __attribute__((always_inline)) void gather(const u64 *host, Row *rows, u64 dwords) {
  for (u64 lane = 0; lane < LANES; lane += 4) {
    u32x4 of_lane[4] = {};
    for (u64 i = 0; i < 4; i++) __builtin_memcpy(&of_lane[i], (const void *)host[lane + i], 4 * dwords);
    for (u64 r = 0; r < dwords; r++)
      *(u32x4 *)&rows[r][lane] = (u32x4){of_lane[0][r], of_lane[1][r], of_lane[2][r], of_lane[3][r]};
  }
}

static inline __attribute__((always_inline)) void scatter(const u64 *host, const Row *rows, u64 dwords) {
  for (u64 lane = 0; lane < LANES; lane += 4) {
    u32x4 of_row[4] = {};
    for (u64 r = 0; r < dwords; r++) of_row[r] = *(const u32x4 *)&rows[r][lane];
    for (u64 i = 0; i < 4; i++) {
      u32x4 of_lane = {of_row[0][i], of_row[1][i], of_row[2][i], of_row[3][i]};
      __builtin_memcpy((void *)host[lane + i], &of_lane, 4 * dwords);
    }
  }
}

// As `gather`, in half of the instructions: numbers come in pairs.
void gather2(const u64 *host, Row *rows) {
  for (u64 lane = 0; lane < LANES; lane += 4) {
    u64 of_lane[4];
    for (u64 i = 0; i < 4; i++) __builtin_memcpy(&of_lane[i], (const void *)host[lane + i], sizeof of_lane[i]);
    u32x4 first = (u32x4)(u64x2){of_lane[0], of_lane[1]}, last = (u32x4)(u64x2){of_lane[2], of_lane[3]};
    *(u32x4 *)&rows[0][lane] = __builtin_shufflevector(first, last, 0, 2, 4, 6);
    *(u32x4 *)&rows[1][lane] = __builtin_shufflevector(first, last, 1, 3, 5, 7);
  }
}

void gather3(const u64 *host, Row *rows) { gather(host, rows, 3); }
void gather4(const u64 *host, Row *rows) { gather(host, rows, 4); }
void scatter2(const u64 *host, const Row *rows) { scatter(host, rows, 2); }
void scatter3(const u64 *host, const Row *rows) { scatter(host, rows, 3); }
void scatter4(const u64 *host, const Row *rows) { scatter(host, rows, 4); }

// Rows: numbers, lanes (of which the lowest six bits count), result.
void permute_lanes(Row *rows) {
  for (u64 lane = 0; lane < LANES; lane++) rows[2][lane] = rows[0][rows[1][lane] % LANES];
}

// The active lanes' numbers go to the lanes named, the highest one last; 0 where none goes.
void scatter_lanes(Row *rows, u64 active) {
  *(u32x64 *)rows[2] = 0;
  for (u64 lane = 0; lane < LANES; lane++)
    if (active >> lane & 1) rows[2][rows[1][lane] % LANES] = rows[0][lane];
}

// `count` floats, sixteen at a time, as doubles. Those of a row in registers would have to be split first, which takes
// as long as all else.
void widen(const f32x16 *narrow, f64x16 *wide, u64 count) {
  for (u64 i = 0; i < count / 16; i++) wide[i] = __builtin_convertvector(narrow[i], f64x16);
}
