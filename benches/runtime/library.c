// The library that `driver.c` loads: a function of the packed convention, and the variable that a loader sets.

#include <tvm/ffi/c_api.h>

TVM_FFI_DLL_EXPORT void* __tvm_ffi__library_ctx = 0;

TVM_FFI_DLL_EXPORT int __tvm_ffi_answer(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args;
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = 42;
  return 0;
}
