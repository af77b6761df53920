// Modules of a C++ class inside a library: their loader gets them from its bytes, and the library's code calls them.

#include "../headers/show.h"
#include "shelf.h"

#include <vector>

using namespace tvm::ffi;

namespace {

void* context = nullptr;

// A function of the library. Its code looks up a function of an imported module.
int Total(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  TVMFFIObjectHandle price = nullptr;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModLookupFromImports(context, "price", &price));
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionCall(price, nullptr, 0, result));
  result->v_int64 *= 3;
  TVM_FFI_SAFE_CALL_END();
}

class Blob {
 public:
  void Number(uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) text_.push_back(static_cast<char>(number >> (8 * byte)));
  }
  void Numbers(const std::vector<uint64_t>& numbers) {
    Number(numbers.size());
    for (uint64_t number : numbers) Number(number);
  }
  void Bytes(const std::string& bytes) {
    Number(bytes.size());
    text_ += bytes;
  }
  std::string Finish() const {
    Blob length;
    length.Number(text_.size());
    return length.text_ + text_;
  }

 private:
  std::string text_;
};

// The tree of a library that imports a shelf, which imports another one.
std::string Tree() {
  std::string outer(NewShelf("price=5;size=2")->SaveToBytes()), inner(NewShelf("weight=8")->SaveToBytes());
  Blob blob;
  blob.Numbers({0, 1, 2, 2});
  blob.Numbers({1, 2});
  blob.Bytes("_lib");
  blob.Bytes("hosts.shelf");
  blob.Bytes(outer);
  blob.Bytes("hosts.shelf");
  blob.Bytes(inner);
  return blob.Finish();
}

void Register(const char* name, void* symbol) {
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModRegisterSystemLibSymbol(name, symbol));
}

}  // namespace

int main() {
  static std::string tree = Tree();
  Show("live before", LiveShelves());
  Register("cxx___tvm_ffi__library_bin", tree.data());
  Register("cxx___tvm_ffi__library_ctx", &context);
  Register("__tvm_ffi_cxx_total", reinterpret_cast<void*>(&Total));
  try {
    Call("ffi.SystemLib", "cxx_");
  } catch (const Error& error) {
    Show("without a loader", error.kind());
  }
  reflection::GlobalDef().def("ffi.Module.load_from_bytes.hosts.shelf",
                              [](const Bytes& bytes) { return NewShelf(bytes); });
  Module library = Call("ffi.SystemLib", "cxx_").cast<Module>();
  Show("kind", library->kind());
  Show("live", LiveShelves());
  auto* object = const_cast<ModuleObj*>(library.operator->());
  Show("total", (*object->GetFunction("total"))().cast<int64_t>());
  Show("total again", (*object->GetFunction("total"))().cast<int64_t>());
  Show("size", (*object->GetFunction("size", true))().cast<int64_t>());
  Show("weight", (*object->GetFunction("weight", true))().cast<int64_t>());
  for (const Any& import : library->imports()) {
    Module shelf = import.cast<Module>();
    Show("import", std::string(shelf->InspectSource("")));
    Show("its imports", shelf->imports().size());
    Show("it saves", std::string(shelf->SaveToBytes()));
    Show("it loads again", std::string(Call("ffi.Module.load_from_bytes.hosts.shelf", shelf->SaveToBytes())
                                           .cast<Module>()->InspectSource("again")));
  }
  Show("live at the end", LiveShelves());
}
