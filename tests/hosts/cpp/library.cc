// A library as C++ users of upstream write it. The bundled runtime loads it here.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <string>

namespace ffi = tvm::ffi;

namespace {

void AddOne(ffi::TensorView x, ffi::TensorView y) {
  if (x.numel() != y.numel()) TVM_FFI_THROW(ValueError) << "expected " << x.numel() << " elements, got " << y.numel();
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(y.data_ptr())[i] = static_cast<const float*>(x.data_ptr())[i] + 1;
  }
}

ffi::String Join(const ffi::Array<ffi::String>& parts) {
  std::string all;
  for (const ffi::String& part : parts) all += std::string(part);
  return all;
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one, AddOne);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(join, Join);
TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(join, "All parts, one behind the other.");
