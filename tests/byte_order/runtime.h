// The part of the runtime that the called wrappers need. It can be built for any target.
#pragma once

#include <tvm/ffi/c_api.h>

enum { kBase = 129, kDerived = 130, kOther = 131 };

/// An object of any type: the header, followed by its cell.
typedef struct {
  TVMFFIObject header;
  union {
    TVMFFIByteArray text;
    TVMFFIShapeCell shape;
    TVMFFISeqCell sequence;
    DLTensor tensor;
    /// A Map or Dict, or its iterator: keys and values alternately.
    struct {
      TVMFFIAny* pairs;
      int64_t count, at;
    } map;
    /// A function of the runtime.
    int which;
  };
} Object;

Object* new_object(int32_t type_index);
/// Takes the raised error, as `kind: text`; NULL if there is none.
const char* take_error(void);
void show(const TVMFFIAny* value);
void show_dtype(DLDataType dtype);
