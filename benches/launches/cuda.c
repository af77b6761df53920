// A driver for `cargo xtask bench --only launches` that does nothing and returns immediately: `libcuda.so.1` with the
// functions of cuda.h that launches call.
#include <cuda.h>
#include <string.h>

static CUresult init(unsigned flags) { return (void)flags, CUDA_SUCCESS; }
static CUresult device_get(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
static CUresult retain(CUcontext* context, CUdevice device) {
  return (void)device, *context = (CUcontext)8, CUDA_SUCCESS;
}
static CUresult release(CUdevice device) { return (void)device, CUDA_SUCCESS; }
static CUresult current(CUcontext* context) { return *context = (CUcontext)8, CUDA_SUCCESS; }
static CUresult push(CUcontext context) { return (void)context, CUDA_SUCCESS; }
static CUresult get_kernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return (void)library, (void)name, *kernel = (CUkernel)16, CUDA_SUCCESS;
}
static CUresult error_text(CUresult code, const char** text) { return (void)code, *text = "", CUDA_SUCCESS; }
static CUresult never_called(void) { return CUDA_ERROR_NOT_SUPPORTED; }
static CUresult unload(CUlibrary library) { return (void)library, CUDA_SUCCESS; }

static CUresult attribute(int* value, CUdevice_attribute which, CUdevice device) {
  (void)device;
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return *value = 9, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return *value = 0, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return *value = 232448, CUDA_SUCCESS;
    default: return *value = 1024, CUDA_SUCCESS;
  }
}

static CUresult load(CUlibrary* library, const void* code, CUjit_option* jit, void** jit_values, unsigned jit_count,
                     CUlibraryOption* options, void** option_values, unsigned option_count) {
  (void)code, (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)option_values, (void)option_count;
  return *library = (CUlibrary)24, CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice device) {
  return (void)which, (void)value, (void)kernel, (void)device, CUDA_SUCCESS;
}

static unsigned long launched;

static CUresult launch(const CUlaunchConfig* config, CUfunction kernel, void** parameters, void** extra) {
  (void)kernel, (void)parameters, (void)extra;
  launched += config->gridDimX;
  return CUDA_SUCCESS;
}

// The blocks of all launches.
unsigned long bench_launched(void) { return launched; }

static const struct {
  const char* name;
  void* function;
} functions[] = {
    {"cuInit", init}, {"cuDeviceGet", device_get}, {"cuDeviceGetAttribute", attribute},
    {"cuDevicePrimaryCtxRetain", retain}, {"cuDevicePrimaryCtxRelease", release}, {"cuCtxGetCurrent", current},
    {"cuCtxPushCurrent", push}, {"cuCtxPopCurrent", current}, {"cuLibraryLoadData", load},
    {"cuLibraryGetKernel", get_kernel},
    {"cuKernelSetAttribute", set_attribute}, {"cuLaunchKernelEx", launch}, {"cuLibraryUnload", unload},
    {"cuGetErrorName", error_text}, {"cuGetErrorString", error_text},
};

// A driver has all functions. Those that this benchmark doesn't call fail.
CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
  (void)version, (void)flags;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    if (strcmp(functions[i].name, name) == 0) {
      *function = functions[i].function;
      if (found != NULL) *found = CU_GET_PROC_ADDRESS_SUCCESS;
      return CUDA_SUCCESS;
    }
  }
  *function = never_called;
  if (found != NULL) *found = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
