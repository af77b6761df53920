// Upstream's C++ functions outside modules. Each calls the global function of its name.

#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/serialization.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_hash.h>
#include <tvm/ffi/extra/visit_error_context.h>

#include <optional>

#include "global.h"

namespace tvm {
namespace ffi {

using tfr::Global;

bool RecursiveEq(const Any& lhs, const Any& rhs) {
  static const Function& function = Global("ffi.RecursiveEq");
  return function(lhs, rhs).cast<bool>();
}

bool RecursiveLt(const Any& lhs, const Any& rhs) {
  static const Function& function = Global("ffi.RecursiveLt");
  return function(lhs, rhs).cast<bool>();
}

bool RecursiveLe(const Any& lhs, const Any& rhs) {
  static const Function& function = Global("ffi.RecursiveLe");
  return function(lhs, rhs).cast<bool>();
}

bool RecursiveGt(const Any& lhs, const Any& rhs) {
  static const Function& function = Global("ffi.RecursiveGt");
  return function(lhs, rhs).cast<bool>();
}

bool RecursiveGe(const Any& lhs, const Any& rhs) {
  static const Function& function = Global("ffi.RecursiveGe");
  return function(lhs, rhs).cast<bool>();
}

int64_t RecursiveHash(const Any& value) {
  static const Function& function = Global("ffi.RecursiveHash");
  return function(value).cast<int64_t>();
}

Any DeepCopy(const Any& value) {
  static const Function& function = Global("ffi.DeepCopy");
  return function(value);
}

String ReprPrint(const Any& value) {
  static const Function& function = Global("ffi.ReprPrint");
  return function(value).cast<String>();
}

json::Value ToJSONGraph(const Any& value, const Any& metadata) {
  static const Function& function = Global("ffi.ToJSONGraph");
  return function(value, metadata);
}

Any FromJSONGraph(const json::Value& value) {
  static const Function& function = Global("ffi.FromJSONGraph");
  return function(value);
}

bool StructuralEqual::Equal(const Any& lhs, const Any& rhs, bool map_free_vars, bool skip_tensor_content) {
  static const Function& function = Global("ffi.StructuralEqual");
  return function(lhs, rhs, map_free_vars, skip_tensor_content).cast<bool>();
}

Optional<reflection::AccessPathPair> StructuralEqual::GetFirstMismatch(const Any& lhs, const Any& rhs,
                                                                       bool map_free_vars, bool skip_tensor_content) {
  static const Function& function = Global("ffi.GetFirstStructuralMismatch");
  return function(lhs, rhs, map_free_vars, skip_tensor_content).cast<Optional<reflection::AccessPathPair>>();
}

uint64_t StructuralHash::Hash(const Any& value, bool map_free_vars, bool skip_tensor_content) {
  static const Function& function = Global("ffi.StructuralHash");
  return static_cast<uint64_t>(function(value, map_free_vars, skip_tensor_content).cast<int64_t>());
}

Array<reflection::AccessPath> VisitErrorContext::FindAccessPaths(const ObjectRef& root,
                                                                 const VisitErrorContext& visit_context,
                                                                 bool allow_prefix_match) {
  static const Function& function = Global("ffi.VisitErrorContext.FindAccessPaths");
  return function(root, visit_context, allow_prefix_match).cast<Array<reflection::AccessPath>>();
}

namespace json {

Value Parse(const String& json_str, String* error_msg) {
  static const Function& function = Global("ffi.json.Parse");
  if (error_msg == nullptr) return function(json_str);
  try {
    Value value = function(json_str);
    *error_msg = String("");
    return value;
  } catch (const Error& error) {
    *error_msg = error.message();
    return Value(nullptr);
  }
}

String Stringify(const Value& value, const Optional<int>& indent) {
  static const Function& function = Global("ffi.json.Stringify");
  return function(value, indent).cast<String>();
}

// The function of version 0.1.12, for TileLang. Its headers passed this `Optional<int>` by reference.
__attribute__((visibility("default"))) String StringifyOfEarlier(const Value& value, const std::optional<int>& indent)
    __asm__("_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE");

String StringifyOfEarlier(const Value& value, const std::optional<int>& indent) {
  return Stringify(value, indent.has_value() ? Optional<int>(*indent) : std::nullopt);
}

}  // namespace json
}  // namespace ffi
}  // namespace tvm
