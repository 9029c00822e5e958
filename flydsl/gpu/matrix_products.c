// Products of matrices of 16-bit numbers, summed as a matrix instruction sums them: `matrix_products`.

enum { ROWS = 4, COLUMNS = 8, WIDTH = 64, DEPTH = 256 };
typedef double f64s __attribute__((ext_vector_type(COLUMNS), aligned(8)));
typedef float f32s __attribute__((ext_vector_type(COLUMNS)));
typedef _Float16 f16s __attribute__((ext_vector_type(COLUMNS)));
typedef u16 u16s __attribute__((ext_vector_type(COLUMNS), aligned(2)));
typedef u32 u32s __attribute__((ext_vector_type(COLUMNS)));

// A matrix in memory, with its strides; a number is f16 or bf16.
typedef struct {
  const u16 *numbers;
  u64 row, column;
} Matrix;

static double wide(u16 number, u64 is_half) {
  if (is_half) return (double)__builtin_bit_cast(_Float16, number);
  return (double)__builtin_bit_cast(float, (u32)number << 16);
}

static f64s wide_row(const u16 *numbers, u64 is_half) {
  u16s row = *(const u16s *)numbers;
  if (is_half) return __builtin_convertvector(__builtin_bit_cast(f16s, row), f64s);
  return __builtin_convertvector(__builtin_bit_cast(f32s, __builtin_convertvector(row, u32s) << 16), f64s);
}

// Write a matrix in f64, in rows that are `pitch` numbers apart; by COLUMNS at a time where they are beside each other.
static void widen(double *to, u64 pitch, Matrix from, u64 rows, u64 columns, u64 is_half) {
  u64 r0 = from.row == 1 ? rows / COLUMNS * COLUMNS : 0, c0 = from.column == 1 ? columns / COLUMNS * COLUMNS : 0;
  if (c0) r0 = 0;
  for (u64 c = 0; c < columns; c++)
    for (u64 r = 0; r < r0; r += COLUMNS) {
      f64s row = wide_row(from.numbers + r + c * from.column, is_half);
      for (u64 e = 0; e < COLUMNS; e++) to[(r + e) * pitch + c] = row[e];
    }
  for (u64 r = r0; r < rows; r++) {
    for (u64 c = 0; c < c0; c += COLUMNS) *(f64s *)(to + r * pitch + c) = wide_row(from.numbers + r * from.row + c, is_half);
    for (u64 c = c0; c < columns; c++) to[r * pitch + c] = wide(from.numbers[r * from.row + c * from.column], is_half);
  }
}

// Add products to the sums of a tile, `step` of them at once, each of which is exact.
static void add_products(f32s *sums, const double *one, const double *other, u64 depth, u64 step) {
  f64s parts[ROWS];
  for (u64 r = 0; r < ROWS; r++) parts[r] = __builtin_convertvector(sums[r], f64s);
  for (u64 start = 0; start < depth; start += step) {
    u64 end = depth - start < step ? depth : start + step;
    for (u64 p = start; p < end; p++) {
      f64s row = *(const f64s *)(other + p * WIDTH);
      for (u64 r = 0; r < ROWS; r++) parts[r] += row * one[r * DEPTH + p];
    }
    for (u64 r = 0; r < ROWS; r++) {
      sums[r] = __builtin_convertvector(parts[r], f32s);
      parts[r] = __builtin_convertvector(sums[r], f64s);
    }
  }
}

static u64 smaller(u64 a, u64 b) { return a < b ? a : b; }

static void multiply_matrices(Matrix one, Matrix other, float *out, u64 m, u64 n, u64 k, u64 step, u64 is_half) {
  double left[ROWS * DEPTH], right[DEPTH * WIDTH];
  u64 most = DEPTH / step * step;
  for (u64 p = 0; p < k; p += most)
    for (u64 j = 0; j < n; j += WIDTH) {
      u64 depth = smaller(most, k - p), width = smaller(WIDTH, n - j);
      Matrix block = {other.numbers + p * other.row + j * other.column, other.row, other.column};
      widen(right, WIDTH, block, depth, width, is_half);
      for (u64 i = 0; i < m; i += ROWS) {
        u64 rows = smaller(ROWS, m - i);
        Matrix strip = {one.numbers + i * one.row + p * one.column, one.row, one.column};
        widen(left, DEPTH, strip, rows, depth, is_half);
        for (u64 c = 0; c < width; c += COLUMNS) {
          f32s sums[ROWS] = {};
          float *tile = out + i * n + j + c;
          u64 columns = smaller(COLUMNS, width - c);
          for (u64 r = 0; p && r < rows; r++)
            for (u64 e = 0; e < columns; e++) sums[r][e] = tile[r * n + e];
          add_products(sums, left, right + c, depth, step);
          for (u64 r = 0; r < rows; r++)
            for (u64 e = 0; e < columns; e++) tile[r * n + e] = sums[r][e];
        }
      }
    }
}

// out = one @ other for each of a batch: m x n, in a row. Strides are in numbers: of the batch, of rows, of columns.
void multiply(const u16 *one, u64 one_batch, u64 one_row, u64 one_column, const u16 *other, u64 other_batch,
              u64 other_row, u64 other_column, float *out, u64 batch, u64 m, u64 n, u64 k, u64 step, u64 is_half) {
  for (u64 b = 0; b < batch; b++) {
    Matrix left = {one + b * one_batch, one_row, one_column};
    Matrix right = {other + b * other_batch, other_row, other_column};
    multiply_matrices(left, right, out + b * m * n, m, n, k, step, is_half);
  }
}
