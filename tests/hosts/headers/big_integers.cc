// Integers of any width: made in C++ and by the library, and used as keys.

#include "show.h"

#include <tvm/ffi/big_int.h>

#include <sstream>
#include <vector>

using namespace tvm::ffi;

namespace {

std::string Text(const BigInt& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

BigInt Parse(const char* text) {
  std::istringstream stream(text);
  BigInt value;
  stream >> value;
  return value;
}

Any FromWords(std::initializer_list<int64_t> words) {
  std::vector<int64_t> copy(words);
  TVMFFIByteArray bytes{reinterpret_cast<const char*>(copy.data()), copy.size() * sizeof(int64_t)};
  TVMFFIAny result;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIBigIntFromByteArray(&bytes, &result));
  return tvm::ffi::detail::AnyUnsafe::MoveTVMFFIAnyToAny(&result);
}

}  // namespace

int main() {
  for (auto words : {std::initializer_list<int64_t>{}, {0}, {-1}, {7, 0}, {-1, -1}, {-1, 0}, {0, 1}, {5, -1}, {INT64_MIN, -1},
                     {0, 0, -1}, {1, 2, 3, 4}, {1, 2, 3, INT64_MIN}}) {
    Any value = FromWords(words);
    TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
    TVMFFIByteArray content = TVMFFIBigIntGetContentByteArray(&raw);
    Show("type", value.GetTypeKey());
    Show("words", content.size / 8);
    Show("value", Text(value.cast<BigInt>()));
  }
  ShowError("a part of a word", [] {
    TVMFFIByteArray bytes{"123", 3};
    TVMFFIAny result;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIBigIntFromByteArray(&bytes, &result));
  });

  BigInt factorial = 1;
  for (int i = 2; i <= 60; ++i) factorial *= i;
  Show("60!", Text(factorial));
  Show("its hash", factorial.hash());
  Show("hash as a key", AnyHash()(Any(factorial)));
  Show("equal to the same", AnyEqual()(Any(factorial), Any(Parse(Text(factorial).c_str()))));
  Show("not to another", AnyEqual()(Any(factorial), Any(factorial + 1)));
  Show("back to a small one", Any(factorial / factorial).GetTypeKey());

  Map<Any, Any> map =
      Call("ffi.Map", factorial, 1, -factorial, 2, factorial + 0, 3, BigInt(5), 4).cast<Map<Any, Any>>();
  Show("keys", map.size());
  Show("found by C++", map.at(factorial).cast<int>());
  Show("found by the library", Call("ffi.MapGetItem", map, Parse(Text(-factorial).c_str())).cast<int>());
  Show("a small key", map.at(5).cast<int>());
  for (const char* text : {"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"}) {
    Show(text, Any(Parse(text)).GetTypeKey());
  }

  // The library's registrations for the type.
  namespace refl = tvm::ffi::reflection;
  int32_t index = TypeIndex::kTVMFFIBigInt;
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(index);
  Show("size", info->metadata->total_size);
  auto attribute = [&](const char* name) { return refl::TypeAttrColumn(name)[index]; };
  Show("final", attribute("__ffi_type_final__").cast<bool>());
  auto call = [&](const char* name, auto&&... args) { return attribute(name).cast<Function>()(args...); };
  Show("compare", call("__ffi_compare__", factorial, -factorial, nullptr).template cast<int>());
  Show("compare the other way", call("__ffi_compare__", -factorial, factorial, nullptr).template cast<int>());
  Show("compare the same", call("__ffi_compare__", factorial, factorial, nullptr).template cast<int>());
  Show("compare a longer one", call("__ffi_compare__", factorial, factorial * factorial, nullptr).template cast<int>());
  Show("equal", call("__ffi_eq__", factorial, factorial, nullptr).template cast<bool>());
  Show("hash", call("__ffi_hash__", factorial, nullptr).template cast<int64_t>());
  Show("to JSON", call("__data_to_json__", -factorial).template cast<std::string>());
  Show("from JSON", Text(call("__data_from_json__", String("-123456789012345678901234567890")).template cast<BigInt>()));
  ShowError("from wrong JSON", [&] { call("__data_from_json__", String("12 ")); });
  ShowError("not a number", [&] { (void)Any("1").cast<BigInt>(); });
}
