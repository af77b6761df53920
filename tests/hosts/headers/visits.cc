// Structural walks, visits, maps and mutations: C++ types with definition regions, variables, shared nodes and hooks,
// visitors and mutators of the headers' templates on the library's containers, and the library's own on C++ types.

#include "show.h"

#include <tvm/ffi/big_int.h>
#include <tvm/ffi/extra/structural_mutate.h>
#include <tvm/ffi/extra/structural_visit.h>
#include <tvm/ffi/extra/visit_error_context.h>
#include <tvm/ffi/reflection/access_path.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/registry.h>

#include <sstream>
#include <vector>

using namespace tvm::ffi;
namespace refl = tvm::ffi::reflection;

namespace {

struct VarObj : public Object {
  String name;
  Any type;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.Var", VarObj, Object);
};

struct NodeObj : public Object {
  Any inside;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindDAGNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.Node", NodeObj, Object);
};

// A function: the parameters are a pattern, and the note doesn't count.
struct FuncObj : public Object {
  Any params;
  Any body;
  Any note;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO("visits.Func", FuncObj, Object);
};

// A child type, whose ancestor's fields come first.
struct NamedFuncObj : public FuncObj {
  String name;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.NamedFunc", NamedFuncObj, FuncObj);
};

struct LetObj : public Object {
  Any var;
  Any value;
  Any body;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.Let", LetObj, Object);
};

// A type with native hooks.
struct PairObj : public Object {
  Any first;
  Any second;
  PairObj(Any first, Any second) : first(std::move(first)), second(std::move(second)) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.Pair", PairObj, Object);
};

// A type whose hooks are function objects.
struct BoxObj : public Object {
  Any inside;
  explicit BoxObj(Any inside) : inside(std::move(inside)) {}
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.Box", BoxObj, Object);
};

// Types that are defined wrongly.
struct WrongHookObj : public Object {
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.WrongHook", WrongHookObj, Object);
};

struct UncopiedObj : public Object {
  Any inside = 1;
  UncopiedObj() = default;
  UncopiedObj(const UncopiedObj&) = delete;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.Uncopied", UncopiedObj, Object);
};

struct SelfCopiedObj : public Object {
  Any inside = 1;
  SelfCopiedObj() = default;
  SelfCopiedObj(const SelfCopiedObj&) = delete;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("visits.SelfCopied", SelfCopiedObj, Object);
};

template <typename T>
ObjectRef Ref(ObjectPtr<T> object) {
  return ObjectRef(ObjectPtr<Object>(std::move(object)));
}

ObjectRef Var(String name, Any type = nullptr) {
  auto object = make_object<VarObj>();
  object->name = std::move(name);
  object->type = std::move(type);
  return Ref(object);
}

ObjectRef Node(Any inside) {
  auto object = make_object<NodeObj>();
  object->inside = std::move(inside);
  return Ref(object);
}

ObjectRef Func(Any params, Any body, Any note = nullptr) {
  auto object = make_object<NamedFuncObj>();
  object->params = std::move(params);
  object->body = std::move(body);
  object->note = std::move(note);
  object->name = "f";
  return Ref(object);
}

ObjectRef Let(Any var, Any value, Any body) {
  auto object = make_object<LetObj>();
  object->var = std::move(var);
  object->value = std::move(value);
  object->body = std::move(body);
  return Ref(object);
}

ObjectRef Pair(Any first, Any second) { return Ref(make_object<PairObj>(std::move(first), std::move(second))); }

ObjectRef Box(Any inside) { return Ref(make_object<BoxObj>(std::move(inside))); }

// Which hooks ran, in order.
std::string hooks;

Expected<Optional<VisitInterrupt>> VisitPair(StructuralVisitorObj* visitor, AnyView value) noexcept {
  hooks += "visit;";
  const auto* self = value.cast<const PairObj*>();
  TVM_FFI_S_VISIT_MAYBE_EARLY_RETURN(visitor->VisitExpected(self->second));
  return visitor->WithDefRegionKind(kTVMFFIDefRegionKindSimple, [&] { return visitor->VisitExpected(self->first); });
}

Expected<UnchangedOr<Any>> MutatePair(StructuralMutatorObj* mutator, AnyView value) noexcept {
  hooks += "mutate;";
  const auto* self = value.cast<const PairObj*>();
  TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(UnchangedOr<Any>, second, mutator->MutateExpected(self->second));
  TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(UnchangedOr<Any>, first, mutator->MutateExpected(self->first));
  if (first.UnchangedOrSameAs(self->first) && second.UnchangedOrSameAs(self->second)) return Unchanged();
  return Any(Pair(std::move(first).ValueOrUnchanged(self->first), std::move(second).ValueOrUnchanged(self->second)));
}

Expected<UnchangedOr<Any>> MutatePairInPlace(StructuralMutatorObj* mutator, AnyView value) noexcept {
  hooks += "in place;";
  auto* self = const_cast<PairObj*>(value.cast<const PairObj*>());
  for (Any* field : {&self->second, &self->first}) {
    TVM_FFI_S_MUTATE_ASSIGN_OR_RETURN(UnchangedOr<Any>, mapped,
                                      mutator->MutateExpected(*field, InplaceMode::kAllow));
    if (!mapped.UnchangedOrSameAs(*field)) *field = std::move(mapped).ValueUnchecked();
  }
  return Unchanged();
}

void Define() {
  auto pattern = refl::AttachFieldFlag::SEqHashDefPattern();
  auto simple = refl::AttachFieldFlag::SEqHashDefSimple();
  auto ignored = refl::AttachFieldFlag::SEqHashIgnore();
  refl::ObjectDef<VarObj>().def_rw("name", &VarObj::name).def_rw("type", &VarObj::type);
  refl::ObjectDef<NodeObj>().def_rw("inside", &NodeObj::inside);
  refl::ObjectDef<FuncObj>()
      .def_rw("params", &FuncObj::params, pattern)
      .def_rw("body", &FuncObj::body)
      .def_rw("note", &FuncObj::note, ignored);
  refl::ObjectDef<NamedFuncObj>().def_rw("name", &NamedFuncObj::name);
  refl::ObjectDef<LetObj>()
      .def_rw("var", &LetObj::var, simple)
      .def_rw("value", &LetObj::value)
      .def_rw("body", &LetObj::body);
  refl::ObjectDef<PairObj>(refl::init(false)).def_ro("first", &PairObj::first).def_ro("second", &PairObj::second);
  refl::TypeAttrDef<PairObj>()
      .native_fn_attr<&VisitPair>(type_attr::kStructuralVisit)
      .native_fn_attr<&MutatePair>(type_attr::kStructuralMutate)
      .native_fn_attr<&MutatePairInPlace>(type_attr::kStructuralMaybeInplaceMutate);
  refl::ObjectDef<BoxObj>(refl::init(false)).def_ro("inside", &BoxObj::inside);
  refl::TypeAttrDef<BoxObj>()
      .def("__s_visit__",
           [](const StructuralVisitor& visitor, const ObjectRef& box) {
             hooks += "visit box;";
             Any inside = box.as<BoxObj>()->inside;
             return Call("ffi.StructuralVisitorVisit", visitor, inside).cast<Optional<VisitInterrupt>>();
           })
      .def("__s_mutate__", [](const StructuralMutator& mutator, const ObjectRef& box) -> Any {
        hooks += "mutate box;";
        Any before = box.as<BoxObj>()->inside;
        Any after = Call("ffi.StructuralMutatorMutate", mutator, before);
        return after.same_as(before) ? Any(box) : Any(Box(after));
      });
  refl::ObjectDef<WrongHookObj>();  // NOLINT(bugprone-unused-raii)
  refl::TypeAttrDef<WrongHookObj>().attr("__s_visit__", 1).attr("__s_mutate__", 1);
  refl::ObjectDef<UncopiedObj>().def_ro("inside", &UncopiedObj::inside);
  refl::ObjectDef<SelfCopiedObj>().def_ro("inside", &SelfCopiedObj::inside);
  refl::TypeAttrDef<SelfCopiedObj>().def("__ffi_shallow_copy__", [](const ObjectRef& self) { return self; });
}

// The text of a value, with a number for each object, so that shared ones are seen.
class Writer {
 public:
  std::string Text(const AnyView& value) {
    if (auto number = value.as<int64_t>(); number && value.type_index() == TypeIndex::kTVMFFIInt) {
      return std::to_string(*number);
    }
    if (value.as<String>() || value.as<Bytes>() || value.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) {
      return Call("ffi.ReprPrint", value).cast<std::string>();
    }
    ObjectRef object = value.cast<ObjectRef>();
    for (size_t i = 0; i < known_.size(); ++i) {
      if (known_[i].same_as(object)) return "#" + std::to_string(i);
    }
    std::ostringstream out;
    out << object->GetTypeKey() << "#" << known_.size() << "(";
    known_.push_back(object);
    if (auto array = value.as<Array<Any>>()) {
      for (const Any& item : *array) out << Text(item) << " ";
    } else if (auto list = value.as<List<Any>>()) {
      for (const Any& item : *list) out << Text(item) << " ";
    } else if (auto map = value.as<Map<Any, Any>>()) {
      for (const auto& [key, item] : *map) out << Text(key) << ":" << Text(item) << " ";
    } else if (auto dict = value.as<Dict<Any, Any>>()) {
      for (const auto& [key, item] : *dict) out << Text(key) << ":" << Text(item) << " ";
    } else {
      refl::ForEachFieldInfo(TVMFFIGetTypeInfo(object->type_index()), [&](const TVMFFIFieldInfo* field) {
        out << Text(refl::FieldGetter(field)(object)) << " ";
      });
    }
    return out.str() + ")";
  }

 private:
  std::vector<ObjectRef> known_;
};

std::string Text(const AnyView& value) { return Writer().Text(value); }

template <typename T>
std::string Same(const T& one, const Any& other) {
  return other.same_as(one) ? "same" : "different";
}

// Values with everything in them.
std::vector<Any> Samples() {
  ObjectRef x = Var("x"), y = Var("y", Array<Any>{1, "a type"}), shared = Node(Array<Any>{x, 2});
  Map<Any, Any> map{{"one", 1}, {"two", Array<Any>{2, y}}, {x, x}, {3, "three"}, {"five", shared}, {"six", 6}};
  Dict<Any, Any> dict{{"one", 1}, {"two", List<Any>{2, shared}}};
  return {
      Any(nullptr),
      Any(5),
      Any("short"),
      Any(String("a text of more than seven bytes")),
      Any(Array<Any>{1, 2.5, "text", nullptr, true, DLDevice{kDLCPU, 0}}),
      Any(List<Any>{Array<Any>{}, List<Any>{1}, map, dict}),
      Any(map),
      Any(dict),
      Any(x),
      Any(Array<Any>{x, y, x, shared, shared}),
      Any(Func(Array<Any>{x, y}, Array<Any>{y, x, Var("free")}, Var("note"))),
      Any(Let(x, y, Array<Any>{x, y})),
      Any(Let(y, 1, Func(y, Let(x, y, Array<Any>{x, y})))),
      Any(Func(Pair(x, y), Pair(y, Array<Any>{x}))),
      Any(Let(Pair(x, Box(y)), Box(x), Box(Box(Array<Any>{y})))),
      Any(Array<Any>{Node(shared), shared, Node(Let(x, shared, y))}),
  };
}

std::string Interrupted(const Optional<VisitInterrupt>& result) {
  return result ? "interrupt " + Text((*result)->value) : "completed";
}

// The pattern of an error, and the paths in a value that it leads to.
void ShowContext(const Error& error, const Any& root) {
  Optional<VisitErrorContext> context = VisitErrorContext::TryGetFromError(error);
  if (!context) return Show("  context", "none");
  std::string pattern;
  for (const ObjectRef& object : (*context)->reverse_visit_pattern) pattern += object->GetTypeKey() + " ";
  Show("  pattern", pattern);
  Show("  before", Text((*context)->prev_error_context));
  auto object = root.as<ObjectRef>();
  if (!object) return;
  for (bool with_prefixes : {false, true}) {
    auto paths = Call("ffi.VisitErrorContext.FindAccessPaths", *object, *context, with_prefixes);
    Show(with_prefixes ? "  prefixes" : "  paths", Call("ffi.ReprPrint", paths).cast<std::string>());
  }
}

// Runs `body` and prints its result, or its error with the context.
template <typename Body>
void Try(const std::string& what, const Any& root, Body body) {
  hooks.clear();
  try {
    Show(what, body());
  } catch (const Error& error) {
    Show(what, error.kind() + ": " + error.message());
    ShowContext(error, root);
  }
  if (!hooks.empty()) Show("  hooks", hooks);
}

using Entry = Tuple<int32_t, Function>;
using MutateEntry = Tuple<int32_t, Function, bool>;

int32_t IndexOf(const std::string& key) {
  TVMFFIByteArray bytes{key.data(), key.size()};
  int32_t index = 0;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeKeyToIndex(&bytes, &index));
  return index;
}

// The library's walk, with callbacks that record what they get.
void WalkByLibrary(const Any& root, int order, int64_t skipped, bool stops, bool fails) {
  std::string events;
  Function plain = Function::FromTyped([&](const Any& value) -> Any {
    events += "v" + Text(value).substr(0, 20) + ";";
    if (fails) TVM_FFI_THROW(ValueError) << "stopped by an error";
    if (stops) return VisitInterrupt(value);
    return skipped;
  });
  Function with_region = Function::FromTyped([&](const Any& value, int region) {
    events += "r" + std::to_string(region) + Text(value).substr(0, 20) + ";";
  });
  Array<Entry> first{Entry(TypeIndex::kTVMFFIStr, plain), Entry(IndexOf("visits.Let"), plain)};
  Array<Entry> second{Entry(IndexOf("visits.Func"), with_region), Entry(TypeIndex::kTVMFFIAny, with_region)};
  Try("walk", root, [&] {
    auto result = Call("ffi.StructuralWalk", root, first, second, order).cast<Optional<VisitInterrupt>>();
    return Interrupted(result);
  });
  Show("  events", events);
}

// A walk of the headers' engine, whose visitor calls the library's hooks.
template <WalkOrder order>
void WalkByHeaders(const Any& root, int64_t limit) {
  std::string events;
  int64_t count = 0;
  auto on_text = [&](const String& text) -> Expected<WalkResult> {
    events += "t" + std::string(text) + ";";
    return WalkResult::Skip();
  };
  auto on_any = [&](AnyView value, TVMFFIDefRegionKind region) -> Expected<WalkResult> {
    events += "r" + std::to_string(region) + Text(value).substr(0, 20) + ";";
    if (++count == limit) return WalkResult::Interrupt(VisitInterrupt(Any(value)));
    if (count == 2 * limit - 3) TVM_FFI_VISIT_THROW(ValueError, Var("throw site")) << "at " << count;
    return WalkResult::Advance();
  };
  Try("walk of the headers", root, [&] { return Interrupted(StructuralWalk<order>(root, on_text, on_any)); });
  Show("  events", events);
}

void Visits(const Any& root) {
  std::string events;
  Function on_let = Function::FromTyped([&](const ObjectRef& let, const StructuralVisitor& visitor) -> Any {
    events += "let" + std::to_string(visitor->def_region_kind()) + ";";
    Call("ffi.StructuralVisitorVisit", visitor, let.as<LetObj>()->body);
    Function inside = Function::FromTyped([&] {
      events += "in" + std::to_string(Call("ffi.StructuralVisitorDefRegionKind", visitor).cast<int>()) + ";";
      return Call("ffi.StructuralVisitorDefaultVisit", visitor, let);
    });
    return Call("ffi.StructuralVisitorWithDefRegionKind", visitor, int(kTVMFFIDefRegionKindPattern), inside);
  });
  Function on_var = Function::FromTyped([&](const ObjectRef&, const StructuralVisitor& visitor) {
    events += "var" + std::to_string(visitor->def_region_kind()) + ";";
  });
  Array<Entry> entries{Entry(IndexOf("visits.Let"), on_let), Entry(IndexOf("visits.Var"), on_var)};
  Try("visit", root, [&] {
    return Interrupted(Call("ffi.StructuralVisit", root, entries).cast<Optional<VisitInterrupt>>());
  });
  Show("  events", events);
  events.clear();
  // The visitor of the headers' engine, used by the library's functions.
  Try("visit of the headers", root, [&] {
    return Interrupted(StructuralVisit(
        root,
        [&](const String& text, StructuralVisitorObj*) -> Expected<Optional<VisitInterrupt>> {
          events += "t" + std::string(text) + ";";
          if (text == "three") return VisitInterrupt("found");
          return Optional<VisitInterrupt>(std::nullopt);
        },
        [&](AnyView value, StructuralVisitorObj* self) -> Expected<Optional<VisitInterrupt>> {
          StructuralVisitor visitor = GetRef<StructuralVisitor>(self);
          int region = Call("ffi.StructuralVisitorDefRegionKind", visitor).cast<int>();
          events += std::to_string(region) + Text(value).substr(0, 12) + ";";
          return Call("ffi.StructuralVisitorDefaultVisit", visitor, value).cast<Optional<VisitInterrupt>>();
        }));
  });
  Show("  events", events);
}

// Callbacks of maps: numbers grow, and a variable of the name `x` gets another one.
Any Grown(const Any& value) {
  if (value.type_index() == TypeIndex::kTVMFFIInt) return value.cast<int64_t>() + 10;
  if (auto object = value.as<ObjectRef>()) {
    const auto* var = object->as<VarObj>();
    if (var != nullptr && var->name == "x") return Var("x2", var->type);
  }
  return value;
}

void MapByLibrary(const Any& root, int order) {
  std::string events;
  Function plain = Function::FromTyped(Grown);
  Function with_region = Function::FromTyped([&](const Any& value, int region) -> Any {
    events += std::to_string(region) + ";";
    if (auto text = value.as<String>(); text && *text == "three") TVM_FFI_THROW(IndexError) << "a three";
    return Grown(value);
  });
  Array<Entry> first{Entry(TypeIndex::kTVMFFIInt, plain)};
  Array<Entry> second{Entry(IndexOf("visits.Var"), with_region), Entry(TypeIndex::kTVMFFIStr, with_region)};
  std::string before = Text(root);
  Try("map", root, [&] {
    Any mapped = Call("ffi.StructuralMap", root, first, second, order);
    return Text(Array<Any>{root, mapped}) + " " + Same(root, mapped);
  });
  Show("  kept", before == Text(root));
  Show("  events", events);
}

template <WalkOrder order>
void MapByHeaders(const Any& root) {
  Try("map of the headers", root, [&] {
    Any mapped = StructuralMap<order>(
        root, [](int64_t number) -> Any { return number + 1; },
        [](const String& text) -> Expected<Any> {
          if (text == "three") return Unexpected(Error("IndexError", "a three", ""));
          return Any(text);
        },
        [](AnyView) { return Unchanged(); });
    return Text(Array<Any>{root, mapped}) + " " + Same(root, mapped);
  });
}

// Mutators of the library and of the headers, with their modes, regions and replacements.
void Mutations(const Any& root) {
  std::string events;
  Function on_var = Function::FromTyped([&](const ObjectRef& var, const StructuralMutator& mutator) -> Any {
    Any known = Call("ffi.StructuralMutatorVarRemapGet", mutator, var);
    events += std::to_string(Call("ffi.StructuralMutatorDefRegionKind", mutator).cast<int>()) + ";";
    if (known != nullptr) return known;
    if (mutator->def_region_kind() == kTVMFFIDefRegionKindNone) return var;
    const auto* self = var.as<VarObj>();
    ObjectRef fresh = Var(self->name + "'", Call("ffi.StructuralMutatorMutate", mutator, self->type));
    Call("ffi.StructuralMutatorVarRemapSet", mutator, var, fresh);
    return fresh;
  });
  Function on_number = Function::FromTyped([&](const Any& value, const StructuralMutator& mutator, int mode) -> Any {
    events += "m" + std::to_string(mode) + ";";
    Function body = Function::FromTyped([&] { return Call("ffi.StructuralMutatorDefaultMutate", mutator, value); });
    return Call("ffi.StructuralMutatorWithDefRegionKind", mutator, int(kTVMFFIDefRegionKindSimple), body);
  });
  Function on_array = Function::FromTyped([&](const Any& value, const StructuralMutator& mutator, int mode) -> Any {
    events += "a" + std::to_string(mode) + ";";
    return Call("ffi.StructuralMutatorDefaultMutate", mutator, value);
  });
  Array<MutateEntry> entries{MutateEntry(IndexOf("visits.Var"), on_var, false),
                             MutateEntry(TypeIndex::kTVMFFIInt, on_number, true),
                             MutateEntry(TypeIndex::kTVMFFIArray, on_array, true)};
  Try("mutate", root, [&] {
    Any mutated = Call("ffi.StructuralMutate", root, entries);
    return Text(Array<Any>{root, mutated}) + " " + Same(root, mutated);
  });
  Show("  events", events);
  events.clear();
  // The mutator of the headers' engine, used by the library's functions.
  Try("mutate of the headers", root, [&] {
    Any mutated = StructuralMutate(
        root, [](int64_t number, StructuralMutatorObj*) -> Any { return number + 1; },
        [&](AnyView value, StructuralMutatorObj* self, InplaceMode mode) -> Expected<Any> {
          StructuralMutator mutator = GetRef<StructuralMutator>(self);
          events += std::to_string(static_cast<int>(mode)) +
                    std::to_string(Call("ffi.StructuralMutatorDefRegionKind", mutator).cast<int>()) + ";";
          return Call("ffi.StructuralMutatorDefaultMutate", mutator, value);
        });
    return Text(Array<Any>{root, mutated}) + " " + Same(root, mutated);
  });
  Show("  events", events);
}

// A container of containers, each of which only its own container refers to.
List<Any> Owned() {
  Map<Any, Any> map{{"one", 1}, {"two", Array<Any>{2}}, {"three", 3}, {"four", 4}, {"five", 5}};
  return List<Any>{Array<Any>{1, List<Any>{2}}, map, Dict<Any, Any>{{"k", Array<Any>{3}}}, Pair(Array<Any>{4}, Box(5)),
                   Func(Array<Any>{Var("x")}, Array<Any>{6})};
}

std::vector<const Object*> Identities(const List<Any>& list) {
  std::vector<const Object*> found{list.get()};
  for (const Any& item : list) found.push_back(item.as<Object>());
  return found;
}

std::string Compare(const std::vector<const Object*>& before, const Any& result) {
  std::vector<const Object*> after = Identities(result.cast<List<Any>>());
  std::string text;
  for (size_t i = 0; i < before.size() && i < after.size(); ++i) text += before[i] == after[i] ? "same " : "different ";
  return text;
}

void InPlace() {
  Function grow = Function::FromTyped([](int64_t number) { return number + 1; });
  Function pass = Function::FromTyped([](const Any& value) { return value; });
  Array<Entry> grown{Entry(TypeIndex::kTVMFFIInt, grow)};
  Array<Entry> all{Entry(TypeIndex::kTVMFFIInt, grow), Entry(TypeIndex::kTVMFFIAny, pass)};
  for (int order : {0, 1}) {
    for (const auto& entries : {grown, all}) {
      List<Any> root = Owned();
      auto before = Identities(root);
      Try("in place", nullptr, [&] {
        Any result = Call("ffi.StructuralMap", RValueRef<List<Any>>(std::move(root)), entries, Array<Entry>{}, order);
        return Text(result) + " " + Compare(before, result);
      });
      List<Any> kept = Owned();
      before = Identities(kept);
      Try("not in place", nullptr, [&] {
        Any result = Call("ffi.StructuralMap", kept, entries, Array<Entry>{}, order);
        return Text(Array<Any>{kept, result}) + " " + Compare(before, result);
      });
    }
  }
  for (bool takes_mode : {false, true}) {
    std::string modes;
    Function on_number = Function::FromTyped([](int64_t number, const ObjectRef&) { return number + 1; });
    Function on_any = Function::FromTyped([&](const Any& value, const StructuralMutator& mutator, int mode) {
      modes += value.GetTypeKey() + std::to_string(mode) + ";";
      return Call("ffi.StructuralMutatorDefaultMutate", mutator, value);
    });
    Array<MutateEntry> entries{MutateEntry(TypeIndex::kTVMFFIInt, on_number, false)};
    if (takes_mode) entries.push_back(MutateEntry(TypeIndex::kTVMFFIAny, on_any, true));
    List<Any> root = Owned();
    auto before = Identities(root);
    Try("mutate in place by the library", nullptr, [&] {
      Any result = Call("ffi.StructuralMutate", RValueRef<List<Any>>(std::move(root)), entries);
      return Text(result) + " " + Compare(before, result);
    });
    Show("  modes", modes);
  }
  List<Any> root = Owned();
  auto before = Identities(root);
  Try("in place by headers", nullptr, [&] {
    auto on_number = [](int64_t number) -> Any { return number + 1; };
    Any result = StructuralMap<WalkOrder::kPostOrder>(std::move(root), on_number);
    return Text(result) + " " + Compare(before, result);
  });
  root = Owned();
  before = Identities(root);
  Any element = root[0];
  Try("one element is shared", nullptr, [&] {
    Any result = StructuralMap<WalkOrder::kPreOrder>(std::move(root), [](int64_t number) -> Any { return number + 1; });
    return Text(Array<Any>{element, result}) + " " + Compare(before, result);
  });
  root = Owned();
  before = Identities(root);
  Try("in place until an error", nullptr, [&] {
    const Object* changed = root.get();
    std::string seen;
    auto on_number = [&](int64_t number) -> Expected<Any> {
      if (number < 5) return Any(number + 1);
      seen = Text(GetRef<ObjectRef>(changed));
      return Unexpected(Error("ValueError", "a five", ""));
    };
    auto result = StructuralMapExpected<WalkOrder::kPostOrder>(Any(std::move(root)), on_number);
    return seen + " " + (result.is_err() ? result.error().message() : "no error");
  });
  root = Owned();
  before = Identities(root);
  std::string modes;
  Try("mutate in place", nullptr, [&] {
    Any result = StructuralMutate(
        std::move(root), [](int64_t number, StructuralMutatorObj*) -> Any { return number + 1; },
        [&](AnyView value, StructuralMutatorObj* mutator, InplaceMode mode) -> Expected<UnchangedOr<Any>> {
          modes += value.GetTypeKey() + std::to_string(static_cast<int>(mode)) + ";";
          return mutator->DefaultMutateExpected(value, mode);
        });
    return Text(result) + " " + Compare(before, result);
  });
  Show("  modes", modes);
}

// The library's functions with the wrong values, and types that are defined wrongly.
void Errors() {
  Function pass = Function::FromTyped([](const Any& value) { return value; });
  Array<Entry> entries{Entry(TypeIndex::kTVMFFIAny, pass)};
  Array<Entry> none;
  std::vector<Any> roots{Any(Ref(make_object<WrongHookObj>())), Any(Ref(make_object<UncopiedObj>())),
                         Any(Ref(make_object<SelfCopiedObj>())), Any(Array<Any>{Shape({1, 2})}),
                         Any(Map<Any, Any>{{"key", pass}})};
  for (const Any& root : roots) {
    Try("wrong walk", root, [&] {
      return Interrupted(Call("ffi.StructuralWalk", root, none, none, 1).cast<Optional<VisitInterrupt>>());
    });
    Try("wrong map", root, [&] { return Text(Call("ffi.StructuralMap", root, entries, none, 1)); });
    Try("wrong map of the headers", root,
        [&] { return Text(StructuralMap<WalkOrder::kPreOrder>(root, [](int64_t number) -> Any { return number; })); });
  }
  Error inner("ValueError", "with a context", "", std::nullopt, Var("earlier"));
  Function fail = Function::FromTyped([&](const Any&) -> Any { throw inner; });
  Any root = Func(Array<Any>{}, Let(1, Node(Var("y")), Pair(1, Var("y"))));
  Array<Entry> failing{Entry(IndexOf("visits.Var"), fail)};
  Try("an error with a context", root, [&] { return Text(Call("ffi.StructuralWalk", root, failing, none, 0)); });
  Function build = Function::FromTyped(
      [](const Any& value) { return Error("TypeError", "returned " + value.GetTypeKey(), ""); });
  Array<Entry> returning{Entry(IndexOf("visits.Var"), build)};
  Try("an error as a result", root, [&] { return Text(Call("ffi.StructuralWalk", root, returning, none, 1)); });
  Try("an error as a replacement", root, [&] { return Text(Call("ffi.StructuralMap", root, returning, none, 1)); });
}

Optional<refl::AccessPath> ParentOf(const refl::AccessPath& path) {
  if (!path->parent) return std::nullopt;
  return Any(path->parent.value()).cast<refl::AccessPath>();
}

// A tree in which the same node occurs at several places, and paths to it.
void Paths() {
  ObjectRef leaf = Node(1), wrapped = Node(leaf);
  Any root = Let(wrapped, Func(Array<Any>{1, wrapped, Map<Any, Any>{{"k", wrapped}, {3, leaf}}}, leaf),
                 Dict<Any, Any>{{Var("key"), List<Any>{Node(2), wrapped}}});
  auto context = make_object<VisitErrorContextObj>();
  auto show = [&](const std::string& what, List<ObjectRef> pattern) {
    context->reverse_visit_pattern = std::move(pattern);
    for (bool with_prefixes : {false, true}) {
      VisitErrorContext given(context);
      Any found = Call("ffi.VisitErrorContext.FindAccessPaths", root, given, with_prefixes);
      auto paths = found.cast<Array<Any>>();
      Show(what, Call("ffi.ReprPrint", paths).cast<std::string>());
      // Paths that begin alike share their beginning.
      std::vector<ObjectRef> known;
      for (const Any& path : paths) {
        for (auto place = path.cast<Optional<refl::AccessPath>>(); place; place = ParentOf(*place)) {
          bool is_new = true;
          for (const ObjectRef& other : known) is_new &= !other.same_as(*place);
          if (is_new) known.push_back(*place);
        }
      }
      Show("  objects", known.size());
    }
  };
  ObjectRef absent = Node(3);
  show("one", {leaf});
  show("two", {leaf, wrapped});
  show("repeated", {leaf, leaf, wrapped, wrapped});
  show("with nothing", {leaf, ObjectRef(nullptr), leaf, wrapped});
  show("root", {root.cast<ObjectRef>()});
  show("absent inside", {absent, wrapped});
  show("absent outside", {leaf, absent});
  show("empty", {});
  show("from the root", {leaf, root.cast<ObjectRef>()});
}

// The types of the library, and its hooks as columns.
void Types() {
  for (std::string key : {"ffi.StructuralVisitor", "ffi.VisitErrorContext", "ffi.StructuralMutator"}) {
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(IndexOf(key));
    const TVMFFITypeMetadata& metadata = *info->metadata;
    Show(key, std::to_string(metadata.total_size) + " " + std::to_string(metadata.structural_eq_hash_kind) + " " +
                  std::to_string(metadata.creator != nullptr));
    for (int32_t i = 0; i < info->num_fields; ++i) {
      const TVMFFIFieldInfo& field = info->fields[i];
      Show("  " + std::string(field.name.data, field.name.size),
           std::string(field.metadata.data, field.metadata.size) + " " + std::to_string(field.flags) + " " +
               std::to_string(field.size) + " " + std::to_string(field.alignment) + " " + std::to_string(field.offset) +
               " " + std::to_string(field.field_static_type_index));
    }
  }
  for (const char* attribute : {"__s_visit__", "__s_mutate__", "__s_maybe_inplace_mutate__"}) {
    refl::TypeAttrColumn column(attribute);
    std::string keys;
    for (int32_t index = 0; index < TypeIndex::kTVMFFIDynObjectBegin; ++index) {
      AnyView value = column[index];
      if (value != nullptr) keys += std::to_string(index) + ":" + value.GetTypeKey() + " ";
    }
    Show(attribute, keys);
  }
}

}  // namespace

int main() {
  Define();
  Types();
  int64_t number = 0;
  for (const Any& root : Samples()) {
    Show("sample", Text(root));
    WalkByLibrary(root, 0, number % 2, number % 5 == 4, number % 7 == 6);
    WalkByLibrary(root, 1, 0, number % 5 == 3, number % 7 == 5);
    WalkByHeaders<WalkOrder::kPreOrder>(root, number);
    WalkByHeaders<WalkOrder::kPostOrder>(root, 4);
    Visits(root);
    MapByLibrary(root, 0);
    MapByLibrary(root, 1);
    MapByHeaders<WalkOrder::kPreOrder>(root);
    MapByHeaders<WalkOrder::kPostOrder>(root);
    Mutations(root);
    ++number;
  }
  InPlace();
  Errors();
  Paths();
}
