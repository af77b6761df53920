// The methods of the runtime's own modules.

#include "rust_module.h"

#include <mutex>
#include <set>
#include <string>

#include "global.h"

namespace tfr {

using namespace tvm::ffi;

namespace {

// A text that stays for the whole process. Modules have few kinds.
const char* Interned(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& texts = *new std::set<std::string>;
  std::scoped_lock<std::mutex> lock(mutex);
  return texts.insert(text).first->c_str();
}

}  // namespace

const char* RustModule::kind() const {
  static const Function& function = Global("ffi.ModuleGetKind");
  return Interned(function(GetRef<Module>(this)).cast<std::string>());
}

int RustModule::GetPropertyMask() const {
  static const Function& function = Global("ffi.ModuleGetPropertyMask");
  return function(GetRef<Module>(this)).cast<int>();
}

Optional<Function> RustModule::GetFunction(const String& name) {
  static const Function& function = Global("ffi.ModuleGetFunction");
  return function(GetRef<Module>(this), name, false).cast<Optional<Function>>();
}

bool RustModule::ImplementsFunction(const String& name) {
  static const Function& function = Global("ffi.ModuleImplementsFunction");
  return function(GetRef<Module>(this), name, false).cast<bool>();
}

Optional<String> RustModule::GetFunctionDoc(const String& name) {
  static const Function& function = Global("ffi.ModuleGetFunctionDoc");
  return function(GetRef<Module>(this), name, false).cast<Optional<String>>();
}

Optional<String> RustModule::GetFunctionMetadata(const String& name) {
  static const Function& function = Global("ffi.ModuleGetFunctionMetadata");
  return function(GetRef<Module>(this), name, false).cast<Optional<String>>();
}

void RustModule::WriteToFile(const String& file_name, const String& format) const {
  static const Function& function = Global("ffi.ModuleWriteToFile");
  function(GetRef<Module>(this), file_name, format);
}

Array<String> RustModule::GetWriteFormats() const {
  static const Function& function = Global("ffi.ModuleGetWriteFormats");
  return function(GetRef<Module>(this)).cast<Array<String>>();
}

Bytes RustModule::SaveToBytes() const {
  static const Function& function = Service("save_to_bytes");
  Optional<Bytes> bytes = function(GetRef<Module>(this)).cast<Optional<Bytes>>();
  return bytes.has_value() ? *bytes : ModuleObj::SaveToBytes();
}

String RustModule::InspectSource(const String& format) const {
  static const Function& function = Global("ffi.ModuleInspectSource");
  return function(GetRef<Module>(this), format).cast<String>();
}

}  // namespace tfr
