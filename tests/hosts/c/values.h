/* Values of the C API: made, read, printed and released. */
#pragma once
#include <stdint.h>
#include <tvm/ffi/c_api.h>

TVMFFIByteArray bytes_of(const char* text);

TVMFFIAny none_any(void);
TVMFFIAny int_any(int64_t value);
TVMFFIAny float_any(double value);
/* Borrowed. */
TVMFFIAny str_any(const char* text);
TVMFFIAny bytes_any(const TVMFFIByteArray* bytes);
TVMFFIAny tensor_any(DLTensor* tensor);

/* The characters of a str or bytes, borrowed; 0 if it is neither. */
int chars_of(const TVMFFIAny* value, TVMFFIByteArray* out);

void release(TVMFFIAny* value);

/* Calls a global function; it has to exist. */
int call_global(const char* name, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* Prints a value as every host does. */
void show(const TVMFFIAny* value);

/* Prints `Kind: message` of the error that was raised, and drops it. */
void show_error(void);
