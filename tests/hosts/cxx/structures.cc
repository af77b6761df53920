// The C++ functions of upstream's library for structures: equality, hashes, first mismatches, graphs as JSON.

#include "../headers/show.h"

#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/serialization.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_hash.h>

using namespace tvm::ffi;

int main() {
  Any one = Array<Any>{1, "two", Map<String, Any>{{"three", 3.5}}, Shape({4, 5})};
  Any same = DeepCopy(one), other = Array<Any>{1, "two", Map<String, Any>{{"three", 4.5}}, Shape({4, 5})};
  Show("equal", StructuralEqual::Equal(one, same));
  Show("not equal", StructuralEqual::Equal(one, other));
  Show("by the functor", StructuralEqual()(one, same));
  Show("hash", StructuralHash::Hash(one));
  Show("the same hash", StructuralHash::Hash(one) == StructuralHash()(same));
  Show("another hash", StructuralHash::Hash(one) == StructuralHash::Hash(other));
  Show("no mismatch", StructuralEqual::GetFirstMismatch(one, same).has_value());
  Optional<reflection::AccessPathPair> mismatch = StructuralEqual::GetFirstMismatch(one, other);
  if (mismatch.has_value()) {
    Show("mismatch", std::string(ReprPrint((*mismatch).get<0>())) + " and " +
                         std::string(ReprPrint((*mismatch).get<1>())));
  }
  json::Value graph = ToJSONGraph(one, Map<String, Any>{{"version", "1"}});
  Show("graph", std::string(json::Stringify(graph)));
  Show("back", StructuralEqual::Equal(one, FromJSONGraph(graph)));
  ShowError("no graph", [] { FromJSONGraph(Array<Any>{1}); });
  ShowError("no node", [] { ToJSONGraph(Any(Function::FromTyped([] {}))); });
}
