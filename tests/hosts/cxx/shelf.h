// A kind of module in C++, `hosts.shelf`: functions without arguments that return integers. Its bytes are the text of
// its functions, such as `one=1;two=2`.

#ifndef SHELF_H_
#define SHELF_H_

#include <tvm/ffi/cast.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/reflection/registry.h>

#include <atomic>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

inline std::atomic<int>& LiveShelves() {
  static std::atomic<int> count = 0;
  return count;
}

class Shelf final : public tvm::ffi::ModuleObj {
 public:
  explicit Shelf(const std::string& text) {
    ++LiveShelves();
    std::istringstream entries(text);
    for (std::string entry; std::getline(entries, entry, ';');) {
      size_t equals = entry.find('=');
      values_[entry.substr(0, equals)] = std::stoll(entry.substr(equals + 1));
    }
  }

  ~Shelf() { --LiveShelves(); }

  const char* kind() const final { return "hosts.shelf"; }

  int GetPropertyMask() const final {
    return tvm::ffi::Module::kBinarySerializable | tvm::ffi::Module::kRunnable |
           tvm::ffi::Module::kCompilationExportable;
  }

  tvm::ffi::Optional<tvm::ffi::Function> GetFunction(const tvm::ffi::String& name) final {
    if (name == "broken") TVM_FFI_THROW(ValueError) << "the shelf is broken";
    auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    // As a library's function, it keeps its module alive.
    tvm::ffi::Module self = tvm::ffi::GetRef<tvm::ffi::Module>(this);
    return tvm::ffi::Function::FromTyped([self, value = found->second]() { return value; });
  }

  bool ImplementsFunction(const tvm::ffi::String& name) final { return name == "later" || values_.count(name) != 0; }

  tvm::ffi::Optional<tvm::ffi::String> GetFunctionDoc(const tvm::ffi::String& name) final {
    if (values_.count(name) == 0) return std::nullopt;
    return tvm::ffi::String("Returns what lies at `" + std::string(name) + "`.");
  }

  tvm::ffi::Optional<tvm::ffi::String> GetFunctionMetadata(const tvm::ffi::String& name) final {
    if (values_.count(name) == 0) return std::nullopt;
    return tvm::ffi::String("{\"shelf\": \"" + std::string(name) + "\"}");
  }

  void WriteToFile(const tvm::ffi::String& file_name, const tvm::ffi::String& format) const final {
    if (format != "txt") TVM_FFI_THROW(ValueError) << "a shelf has no format `" << format << "`";
    std::ofstream(file_name) << Text();
  }

  tvm::ffi::Array<tvm::ffi::String> GetWriteFormats() const final { return {"txt"}; }

  tvm::ffi::Bytes SaveToBytes() const final { return tvm::ffi::Bytes(Text()); }

  tvm::ffi::String InspectSource(const tvm::ffi::String& format) const final {
    return tvm::ffi::String("as " + std::string(format) + ": " + Text());
  }

 private:
  std::string Text() const {
    std::string text;
    for (const auto& [name, value] : values_) text += name + "=" + std::to_string(value) + ";";
    return text;
  }

  std::map<std::string, int64_t> values_;
};

inline tvm::ffi::Module NewShelf(const std::string& text) {
  return tvm::ffi::Module(tvm::ffi::make_object<Shelf>(text));
}

#endif  // SHELF_H_
