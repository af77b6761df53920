// The C++ functions of upstream's library that are no methods of modules.

#include "../headers/show.h"

#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/extra/json.h>

#include <dlfcn.h>

#include <optional>

using namespace tvm::ffi;

namespace {

// The function of version 0.1.12, which our library has for programs on its headers. Upstream's has it no more.
void EarlierStringify(const Any& value) {
  using Stringify = String (*)(const json::Value&, const std::optional<int>&);
  void* symbol = dlsym(RTLD_DEFAULT, "_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE");
  auto stringify = reinterpret_cast<Stringify>(symbol);
  Show("earlier function", stringify == nullptr || (stringify(value, 2) == json::Stringify(value, 2) &&
                                                    stringify(value, std::nullopt) == json::Stringify(value)));
}

}  // namespace

int main() {
  Any one = Array<Any>{1, "two", Map<String, Any>{{"three", 3.5}}}, same = DeepCopy(one), more = Array<Any>{1, "tz"};
  Show("copy is another object", !one.cast<Array<Any>>().same_as(same.cast<Array<Any>>()));
  Show("equal", RecursiveEq(one, same));
  Show("hash", RecursiveHash(one) == RecursiveHash(same));
  Show("order", std::to_string(RecursiveLt(one, more)) + std::to_string(RecursiveLe(one, more)) +
                    std::to_string(RecursiveGt(one, more)) + std::to_string(RecursiveGe(one, more)));
  ShowError("no order", [&] { RecursiveLt(one, Any(Function::FromTyped([] {}))); });
  Show("text", std::string(ReprPrint(one)));
  std::cout << "stream: " << one << '\n';
  Show("json", std::string(json::Stringify(one)));
  Show("indented", std::string(json::Stringify(one, 2)));
  EarlierStringify(one);
  ShowError("no json", [] { json::Stringify(Any(Function::FromTyped([] {}))); });
  Show("parsed", std::string(ReprPrint(json::Parse("[1, {\"a\": null}]"))));
  ShowError("broken", [] { json::Parse("[1,"); });
  String message("before");
  Show("no error", std::string(ReprPrint(json::Parse("{}", &message))) + std::string(message));
  Show("an error", std::string(ReprPrint(json::Parse("{\"a\"}", &message))) + ", " + std::string(message));
}
