// Calls of TVM FFI functions written by an expert in C, and the loops that run them and generated code. `calls N` runs
// the function `CALLS_RUN` with N calls. xtask subtracts the instructions of two runs with different N.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

int32_t __tvm_ffi_callee(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t __tvm_ffi_by_symbol(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t __tvm_ffi_by_global(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

static TVMFFIObjectHandle held;

static int32_t checked(int32_t code, const TVMFFIAny* result) {
  if (code != 0) return code;
  if (result->type_index != kTVMFFIInt) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "expected an int");
    return -1;
  }
  return 0;
}

// x becomes callee(x), n times
static int32_t c_by_symbol(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)handle;
  if (num_args != 1 || args[0].type_index != kTVMFFIInt) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "expected an int");
    return -1;
  }
  int64_t x = 0;
  for (int64_t i = 0; i < args[0].v_int64; ++i) {
    TVMFFIAny packed = {.type_index = kTVMFFIInt, .zero_padding = 0, .v_int64 = x};
    TVMFFIAny value = {.type_index = kTVMFFINone, .zero_padding = 0, .v_int64 = 0};
    int32_t code = checked(__tvm_ffi_callee(NULL, &packed, 1, &value), &value);
    if (code != 0) return code;
    x = value.v_int64;
  }
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = x;
  return 0;
}

static int32_t c_by_global(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)handle;
  if (num_args != 1 || args[0].type_index != kTVMFFIInt) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "expected an int");
    return -1;
  }
  int64_t x = 0;
  for (int64_t i = 0; i < args[0].v_int64; ++i) {
    TVMFFIAny packed = {.type_index = kTVMFFIInt, .zero_padding = 0, .v_int64 = x};
    TVMFFIAny value = {.type_index = kTVMFFINone, .zero_padding = 0, .v_int64 = 0};
    int32_t code = checked(TVMFFIFunctionCall(held, &packed, 1, &value), &value);
    if (code != 0) return code;
    x = value.v_int64;
  }
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = x;
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  TVMFFIByteArray name = {"bench.callee", strlen("bench.callee")};
  if (TVMFFIFunctionCreate(NULL, __tvm_ffi_callee, NULL, &held) != 0) return 3;
  if (TVMFFIFunctionSetGlobal(&name, held, 1) != 0) return 3;
  TVMFFISafeCallType run = NULL;
  if (strcmp(argv[1], "c-symbol") == 0) run = c_by_symbol;
  if (strcmp(argv[1], "c-global") == 0) run = c_by_global;
  if (strcmp(argv[1], "symbol") == 0) run = __tvm_ffi_by_symbol;
  if (strcmp(argv[1], "global") == 0) run = __tvm_ffi_by_global;
  if (run == NULL) return 2;
  TVMFFIAny count = {.type_index = kTVMFFIInt, .zero_padding = 0, .v_int64 = atoll(argv[2])};
  TVMFFIAny result = {.type_index = kTVMFFINone, .zero_padding = 0, .v_int64 = 0};
  int32_t code = run(NULL, &count, 1, &result);
  if (code != 0 || result.type_index != kTVMFFIInt || result.v_int64 != count.v_int64) return 4;
  return 0;
}
