// Global functions of the runtime, as the files of this directory call them.

#ifndef TFR_CXX_GLOBAL_H_
#define TFR_CXX_GLOBAL_H_

#include <tvm/ffi/function.h>

namespace tfr {

// Looks up a global function. It is never freed, since code may call it while the process ends.
inline const tvm::ffi::Function& Global(const char* name) {
  return *new tvm::ffi::Function(tvm::ffi::Function::GetGlobalRequired(name));
}

}  // namespace tfr

#endif  // TFR_CXX_GLOBAL_H_
