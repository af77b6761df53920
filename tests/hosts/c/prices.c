#include "prices.h"

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

/* The lines `item=price` of a module. */
static char* lines;

static int price_of(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  TVMFFIByteArray item;
  if (num_args != 1 || !chars_of(&args[0], &item)) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "price_of: expected a str");
    return -1;
  }
  for (const char* line = lines; *line != '\0';) {
    const char* end = strchr(line, '\n');
    if (strncmp(line, item.data, item.size) == 0 && line[item.size] == '=') {
      *result = int_any(atoll(line + item.size + 1));
      return 0;
    }
    if (end == NULL) break;
    line = end + 1;
  }
  char message[128];
  snprintf(message, sizeof message, "no price of `%.*s`", (int)item.size, item.data);
  TVMFFIErrorSetRaisedFromCStr("ValueError", message);
  return -1;
}

/* (bytes) -> Module */
static int load(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  TVMFFIByteArray bytes;
  if (num_args != 1 || !chars_of(&args[0], &bytes)) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "hosts.prices: expected bytes");
    return -1;
  }
  free(lines);
  lines = calloc(bytes.size + 1, 1);
  if (lines == NULL) {
    TVMFFIErrorSetRaisedFromCStr("MemoryError", "hosts.prices: out of memory");
    return -1;
  }
  memcpy(lines, bytes.data, bytes.size);
  int status = TVMFFIEnvModRegisterSystemLibSymbol("__tvm_ffi_hosts_price_of", (void*)price_of);
  if (status != 0) return status;
  TVMFFIAny prefix = str_any("hosts_");
  return call_global("ffi.SystemLib", &prefix, 1, result);
}

int register_prices(void) {
  TVMFFIObjectHandle function = NULL;
  int status = TVMFFIFunctionCreate(NULL, load, NULL, &function);
  if (status != 0) return status;
  TVMFFIByteArray name = bytes_of("ffi.Module.load_from_bytes.hosts.prices");
  status = TVMFFIFunctionSetGlobal(&name, function, 0);
  TVMFFIObjectDecRef(function);
  return status;
}
