/* Values of the C API: creates, reads, prints and releases them. */
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

/* Calls a global function, which must exist. */
int call_global(const char* name, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* Prints a value in the format of all hosts. */
void show(const TVMFFIAny* value);

/* Prints the raised error as `Kind: message`, and drops it. */
void show_error(void);
