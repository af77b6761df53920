// The kind of module `hosts.prices` for hosts on upstream's runtime: a subclass of upstream's module class, with its
// bytes. As a shared library it registers itself at load, and has a function that sets an allocator.
#include <tvm/ffi/cast.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <map>
#include <sstream>
#include <string>

#include "../c/allocator.h"

namespace ffi = tvm::ffi;

namespace {

class Prices final : public ffi::ModuleObj {
 public:
  explicit Prices(const ffi::Bytes& bytes) : bytes_(bytes) {
    std::istringstream lines(std::string(bytes.data(), bytes.size()));
    for (std::string line; std::getline(lines, line);) {
      size_t at = line.find('=');
      if (at != std::string::npos) prices_[line.substr(0, at)] = std::stoll(line.substr(at + 1));
    }
  }

  const char* kind() const final { return "hosts.prices"; }

  int GetPropertyMask() const final { return ffi::Module::kBinarySerializable | ffi::Module::kRunnable; }

  ffi::Bytes SaveToBytes() const final { return bytes_; }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (name != "price_of") return std::nullopt;
    ffi::Module self = ffi::GetRef<ffi::Module>(this);
    return ffi::Function::FromTyped([this, self](const ffi::String& item) -> int64_t {
      auto found = prices_.find(std::string(item));
      if (found == prices_.end()) TVM_FFI_THROW(ValueError) << "no price of `" << item << "`";
      return found->second;
    });
  }

 private:
  ffi::Bytes bytes_;
  std::map<std::string, int64_t> prices_;
};

int UseMalloc() { return use_malloc(); }

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("ffi.Module.load_from_bytes.hosts.prices", [](const ffi::Bytes& bytes) {
    return ffi::Module(ffi::make_object<Prices>(bytes));
  });
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(use_malloc, UseMalloc);
