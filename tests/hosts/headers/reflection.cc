// Types that a program defines with upstream's headers: fields, methods, constructors, defaults, attributes, enums.
// Also the library's own types.

#include "show.h"

#include <tvm/ffi/big_int.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/reflection/access_path.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/enum_def.h>
#include <tvm/ffi/reflection/registry.h>

using namespace tvm::ffi;
namespace refl = tvm::ffi::reflection;

namespace {

struct PointObj : public Object {
  int64_t x = 0;
  double y = 0;
  String label;
  Any extra;
  static constexpr bool _type_mutable = true;
  int64_t Scaled(int64_t by) const { return x * by; }
  TVM_FFI_DECLARE_OBJECT_INFO("headers.Point", PointObj, Object);
};

struct Point3Obj : public PointObj {
  float z = 0;
  bool is_hidden = false;
  DLDevice device{kDLCPU, 0};
  DLDataType dtype{kDLFloat, 32, 1};
  void* pointer = nullptr;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("headers.Point3", Point3Obj, PointObj);
};

struct PairObj : public Object {
  int64_t first;
  ObjectRef second;
  PairObj(int64_t first, ObjectRef second) : first(first), second(std::move(second)) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("headers.Pair", PairObj, Object);
};

struct Pair : public ObjectRef {
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Pair, ObjectRef, PairObj);
};

struct ColourObj : public EnumObj {
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("headers.Colour", ColourObj, EnumObj);
};

void Define() {
  refl::ObjectDef<PointObj>("a point")
      .def_rw("x", &PointObj::x, "the first number", refl::Metadata{{"unit", "mm"}})
      .def_rw("y", &PointObj::y, refl::default_value(0.5))
      .def_rw("label", &PointObj::label, refl::default_value("none"), refl::repr(false))
      .def_rw("extra", &PointObj::extra, refl::default_factory(Function::FromTyped([] { return List<Any>{7}; })),
              refl::kw_only(true))
      .def("scaled", &PointObj::Scaled, "x times a number")
      .def_static("origin", [] { return ObjectRef(make_object<PointObj>()); });
  refl::ObjectDef<Point3Obj>()
      .def_ro("z", &Point3Obj::z, refl::default_value(1.0f), refl::compare(false))
      .def_ro("is_hidden", &Point3Obj::is_hidden, refl::init(false))
      .def_ro("device", &Point3Obj::device, refl::default_value(DLDevice{kDLCUDA, 1}))
      .def_ro("dtype", &Point3Obj::dtype, refl::default_value(DLDataType{kDLInt, 8, 4}))
      .def_ro("pointer", &Point3Obj::pointer, refl::default_value(nullptr), refl::hash(false));
  refl::ObjectDef<PairObj>()
      .def(refl::init<int64_t, ObjectRef>())
      .def_ro("first", &PairObj::first)
      .def_ro("second", &PairObj::second)
      .def_convert<Pair>();
  refl::TypeAttrDef<PairObj>().def(type_attr::kRepr.name, [](const Object* self, const Function& repr) -> String {
    auto* pair = static_cast<const PairObj*>(self);
    return "<" + std::string(repr(pair->first).cast<String>()) + " & " +
           std::string(repr(pair->second).cast<String>()) + ">";
  });
  refl::ObjectDef<ColourObj>(refl::init(false));  // NOLINT(bugprone-unused-raii)
  refl::EnumDef<ColourObj>("Red").set_attr("code", int64_t{1});
  refl::EnumDef<ColourObj>("Green").set_attr("code", int64_t{2});
}

std::string Repr(const Any& value) { return Call("ffi.ReprPrint", value).cast<std::string>(); }

std::string Text(TVMFFIByteArray bytes) { return bytes.size == 0 ? "" : std::string(bytes.data, bytes.size); }

const TVMFFITypeInfo* InfoOf(const std::string& key) {
  TVMFFIByteArray bytes{key.data(), key.size()};
  int32_t index = 0;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeKeyToIndex(&bytes, &index));
  return TVMFFIGetTypeInfo(index);
}

void ShowType(const std::string& key) {
  const TVMFFITypeInfo* info = InfoOf(key);
  Show("type " + key, info->type_depth);
  if (info->metadata != nullptr) {
    Show("  metadata", Text(info->metadata->doc) + " " + std::to_string(info->metadata->total_size) + " " +
                           std::to_string(info->metadata->structural_eq_hash_kind) + " " +
                           std::to_string(info->metadata->creator != nullptr));
  }
  for (int32_t i = 0; i < info->num_fields; ++i) {
    const TVMFFIFieldInfo& field = info->fields[i];
    Show("  field " + Text(field.name), Text(field.doc) + " " + Text(field.metadata) + " " +
                                            std::to_string(field.flags) + " " + std::to_string(field.size) + " " +
                                            std::to_string(field.field_static_type_index));
  }
  for (int32_t i = 0; i < info->num_methods; ++i) {
    const TVMFFIMethodInfo& method = info->methods[i];
    Show("  method " + Text(method.name),
         Text(method.doc) + " " + Text(method.metadata) + " " + std::to_string(method.flags));
  }
  for (const char* name : {"__ffi_convert__", "__ffi_shallow_copy__", "__ffi_repr__", "__ffi_new__", "__ffi_init__",
                           "__ffi_type_final__"}) {
    AnyView value = refl::TypeAttrColumn(name)[info->type_index];
    if (value != nullptr) Show("  attribute", std::string(name) + " " + value.GetTypeKey());
  }
}

void Types() {
  for (const char* key : {"headers.Point", "headers.Point3", "headers.Pair", "headers.Colour", "ffi.Object", "ffi.String",
                          "ffi.VisitInterrupt", "ffi.EnumState", "ffi.Enum", "ffi.IntEnum", "ffi.StrEnum",
                          "ffi.reflection.AccessStep"}) {
    ShowType(key);
  }
  // A column exists even for the earliest look-up.
  for (const char* name : {"__any_equal__", "__any_hash__", "__data_from_json__", "__data_to_json__", "__ffi_compare__",
                           "__ffi_convert__", "__ffi_enum__", "__ffi_eq__", "__ffi_hash__", "__ffi_init__", "__ffi_new__",
                           "__ffi_repr__", "__ffi_shallow_copy__", "__ffi_type_final__", "__s_equal__", "__s_hash__",
                           "__s_maybe_inplace_mutate__", "__s_mutate__", "__s_visit__"}) {
    refl::TypeAttrColumn column{name};
    Show("column", name);
  }
  ShowError("no such column", [] { refl::TypeAttrColumn column("headers.none"); });
  ShowError("no such type", [] { InfoOf("headers.none"); });
  ShowError("a field twice", [] { refl::ObjectDef<PointObj> again; });
}

Any Make(const char* type) { return Call("ffi.MakeObjectFromPackedArgs", type); }

Any Init(const char* key) { return AnyView(refl::TypeAttrColumn(type_attr::kInit)[InfoOf(key)->type_index]); }

void Fields() {
  Any point = Call("ffi.MakeObjectFromPackedArgs", "headers.Point", "x", 3, "label", "here");
  Show("made", Repr(point));
  refl::FieldGetter label("headers.Point", "label");
  Show("label", label(point.cast<ObjectRef>()).cast<std::string>());
  refl::FieldSetter set_x("headers.Point", "x");
  set_x(point.cast<ObjectRef>(), 12);
  Show("scaled", refl::GetMethod("headers.Point", "scaled")(point, 5).cast<int64_t>());
  Show("static", Repr(refl::GetMethod("headers.Point", "origin")()));
  ShowError("value of another type", [&] { set_x(point.cast<ObjectRef>(), "text"); });
  ShowError("no field", [] { refl::FieldGetter getter("headers.Point", "none"); });
  ShowError("method's argument", [&] { refl::GetMethod("headers.Point", "scaled")(point, "five"); });
  ShowError("method's number of arguments", [&] { refl::GetMethod("headers.Point", "scaled")(point); });
  ShowError("missing field", [] { Make("headers.Point"); });
  ShowError("no creator", [] { Make("headers.Pair"); });
  Function init = Init("headers.Point3").cast<Function>();
  ObjectRef kwargs = Call("ffi.GetKwargsObject").cast<ObjectRef>();
  Show("constructed", Repr(init(1, 2, "text", 4)));
  Show("by keywords", Repr(init(1, kwargs, "extra", nullptr, "y", 9)));
  ShowError("keyword twice", [&] { init(1, kwargs, "x", 2); });
  ShowError("default of another type", [&] { init(1, kwargs, "device", "nowhere"); });
}

void Graphs() {
  Function pair = Init("headers.Pair").cast<Function>();
  List<Any> list{1, 2.5, "text", Bytes("\x01", 1), nullptr, true};
  Any inner = pair(1, list);
  Any outer = pair(2, Array<Any>{inner, inner});
  Show("hook", Repr(outer));
  list.push_back(list);
  Show("cycle", Repr(list));
  List<Any> copy = Call("ffi.DeepCopy", list).cast<List<Any>>();
  Show("copied cycle", copy[6].cast<List<Any>>().same_as(copy));
  Show("equal cycles", Call("ffi.RecursiveEq", list, copy).cast<bool>());
  ShowError("order of cycles", [&] { Call("ffi.RecursiveLt", list, copy); });
  Any deep = Call("ffi.DeepCopy", outer);
  Show("a new object", !deep.same_as(outer));
  const auto* object = deep.cast<Pair>().get();
  Array<Any> both = Any(object->second).cast<Array<Any>>();
  Show("what was one object is one", both[0].same_as(both[1]));
  List<Any> nested;
  for (int i = 0; i < 1000; ++i) nested = List<Any>{nested};
  Show("deep text", Repr(nested).size());
  for (int i = 0; i < 20000; ++i) nested = List<Any>{nested};
  Show("deep equality", Call("ffi.RecursiveEq", nested, Call("ffi.DeepCopy", nested)).cast<bool>());
  Show("deep hash is the copy's", Call("ffi.RecursiveHash", nested).cast<int64_t>() ==
                                      Call("ffi.RecursiveHash", Call("ffi.DeepCopy", nested)).cast<int64_t>());
  while (nested.size() == 1) {
    // One by one, since upstream's library drops them recursively.
    List<Any> next = nested[0].cast<List<Any>>();
    nested = next;
  }
}

void Values() {
  for (const Any& value : {Any(nullptr), Any(true), Any(-7), Any(0.1), Any(1e100), Any(-0.0), Any(100000.0), Any(1234567.0),
                           Any("a\n\x1b[1m\"é€😀"), Any(Bytes("a\"\\\xff", 4)), Any(Shape({1, -2})), Any(Shape(ShapeView(nullptr, 0))),
                           Any(DLDataType{kDLBfloat, 16, 2}), Any(DLDevice{kDLROCM, 3}), Any(Array<Any>{}),
                           Any(Array<Any>{1}), Any(List<Any>{}), Any(static_cast<void*>(nullptr))}) {
    Show("text", Repr(value));
  }
  for (const Any& value : {Any(nullptr), Any(true), Any(-7), Any(0.1), Any(-0.0), Any("text"), Any("a longer string"),
                           Any(Bytes("bytes", 5)), Any(DLDataType{kDLBfloat, 16, 2}), Any(DLDevice{kDLROCM, 3}),
                           Any(std::numeric_limits<double>::quiet_NaN())}) {
    Show("hash of " + Repr(value), Call("ffi.RecursiveHash", value).cast<int64_t>());
  }
  Array<Any> values{nullptr, false, true, -1, 2, 0.5, std::numeric_limits<double>::quiet_NaN(), "a", "b", "a longer string",
                    Bytes("a", 1), Shape({1, 2}), Shape({1}), DLDevice{kDLCPU, 0}, DLDevice{kDLCUDA, 0},
                    DLDataType{kDLInt, 8, 1}, Array<Any>{1}, Array<Any>{1, 2}, List<Any>{1}, Array<Any>{List<Any>{2}}};
  for (const Any& one : values) {
    std::string row;
    for (const Any& other : values) {
      row += Call("ffi.RecursiveEq", one, other).cast<bool>() ? '=' : '.';
      try {
        row += Call("ffi.RecursiveLt", one, other).cast<bool>() ? '<' : ' ';
        row += Call("ffi.RecursiveGe", one, other).cast<bool>() ? '>' : ' ';
      } catch (const Error& error) {
        row += error.kind()[0];
      }
    }
    Show("compared", row);
  }
  BigInt big = BigInt(std::numeric_limits<int64_t>::max()) * BigInt(3);
  for (const Any& other : {Any(big), Any(big + BigInt(1)), Any(5), Any(BigInt(0) - big)}) {
    Show("big", Repr(big) + " " + Repr(other) + " " + std::to_string(Call("ffi.RecursiveEq", big, other).cast<bool>()) +
                    std::to_string(Call("ffi.RecursiveLt", big, other).cast<bool>()) +
                    std::to_string(Call("ffi.RecursiveLt", other, big).cast<bool>()));
  }
  Show("hash of a big one", Call("ffi.RecursiveHash", big).cast<int64_t>());
  Show("copy of a big one", Repr(Call("ffi.DeepCopy", big)));
  ShowError("two types", [] { Call("ffi.RecursiveLt", 1, "text"); });
  ShowError("no number", [] { Call("ffi.RecursiveLt", 1.0, std::numeric_limits<double>::quiet_NaN()); });
  ShowError("copy of a function", [] { Call("ffi.DeepCopy", Function::FromTyped([] { return 1; })); });
}

void Enums() {
  Enum red = EnumObj::_GetByStrIndex<ColourObj>("Red");
  Show("enum", Repr(red) + std::to_string(red->_int_index));
  Show("by number", EnumObj::_GetByIntIndex<ColourObj>(1)->_str_index);
  ShowError("no such value", [] { EnumObj::_GetByStrIndex<ColourObj>("Blue"); });
  ShowError("conversion", [&] { AnyView(refl::TypeAttrColumn(type_attr::kConvert)[InfoOf("ffi.IntEnum")->type_index]).cast<Function>()(red); });
}

void Paths() {
  refl::AccessPath path = refl::AccessPath::Root()->Attr("body")->ArrayItem(3)->MapItem("key")->AttrMissing("gone");
  Show("path", Repr(path));
  Show("step", Repr(path->step.value()));
  Show("same path", Call("ffi.RecursiveEq", path, Call("ffi.DeepCopy", path)).cast<bool>());
}

}  // namespace

int main() {
  Define();
  Types();
  Fields();
  Graphs();
  Values();
  Enums();
  Paths();
}
