// What a wrapper needs of the runtime, as far as the calls go, so that it can be built for any target.
#pragma once

#include <tvm/ffi/c_api.h>

enum { kBase = 129, kDerived = 130, kOther = 131 };

/// An object of any type: its cell follows.
typedef struct {
  TVMFFIObject header;
  union {
    TVMFFIByteArray text;
    TVMFFIShapeCell shape;
    TVMFFISeqCell sequence;
    DLTensor tensor;
    /// Of a Map or Dict, and of its iterator: keys and values in turns.
    struct {
      TVMFFIAny* pairs;
      int64_t count, at;
    } map;
    /// Of a function of the runtime.
    int which;
  };
} Object;

Object* new_object(int32_t type_index);
/// What was raised, as `kind: text`; NULL where nothing was. It is forgotten.
const char* take_error(void);
void show(const TVMFFIAny* value);
void show_dtype(DLDataType dtype);
