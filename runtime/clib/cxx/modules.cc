// Upstream's class `ModuleObj`: the methods that its header declares without a body. Attaches this part to the runtime.

#include <tvm/ffi/cast.h>
#include <tvm/ffi/extra/module.h>

#include <cstdlib>
#include <iostream>
#include <mutex>

#include "attach.h"
#include "global.h"
#include "rust_module.h"

namespace tvm {
namespace ffi {

using tfr::Global;

// The header declares this friend, for the library's own code.
struct ModuleObj::InternalUnsafe {
  // The function that the module keeps for its code under this name: the given one, unless it has one already.
  static Optional<Function> Keep(ModuleObj* module, const String& name, const Optional<Function>& function) {
    static std::mutex& mutex = *new std::mutex;
    std::scoped_lock<std::mutex> lock(mutex);
    Optional<Function> kept = module->import_lookup_cache_.Get(name);
    if (kept.has_value() || !function.has_value()) return kept;
    module->import_lookup_cache_.Set(name, *function);
    return function;
  }

  // True if objects are laid out as in `runtime/src/module/layout.rs`.
  static bool IsLayoutOfRuntime(const ModuleObj* module) {
    auto offset = [module](const void* field) {
      return static_cast<const char*>(field) - reinterpret_cast<const char*>(module);
    };
    return offset(static_cast<const Object*>(module)) == sizeof(void*) &&
           offset(&module->imports_) == sizeof(void*) + sizeof(TVMFFIObject) &&
           offset(&module->import_lookup_cache_) == offset(&module->imports_) + static_cast<long>(sizeof(void*));
  }
};

Optional<Function> ModuleObj::GetFunction(const String& name, bool query_imports) {
  static const Function& function = Global("ffi.ModuleGetFunction");
  return function(GetRef<Module>(this), name, query_imports).cast<Optional<Function>>();
}

bool ModuleObj::ImplementsFunction(const String& name, bool query_imports) {
  static const Function& function = Global("ffi.ModuleImplementsFunction");
  return function(GetRef<Module>(this), name, query_imports).cast<bool>();
}

Optional<String> ModuleObj::GetFunctionDoc(const String& name, bool query_imports) {
  static const Function& function = Global("ffi.ModuleGetFunctionDoc");
  return function(GetRef<Module>(this), name, query_imports).cast<Optional<String>>();
}

Optional<String> ModuleObj::GetFunctionMetadata(const String& name, bool query_imports) {
  static const Function& function = Global("ffi.ModuleGetFunctionMetadata");
  return function(GetRef<Module>(this), name, query_imports).cast<Optional<String>>();
}

void ModuleObj::ImportModule(const Module& other) {
  static const Function& function = tfr::Service("import_module");
  function(GetRef<Module>(this), other);
}

void ModuleObj::ClearImports() {
  static const Function& function = tfr::Service("clear_imports");
  function(GetRef<Module>(this));
}

Module Module::LoadFromFile(const String& file_name) {
  static const Function& function = Global("ffi.ModuleLoadFromFile");
  return function(file_name).cast<Module>();
}

void Module::VisitContextSymbols(const TypedFunction<void(String, void*)>& callback) {
  static const Function& function = tfr::Service("context_symbols");
  function(callback.packed());
}

}  // namespace ffi
}  // namespace tvm

namespace tfr {

using namespace tvm::ffi;

namespace {

// The virtual methods, by the names that the runtime has for them.
Map<String, Function> Methods() {
  return {
      {"kind", Function::FromTyped([](const Module& module) -> String { return module->kind(); })},
      {"property_mask", Function::FromTyped([](const Module& module) { return module->GetPropertyMask(); })},
      {"get_function",
       Function::FromTyped([](const Module& module, const String& name) { return module->GetFunction(name); })},
      {"implements_function",
       Function::FromTyped([](const Module& module, const String& name) { return module->ImplementsFunction(name); })},
      {"function_doc",
       Function::FromTyped([](const Module& module, const String& name) { return module->GetFunctionDoc(name); })},
      {"function_metadata",
       Function::FromTyped([](const Module& module, const String& name) { return module->GetFunctionMetadata(name); })},
      {"save_to_bytes", Function::FromTyped([](const Module& module) { return module->SaveToBytes(); })},
      {"inspect_source",
       Function::FromTyped([](const Module& module, const String& format) { return module->InspectSource(format); })},
      {"write_formats", Function::FromTyped([](const Module& module) { return module->GetWriteFormats(); })},
      {"write_to_file", Function::FromTyped([](const Module& module, const String& file_name, const String& format) {
         module->WriteToFile(file_name, format);
       })},
      {"import_module",
       Function::FromTyped([](const Module& module, const Module& other) { module->ImportModule(other); })},
      {"clear_imports", Function::FromTyped([](const Module& module) { module->ClearImports(); })},
      {"keep_function",
       Function::FromTyped([](const Module& module, const String& name, const Optional<Function>& function) {
         return ModuleObj::InternalUnsafe::Keep(const_cast<ModuleObj*>(module.operator->()), name, function);
       })},
  };
}

// Attaches this part, and returns what the runtime gives to it.
const Map<String, Function>& Attach() {
  // An object of the class has the pointer to its vtable, which begins each object.
  static RustModule* module = new RustModule;
  if (!ModuleObj::InternalUnsafe::IsLayoutOfRuntime(module)) {
    std::cerr << "tvm_ffi: modules of these headers have another layout than the runtime's" << std::endl;
    std::abort();
  }
  TVMFFIObjectHandle services = nullptr;
  Map<String, Function> methods = Methods();
  const void* vtable = *reinterpret_cast<const void* const*>(module);
  TVMFFIObjectHandle borrowed = tvm::ffi::detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(methods);
  TVM_FFI_CHECK_SAFE_CALL(tfr_attach_cxx(vtable, borrowed, &services));
  auto owned = tvm::ffi::detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(services));
  return *new Map<String, Function>(std::move(owned));
}

// Attached when the library is loaded, so before any code can make a module.
const Map<String, Function>& services = Attach();

}  // namespace

const Function& Service(const char* name) { return *new Function(services.at(name)); }

}  // namespace tfr
