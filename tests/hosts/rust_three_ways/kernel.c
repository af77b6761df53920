/* A library for any runtime: it calls no function of the runtime, unless SIGNALS is defined. */
#include <stdint.h>

typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  int64_t v_int64;
} Any;

#ifdef SIGNALS
int TVMFFIEnvCheckSignals(void);
#else
static int TVMFFIEnvCheckSignals(void) { return 0; }
#endif

int __tvm_ffi_add(void* self, const Any* args, int32_t num_args, Any* result) {
  int64_t sum = 0;
  (void)self;
  if (TVMFFIEnvCheckSignals() != 0) return -1;
  for (int32_t i = 0; i < num_args; ++i) sum += args[i].v_int64;
  result->type_index = 1;
  result->zero_padding = 0;
  result->v_int64 = sum;
  return 0;
}
