// Prints how upstream's converters treat arguments. For each parameter type, a C++ function with that parameter is
// called with each value of a list, using the C ABI. `cargo xtask test --only upstream` builds and runs this program,
// and compares the output with `fixtures/upstream/converters.table`. `tests/upstream/mod.rs` compares wrappers with the
// same table.
//
// The notation is that of docs/reference/signatures.md for types, and of fixtures/README.md for values. The argument is
// the name of the package, which is printed in the table's header.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/rvalue_ref.h>
#include <tvm/ffi/string.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace tvm::ffi;

const std::vector<std::string> kValues = {
    // none, and integers at the limits of each width, and at the limits of exact floats
    "none", "0", "1", "-1", "2", "127", "128", "-128", "-129", "255", "256", "32767", "32768", "-32768", "-32769", "65535",
    "65536", "16777217", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296",
    "9007199254740993", "9223372036854775807", "-9223372036854775808",
    // bools; a C++ program can't create the third one
    "true", "false", "raw(2, 2)",
    // floats
    "float(0.0)", "float(-0.0)", "float(1.0)", "float(1.5)", "float(0.1)", "float(16777217.0)", "float(1e300)", "float(nan)",
    "float(inf)", "float(-inf)",
    // addresses
    "ptr(0x0)", "ptr(0x1000)",
    // dtypes, devices
    "dtype(float32)", "dtype(int8x4)", "dtype(float4_e2m1fnx2)", "device(cpu:0)", "device(cuda:1)",
    // strings: small, the longest small one, the shortest on the heap, and the other forms
    "str(\"\")", "str(\"abc\")", "str(\"1234567\")", "str(\"12345678\")", "str(\"Größe\")", "raw_str(\"\")",
    "raw_str(\"abc\")", "raw_str(\"12345678\")", "bytes(\"\")", "bytes(\"abc\")", "bytes(\"1234567\")",
    "bytes(\"12345678\")", "byte_array(\"\")", "byte_array(\"abc\")", "byte_array(\"12345678\")",
    // names of dtypes, valid and invalid, in each kind of string
    "str(\"float32\")", "raw_str(\"float32\")", "bytes(\"float32\")", "byte_array(\"float32\")", "str(\"f32\")",
    "str(\"int\")", "str(\"float\")", "str(\"bool\")", "str(\"bool16\")", "str(\"bfloat\")", "str(\"bf16\")",
    "str(\"handle\")", "str(\"void\")", "str(\"float8_e4m3fn\")", "str(\"float4_e2m1fnx2\")", "str(\"float8\")",
    "str(\"int8x4\")", "str(\"int8xvscalex4\")", "str(\"int8x0\")", "str(\"int8x\")", "str(\"int3\")", "str(\"int256\")",
    "str(\"Float32\")", "str(\" float32\")", "str(\"float32 \")", "raw_str(\"flot32\")",
    // names of devices
    "str(\"cpu\")", "str(\"cuda:1\")", "raw_str(\"cuda:1\")", "str(\"cuda:-1\")", "str(\"cuda:\")", "str(\"cuda:1:2\")",
    "str(\"gpu\")", "str(\"cuda:1 rest\")",
    // objects
    "function", "module", "error", "object", "object(sub)",
    // shapes, tensors
    "shape([])", "shape([3, 4])", "shape([-1])", "tensor(float32, [2, 3], as=object)", "tensor(float32, [2, 3], as=dltensor)",
    "tensor(int8, [], as=object)", "tensor(int8, [], as=dltensor)",
    // sequences
    "array([])", "array([1])", "array([1, 2])", "array([300])", "array([-1, 2])", "array([true, false])", "array([1, true])",
    "array([float(1.5), float(2.5)])", "array([1, float(2.5)])", "array([float(2.5), 1])", "array([true, 2])",
    "array([none])", "array([none, 1])", "array([str(\"a\"), str(\"12345678\")])", "array([1, str(\"a\")])",
    "array([str(\"float32\")])", "array([str(\"flot32\")])", "array([str(\"cpu\")])", "array([bytes(\"abc\")])",
    "array([dtype(float32)])", "array([device(cuda:1)])", "array([ptr(0x1000)])", "array([function])", "array([module])",
    "array([shape([3, 4])])", "array([tensor(float32, [2, 3], as=object)])", "array([array([1, 2]), array([])])",
    "array([list([1, 2])])", "array([array([float(1.5)])])", "array([array([1, float(2.5)])])",
    "array([list([1, float(2.5)])])", "array([1, array([float(2.5), str(\"a\")])])",
    "array([1, list([float(2.5), str(\"a\")])])", "array([1, array([2, str(\"a\")])])", "array([object])",
    "array([object(sub)])", "array([map({str(\"a\"): 1})])",
    // one more entry than the max rank of a tensor
    "array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, "
    "32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, "
    "62, 63, 64, 65])",
    "list([])", "list([1])", "list([1, 2])", "list([true])", "list([float(1.5)])", "list([1, float(2.5)])", "list([2, 3])",
    "list([none])", "list([str(\"a\")])", "list([list([1, 2])])",
    // maps
    "map({})", "map({str(\"a\"): 1})", "map({str(\"a\"): 1, str(\"12345678\"): 2})", "map({str(\"a\"): true})",
    "map({str(\"a\"): float(1.5)})", "map({str(\"a\"): none})", "map({1: 2})", "map({true: 2})", "map({str(\"a\"): array([1])})",
    "map({str(\"a\"): list([1])})", "dict({})", "dict({str(\"a\"): 1})", "dict({str(\"a\"): true})",
    "dict({str(\"a\"): float(1.5)})", "dict({1: 2})", "dict({str(\"a\"): array([1])})",
    // objects that the caller gives away
    "rvalue(str(\"bfloat16\"))", "rvalue(bytes(\"12345678\"))", "rvalue(function)", "rvalue(module)",
    "rvalue(object)", "rvalue(object(sub))", "rvalue(shape([3, 4]))", "rvalue(tensor(float32, [2, 3], as=object))",
    "rvalue(array([1, 2]))", "rvalue(array([true]))",
    "rvalue(array([1, float(2.5)]))", "rvalue(list([1, 2]))", "rvalue(map({str(\"a\"): 1}))", "rvalue(dict({str(\"a\"): 1}))",
};

// A type, and a derived type.
class ThingObj : public Object {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO("test.Thing", ThingObj, Object);
};

class SubObj : public ThingObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO("test.Thing.Sub", SubObj, ThingObj);
};

class Thing : public ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Thing, ObjectRef, ThingObj);
};

class NullableThing : public ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(NullableThing, ObjectRef, ThingObj);
};

class Sub : public ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Sub, ObjectRef, SubObj);
};

class EmptyModule : public ModuleObj {
 public:
  const char* kind() const final { return "test"; }
  Optional<Function> GetFunction(const String&) final { return std::nullopt; }
};

struct CpuAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = std::calloc(1, GetDataSize(*tensor)); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

TVMFFIAny RawOf(const Any& value) { return AnyView(value).CopyToTVMFFIAny(); }

TVMFFIAny RawPointer(int32_t type_index, void* pointer) {
  TVMFFIAny raw = {};
  raw.type_index = type_index;
  raw.v_ptr = pointer;
  return raw;
}

// An argument created from its text, with everything that it refers to.
class Argument {
 public:
  explicit Argument(std::string_view text) : text_(text), rest_(text) {
    raw_ = Value();
    if (!rest_.empty()) Fail("nothing more");
  }

  const TVMFFIAny& raw() const { return raw_; }

  // Whether the function moved an object out of the argument.
  bool moved() const {
    for (const ObjectPtr<Object>& reference : references_) {
      if (reference == nullptr) return true;
    }
    return false;
  }

 private:
  [[noreturn]] void Fail(const std::string& expected) const {
    throw std::runtime_error("in `" + std::string(text_) + "`: expected " + expected + " before `" + std::string(rest_) + "`");
  }

  bool Eat(std::string_view token) {
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void Expect(std::string_view token) {
    if (!Eat(token)) Fail(std::string(token));
  }

  std::string_view Until(std::string_view ends) {
    std::string_view word = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::string Quoted() {
    Expect("\"");
    std::string text(Until("\""));
    Expect("\"");
    return text;
  }

  int64_t Integer() {
    int base = 10;
    if (Eat("0x")) base = 16;
    int64_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc()) Fail("an integer");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  template <typename One>
  void Items(std::string_view open, std::string_view close, One one) {
    Expect(open);
    while (!Eat(close)) {
      one();
      if (!Eat(", ") && rest_.substr(0, close.size()) != close) Fail(std::string(close));
    }
  }

  std::vector<int64_t> Integers() {
    std::vector<int64_t> all;
    Items("[", "]", [&] { all.push_back(Integer()); });
    return all;
  }

  Any Owned() { return Any(AnyView::CopyFromTVMFFIAny(Value())); }

  TVMFFIAny Keep(Any value) { return RawOf(kept_.emplace_back(std::move(value))); }

  template <typename Seq>
  TVMFFIAny Sequence() {
    Seq all;
    Items("[", "]", [&] { all.push_back(Owned()); });
    return Keep(std::move(all));
  }

  template <typename MapLike>
  TVMFFIAny Pairs() {
    MapLike all;
    Items("{", "}", [&] {
      Any key = Owned();
      Expect(": ");
      all.Set(std::move(key), Owned());
    });
    return Keep(std::move(all));
  }

  TVMFFIAny TensorValue() {
    DLDataType dtype = StringToDLDataType(String(std::string(Until(","))));
    Expect(", ");
    Tensor tensor = Tensor::FromNDAlloc(CpuAlloc(), Shape(Integers()), dtype, DLDevice{kDLCPU, 0});
    TVMFFIAny object = Keep(tensor);
    if (Eat(", as=object")) return object;
    Expect(", as=dltensor");
    return RawPointer(kTVMFFIDLTensorPtr, TVMFFITensorGetDLTensorPtr(object.v_obj));
  }

  TVMFFIAny Called(std::string_view name) {
    if (name == "raw") {
      TVMFFIAny raw = {};
      raw.type_index = static_cast<int32_t>(Integer());
      Expect(", ");
      raw.v_int64 = Integer();
      return raw;
    }
    // as in Python, except for NaN
    if (name == "float") return Keep(std::stod(std::string(Until(")"))));
    if (name == "ptr") return RawPointer(kTVMFFIOpaquePtr, reinterpret_cast<void*>(Integer()));
    if (name == "dtype") return Keep(StringToDLDataType(String(std::string(Until(")")))));
    if (name == "device") {
      DLDeviceType kind = Eat("cuda:") ? kDLCUDA : (Expect("cpu:"), kDLCPU);
      return Keep(DLDevice{kind, static_cast<int32_t>(Integer())});
    }
    // created from a pointer and a length, so short ones are small strings
    if (name == "str") {
      std::string text = Quoted();
      return Keep(String(text.data(), text.size()));
    }
    if (name == "bytes") {
      std::string text = Quoted();
      return Keep(Bytes(text.data(), text.size()));
    }
    if (name == "raw_str") {
      return RawPointer(kTVMFFIRawStr, const_cast<char*>(texts_.emplace_back(Quoted()).c_str()));
    }
    if (name == "byte_array") {
      const std::string& text = texts_.emplace_back(Quoted());
      return RawPointer(kTVMFFIByteArrayPtr, &byte_arrays_.emplace_back(TVMFFIByteArray{text.data(), text.size()}));
    }
    if (name == "object") {
      Expect("sub");
      return Keep(ObjectRef(ObjectPtr<Object>(make_object<SubObj>())));
    }
    if (name == "shape") return Keep(Shape(Integers()));
    if (name == "tensor") return TensorValue();
    if (name == "array") return Sequence<Array<Any>>();
    if (name == "list") return Sequence<List<Any>>();
    if (name == "map") return Pairs<Map<Any, Any>>();
    if (name == "dict") return Pairs<Dict<Any, Any>>();
    if (name == "rvalue") {
      // only this reference owns the object, as in a call that moves it
      ObjectPtr<Object> object = detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(Value().v_obj);
      kept_.clear();
      return RawPointer(kTVMFFIObjectRValueRef, &references_.emplace_back(std::move(object)));
    }
    Fail("a kind of value");
  }

  TVMFFIAny Value() {
    if (!rest_.empty() && (rest_[0] == '-' || (rest_[0] >= '0' && rest_[0] <= '9'))) return Keep(Integer());
    std::string_view name = Until("(),]}:");
    if (Eat("(")) {
      TVMFFIAny raw = Called(name);
      Expect(")");
      return raw;
    }
    if (name == "none") return Keep(nullptr);
    if (name == "true" || name == "false") return Keep(name == "true");
    if (name == "function") return Keep(Function::FromTyped([](int64_t x) { return x; }));
    if (name == "module") return Keep(Module(ObjectPtr<ModuleObj>(make_object<EmptyModule>())));
    if (name == "object") return Keep(ObjectRef(ObjectPtr<Object>(make_object<ThingObj>())));
    if (name == "error") return Keep(Error("ValueError", "an argument", ""));
    Fail("a value");
  }

  std::string_view text_;
  std::string_view rest_;
  TVMFFIAny raw_ = {};
  // deques, because arguments contain addresses of elements
  std::deque<Any> kept_;
  std::deque<std::string> texts_;
  std::deque<TVMFFIByteArray> byte_arrays_;
  std::deque<ObjectPtr<Object>> references_;
};

std::string Show(const TVMFFIAny& raw);

std::string Show(double value) {
  char buffer[64];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (value != value) return "nan";
  // as in Rust and Python
  if (size_t plus = text.find("e+"); plus != std::string::npos) text.erase(plus + 1, 1);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string Quote(const char* name, const char* data, size_t size) {
  return name + ("(\"" + std::string(data, size) + "\")");
}

template <typename Iterator, typename One>
std::string Joined(Iterator begin, Iterator end, One one) {
  std::string text;
  for (Iterator it = begin; it != end; ++it) text += (it == begin ? "" : ", ") + one(*it);
  return text;
}

template <typename Seq>
std::string ShowSequence(const Seq& all) {
  return "([" + Joined(all.begin(), all.end(), [](const Any& item) { return Show(RawOf(item)); }) + "])";
}

template <typename MapLike>
std::string ShowPairs(const MapLike& all) {
  auto pair = [](const auto& entry) { return Show(RawOf(entry.first)) + ": " + Show(RawOf(entry.second)); };
  return "({" + Joined(all.begin(), all.end(), pair) + "})";
}

std::string ShowIntegers(const int64_t* data, size_t size) {
  return "[" + Joined(data, data + size, [](int64_t v) { return std::to_string(v); }) + "]";
}

std::string ShowTensor(const DLTensor& tensor, const char* form) {
  std::string dtype = DLDataTypeToString(tensor.dtype);
  return "tensor(" + dtype + ", " + ShowIntegers(tensor.shape, static_cast<size_t>(tensor.ndim)) + ", as=" + form + ")";
}

// The text form of a value.
std::string Show(const TVMFFIAny& raw) {
  AnyView view = AnyView::CopyFromTVMFFIAny(raw);
  char buffer[32];
  switch (raw.type_index) {
    case kTVMFFINone:
      return "none";
    case kTVMFFIInt:
      return std::to_string(raw.v_int64);
    case kTVMFFIBool:
      if (raw.v_int64 == 0 || raw.v_int64 == 1) return raw.v_int64 == 1 ? "true" : "false";
      return "raw(2, " + std::to_string(raw.v_int64) + ")";
    case kTVMFFIFloat:
      return "float(" + Show(raw.v_float64) + ")";
    case kTVMFFIOpaquePtr:
      std::snprintf(buffer, sizeof buffer, "ptr(0x%llx)", static_cast<unsigned long long>(raw.v_uint64));
      return buffer;
    case kTVMFFIDataType:
      return "dtype(" + std::string(DLDataTypeToString(raw.v_dtype)) + ")";
    case kTVMFFIDevice: {
      DLDevice device = raw.v_device;
      std::string kind = device.device_type == kDLCPU    ? "cpu"
                         : device.device_type == kDLCUDA ? "cuda"
                                                         : std::to_string(device.device_type);
      return "device(" + kind + ":" + std::to_string(device.device_id) + ")";
    }
    case kTVMFFIDLTensorPtr:
      return ShowTensor(*static_cast<DLTensor*>(raw.v_ptr), "dltensor");
    case kTVMFFITensor:
      return ShowTensor(*TVMFFITensorGetDLTensorPtr(raw.v_obj), "object");
    case kTVMFFIRawStr:
      return Quote("raw_str", raw.v_c_str, std::char_traits<char>::length(raw.v_c_str));
    case kTVMFFIByteArrayPtr: {
      const TVMFFIByteArray* array = static_cast<TVMFFIByteArray*>(raw.v_ptr);
      return Quote("byte_array", array->data, array->size);
    }
    case kTVMFFISmallStr:
    case kTVMFFIStr: {
      String text = view.cast<String>();
      return Quote("str", text.data(), text.size());
    }
    case kTVMFFISmallBytes:
    case kTVMFFIBytes: {
      Bytes bytes = view.cast<Bytes>();
      return Quote("bytes", bytes.data(), bytes.size());
    }
    case kTVMFFIObjectRValueRef: {
      Object* object = static_cast<ObjectPtr<Object>*>(raw.v_ptr)->get();
      return "rvalue(" + Show(RawPointer(object->type_index(), object)) + ")";
    }
    case kTVMFFIFunction:
      return "function";
    case kTVMFFIModule:
      return "module";
    case kTVMFFIError:
      return "error";
    case kTVMFFIShape: {
      Shape shape = view.cast<Shape>();
      return "shape(" + ShowIntegers(shape.data(), shape.size()) + ")";
    }
    case kTVMFFIArray:
      return "array" + ShowSequence(view.cast<Array<Any>>());
    case kTVMFFIList:
      return "list" + ShowSequence(view.cast<List<Any>>());
    case kTVMFFIMap:
      return "map" + ShowPairs(view.cast<Map<Any, Any>>());
    case kTVMFFIDict:
      return "dict" + ShowPairs(view.cast<Dict<Any, Any>>());
    default:
      // EmptyModule has its own type index
      if (detail::IsObjectInstance<ModuleObj>(raw.type_index)) return "module";
      if (raw.type_index == SubObj::RuntimeTypeIndex()) return "object(sub)";
      if (raw.type_index == ThingObj::RuntimeTypeIndex()) return "object";
      return TypeIndexToTypeKey(raw.type_index);
  }
}

// The text form of what a function received. Strings no longer have the form of the argument.
template <typename T>
std::string Got(T value) {
  return Show(AnyView(value).CopyToTVMFFIAny());
}

// an Any can't hold large ones, so print the int64 with the same bits
template <>
std::string Got(uint64_t value) {
  return std::to_string(static_cast<int64_t>(value));
}

template <>
std::string Got(std::string value) {
  return Got(String(std::move(value)));
}

template <typename T>
std::string Got(RValueRef<T> value) {
  return Got(T(*std::move(value)));
}

// The value that the last called function received.
std::string got;

void Report(const char* ours, const char* upstream, const Function& function) {
  std::printf("\n%s = %s\n", ours, upstream);
  for (const std::string& text : kValues) {
    Argument argument(text);
    got.clear();
    Any result;
    TVMFFIAny raw = argument.raw();
    TVMFFIAny* out = reinterpret_cast<TVMFFIAny*>(&result);
    if (TVMFFIFunctionCall(detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(function), &raw, 1, out) == 0) {
      if (argument.moved()) got += ", moved";
      std::printf("  %s%s\n", text.c_str(), got == text ? "" : (" -> " + got).c_str());
      continue;
    }
    std::string kind = detail::MoveFromSafeCallRaised().kind();
    if (kind != "TypeError") std::printf("  %s -> error %s\n", text.c_str(), kind.c_str());
  }
}

template <typename T>
void Try(const char* ours, const char* upstream) {
  Report(ours, upstream, Function::FromTyped([](T value) { got = Got(std::move(value)); }));
}

// Tests the C++ type that corresponds to a type of signatures.
#define TRY(ours, ...) Try<__VA_ARGS__>(ours, #__VA_ARGS__)

void TryAll() {
  TRY("int8", int8_t);
  TRY("int16", int16_t);
  TRY("int32", int32_t);
  TRY("int64", int64_t);
  TRY("uint8", uint8_t);
  TRY("uint16", uint16_t);
  TRY("uint32", uint32_t);
  TRY("uint64", uint64_t);
  TRY("float32", float);
  TRY("float64", double);
  TRY("bool", bool);
  TRY("handle", void*);
  TRY("dtype", DLDataType);
  TRY("device", DLDevice);
  TRY("str", String);
  TRY("str", std::string);
  TRY("bytes", Bytes);
  TRY("Shape", Shape);
  TRY("Any", Any);
  TRY("Any", AnyView);
  TRY("None", std::nullptr_t);
  TRY("Function", Function);
  TRY("Function", TypedFunction<int64_t(int64_t)>);
  TRY("Function", RValueRef<Function>);
  TRY("Module", Module);
  TRY("Object(\"ffi.Object\")", ObjectRef);
  TRY("Object(\"ffi.Tensor\")", Tensor);
  TRY("Object(\"test.Thing\")", Thing);
  TRY("Object(\"test.Thing\")", NullableThing);
  TRY("Object(\"test.Thing\")", RValueRef<Thing>);
  TRY("Object(\"test.Thing.Sub\")", Sub);
  TRY("Tensor([...], any, strides=any, device=any)", TensorView);
  TRY("Tensor([...], any, strides=any, device=any)", DLTensor*);
  TRY("Optional[int64]", Optional<int64_t>);
  TRY("Optional[float64]", Optional<double>);
  TRY("Optional[bool]", Optional<bool>);
  TRY("Optional[str]", Optional<String>);
  TRY("Optional[dtype]", Optional<DLDataType>);
  TRY("Optional[device]", Optional<DLDevice>);
  TRY("Optional[Shape]", Optional<Shape>);
  TRY("Optional[Function]", Optional<Function>);
  TRY("Optional[Object(\"test.Thing\")]", Optional<Thing>);
  TRY("Optional[Tensor([...], any, strides=any, device=any)]", Optional<TensorView>);
  TRY("Optional[Array[int64]]", Optional<Array<int64_t>>);
  TRY("Tuple[int64, float64]", Tuple<int64_t, double>);
  TRY("Tuple[int64, Tuple[float64, str]]", Tuple<int64_t, Tuple<double, String>>);
  TRY("Tuple[Any]", Tuple<Any>);
  TRY("Array[int8]", Array<int8_t>);
  TRY("Array[int64]", Array<int64_t>);
  TRY("Array[int64]", RValueRef<Array<int64_t>>);
  TRY("Array[float64]", Array<double>);
  TRY("Array[bool]", Array<bool>);
  TRY("Array[handle]", Array<void*>);
  TRY("Array[dtype]", Array<DLDataType>);
  TRY("Array[device]", Array<DLDevice>);
  TRY("Array[str]", Array<String>);
  TRY("Array[bytes]", Array<Bytes>);
  TRY("Array[Any]", Array<Any>);
  TRY("Array[Shape]", Array<Shape>);
  TRY("Array[Function]", Array<Function>);
  TRY("Array[Object(\"test.Thing\")]", Array<Thing>);
  TRY("Array[Tensor([...], any, strides=any, device=any)]", Array<Tensor>);
  TRY("Array[Optional[int64]]", Array<Optional<int64_t>>);
  TRY("Array[Array[int64]]", Array<Array<int64_t>>);
  TRY("Array[Tuple[int64, float64]]", Array<Tuple<int64_t, double>>);
  TRY("Array[Map[str, int64]]", Array<Map<String, int64_t>>);
  TRY("List[int64]", List<int64_t>);
  TRY("List[float64]", List<double>);
  TRY("List[Any]", List<Any>);
  TRY("Map[str, int64]", Map<String, int64_t>);
  TRY("Map[str, float64]", Map<String, double>);
  TRY("Map[int64, int64]", Map<int64_t, int64_t>);
  TRY("Map[str, Array[int64]]", Map<String, Array<int64_t>>);
  TRY("Map[Any, Any]", Map<Any, Any>);
  TRY("Dict[str, int64]", Dict<String, int64_t>);
  TRY("Dict[Any, Any]", Dict<Any, Any>);

  // the only result that upstream converts
  auto echo = [](uint64_t value) {
    got = Got(value);
    return value;
  };
  Report("uint64 -> uint64", "uint64_t(uint64_t)", Function::FromTyped(echo));
}

}  // namespace

int main(int argc, char** argv) try {
  const char* package = argc > 1 ? argv[1] : "tvm_ffi";
  std::printf("# What converters of %s make of arguments, in functions of one parameter.\n", package);
  std::printf("# Written by tests/upstream/converters.cc: TVM_FFI_CODEGEN_BLESS=1 cargo xtask test --only upstream\n");
  std::printf("# First the values. Then, of each type (as it is here = as it is in C++), what the function got for which\n");
  std::printf("# value: the same, unless something else is behind an arrow. What isn't listed is refused with a TypeError.\n");
  std::printf("\nvalues\n");
  for (const std::string& text : kValues) {
    std::printf("  %s\n", text.c_str());
    // the text must have the same meaning here as in the wrappers' tests
    Argument argument(text);
    if (std::string shown = Show(argument.raw()); shown != text) {
      throw std::runtime_error("`" + text + "` became `" + shown + "`");
    }
  }
  TryAll();
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "converters: %s\n", problem.what());
  return 1;
}
