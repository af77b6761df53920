// Definitions for the stand-in driver's kernels: host code that is called for each thread of each block.
#ifndef STANDIN_H
#define STANDIN_H

#include <stdint.h>

struct extent {
  uint32_t x, y, z;
};

struct thread {
  struct extent grid, block, block_index, index;
  // The dynamic shared memory of the block, and its size in bytes.
  void* shared;
  uint32_t shared_bytes;
  // Waits until all threads of the block call it.
  void (*sync)(void);
  // The address of a global variable on the kernel's device.
  const void* (*global)(const char* name);
};

// A kernel. `params` contains the addresses of copies of the parameters.
typedef void (*kernel_fn)(const struct thread* t, void** params);

// A kernel `k` needs `const uint32_t k_params[]`, the sizes of the parameters terminated by 0. If it has static shared
// memory, `const uint32_t k_static_shared` is its size.
//
// A global variable `v` is `const uint32_t v_global`, its size in bytes. It is 0 until the driver writes it.
#define ARG(type, number) (*(type*)params[number])

// A tensor map in the stand-in's encoding, which fits in the 128 bytes of a CUtensorMap.
struct tensor_map {
  uint64_t magic;
  uint8_t* address;
  uint64_t dims[5];
  uint64_t strides[4];
  uint16_t box[5];
  uint8_t steps[5];
  uint8_t rank, bytes;
};

// Copies the 2-dimensional box at (row, column) of a tensor to memory. Elements out of bounds are 0.
static inline void tma_load_2d(const struct tensor_map* map, void* to, int64_t row, int64_t column) {
  uint8_t* out = (uint8_t*)to;
  for (int64_t i = 0; i < map->box[1]; i++) {
    for (int64_t j = 0; j < map->box[0]; j++) {
      int64_t r = row + i, c = column + j;
      const int inside = r >= 0 && c >= 0 && (uint64_t)r < map->dims[1] && (uint64_t)c < map->dims[0];
      for (int64_t b = 0; b < map->bytes; b++) {
        *out++ = inside ? map->address[(uint64_t)r * map->strides[0] + (uint64_t)c * map->bytes + b] : 0;
      }
    }
  }
}

#endif
