// Hashes and equality of values as keys. The headers compute them, using the library's type infos. Also hashes of type
// keys.

#include "show.h"

using namespace tvm::ffi;

namespace {

class PointObj : public Object {
 public:
  int64_t x;
  int64_t y;
  PointObj(int64_t x, int64_t y) : x(x), y(y) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("headers.Point", PointObj, Object);
};

class Point : public ObjectRef {
 public:
  Point(int64_t x, int64_t y) : ObjectRef(make_object<PointObj>(x, y)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Point, ObjectRef, PointObj);
};

class ExactObj : public PointObj {
 public:
  using PointObj::PointObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("headers.Exact", ExactObj, Object);
};

int64_t HashPoint(const Any& value) {
  const auto* point = value.as<PointObj>();
  if (point->x < 0) TVM_FFI_THROW(ValueError) << "a negative point has no hash";
  return point->x * 31 + point->y % 2;
}

bool EqualPoints(const Any& a, const Any& b) {
  return a.as<PointObj>()->x == b.as<PointObj>()->x && a.as<PointObj>()->y == b.as<PointObj>()->y;
}

void Register() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<PointObj>(refl::init(false))
      .def_type_attr(type_attr::kAnyHash.name, refl::NativeFunctionView<int64_t(const Any&)>::FromNative<&HashPoint>())
      .def_type_attr(type_attr::kAnyEqual.name,
                     refl::NativeFunctionView<bool(const Any&, const Any&)>::FromNative<&EqualPoints>());
}

void Hashes() {
  AnyHash hash;
  for (const char* text : {"", "a", "abc", "seven b", "eight by", "a text of more than sixteen bytes", "\x80\xff high"}) {
    Show(std::string("hash of `") + text + "`", hash(String(text)));
    Show("as bytes", hash(Bytes(text, std::char_traits<char>::length(text))));
  }
  for (Any value : {Any(0), Any(1), Any(-1), Any(true), Any(1.0), Any(-0.0), Any(nullptr), Any(DLDataType{2, 32, 1}),
                    Any(DLDevice{kDLCPU, 3})}) {
    Show("hash of " + value.GetTypeKey(), hash(value));
  }
  Show("hash of a point", hash(Point(3, 5)) == hash(Point(3, 7)));
  ShowError("hash of a negative point", [&] { (void)hash(Point(-1, 0)); });
  // The library's strings, small and on the heap, have the same hashes as C++'s.
  Show("of the library's string", hash(Call("ffi.String", "abc")) == hash(String("abc")));
  AnyEqual equal;
  Show("equal to the library's string", equal(Call("ffi.String", "a text of many bytes"), String("a text of many bytes")));
  Show("string and bytes", equal(String("abc"), Bytes("abc", 3)));
  Show("points", equal(Point(1, 2), Point(1, 2)));
  Show("other points", equal(Point(1, 2), Point(2, 2)));
}

void Keys() {
  Dict<Any, Any> dict = Call("ffi.Dict").cast<Dict<Any, Any>>();
  for (int i = 0; i < 60; ++i) {
    Point point(i % 20, i % 4);
    if (i % 2) {
      dict.Set(point, i);
    } else {
      Call("ffi.DictSetItem", dict, point, i);
    }
  }
  Show("points in a dict", dict.size());
  Show("found by the library", Call("ffi.DictGetItem", dict, Point(3, 3)).cast<int64_t>());
  Show("found by C++", dict.at(Point(4, 0)).cast<int64_t>());
  for (int i = 0; i < 20; i += 2) Call("ffi.DictErase", dict, Point(i, i % 4));
  for (int i = 0; i < 20; i += 2) dict.erase(Point(i, (i + 20) % 4));
  Show("after both have erased", dict.size());
  ShowError("a key without a hash", [&] { Call("ffi.DictSetItem", dict, Point(-1, 0), 1); });
  ShowError("a key without a hash, by C++", [&] { dict.Set(Point(-1, 0), 1); });
  Show("and then", dict.size());
  Array<Any> array = Call("ffi.Array", Point(1, 1), Point(2, 2)).cast<Array<Any>>();
  Show("contained", Call("ffi.ArrayContains", array, Point(2, 2)).cast<bool>());
  Show("not contained", Call("ffi.ArrayContains", array, Point(2, 3)).cast<bool>());
  Map<Any, Any> map = Call("ffi.Map", Point(1, 1), "a", Point(1, 1), "b", Point(1, 3), "c").cast<Map<Any, Any>>();
  Show("points in a map", map.size());
}

void Types() {
  for (const char* key : {"None", "int", "ffi.Object", "ffi.String", "ffi.SmallStr", "ffi.Error", "ffi.Function",
                          "ffi.OpaquePyObject", "headers.Point", "ffi.BigInt", "ffi.Dict"}) {
    TVMFFIByteArray name{key, std::char_traits<char>::length(key)};
    int32_t index = -1;
    Show(std::string("index of ") + key, TVMFFITypeKeyToIndex(&name, &index));
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(index);
    Show("hash of its key", info->type_key_hash);
    Show("depth", info->type_depth);
  }
  for (const char* name : {"__any_hash__", "__any_equal__", "__no_such_attribute__"}) {
    TVMFFIByteArray bytes{name, std::char_traits<char>::length(name)};
    Show(std::string("column ") + name, TVMFFIGetTypeAttrColumn(&bytes) != nullptr);
  }
}

}  // namespace

int main() {
  // Runs before any attribute is registered: C++ caches the columns that it finds now.
  Show("an object in a map", Map<Any, Any>{{Array<Any>{}, 1}}.size());
  Register();
  Hashes();
  Keys();
  Types();
}
