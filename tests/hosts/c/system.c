/* What a program with a system library does besides linking it: registers the modules that the library imports. */
#include <stdio.h>
#include <stdlib.h>
#include <tvm/ffi/extra/c_env_api.h>

extern const unsigned char shop___tvm_ffi__library_bin[];

__attribute__((constructor)) static void register_imports(void) {
  TVMFFIEnvModRegisterSystemLibSymbol("shop___tvm_ffi__library_bin", (void*)shop___tvm_ffi__library_bin);
}

/* In the place of dlopen (`-Wl,--wrap=dlopen`): nothing here may need it. */
void* __wrap_dlopen(const char* path, int mode) {
  fprintf(stderr, "dlopen(%s, %d) in a statically linked program\n", path, mode);
  abort();
}
