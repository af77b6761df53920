// The class of the runtime's own modules.

#ifndef TFR_CXX_RUST_MODULE_H_
#define TFR_CXX_RUST_MODULE_H_

#include <tvm/ffi/cast.h>
#include <tvm/ffi/extra/module.h>

namespace tfr {

// The runtime makes these objects, with the vtable of this class. So the class has no fields, and no method reads a
// field of the base class but `imports_`. Each method calls the runtime.
class RustModule final : public tvm::ffi::ModuleObj {
 public:
  const char* kind() const final;
  int GetPropertyMask() const final;
  tvm::ffi::Optional<tvm::ffi::Function> GetFunction(const tvm::ffi::String& name) final;
  bool ImplementsFunction(const tvm::ffi::String& name) final;
  tvm::ffi::Optional<tvm::ffi::String> GetFunctionDoc(const tvm::ffi::String& name) final;
  tvm::ffi::Optional<tvm::ffi::String> GetFunctionMetadata(const tvm::ffi::String& name) final;
  void WriteToFile(const tvm::ffi::String& file_name, const tvm::ffi::String& format) const final;
  tvm::ffi::Array<tvm::ffi::String> GetWriteFormats() const final;
  tvm::ffi::Bytes SaveToBytes() const final;
  tvm::ffi::String InspectSource(const tvm::ffi::String& format) const final;
};

// A function of this name that the runtime provides to the C++ part.
const tvm::ffi::Function& Service(const char* name);

}  // namespace tfr

#endif  // TFR_CXX_RUST_MODULE_H_
