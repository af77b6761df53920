/* Replaces dlopen (`-Wl,--wrap=dlopen`): a statically linked program must not need it. */
#include <stdio.h>
#include <stdlib.h>

void* __wrap_dlopen(const char* path, int mode) {
  fprintf(stderr, "dlopen(%s, %d) in a statically linked program\n", path, mode);
  abort();
}
