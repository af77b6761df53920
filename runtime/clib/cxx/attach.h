// The C symbol through which the runtime and its C++ part find each other.

#ifndef TFR_CXX_ATTACH_H_
#define TFR_CXX_ATTACH_H_

#include <tvm/ffi/c_api.h>

// Attaches the C++ part; `runtime/src/module/cxx/services.rs` says what the arguments are. `methods` is a borrowed map,
// `services` becomes an owned one. Returns 0, or raises an error.
extern "C" int tfr_attach_cxx(const void* vtable, TVMFFIObjectHandle methods, TVMFFIObjectHandle* services);

#endif  // TFR_CXX_ATTACH_H_
