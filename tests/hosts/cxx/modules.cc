// Modules of a C++ class among the library's own: calls in both directions, imports, errors, and what stays alive.

#include "../headers/show.h"
#include "shelf.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

using namespace tvm::ffi;

namespace {

// A function of the system library.
int Answer(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = 42;
  return 0;
}

std::string Text(const Optional<String>& text) { return text.has_value() ? std::string(*text) : "none"; }

std::string Value(const Optional<Function>& function) {
  return function.has_value() ? std::to_string((*function)().cast<int64_t>()) : "none";
}

ModuleObj* Object(const Module& module) { return const_cast<ModuleObj*>(module.operator->()); }

// Shows the results of a module's virtual methods, called by C++ code.
void ShowMethods(const std::string& what, const Module& module, const char* name) {
  ModuleObj* object = Object(module);
  Show(what + " kind", object->kind());
  Show(what + " mask", object->GetPropertyMask());
  Show(what + " function", Value(object->GetFunction(name)));
  Show(what + " missing", Value(object->GetFunction("missing")));
  Show(what + " missing in imports", Value(object->GetFunction("missing", true)));
  Show(what + " implements", object->ImplementsFunction(name));
  Show(what + " implements later", object->ImplementsFunction("later"));
  Show(what + " doc", Text(object->GetFunctionDoc(name)));
  Show(what + " metadata", Text(object->GetFunctionMetadata(name)));
  Show(what + " formats", object->GetWriteFormats().size());
  Show(what + " source", std::string(object->InspectSource("x")));
  ShowError(what + " bytes", [&] { Show(what + " bytes", std::string(object->SaveToBytes())); });
  ShowError(what + " write", [&] { object->WriteToFile("/nowhere/x", "y"); });
  Show(what + " is a shelf", dynamic_cast<Shelf*>(object) != nullptr);
  Show(what + " imports", object->imports().size());
}

// The same by global functions, as Python calls them.
void ShowGlobals(const std::string& what, const Module& module, const char* name) {
  Show(what + " kind", Call("ffi.ModuleGetKind", module).cast<std::string>());
  Show(what + " mask", Call("ffi.ModuleGetPropertyMask", module).cast<int>());
  Show(what + " function", Value(Call("ffi.ModuleGetFunction", module, name, false).cast<Optional<Function>>()));
  Show(what + " in imports", Value(Call("ffi.ModuleGetFunction", module, "four", true).cast<Optional<Function>>()));
  Show(what + " implements", Call("ffi.ModuleImplementsFunction", module, "later", false).cast<bool>());
  Show(what + " doc", Text(Call("ffi.ModuleGetFunctionDoc", module, name, true).cast<Optional<String>>()));
  Show(what + " metadata", Text(Call("ffi.ModuleGetFunctionMetadata", module, name, true).cast<Optional<String>>()));
  Show(what + " formats", Call("ffi.ModuleGetWriteFormats", module).cast<Array<String>>().size());
  Show(what + " source", Call("ffi.ModuleInspectSource", module, "g").cast<std::string>());
  ShowError(what + " write", [&] { Call("ffi.ModuleWriteToFile", module, "/nowhere/x", "y"); });
}

// Each of the two kinds imports the other.
void Imports(const Module& library) {
  Module outer = NewShelf("one=1"), inner = NewShelf("four=4");
  Object(outer)->ImportModule(library);
  Call("ffi.ModuleImportModule", library, inner);
  Show("shelf imports", outer->imports().size());
  Show("library imports", library->imports().size());
  Show("the import is the same", library->imports()[0].cast<Module>().same_as(inner));
  Show("library's function through the shelf", Value(Object(outer)->GetFunction("answer", true)));
  Show("shelf's function through the library", Value(Object(library)->GetFunction("four", true)));
  Show("through both", Value(Object(outer)->GetFunction("four", true)));
  Show("not without imports", Value(Object(outer)->GetFunction("four", false)));
  Show("implements through both", Object(outer)->ImplementsFunction("later", true));
  Show("doc through both", Text(Object(outer)->GetFunctionDoc("four", true)));
  Show("metadata through both", Text(Object(outer)->GetFunctionMetadata("four", true)));
  ShowGlobals("outer by name", outer, "one");
  ShowError("an error crosses", [&] { Object(outer)->GetFunction("broken", true); });
  ShowError("an error crosses the library", [&] { Call("ffi.ModuleGetFunction", library, "broken", true); });
  ShowError("cycle by C++", [&] { Object(library)->ImportModule(outer); });
  ShowError("cycle by name", [&] { Call("ffi.ModuleImportModule", inner, outer); });
  ShowError("itself", [&] { Object(inner)->ImportModule(inner); });
  Function kept = *Object(outer)->GetFunction("four", true);
  Call("ffi.ModuleClearImports", outer);
  Object(library)->ClearImports();
  Show("cleared", outer->imports().size() + library->imports().size());
  Show("still there", kept().cast<int64_t>());
}

// The field that Python reads.
void Reflection(const Module& library) {
  Module outer = NewShelf("");
  Object(outer)->ImportModule(library);
  for (const Module& module : {outer, library}) {
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(module->type_index());
    const TVMFFIFieldInfo& field = info->fields[0];
    Any value;
    void* object = detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(module);
    TVM_FFI_CHECK_SAFE_CALL(
        field.getter(static_cast<char*>(object) + field.offset, reinterpret_cast<TVMFFIAny*>(&value)));
    Show("field " + std::string(field.name.data, field.name.size), value.cast<Array<Any>>().size());
  }
}

// Code of a C++ module looks up what its module imports, by the address of the C++ object.
void Lookups() {
  Module outer = NewShelf(""), inner = NewShelf("price=7");
  Object(outer)->ImportModule(inner);
  auto look_up = [&](const char* name) {
    TVMFFIObjectHandle function = nullptr;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModLookupFromImports(Object(outer), name, &function));
    return function;
  };
  auto call = [&](const char* name) {
    Any result;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionCall(look_up(name), nullptr, 0, reinterpret_cast<TVMFFIAny*>(&result)));
    return result.cast<int64_t>();
  };
  Show("lookup", call("price"));
  Show("the same each time", look_up("price") == look_up("price"));
  ShowError("no such function", [&] { look_up("nobody.has.this"); });
  Show("a global one", look_up("ffi.ModuleGetKind") != nullptr);
  Object(outer)->ClearImports();
  Show("kept", call("price"));
}

// Files in both directions.
void Files() {
  Module shelf = NewShelf("a=1;b=2");
  const char* path = std::getenv("TEMPORARY_FILE");
  Call("ffi.ModuleWriteToFile", shelf, path, "txt");
  std::ifstream file(path);
  Show("written", std::string(std::istreambuf_iterator<char>(file), {}));
  std::remove(path);
  Module testing = Module::LoadFromFile(std::getenv("TESTING_LIBRARY"));
  Show("loaded", testing->kind());
  Show("its function", (*Object(testing)->GetFunction("testing_dll_schema_id_int"))(5).cast<int64_t>());
  Show("its metadata", Text(Object(testing)->GetFunctionMetadata("testing_dll_schema_id_int")));
  Show("its doc", Text(Object(testing)->GetFunctionDoc("testing_dll_test_add_with_docstring")).substr(0, 20));
  ShowError("no such file", [] { Module::LoadFromFile("/nowhere/x.shelf"); });
  ShowError("no extension", [] { Module::LoadFromFile("nothing"); });
}

// Many threads read and change imports of both kinds by name.
void Threads(const Module& library) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        Module fresh = NewShelf("t=" + std::to_string(turn));
        Call("ffi.ModuleImportModule", fresh, library);
        Call("ffi.ModuleGetFunction", fresh, "answer", true).cast<Function>()();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Show("threads", "done");
}

void Globals() {
  {
    Module kept = NewShelf("k=1");
    Call("ffi.ModuleGlobalsAdd", kept);
    Show("live while global", LiveShelves());
  }
  Show("still live", LiveShelves());
}

void ContextSymbols() {
  static int value = 0;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModRegisterContextSymbol("__hosts_symbol", &value));
  Module::VisitContextSymbols(TypedFunction<void(String, void*)>([](const String& name, void* symbol) {
    Show("context symbol " + std::string(name), symbol == &value);
  }));
}

// A chain of imports of any length goes without recursion in the library's own modules; this one is short.
void Chain() {
  Module first = NewShelf("end=0");
  Module last = first;
  for (int link = 1; link < 50; ++link) {
    Module next = NewShelf("link=" + std::to_string(link));
    Object(last)->ImportModule(next);
    last = next;
  }
  Object(last)->ImportModule(NewShelf("deep=99"));
  Show("deep", Value(Object(first)->GetFunction("deep", true)));
  Show("live in the chain", LiveShelves());
}

}  // namespace

int main() {
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFIEnvModRegisterSystemLibSymbol("__tvm_ffi_answer", reinterpret_cast<void*>(&Answer)));
  Module library = Call("ffi.SystemLib").cast<Module>();
  ShowMethods("library", library, "answer");
  ShowMethods("shelf", NewShelf("one=1;two=2"), "two");
  ShowGlobals("library by name", library, "answer");
  ShowGlobals("shelf by name", NewShelf("one=1;two=2"), "two");
  Imports(library);
  Reflection(library);
  Lookups();
  Files();
  Threads(library);
  ContextSymbols();
  Chain();
  Show("live at the end", LiveShelves());
  Globals();
}
