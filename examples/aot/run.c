/* Runs the library on C arrays, using upstream's headers: `run ./saxpy.so`. */
#include <stdio.h>
#include <tvm/ffi/c_api.h>

/* Calls a function object, and prints the error, if any. */
static int call(TVMFFIObjectHandle function, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (TVMFFIFunctionCall(function, args, num_args, result) == 0) return 0;
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  const TVMFFIErrorCell* cell = (const void*)((char*)error + sizeof(TVMFFIObject));
  printf("%.*s\n", (int)cell->message.size, cell->message.data);
  TVMFFIObjectDecRef(error);
  return -1;
}

/* Calls a global function of the runtime that returns an object. */
static int call_global(const char* name, size_t size, TVMFFIAny* args, int32_t num_args, TVMFFIObjectHandle* object) {
  TVMFFIByteArray key = {name, size};
  TVMFFIObjectHandle function = NULL;
  TVMFFIAny result = {.type_index = kTVMFFINone};
  if (TVMFFIFunctionGetGlobal(&key, &function) != 0 || function == NULL) return -1;
  int status = call(function, args, num_args, &result);
  TVMFFIObjectDecRef(function);
  *object = result.type_index >= kTVMFFIStaticObjectBegin ? result.v_obj : NULL;
  return status != 0 || *object == NULL ? -1 : 0;
}

#define GLOBAL(name, args, num_args, object) call_global(name, sizeof name - 1, args, num_args, object)

enum { N = 1000000 };
static float xs[N], ys[N];

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  TVMFFIAny path = {.type_index = kTVMFFIRawStr, .v_c_str = argv[1]};
  TVMFFIObjectHandle module, saxpy;
  if (GLOBAL("ffi.ModuleLoadFromFile", &path, 1, &module) != 0) return 1;
  TVMFFIAny get[] = {{.type_index = kTVMFFIModule, .v_obj = module},
                     {.type_index = kTVMFFIRawStr, .v_c_str = "saxpy"},
                     {.type_index = kTVMFFIBool, .v_int64 = 0}};
  if (GLOBAL("ffi.ModuleGetFunction", get, 3, &saxpy) != 0) return 1;

  for (int i = 0; i < N; ++i) xs[i] = (float)i, ys[i] = 1;
  int64_t n = N, five = 5;
  DLTensor x = {xs, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, y = x;
  y.data = ys;
  TVMFFIAny args[] = {{.type_index = kTVMFFIFloat, .v_float64 = 3},
                      {.type_index = kTVMFFIDLTensorPtr, .v_ptr = &x},
                      {.type_index = kTVMFFIDLTensorPtr, .v_ptr = &y}};
  TVMFFIAny result = {.type_index = kTVMFFINone};
  if (call(saxpy, args, 3, &result) != 0) return 1;
  int right = 1;
  for (int i = 0; i < N; ++i) right &= ys[i] == 3 * xs[i] + 1;
  printf("every element is right: %s\n", right ? "True" : "False");

  y.shape = &five;
  call(saxpy, args, 3, &result);
  TVMFFIObjectDecRef(saxpy);
  TVMFFIObjectDecRef(module);
  return right ? 0 : 1;
}
