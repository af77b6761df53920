// The library that upstream's package has for its own tests, loaded as a module: functions, objects, enums, attributes
// of types.

#include "show.h"

#include <tvm/ffi/enum.h>
#include <tvm/ffi/reflection/accessor.h>

#include <cstdlib>

using namespace tvm::ffi;

namespace {

std::string Repr(const Any& value) { return Call("ffi.ReprPrint", value).cast<std::string>(); }

template <typename... Args>
void ShowCall(const std::string& name, Args... args) {
  try {
    Show(name, Repr(Function::GetGlobalRequired("testing." + name)(args...)));
  } catch (const Error& error) {
    Show(name, error.kind() + ": " + error.message());
  }
}

template <typename... Args>
Any Make(const std::string& type, Args... args) {
  return Call("ffi.MakeObjectFromPackedArgs", "testing." + type, args...);
}

template <typename... Args>
Any Init(const std::string& type, Args... args) {
  static reflection::TypeAttrColumn init(type_attr::kInit);
  int32_t index = 0;
  std::string key = "testing." + type;
  TVMFFIByteArray bytes{key.data(), key.size()};
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeKeyToIndex(&bytes, &index));
  return init[index].cast<Function>()(args...);
}

template <typename... Args>
void ShowInit(const std::string& type, Args... args) {
  try {
    Show("init " + type, Repr(Init(type, args...)));
  } catch (const Error& error) {
    Show("init " + type, error.kind() + ": " + error.message());
  }
}

Function Member(const Any& module, const char* name) {
  return Call("ffi.ModuleGetFunction", module, name, false).cast<Function>();
}

Tensor Vector() {
  struct Alloc {
    void AllocData(DLTensor* tensor) { tensor->data = std::calloc(1, GetDataSize(*tensor)); }
    void FreeData(DLTensor* tensor) { std::free(tensor->data); }
  };
  return Tensor::FromNDAlloc(Alloc(), Shape({2, 3}), DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
}

void Functions() {
  ShowCall("add_one", 41);
  ShowCall("add_one", "text");
  ShowCall("add_one");
  ShowCall("nop", 1, 2);
  ShowCall("echo", "a longer string than seven bytes");
  ShowCall("apply", Function::FromTyped([](int64_t x, int64_t y) { return x * y; }), 6, 7);
  ShowCall("test_raise_error", "ValueError", "raised by the library");
  ShowCall("run_check_signal", 0);
  ShowCall("object_use_count", Array<Any>{1});
  ShowCall("optional_tensor_view_has_value", nullptr);
  ShowCall("optional_tensor_view_has_value", Vector());
  TVMFFISafeCallType symbol = reinterpret_cast<TVMFFISafeCallType>(Call("testing.get_add_one_c_symbol").cast<int64_t>());
  Show("symbol", Function::FromExternC(nullptr, symbol, nullptr)(1).cast<int64_t>());
  Show("made by the library", Call("ffi.FunctionFromExternC", nullptr, reinterpret_cast<void*>(symbol), nullptr)
                                  .cast<Function>()(2).cast<int64_t>());
  Show("system library", Member(Call("ffi.SystemLib"), "testing.add_one")(3).cast<int64_t>());
}

void Schemas() {
  ShowCall("schema_id_int", 1);
  ShowCall("schema_id_int", 1.5);
  ShowCall("schema_id_float", 1.5);
  ShowCall("schema_id_float", 3);
  ShowCall("schema_id_bool", true);
  ShowCall("schema_id_device", DLDevice{kDLCUDA, 3});
  ShowCall("schema_id_dtype", DLDataType{kDLBfloat, 16, 4});
  ShowCall("schema_id_string", "quote \" and é");
  ShowCall("schema_id_bytes", Bytes("\x00\xff\"", 3));
  ShowCall("schema_id_any", nullptr);
  ShowCall("schema_id_object", Array<Any>{});
  ShowCall("schema_id_object", 1);
  ShowCall("schema_id_tensor", Vector());
  ShowCall("schema_tensor_view_input", Vector());
  ShowCall("schema_id_opt_int", nullptr);
  ShowCall("schema_id_opt_str", "some");
  ShowCall("schema_id_opt_str", 1);
  ShowCall("schema_id_arr_int", Array<Any>{1, 2});
  ShowCall("schema_id_arr_int", Array<Any>{1, "two"});
  ShowCall("schema_id_arr_str", Array<Any>{"one"});
  ShowCall("schema_id_arr", List<Any>{1});
  ShowCall("schema_id_list_int", List<Any>{1, 2});
  ShowCall("schema_id_map_str_int", Map<Any, Any>{{"a", 1}});
  ShowCall("schema_id_map_str_int", Map<Any, Any>{{"a", "b"}});
  ShowCall("schema_id_dict_str_int", Dict<Any, Any>{{"a", 1}});
  ShowCall("schema_id_variant_int_str", "text");
  ShowCall("schema_id_variant_int_str", 1.5);
  ShowCall("schema_arr_map_opt", Array<Any>{1, nullptr}, Map<Any, Any>{{"a", Array<Any>{1}}}, "b");
  ShowCall("schema_no_args");
  ShowCall("schema_no_args", 1);
  ShowCall("schema_no_return", 1);
  Show("metadata", Call("ffi.GetGlobalFuncMetadata", "testing.schema_id_int").cast<std::string>());
}

void Containers() {
  ShowCall("make_array_with_tensor", Vector());
  ShowCall("make_array_with_mixed", Vector(), 7);
  ShowCall("make_nested_array_with_tensor", Vector());
  ShowCall("make_list_with_tensor", Vector(), 1);
  ShowCall("make_map_with_tensor", Vector());
  ShowCall("make_dict_with_tensor", Vector());
  ShowCall("make_nested_map_with_tensor", Vector(), Vector());
}

void Objects() {
  ShowInit("TestIntPair", 3, 4);
  Show("sum", Call("testing.TestIntPairSum", Init("TestIntPair", 3, 4)).cast<int64_t>());
  ShowCall("make_unregistered_object");
  Show("made by fields", Repr(Make("TestObjectBase", "v_i64", 1)));
  ShowError("unknown field", [] { Make("TestObjectBase", "v_none", 1); });
  ShowError("field of another type", [] { Make("TestObjectBase", "v_i64", "text"); });
  ShowError("no value", [] { Make("TestObjectBase", "v_i64"); });
  ShowError("missing field", [] { Make("TestCxxClassBase", "v_i64", 1); });
  Show("derived", Repr(Make("TestCxxClassDerivedDerived", "v_i64", 1, "v_i32", 2, "v_f64", 0.5, "v_bool", true)));
  ShowError("no creator", [] { Make("TestNonCopyable", "value", 1); });
  ObjectRef kwargs = Call("ffi.GetKwargsObject").cast<ObjectRef>();
  Show("the marker of keywords", Repr(kwargs));
  Show("the marker of missing values", Repr(Call("ffi.GetInvalidObject")));
  ShowInit("TestCxxAutoInit", 1, kwargs, "c", 3);
  ShowInit("TestCxxAutoInit", 1, 2, kwargs, "c", 3);
  ShowInit("TestCxxAutoInit", 1);
  ShowInit("TestCxxAutoInit", 1, 2, 3);
  ShowInit("TestCxxAutoInit", 1, kwargs, "c");
  ShowInit("TestCxxAutoInit", 1, kwargs, "e", 3);
  ShowInit("TestCxxAutoInit", 1, kwargs, "a", 3);
  ShowInit("TestCxxAutoInit", "text", kwargs, "c", 3);
  ShowInit("TestCxxAutoInitSimple", 1);
  ShowInit("TestCxxAutoInitAllInitOff");
  ShowInit("TestCxxAutoInitKwOnlyDefaults", 1, kwargs, "k_required", 2);
  ShowInit("TestCxxAutoInitChild", 1, 2, kwargs, "child_kw_only", 3);
  ShowInit("TestCxxKwOnly", kwargs, "x", 1, "y", 2, "z", 3);
  ShowInit("TestCxxInitSubset", 1);
  Any edges = Make("TestDeepCopyEdges", "v_any", List<Any>{1}, "v_obj", Array<Any>{2});
  Any copy = Call("ffi.DeepCopy", edges);
  Show("deep copy", Repr(copy) + (copy.same_as(edges) ? " same" : " new"));
  ShowError("deep copy of what has none", [] { Call("ffi.DeepCopy", Init("TestNonCopyable", 1)); });
}

void Comparisons() {
  auto compare = [](const std::string& what, const Any& one, const Any& other) {
    for (const char* name : {"Eq", "Lt", "Le", "Gt", "Ge"}) {
      ShowError(what + " " + name, [&] {
        Show(what + " " + name, Function::GetGlobalRequired(std::string("ffi.Recursive") + name)(one, other).cast<bool>());
      });
    }
  };
  compare("fields but one", Init("TestCompare", 1, "a", 5), Init("TestCompare", 1, "a", 6));
  compare("fields", Init("TestCompare", 1, "a", 5), Init("TestCompare", 1, "b", 5));
  compare("own order", Init("TestCustomCompare", 1, "x"), Init("TestCustomCompare", 2, "x"));
  compare("own equality", Init("TestEqWithoutHash", 1, "x"), Init("TestEqWithoutHash", 1, "y"));
  compare("two types", Init("TestCompare", 1, "a", 5), Init("TestIntPair", 1, 2));
  auto same_hash = [](const Any& one, const Any& other) {
    return Call("ffi.RecursiveHash", one).cast<int64_t>() == Call("ffi.RecursiveHash", other).cast<int64_t>();
  };
  Show("hash but one field", same_hash(Init("TestHash", 1, "a", 5), Init("TestHash", 1, "a", 6)));
  Show("hash of fields", same_hash(Init("TestHash", 1, "a", 5), Init("TestHash", 1, "b", 5)));
  Show("own hash", Call("ffi.RecursiveHash", Init("TestCustomHash", 1, "x")).cast<int64_t>());
  ShowError("no hash", [] { Call("ffi.RecursiveHash", Init("TestEqWithoutHash", 1, "x")); });
}

void Enums() {
  ShowCall("enum_variant_get", "Alpha");
  ShowCall("enum_variant_get", "Gamma");
  Enum alpha = Call("testing.enum_variant_get", "Alpha").cast<Enum>();
  Show("index", alpha->_int_index);
  Show("one object", alpha.same_as(Call("testing.enum_variant_get", "Alpha").cast<Enum>()));
  Show("deep copy", alpha.same_as(Call("ffi.DeepCopy", alpha).cast<Enum>()));
}

}  // namespace

int main() {
  Any library = Call("ffi.ModuleLoadFromFile", String(std::getenv("TESTING_LIBRARY")));
  Show("kind", Call("ffi.ModuleGetKind", library).cast<std::string>());
  Functions();
  Schemas();
  Containers();
  Objects();
  Comparisons();
  Enums();
  Show("function of the module", Member(library, "testing_dll_schema_id_int")(5).cast<int64_t>());
  Show("its metadata",
       Call("ffi.ModuleGetFunctionMetadata", library, "testing_dll_schema_id_int", false).cast<std::string>());
  Show("documentation",
       Call("ffi.ModuleGetFunctionDoc", library, "testing_dll_test_add_with_docstring", false).cast<std::string>());
  Show("no function", Repr(Call("ffi.ModuleGetFunction", library, "none", false)));
}
