// A host in C++, on upstream's headers: `main LIBRARY`. Links prices.cc, which registers the kind `hosts.prices`.
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "../c/allocator.h"

namespace ffi = tvm::ffi;

namespace {

struct Malloc {
  void AllocData(DLTensor* tensor) { tensor->data = std::aligned_alloc(64, (ffi::GetDataSize(*tensor) + 63) / 64 * 64); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

template <typename T>
ffi::Tensor tensor(ffi::Shape shape, DLDataType dtype, const std::vector<T>& values) {
  ffi::Tensor made = ffi::Tensor::FromNDAlloc(Malloc(), shape, dtype, DLDevice{kDLCPU, 0});
  std::memcpy(made.data_ptr(), values.data(), values.size() * sizeof(T));
  return made;
}

void show(const ffi::Any& value);

template <typename T, typename Each>
void list(const T& items, Each each) {
  const char* before = "";
  for (const auto& item : items) {
    std::cout << before;
    each(item);
    before = ", ";
  }
}

void show(const ffi::Tensor& value) {
  std::cout << "Tensor([";
  list(value.shape(), [](int64_t size) { std::cout << size; });
  std::cout << "], " << ffi::DLDataTypeToString(value.dtype()) << ", [";
  const float* data = static_cast<const float*>(value.data_ptr());
  list(std::vector<float>(data, data + value.numel()), [](float element) { std::cout << element; });
  std::cout << "])";
}

void show(const ffi::Any& value) {
  switch (value.type_index()) {
    case kTVMFFINone: std::cout << "None"; break;
    case kTVMFFIInt: std::cout << value.cast<int64_t>(); break;
    case kTVMFFIBool: std::cout << (value.cast<bool>() ? "True" : "False"); break;
    case kTVMFFIFloat: std::cout << value.cast<double>(); break;
    case kTVMFFIOpaquePtr: std::cout << "handle"; break;
    case kTVMFFIDataType: std::cout << ffi::DLDataTypeToString(value.cast<DLDataType>()); break;
    case kTVMFFIDevice: {
      DLDevice device = value.cast<DLDevice>();
      std::cout << (device.device_type == kDLCPU ? "cpu:" : "device:") << device.device_id;
      break;
    }
    case kTVMFFISmallStr:
    case kTVMFFIStr: std::cout << '"' << std::string(value.cast<ffi::String>()) << '"'; break;
    case kTVMFFISmallBytes:
    case kTVMFFIBytes: std::cout << "b\"" << std::string(value.cast<ffi::Bytes>()) << '"'; break;
    case kTVMFFIShape:
      std::cout << "Shape(";
      list(value.cast<ffi::Shape>(), [](int64_t size) { std::cout << size; });
      std::cout << ")";
      break;
    case kTVMFFITensor: show(value.cast<ffi::Tensor>()); break;
    case kTVMFFIArray:
      std::cout << "[";
      list(value.cast<ffi::Array<ffi::Any>>(), [](const ffi::Any& item) { show(item); });
      std::cout << "]";
      break;
    case kTVMFFIMap:
      std::cout << "{";
      list(value.cast<ffi::Map<ffi::Any, ffi::Any>>(), [](const auto& entry) {
        show(entry.first);
        std::cout << ": ";
        show(entry.second);
      });
      std::cout << "}";
      break;
    case kTVMFFIFunction: std::cout << "Function"; break;
    case kTVMFFIModule: std::cout << "Module"; break;
    default: std::cout << "type index " << value.type_index();
  }
}

template <typename T>
void line(const char* label, const T& value) {
  std::cout << label << ": ";
  show(value);
  std::cout << "\n";
}

// Prints the result of a call: its value, or its error.
template <typename... Args>
ffi::Any call(const char* label, const ffi::Optional<ffi::Function>& function, Args... args) {
  ffi::Any result;
  std::cout << label << ": ";
  if (!function.has_value()) {
    std::cout << "no such function";
  } else {
    try {
      result = (*function)(args...);
      show(result);
    } catch (const ffi::Error& error) {
      std::cout << error.kind() << ": " << error.message();
    }
  }
  std::cout << "\n";
  return result;
}

template <typename... Args>
void call(const ffi::Module& module, const char* label, Args... args) {
  call(label, module->GetFunction(std::string(label, std::strcspn(label, "("))), args...);
}

void numbers(const ffi::Module& module) {
  auto f32 = DLDataType{kDLFloat, 32, 1}, f64 = DLDataType{kDLFloat, 64, 1}, i32 = DLDataType{kDLInt, 32, 1};
  auto x = tensor<float>({3}, f32, {1, 2, 3.5}), y = tensor<float>({3}, f32, {0, 0, 0});
  auto m = tensor<float>({2, 3}, f32, {1, 2, 3, 4, 5, 6}), short_y = tensor<float>({2}, f32, {0, 0});
  auto a = tensor<double>({3}, f64, {1, 2, 3}), b = tensor<double>({3}, f64, {4, 5, 6.5});
  auto i = tensor<int32_t>({3}, i32, {1, 2, 3}), j = tensor<int32_t>({3}, i32, {1, 3, 2});
  auto h = tensor<uint16_t>({3}, DLDataType{kDLBfloat, 16, 1}, {0x3f80, 0xc000, 0x4060});
  auto e = tensor<uint8_t>({3}, DLDataType{kDLFloat8_e4m3fn, 8, 1}, {0x38, 0x3c, 0xc0});

  call(module, "scale(x, y)", x, y);
  line("y", y);
  call(module, "scale(x, y, -1)", x, y, -1);
  line("y", y);
  call(module, "scale(x, y, 0.5)", x, y, 0.5);
  line("y", y);
  call(module, "scale(x)", x);
  call(module, "scale(x, 5)", x, 5);
  call(module, "scale(x, a)", x, a);
  call(module, "scale(x, y[:2])", x, short_y);
  call(module, "scale(x, y, \"2\")", x, y, "2");
  call(module, "dot(a, b)", a, b);
  call(module, "dot(a, None)", a, nullptr);
  call(module, "outer(x, y)", x, y);
  call(module, "outer(x, m)", x, m);
  call(module, "widen(h, y)", h, y);
  line("y", y);
  call(module, "widen(x, y)", x, y);
  call(module, "sum8(e)", e);
  call(module, "sum8(h)", h);
  call(module, "is_sorted(i)", i);
  call(module, "is_sorted(j)", j);
  call(module, "is_sorted(m)", m);
  auto address = (*module->GetFunction("address"))(x).cast<void*>();
  std::cout << "address(x) is that of x: " << (address == x.data_ptr() ? "True" : "False") << "\n";
  call(module, "address(5)", 5);
  call(module, "dtype_of(h)", h);
  call(module, "dtype_of(e)", e);
  call(module, "device_of(x)", x);
  call(module, "shape_of(m)", m);
}

void texts(const ffi::Module& module) {
  call(module, "count(\"banana\")", "banana");
  call(module, "count(\"banana\", \"na\")", "banana", "na");
  call(module, "count(5)", 5);
  call(module, "count(\"a\", \"b\", \"c\")", "a", "b", "c");
  call(module, "greet(\"you\")", "you");
  call(module, "greet(\"\")", "");
  call(module, "greet(None)", nullptr);
  call(module, "reversed(b\"abc\")", ffi::Bytes("abc", 3));
  call(module, "reversed(\"abc\")", "abc");
  call(module, "split(\"a,bc,,d\", \",\")", "a,bc,,d", ",");
  call(module, "split(\"abc\", \"\")", "abc", "");
  call(module, "find(\"banana\", \"n\")", "banana", "n");
  call(module, "find(\"banana\", \"x\")", "banana", "x");
  call(module, "lengths([\"a\", \"longer than seven\"])", ffi::Array<ffi::Any>{ffi::String("a"), ffi::String("longer than seven")});
  call(module, "lengths([\"a\", 5])", ffi::Array<ffi::Any>{ffi::String("a"), 5});
}

void objects(const ffi::Module& module) {
  ffi::Any made = call("counter()", module->GetFunction("counter"));
  auto counter = made.cast<ffi::Function>();
  for (int i = 0; i < 2; ++i) call("counter()()", counter);
  call("counter()(1)", counter, 1);
  call(module, "library()");
  call(module, "price(\"pear\")", "pear");
  call(module, "price(\"apple\", 7)", "apple", 7);
  call(module, "price(\"plum\")", "plum");
  call(module, "price(\"pear\", 300)", "pear", 300);
  call("price_of(\"apple\") of what is imported", module->GetFunction("price_of", true), "apple");
  line("doc of scale", ffi::Any(module->GetFunctionDoc("scale")));
  line("doc of dot", ffi::Any(module->GetFunctionDoc("dot")));
  line("metadata of price", ffi::Any(module->GetFunctionMetadata("price")));
  line("metadata of nothing", ffi::Any(module->GetFunctionMetadata("nothing")));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " LIBRARY\n";
    return 2;
  }
  use_malloc();
  ffi::Module module = ffi::Module::LoadFromFile(argv[1]);
  numbers(module);
  texts(module);
  objects(module);
  call(module, "nothing()");
  call(module, "price_of(\"apple\")", "apple");
  return 0;
}
