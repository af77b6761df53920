#include "allocator.h"

#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/extra/c_env_api.h>

#ifdef _WIN32
#include <malloc.h>

static void* allocate_aligned(size_t size) { return _aligned_malloc(size, 64); }

static void delete_tensor(DLManagedTensorVersioned* self) { _aligned_free(self); }
#else
static void* allocate_aligned(size_t size) { return aligned_alloc(64, size); }

static void delete_tensor(DLManagedTensorVersioned* self) { free(self); }
#endif

static size_t round_up(size_t size) { return (size + 63) / 64 * 64; }

/* One block: the tensor, its shape and strides, and its data, aligned to 64 bytes. */
static int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                    void (*set_error)(void* error_ctx, const char* kind, const char* message)) {
  size_t ndim = (size_t)prototype->ndim, elements = 1;
  for (size_t i = 0; i < ndim; ++i) elements *= (size_t)prototype->shape[i];
  size_t data = (elements * prototype->dtype.bits * prototype->dtype.lanes + 7) / 8;
  size_t head = round_up(sizeof(DLManagedTensorVersioned) + 2 * ndim * sizeof(int64_t));
  DLManagedTensorVersioned* tensor = allocate_aligned(head + round_up(data));
  if (tensor == NULL) {
    set_error(error_ctx, "MemoryError", "out of memory");
    return -1;
  }
  memset(tensor, 0, sizeof *tensor);
  tensor->version.major = DLPACK_MAJOR_VERSION;
  tensor->version.minor = DLPACK_MINOR_VERSION;
  tensor->deleter = delete_tensor;
  tensor->dl_tensor = *prototype;
  tensor->dl_tensor.data = (char*)tensor + head;
  tensor->dl_tensor.byte_offset = 0;
  tensor->dl_tensor.shape = (int64_t*)(tensor + 1);
  tensor->dl_tensor.strides = tensor->dl_tensor.shape + ndim;
  int64_t stride = 1;
  for (size_t i = ndim; i-- > 0;) {
    tensor->dl_tensor.shape[i] = prototype->shape[i];
    tensor->dl_tensor.strides[i] = stride;
    stride *= prototype->shape[i];
  }
  *out = tensor;
  return 0;
}

int use_malloc(void) { return TVMFFIEnvSetDLPackManagedTensorAllocator(allocate, 1, NULL); }
