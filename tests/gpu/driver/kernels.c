// The tests' kernels as host code.
#include "standin.h"

#include <stddef.h>

// z[i] = x[i] + y[i]
const uint32_t add_params[] = {8, 8, 8, 8, 0};
void add(const struct thread* t, void** params) {
  const float *x = ARG(const float*, 0), *y = ARG(const float*, 1);
  float* z = ARG(float*, 2);
  const int64_t n = ARG(int64_t, 3);
  const int64_t i = (int64_t)t->block_index.x * t->block.x + t->index.x;
  if (i < n) z[i] = x[i] + y[i];
}

// y[i][j] = x[i][j] for strided rows, with 32-bit sizes
const uint32_t copy_params[] = {8, 8, 4, 4, 4, 0};
void copy(const struct thread* t, void** params) {
  const float* x = ARG(const float*, 0);
  float* y = ARG(float*, 1);
  const int32_t m = ARG(int32_t, 2), n = ARG(int32_t, 3), stride = ARG(int32_t, 4);
  const int64_t i = (int64_t)t->block_index.y * t->block.y + t->index.y, j = (int64_t)t->block_index.x * t->block.x + t->index.x;
  if (i < m && j < n) y[i * n + j] = x[i * stride + j];
}

// c = a b by tiles in dynamic shared memory; all sizes are multiples of the tile
const uint32_t matmul_params[] = {8, 8, 8, 4, 4, 0};
void matmul(const struct thread* t, void** params) {
  const float *a = ARG(const float*, 0), *b = ARG(const float*, 1);
  float* c = ARG(float*, 2);
  const int32_t n = ARG(int32_t, 3), k = ARG(int32_t, 4);
  const uint32_t tile = t->block.x, row = t->index.y, column = t->index.x;
  float *as = (float*)t->shared, *bs = as + tile * tile;
  const uint32_t i = t->block_index.y * tile + row, j = t->block_index.x * tile + column;
  float sum = 0;
  for (uint32_t step = 0; step < (uint32_t)k; step += tile) {
    as[row * tile + column] = a[i * (uint32_t)k + step + column];
    bs[row * tile + column] = b[(step + row) * (uint32_t)n + j];
    t->sync();
    for (uint32_t l = 0; l < tile; l++) sum += as[row * tile + l] * bs[l * tile + column];
    t->sync();
  }
  c[i * (uint32_t)n + j] = sum;
}

// Scales and shifts by a struct.
struct affine {
  float scale;
  int32_t n;
  double shift;
  float* out;
};
const uint32_t affine_params[] = {8, sizeof(struct affine), 0};
void affine(const struct thread* t, void** params) {
  const float* x = ARG(const float*, 0);
  const struct affine a = ARG(struct affine, 1);
  const uint32_t i = t->block_index.x * t->block.x + t->index.x;
  if (i < (uint32_t)a.n) a.out[i] = (float)(a.scale * x[i] + a.shift);
}

// Each block adds up its elements in the workspace, and stores the sum.
const uint32_t sum_params[] = {8, 8, 8, 8, 8, 0};
void sum(const struct thread* t, void** params) {
  const float* x = ARG(const float*, 0);
  float *out = ARG(float*, 1), *scratch = ARG(float*, 3);
  const int64_t n = ARG(int64_t, 2);
  if (ARG(void*, 4) != NULL || (uintptr_t)scratch % 128) __builtin_trap();
  float* mine = scratch + t->block_index.x * 32;
  *mine = 0;
  for (int64_t i = t->block_index.x; i < n; i += t->grid.x) *mine += x[i];
  out[t->block_index.x] = *mine;
}

// Copies boxes of 4 rows and 8 columns with a tensor map.
const uint32_t tma_params[] = {128, 8, 4, 4, 0};
void tma(const struct thread* t, void** params) {
  const struct tensor_map* map = (const struct tensor_map*)params[0];
  float* y = ARG(float*, 1);
  const int32_t m = ARG(int32_t, 2), n = ARG(int32_t, 3);
  float box[4 * 8];
  if (map->magic != 0x70616d || (uintptr_t)map % 64) __builtin_trap();
  tma_load_2d(map, box, t->block_index.y * 4, t->block_index.x * 8);
  for (int32_t i = 0; i < 4; i++)
    for (int32_t j = 0; j < 8; j++) {
      const int32_t row = (int32_t)t->block_index.y * 4 + i, column = (int32_t)t->block_index.x * 8 + j;
      if (row < m && column < n) y[row * n + column] = box[i * 8 + j];
    }
}

// x[i] = x[i] * scale + bias[0], with global variables. `tag` has a size that isn't a multiple of 4 bytes.
const uint32_t scale_global = 4, bias_global = 8, tag_global = 6;
const uint32_t affine_globals_params[] = {8, 8, 8, 0};
void affine_globals(const struct thread* t, void** params) {
  float* x = ARG(float*, 0);
  uint8_t* tag = ARG(uint8_t*, 1);
  const int64_t n = ARG(int64_t, 2);
  const int64_t i = (int64_t)t->block_index.x * t->block.x + t->index.x;
  const float* const bias = *(const float* const*)t->global("bias");
  if (i < n) x[i] = x[i] * *(const float*)t->global("scale") + (bias ? bias[0] : 0);
  if (i < (int64_t)tag_global) tag[i] = ((const uint8_t*)t->global("tag"))[i];
}

// Reports which device's image ran.
const uint32_t which_params[] = {8, 0};
#ifndef WHICH
#define WHICH 80
#endif
void which(const struct thread* t, void** params) {
  (void)t;
  *ARG(int32_t*, 0) = WHICH;
}

// Reports the size of a block's dynamic shared memory in bytes. The static size is 1,024.
const uint32_t staged_params[] = {8, 0};
const uint32_t staged_static_shared = 1024;
void staged(const struct thread* t, void** params) { *ARG(int32_t*, 0) = (int32_t)t->shared_bytes; }
