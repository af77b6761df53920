#include <stdint.h>
#include <tvm/ffi/c_api.h>

void saxpy_kernel(float a, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

/* A TVM FFI function, which host text calls by its symbol. */
int32_t __tvm_ffi_c_twice(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)handle;
  if (num_args != 1) return -1;
  result->type_index = kTVMFFIInt;
  result->v_int64 = 2 * args[0].v_int64;
  return 0;
}
