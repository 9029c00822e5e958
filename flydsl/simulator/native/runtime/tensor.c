// Copies the tiles that the tensor data mover is told of. `flydsl/simulator/memory/tensor_descriptor.py` says what the fields mean; a
// descriptor that is wrong, or rare, is left to the lock-step machine, and nothing has been copied then.

typedef u64 u64_anywhere __attribute__((aligned(1)));

// A field of `words`, whose first bit and width the constants TENSOR_... are.
static u64 field(const u32 *words, u64 first, u64 bits) {
  return *(const u64_anywhere *)&words[first / 32] >> first % 32 & ((1ull << bits) - 1);
}

// The rows of a tile along dimensions 1 to 4, or of a list, and how they lie in LDS.
typedef struct {
  u64 global, lds, element, width, whole;  // of a row: elements, and those of a row of the tensor
  u64 rows, sizes[4], strides[4], extents[4];
  u64 iterations, global_step, lds_step;
  u64 interval, padding;  // bytes; an interval of 0 is none
  const u32 *indices;     // or null
  u64 index_bits;
  u64 is_load;
} Tile;

static u64 least(u64 x, u64 y) { return x < y ? x : y; }

// Whether a workgroup may ask for a tile together with those of a mask.
static int may_ask(const Wave *wave, u64 mask) {
  u64 state = wave->sgpr[CLUSTER_STATE], last = wave->sgpr[CLUSTER_SIZES] >> 24 & 15;
  return !mask || !state || (mask >> (state >> 21 & 15) & 1 && !(mask >> last >> 1));
}

static int read_shape(Tile *tile, const u32 *words) {
  u64 iterates = field(words, TENSOR_ITERATE_ENABLE), count = iterates ? 2 : 4, is_unused = 0;
  u64 sizes[] = {field(words, TENSOR_TILE_DIM1), field(words, TENSOR_TILE_DIM2), field(words, TENSOR_TILE_DIM3),
                 field(words, TENSOR_TILE_DIM4)};
  u64 strides[] = {field(words, TENSOR_TENSOR_DIM0_STRIDE), field(words, TENSOR_TENSOR_DIM1_STRIDE),
                   field(words, TENSOR_TENSOR_DIM2_STRIDE), field(words, TENSOR_TENSOR_DIM3_STRIDE)};
  u64 extents[] = {field(words, TENSOR_TENSOR_DIM1), field(words, TENSOR_TENSOR_DIM2), field(words, TENSOR_TENSOR_DIM3),
                   field(words, TENSOR_TENSOR_DIM4)};
  if (iterates && sizes[3]) return 0;
  for (u64 i = 0; i < 4; i++) {
    u64 size = i < count ? sizes[i] : 0;
    if (size && is_unused) return 0;
    is_unused |= !size;
    tile->sizes[i] = size ? size : 1, tile->strides[i] = strides[i];
    tile->extents[i] = size ? extents[i] : 1;
    tile->rows *= tile->sizes[i];
  }
  if (!iterates) return 1;
  tile->iterations = field(words, TENSOR_ITERATE_COUNT) + 1;
  tile->global_step = field(words, TENSOR_GLOBAL_ADDR_INCREMENT);
  tile->lds_step = field(words, TENSOR_LDS_ADDR_INCREMENT) * tile->element;
  for (u64 i = 0; i < count; i++)
    if (tile->extents[i] > 1 && tile->strides[i] < tile->whole) return 0;
  return tile->iterations <= MOST_TENSOR_ITERATIONS;
}

static u64 index_of(const Tile *tile, u64 row) {
  return tile->index_bits == 32 ? tile->indices[row] : tile->indices[row / 2] >> 16 * (row % 2) & 0xFFFF;
}

// Rows beyond the tensor are well defined only where the list ascends.
static int read_list(Tile *tile, const u32 *words) {
  tile->indices = words + TENSOR_FIRST_INDEX;
  tile->index_bits = field(words, TENSOR_INDEX_IS_32_BITS) ? 32 : 16;
  tile->rows = field(words, TENSOR_TILE_DIM1);
  tile->strides[0] = field(words, TENSOR_TENSOR_DIM0_STRIDE);
  tile->extents[0] = field(words, TENSOR_TENSOR_DIM1);
  if (!tile->rows || tile->rows > 256 / tile->index_bits) return 0;
  u64 ascends = 1, is_inside = 1;
  for (u64 row = 0; row < tile->rows; row++) {
    ascends &= !row || index_of(tile, row) >= index_of(tile, row - 1);
    is_inside &= index_of(tile, row) < tile->extents[0];
  }
  return ascends || is_inside;
}

static int read_tile(Tile *tile, const Wave *wave, const u32 *words, u64 is_load) {
  u64 log2 = field(words, TENSOR_DATA_SIZE), width = field(words, TENSOR_TILE_DIM0);
  u64 pads = is_load && field(words, TENSOR_PAD_ENABLE);
  *tile = (Tile){.global = field(words, TENSOR_GLOBAL_ADDR),
                 .lds = field(words, TENSOR_LDS_ADDR),
                 .element = 1ull << log2,
                 .width = width,
                 .whole = field(words, TENSOR_TENSOR_DIM0),
                 .rows = 1,
                 .iterations = 1,
                 .is_load = is_load};
  if (field(words, TENSOR_COUNT) != 1 || field(words, TENSOR_RESTORE) || field(words, TENSOR_TYPE) != 2 || !width) return 0;
  if (field(words, TENSOR_ATOMIC_BARRIER_ENABLE) || (pads && (width << log2) % 4)) return 0;
  if (is_load && !may_ask(wave, field(words, TENSOR_WORKGROUP_MASK))) return 0;
  if (pads) tile->interval = 8ull << field(words, TENSOR_PAD_INTERVAL);
  if (pads) tile->padding = 4 * (field(words, TENSOR_PAD_AMOUNT) + 1);
  if (!(field(words, TENSOR_GATHER) ? read_list(tile, words) : read_shape(tile, words))) return 0;
  return tile->rows <= MOST_TENSOR_ROWS / tile->iterations;
}

// Where in the tensor a repetition begins: its element, row and plane.
static void find_origin(const Tile *tile, u64 iteration, u64 *origin) {
  u64 rest = iteration * tile->global_step, larger = tile->extents[1] > 1 && tile->strides[1] > tile->strides[0];
  for (u64 turn = 0; turn < 2 && rest; turn++) {
    u64 i = turn ^ larger;
    if (tile->extents[i] <= 1) continue;
    origin[i + 1] = rest / tile->strides[i], rest %= tile->strides[i];
  }
  origin[0] = rest;
}

// Where in global memory a row begins, and how many of its bytes are in the tensor.
static u64 row_of(const Tile *tile, u64 iteration, u64 row, u64 *bytes) {
  u64 elements = iteration * tile->global_step, is_inside = 1, origin[5] = {0};
  find_origin(tile, iteration, origin);
  if (tile->indices) {
    elements += index_of(tile, row) * tile->strides[0];
    is_inside = index_of(tile, row) < tile->extents[0];
  } else
    for (u64 i = 0; i < 4; row /= tile->sizes[i], i++) {
      u64 along = row % tile->sizes[i];
      elements += along * tile->strides[i];
      is_inside &= origin[i + 1] + along < tile->extents[i];
    }
  is_inside &= origin[0] < tile->whole;
  *bytes = is_inside ? least(tile->width, tile->whole - origin[0]) * tile->element : 0;
  return tile->global + elements * tile->element;
}

// Where in LDS a byte of the tile lies.
static u64 place_of(const Tile *tile, u64 byte) {
  return byte + (tile->interval ? byte / tile->interval * tile->padding : 0);
}

// Copy the bytes of a row, or zeros where `from` is null, to their places in LDS.
static void fill(const Tile *tile, u8 *lds, u64 byte, const u8 *from, u64 count) {
  while (count) {
    u64 run = tile->interval ? least(count, tile->interval - byte % tile->interval) : count;
    if (from) __builtin_memcpy(lds + place_of(tile, byte), from, run), from += run;
    else __builtin_memset(lds + place_of(tile, byte), 0, run);
    byte += run, count -= run;
  }
}

// What is counted: bytes, and lines of global memory; one on which the row before ended counts once.
typedef struct {
  u64 global, lds, lines, last_line;
} Traffic;

static void count_row(Traffic *traffic, u64 address, u64 bytes) {
  u64 first = address / LINE_BYTES, last = (address + bytes - 1) / LINE_BYTES;
  traffic->global += bytes;
  traffic->lines += last - first + (first != traffic->last_line);
  traffic->last_line = last;
}

// Check one row, or copy it. False if it is not within bounds.
static int visit_row(const Tile *tile, const Wave *wave, u64 iteration, u64 row, int copies, Traffic *traffic) {
  u64 bytes, address = row_of(tile, iteration, row, &bytes);
  u64 width = tile->width * tile->element, byte = row * width, used = tile->is_load ? width : bytes;
  u64 start = tile->lds + iteration * tile->lds_step;
  u64 host = bytes ? host_of(wave, address, (i64)bytes, bytes, tile->is_load ? LOADS : STORES) : 0;
  if (used && start + place_of(tile, byte + used - 1) >= (u64)wave->lds_bytes) return 0;
  if (bytes && !host) return 0;
  if (!copies) return 1;
  u8 *lds = (u8 *)wave->lds + start;
  if (!tile->is_load) __builtin_memcpy((void *)host, lds + byte, bytes);
  else {
    fill(tile, lds, byte, (const u8 *)host, bytes);
    fill(tile, lds, byte + bytes, 0, width - bytes);
  }
  traffic->lds += used;
  if (bytes) count_row(traffic, address, bytes);
  return 1;
}

// Copy a tile; false if the lock-step machine is to do it, or to say what is wrong.
u64 move_tensor(Wave *wave, const u32 *words, u64 is_load) {
  Tile tile;
  Traffic traffic = {.last_line = ~0ull};
  if (!field(words, TENSOR_COUNT)) return 1;
  if (!read_tile(&tile, wave, words, is_load)) return 0;
  for (int copies = 0; copies <= 1; copies++)
    for (u64 iteration = 0; iteration < tile.iterations; iteration++)
      for (u64 row = 0; row < tile.rows; row++)
        if (!visit_row(&tile, wave, iteration, row, copies, &traffic)) return 0;
  if (wave->observer) {
    wave->observer(wave, traffic.lines, traffic.global, SPACE_TENSOR_GLOBAL, is_load ? LOADS : STORES, 0);
    wave->observer(wave, 0, traffic.lds, SPACE_TENSOR_LDS, is_load ? STORES : LOADS, 0);
  }
  return 1;
}
