// What all parts begin with. Before it stand the integer types, the constants and the structures of layout.py.

// One number per lane. Rows begin at multiples of 64 bytes.
typedef u64 u64x64 __attribute__((ext_vector_type(64), aligned(64)));
typedef u32 u32x64 __attribute__((ext_vector_type(64), aligned(64)));
typedef double f64x64 __attribute__((ext_vector_type(64), aligned(64)));
typedef _Bool Mask __attribute__((ext_vector_type(64)));

static Mask mask_of(u64 bits) {
  Mask mask;
  __builtin_memcpy(&mask, &bits, sizeof bits);
  return mask;
}

static u64 bits_of(Mask mask) {
  u64 bits;
  __builtin_memcpy(&bits, &mask, sizeof bits);
  return bits;
}

#define LANES_WHERE(vector_comparison) bits_of(__builtin_convertvector(vector_comparison, Mask))

static u64x64 addresses_of(const Workspace *workspace) { return *(const u64x64 *)workspace->addresses; }

static u64 first_lane(u64 active) { return (u64)__builtin_ctzll(active); }

static u64 exec_of(const Wave *wave) { return *(const u64 *)&wave->sgpr[EXEC] & wave->lane_mask; }

// Of handlers that go before an instruction's own one: that one's record is as far beyond the end of the records.
#define GO_ON __attribute__((musttail)) return record[wave->record_count].handler(wave, record)
