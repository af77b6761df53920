// Launchers written by an expert in C, with and without the checks of generated code, compared with a generated
// function. `launches WHICH N` launches N times. xtask subtracts the instructions of two runs with different N.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

int32_t __tvm_ffi_add(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

enum { DEVICES = 64 };
static CUresult (*launch_kernel)(const CUlaunchConfig*, CUfunction, void**, void**);
static _Atomic(CUkernel) kernels[DEVICES];

static __attribute__((noinline, cold)) int32_t refuse(const char* kind, const char* message) {
  TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
}

// The work of the first launch on a device.
static __attribute__((noinline, cold)) int32_t first_use(int32_t device) {
  CUresult (*find)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  CUresult (*get_kernel)(CUkernel*, CUlibrary, const char*);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return refuse("RuntimeError", "no driver");
  find = dlsym(driver, "cuGetProcAddress_v2");
  CUkernel kernel;
  if (find("cuLaunchKernelEx", (void**)&launch_kernel, 11060, 0, NULL) != CUDA_SUCCESS ||
      find("cuLibraryGetKernel", (void**)&get_kernel, 12000, 0, NULL) != CUDA_SUCCESS ||
      get_kernel(&kernel, NULL, "add") != CUDA_SUCCESS) {
    return refuse("RuntimeError", "an old driver");
  }
  atomic_store_explicit(&kernels[device], kernel, memory_order_release);
  return 0;
}

// A NULL stream needs the device's context.
static __attribute__((noinline, cold)) int32_t enter(void) {
  return refuse("RuntimeError", "the benchmark has a stream");
}

static inline int32_t launch(const DLTensor* x, const DLTensor* y, const DLTensor* z, int64_t n, int64_t blocks) {
  int32_t device = x->device.device_id;
  CUkernel kernel = atomic_load_explicit(&kernels[device], memory_order_acquire);
  if (__builtin_expect(kernel == NULL, 0)) {
    if (first_use(device) != 0) return -1;
    kernel = atomic_load_explicit(&kernels[device], memory_order_acquire);
  }
  void* stream = TVMFFIEnvGetStream(kDLCUDA, device);
  if (__builtin_expect(stream == NULL, 0) && enter() != 0) return -1;
  CUlaunchConfig config = {
      .gridDimX = (unsigned)blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1, .blockDimZ = 1,
      .sharedMemBytes = 0, .hStream = stream, .attrs = NULL, .numAttrs = 0,
  };
  void* data[3] = {(char*)x->data + x->byte_offset, (char*)y->data + y->byte_offset, (char*)z->data + z->byte_offset};
  void* parameters[4] = {&data[0], &data[1], &data[2], &n};
  if (__builtin_expect(launch_kernel(&config, (CUfunction)kernel, parameters, NULL) != CUDA_SUCCESS, 0)) {
    return refuse("RuntimeError", "the launch failed");
  }
  return 0;
}

static inline const DLTensor* of(const TVMFFIAny* arg) {
  return (const DLTensor*)((const char*)arg->v_obj + sizeof(TVMFFIObject));
}

// A contiguous one-dimensional float32 tensor on a CUDA device.
static inline int is_right(const TVMFFIAny* arg) {
  if (arg->type_index != kTVMFFITensor) return 0;
  const DLTensor* tensor = of(arg);
  const DLDataType float32 = {kDLFloat, 32, 1};
  return tensor->ndim == 1 && memcmp(&tensor->dtype, &float32, sizeof float32) == 0 &&
         tensor->device.device_type == kDLCUDA &&
         tensor->strides != NULL && tensor->strides[0] == 1 && tensor->shape[0] >= 0 &&
         ((uintptr_t)tensor->data + tensor->byte_offset) % 4 == 0;
}

static int32_t checked(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)handle, (void)result;
  if (num_args != 3 || args == NULL) return refuse("TypeError", "expected 3 arguments");
  if (!is_right(&args[0]) || !is_right(&args[1]) || !is_right(&args[2])) return refuse("TypeError", "expected tensors");
  const DLTensor *x = of(&args[0]), *y = of(&args[1]), *z = of(&args[2]);
  int64_t n = x->shape[0];
  if (y->shape[0] != n || z->shape[0] != n) return refuse("ValueError", "expected equal sizes");
  if (y->device.device_id != x->device.device_id || z->device.device_id != x->device.device_id) {
    return refuse("ValueError", "expected one device");
  }
  if ((uint32_t)x->device.device_id >= DEVICES) return refuse("ValueError", "expected another device");
  int64_t blocks = n / 128 + (n % 128 != 0);
  if (blocks == 0) return 0;
  if (blocks > INT32_MAX) return refuse("ValueError", "expected a smaller grid");
  return launch(x, y, z, n, blocks);
}

static int32_t unchecked(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)handle, (void)num_args, (void)result;
  const DLTensor *x = of(&args[0]), *y = of(&args[1]), *z = of(&args[2]);
  return launch(x, y, z, x->shape[0], (x->shape[0] + 127) / 128);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  TVMFFISafeCallType run = NULL;
  if (strcmp(argv[1], "c-checked") == 0) run = checked;
  if (strcmp(argv[1], "c-unchecked") == 0) run = unchecked;
  if (strcmp(argv[1], "generated") == 0) run = __tvm_ffi_add;
  if (run == NULL) return 2;
  static float data[3][1000];
  int64_t shape[1] = {1000}, strides[1] = {1};
  struct {
    TVMFFIObject header;
    DLTensor tensor;
  } objects[3];
  TVMFFIAny args[3];
  memset(objects, 0, sizeof objects);
  for (int i = 0; i < 3; ++i) {
    objects[i].header.type_index = kTVMFFITensor;
    objects[i].header.combined_ref_count = ((uint64_t)1 << 32) | 1;
    objects[i].tensor = (DLTensor){data[i], {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
    args[i] = (TVMFFIAny){.type_index = kTVMFFITensor, .zero_padding = 0, .v_obj = &objects[i].header};
  }
  if (TVMFFIEnvSetStream(kDLCUDA, 0, (void*)32, NULL) != 0) return 3;
  long long calls = atoll(argv[2]);
  for (long long i = 0; i < calls; ++i) {
    TVMFFIAny result = {.type_index = kTVMFFINone, .zero_padding = 0, .v_int64 = 0};
    if (run(NULL, args, 3, &result) != 0) {
      TVMFFIObjectHandle raised = NULL;
      TVMFFIErrorMoveFromRaised(&raised);
      TVMFFIByteArray message = {"", 0};
      if (raised != NULL) message = ((const TVMFFIErrorCell*)((const char*)raised + sizeof(TVMFFIObject)))->message;
      fprintf(stderr, "call %lld failed: %.*s\n", i, (int)message.size, message.data);
      return 4;
    }
  }
  // of 8 blocks each
  unsigned long (*launched)(void) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "bench_launched");
  return launched != NULL && launched() == 8 * (unsigned long)calls ? 0 : 5;
}
