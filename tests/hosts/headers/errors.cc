// Functions and errors: mismatched arguments, errors that pass through, causes, backtraces, r-value arguments. Also the
// library's own errors.

#include "show.h"

#include <tvm/ffi/expected.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/rvalue_ref.h>

#include <optional>
#include <stdexcept>

using namespace tvm::ffi;

namespace {

std::string Repr(const Any& value) { return Call("ffi.ReprPrint", value).cast<std::string>(); }

template <typename... Args>
void ShowCall(const std::string& name, Args... args) {
  ShowError(name, [&] { Show(name, Repr(Function::GetGlobalRequired(name)(args...))); });
}

// Prints the error that a C function's code reports.
void ShowCode(const std::string& what, int code) {
  if (code == 0) return Show(what, "no error");
  TVMFFIObjectHandle handle = nullptr;
  TVMFFIErrorMoveFromRaised(&handle);
  if (handle == nullptr) return Show(what, "no error raised, " + std::to_string(code));
  Error error = detail::ObjectUnsafe::ObjectRefFromObjectPtr<Error>(
      detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(handle)));
  Show(what, error.kind() + ": " + error.message());
}

TVMFFIByteArray Bytes_(const char* text) { return TVMFFIByteArray{text, std::char_traits<char>::length(text)}; }

void Globals() {
  Any array = Call("ffi.Array", 1, 2), list = Call("ffi.List", 1, 2), map = Call("ffi.Map", "a", 2),
      dict = Call("ffi.Dict", "a", 2);
  ShowCall("ffi.ArraySize");
  ShowCall("ffi.ArraySize", list);
  ShowCall("ffi.ArraySize", nullptr);
  ShowCall("ffi.ArrayGetItem", array, 5);
  ShowCall("ffi.ArrayGetItem", array, -1);
  ShowCall("ffi.ArrayGetItem", array, "one");
  ShowCall("ffi.ArrayGetItem", 1.5, "one");
  ShowCall("ffi.ListGetItem", list, 5);
  ShowCall("ffi.ListSetItem", list, 5, 1);
  ShowCall("ffi.ListInsert", list, 7, 1);
  ShowCall("ffi.ListPop", list, 7);
  ShowCall("ffi.ListErase", list, -1);
  ShowCall("ffi.ListEraseRange", list, 3, 9);
  ShowCall("ffi.ListEraseRange", list, 2, 1);
  ShowCall("ffi.ListReplaceSlice", list, 5, 9, list);
  ShowCall("ffi.ListAppend", map, 1);
  ShowCall("ffi.MapGetItem", map, "b");
  ShowCall("ffi.DictGetItem", dict, "b");
  ShowCall("ffi.DictSetItem", array, 1, 2);
  ShowCall("ffi.Map", 1);
  ShowCall("ffi.Dict", 1);
  ShowCall("ffi.Shape", 1.5);
  ShowCall("ffi.String", Bytes("ab", 2));
  ShowCall("ffi.Bytes", "text");
  ShowCall("ffi.GetGlobalFuncMetadata", "headers.none");
  ShowCall("ffi.GetGlobalFuncMetadata", "ffi.ListReplaceSlice");
  ShowCall("ffi.GetGlobalFuncMetadata", "ffi.Map");
  ShowCall("ffi.FunctionRemoveGlobal", "headers.none");
  ShowCall("ffi.SystemLib", 1.5);
  ShowCall("ffi.ModuleLoadFromFile", "headers.none");
  ShowCall("ffi.ModuleLoadFromFile", "headers_none");
  ShowCall("ffi.ModuleGetKind", array);
  ShowCall("ffi.ModuleGetFunction", array, "name");
  ShowCall("ffi.MakeFieldGetter", 9);
  ShowCall("ffi.MakeFieldSetter", 1.5, 0, 0);
  ShowCall("ffi.MakeObjectFromPackedArgs", "headers.none");
  ShowCall("ffi.MakeObjectFromPackedArgs", 1.5);
  ShowCall("ffi.json.Stringify", 1, "two");
  Function next = Call("ffi.MapForwardIterFunctor", map).cast<Function>();
  ShowError("iterator", [&] { next(); });
  ShowError("iterator", [&] { next("text"); });
}

void Registration() {
  TVMFFIByteArray key = Bytes_("headers.Type"), attr = Bytes_("headers.attr"), none = Bytes_("headers.none");
  int32_t type = TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, TypeIndex::kTVMFFIObject);
  TVMFFIFieldInfo field{};
  field.name = Bytes_("x");
  ShowCode("field", TVMFFITypeRegisterField(type, &field));
  ShowCode("field twice", TVMFFITypeRegisterField(type, &field));
  ShowCode("field of no type", TVMFFITypeRegisterField(1 << 30, &field));
  TVMFFIAny value = AnyView(3).CopyToTVMFFIAny();
  ShowCode("attribute", TVMFFITypeRegisterAttr(type, &attr, &value));
  int32_t found = 0;
  ShowCode("key", TVMFFITypeKeyToIndex(&key, &found));
  Show("the same index", found == type);
  ShowCode("no key", TVMFFITypeKeyToIndex(&none, &found));
  Function function = Function::FromTyped([] { return 1; });
  TVMFFIByteArray name = Bytes_("headers.function");
  auto* handle = const_cast<Object*>(static_cast<const Object*>(function.get()));
  ShowCode("global", TVMFFIFunctionSetGlobal(&name, handle, 0));
  ShowCode("global twice", TVMFFIFunctionSetGlobal(&name, handle, 0));
  ShowCode("global overridden", TVMFFIFunctionSetGlobal(&name, handle, 1));
  TVMFFIObjectHandle out = nullptr;
  ShowCode("opaque object", TVMFFIObjectCreateOpaque(nullptr, TypeIndex::kTVMFFITensor, nullptr, &out));
  ShowCode("environment", TVMFFIEnvRegisterCAPI("headers.none", nullptr));
  DLDataType dtype;
  TVMFFIByteArray wrong = Bytes_("floot");
  ShowCode("data type", TVMFFIDataTypeFromString(&wrong, &dtype));
}

void Signals() {
  Show("no environment", TVMFFIEnvCheckSignals());
  static int held = 0;
  void* (*ensure)() = [] { return static_cast<void*>(&(++held, held)); };
  void (*release)(void*) = [](void*) { --held; };
  int (*check)() = [] { return held == 1 ? 5 : 0; };
  TVMFFIEnvRegisterCAPI("PyGILState_Ensure", reinterpret_cast<void*>(ensure));
  TVMFFIEnvRegisterCAPI("PyGILState_Release", reinterpret_cast<void*>(release));
  TVMFFIEnvRegisterCAPI("PyErr_CheckSignals", reinterpret_cast<void*>(check));
  ShowCode("a handler's error", TVMFFIEnvCheckSignals());
  Show("released", held);
  TVMFFIEnvRegisterCAPI("PyErr_CheckSignals", nullptr);
}

void Errors() {
  Function thrower = Function::FromTyped([](const std::string& kind) -> int {
    if (kind == "std") throw std::runtime_error("of the standard library");
    if (!kind.empty()) TVM_FFI_THROW(ValueError) << "kind " << kind;
    return 0;
  });
  ShowError("thrown", [&] { thrower("own"); });
  ShowError("of C++", [&] { thrower("std"); });
  ShowError("an argument", [&] { thrower(1); });
  ShowError("no argument", [&] { thrower(); });
  ShowError("a result", [&] { (void)Function::FromTyped([] { return 1; })().cast<std::string>(); });
  ShowError("no function", [] { Call("headers.none"); });
  ShowError("checked", [] { TVM_FFI_ICHECK_EQ(1, 2) << "these two"; });
  Error cause("TypeError", "the cause", "  File \"a.cc\", line 1, in a\n");
  Error error("ValueError", "the effect", "  File \"b.cc\", line 2, in b\n", cause, ObjectRef(Array<Any>{1}));
  TVMFFIByteArray more = Bytes_("  File \"c.cc\", line 3, in c\n"), instead = Bytes_("replaced");
  error.UpdateBacktrace(&more, kTVMFFIBacktraceUpdateModeAppend);
  Function raise = Function::FromTyped([&error]() -> void { throw error; });
  try {
    raise();
  } catch (const Error& caught) {
    Show("the same object", caught.same_as(error));
    Show("what", caught.what());
    Show("backtrace", std::string(caught.backtrace()));
    Show("cause", caught.cause_chain().value().message());
    Show("context", Repr(caught.extra_context().value()));
  }
  error.UpdateBacktrace(&instead, kTVMFFIBacktraceUpdateModeReplace);
  Show("backtrace", std::string(error.backtrace()));
  const TVMFFIByteArray* place = TVMFFIBacktrace("place.cc", 7, "function", 0);
  Show("begins with the place",
       std::string(place->data, place->size).rfind("  File \"place.cc\", line 7, in function\n", 0) == 0);
  place = TVMFFIBacktrace("include/tvm/ffi/error.h", 7, "function", 0);
  Show("a header is left out", std::string(place->data, place->size).find("error.h") == std::string::npos);
  TVMFFIErrorSetRaisedFromCStr("KeyError", "of C");
  ShowCode("raised by C", -1);
  const char* parts[] = {"one ", nullptr, "two"};
  TVMFFIErrorSetRaisedFromCStrParts("IndexError", parts, 3);
  ShowCode("raised in parts", -1);
  Expected<int64_t> fine = Function::FromTyped([](int64_t x) { return x; }).CallExpected<int64_t>(4);
  Show("expected", fine.value());
  Expected<int64_t> wrong = thrower.CallExpected<int64_t>("own");
  Show("unexpected", wrong.error().message());
}

void Arguments() {
  Function use_count = Function::FromTyped([](RValueRef<Array<Any>> array) { return (*std::move(array)).use_count(); });
  Array<Any> array{1};
  Show("copied", use_count(array).cast<int64_t>());
  Show("moved", use_count(RValueRef(std::move(array))).cast<int64_t>());
  Show("gone", !array.defined());
  ShowError("r-value of another type", [&] {
    use_count(RValueRef(List<Any>{1}));
  });
  ShowError("r-value to the library", [&] { Show("size", Call("ffi.ArrayContains", Array<Any>{1}, 1).cast<bool>()); });
  Function many = Function::FromPacked([](PackedArgs args, Any* result) {
    std::string keys;
    for (int i = 0; i < args.size(); ++i) keys += args[i].GetTypeKey() + " ";
    *result = keys;
  });
  Show("types", many(1, 1.5, true, nullptr, "raw", String("small"), String("longer than seven"), Bytes("b", 1), DLDevice{kDLCPU, 0},
                     DLDataType{kDLInt, 8, 1}, static_cast<void*>(nullptr), Array<Any>{}, many)
                    .cast<std::string>());
  TypedFunction<int64_t(int64_t, Optional<String>)> typed = [](int64_t x, Optional<String> y) {
    return x + (y.has_value() ? static_cast<int64_t>(y.value().size()) : 0);
  };
  Show("typed", typed(1, String("abc")));
  ShowError("typed wrongly", [&] { typed.packed()(1, 2.5); });
  Function::SetGlobal("headers.typed", typed.packed());
  Show("global", Call("headers.typed", 1, nullptr).cast<int64_t>());
  Show("removed", Call("ffi.FunctionRemoveGlobal", "headers.typed").cast<bool>());
  Show("no more", Function::GetGlobal("headers.typed").has_value());
  Show("among the names", [] {
    for (const String& name : Function::ListGlobalNames()) {
      if (name == "ffi.ReprPrint") return true;
    }
    return false;
  }());
}

}  // namespace

int main() {
  Globals();
  Registration();
  Signals();
  Errors();
  Arguments();
}
