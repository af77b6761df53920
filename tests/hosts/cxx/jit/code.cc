// The object that `orcjit.py` loads. Its code looks up what its module imports.

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>

using namespace tvm::ffi;

extern "C" void* __tvm_ffi__library_ctx;
void* __tvm_ffi__library_ctx = nullptr;

namespace {

int64_t Add(int64_t x, int64_t y) { return x + y; }

String Joined(const String& first, const String& second) { return first + second; }

void Fail(int64_t code) { TVM_FFI_THROW(ValueError) << "failed with " << code; }

int64_t Imported(int64_t x) {
  TVMFFIObjectHandle function = nullptr;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "hosts.scale", &function));
  AnyView argument(x);
  Any result;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionCall(function, reinterpret_cast<TVMFFIAny*>(&argument), 1,
                                             reinterpret_cast<TVMFFIAny*>(&result)));
  return result.cast<int64_t>();
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, Add);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(joined, Joined);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fail, Fail);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(imported, Imported);
