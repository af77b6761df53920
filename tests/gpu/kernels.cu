// The tests' kernels for a real driver: those of driver/kernels.c in CUDA C, and some that report what the driver does.

#ifndef WHICH
#define WHICH 80
#endif

// z[i] = x[i] + y[i]
extern "C" __global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

// y[i][j] = x[i][j] for strided rows, with 32-bit sizes
extern "C" __global__ void copy(const float* x, float* y, int m, int n, int stride) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m && j < n) y[i * n + j] = x[i * stride + j];
}

// c = a b by tiles in dynamic shared memory; all sizes are multiples of the tile
extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned n, unsigned k) {
  extern __shared__ float as[];
  const unsigned tile = blockDim.x, row = threadIdx.y, column = threadIdx.x;
  float* bs = as + tile * tile;
  const unsigned i = blockIdx.y * tile + row, j = blockIdx.x * tile + column;
  float sum = 0;
  for (unsigned step = 0; step < k; step += tile) {
    as[row * tile + column] = a[i * k + step + column];
    bs[row * tile + column] = b[(step + row) * n + j];
    __syncthreads();
    for (unsigned l = 0; l < tile; l++) sum += as[row * tile + l] * bs[l * tile + column];
    __syncthreads();
  }
  c[i * n + j] = sum;
}

struct affine_by {
  float scale;
  int n;
  double shift;
  float* out;
};
extern "C" __global__ void affine(const float* x, affine_by a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.n) a.out[i] = (float)(a.scale * x[i] + a.shift);
}

// Each block adds up its elements in the workspace, and stores the sum.
extern "C" __global__ void sum(const float* x, float* out, long long n, float* scratch, void* profile) {
  if (profile != nullptr || (unsigned long long)scratch % 128) __trap();
  float* mine = scratch + blockIdx.x * 32;
  *mine = 0;
  for (long long i = blockIdx.x; i < n; i += gridDim.x) *mine += x[i];
  out[blockIdx.x] = *mine;
}

// Copies boxes of 4 rows and 8 columns with a tensor map.
struct alignas(64) tensor_map {
  unsigned long long words[16];
};
extern "C" __global__ void tma(const __grid_constant__ tensor_map map, float* y, int m, int n) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(128) float box[4 * 8];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned to = (unsigned)__cvta_generic_to_shared(box), done = (unsigned)__cvta_generic_to_shared(&barrier);
  const int row = blockIdx.y * 4, column = blockIdx.x * 8;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(done), "n"(sizeof box) : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(done)
      : "memory");
  for (int arrived = 0; !arrived;)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
        : "=r"(arrived)
        : "r"(done)
        : "memory");
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 8; j++)
      if (row + i < m && column + j < n) y[(row + i) * n + column + j] = box[i * 8 + j];
#endif
}

// Reports which device's image ran.
extern "C" __global__ void which(int* out) { *out = WHICH; }

// The driver refuses larger blocks.
extern "C" __global__ void __launch_bounds__(64) bounded(float* x) { x[threadIdx.x] = 1; }

// Reports the size of each block's cluster.
extern "C" __global__ void clusters(int* out) {
  unsigned size = 1;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
#endif
  if (threadIdx.x == 0) out[blockIdx.x] = (int)size;
}

// Reports the size of a block's dynamic shared memory in bytes. The static size is 1,024.
extern "C" __global__ void staged(int* out) {
  __shared__ volatile unsigned char own[1024];
  unsigned size;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
  own[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) *out = (int)size * own[0];
}

// Writes each byte of its dynamic shared memory, and reports the size in bytes.
extern "C" __global__ void dynamic(int* out) {
  extern __shared__ unsigned char bytes[];
  unsigned size;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x) bytes[i] = (unsigned char)i;
  __syncthreads();
  if (threadIdx.x == 0) *out = bytes[size - 1] == (unsigned char)(size - 1) ? (int)size : -1;
}

// x[i] = x[i] * scale + bias[0], with global variables that launches write. Stores the bytes of `tag`.
struct alignas(2) six_bytes {
  unsigned char bytes[6];
};
extern "C" {
__constant__ float scale;
__device__ const float* bias;
__device__ six_bytes tag;
__global__ void affine_globals(float* x, unsigned char* stored, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * scale + (bias ? bias[0] : 0);
  if (i < 6) stored[i] = tag.bytes[i];
}
}
