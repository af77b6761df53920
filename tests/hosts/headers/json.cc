// JSON texts that the library reads and writes.

#include "show.h"

#include <tvm/ffi/container/dict.h>

#include <limits>

using namespace tvm::ffi;

namespace {

std::string Escaped(const std::string& text) { return Call("ffi.ReprPrint", String(text)).cast<std::string>(); }

void Parse(const std::string& text) {
  ShowError("parse " + Escaped(text), [&] {
    Show("value", Call("ffi.ReprPrint", Call("ffi.json.Parse", String(text))).cast<std::string>());
  });
}

template <typename... Args>
void Write(const Any& value, Args... indent) {
  ShowError("write", [&] { Show("text", Call("ffi.json.Stringify", value, indent...).template cast<std::string>()); });
}

}  // namespace

int main() {
  for (const char* text :
       {"null", "true", "false", " 1 ", "-12", "+5", "007", "1.0", "1e3", "-0", "-0.0", "9223372036854775807",
        "9223372036854775808", "-9223372036854775809", "1e308", "1e309", "3e-308", "1e-400", "0e-999", ".5", "5.", "1e", "-", "1-2", "--1", "e5",
        "NaN", "Infinity", "-Infinity", "-Inf", "Inf", "Nan", "nul", "tru", "falsy", "nullx", "", "  ", "\n\n x", "[", "[1", "[1,", "[1,]",
        "[1 2]", "[]", "[ ]", "[1, [2, []], 3]", "{", "{}", "{ }", "{1: 2}", "{\"a\"}", "{\"a\":", "{\"a\": 1", "{\"a\": 1,",
        "{\"a\": 1,}", "{\"a\" 1}", "{\"a\": 1 \"b\": 2}", "[1}", "{\"a\": 1]", "1 2", "[] x", "{} ]", "\"text\"", "\"", "\"abc",
        "\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\te\"", "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "\"\\ud83d\"", "\"\\ude00\"",
        "\"\\ud83d\\u0041\"", "\"\\u12g4\"", "\"\\u12", "\"\\x\"", "\"\\", "\"a\nb\"", "\"a\tb\"", "\"\xc3\xa9\xff\"", "'a'", "[1,\n  2,\n x]"}) {
    Parse(text);
  }
  Parse(std::string("\"a\0b\"", 5));
  Any parsed = Call("ffi.json.Parse", "{\"b\": [1, 2.5, {}], \"a\": {\"c\": null}, \"b\": \"again\"}");
  Write(parsed);
  Write(parsed, nullptr);
  for (const Any& value : {Any(nullptr), Any(true), Any(-7), Any(0.1), Any(3.0), Any(-0.0), Any(1e15), Any(1e17), Any(1e300), Any(5e-324),
                           Any(std::numeric_limits<double>::quiet_NaN()), Any(std::numeric_limits<double>::infinity()),
                           Any(-std::numeric_limits<double>::infinity()), Any("a\"\\/\b\f\n\r\t\x01\x7fé"), Any(Array<Any>{}),
                           Any(List<Any>{1, Array<Any>{2}}), Any(DLDevice{kDLCPU, 0}), Any(Bytes("b", 1)), Any(Shape({1}))}) {
    Write(value, nullptr);
  }
  Any nested = Array<Any>{1, Array<Any>{}, List<Any>{2, Array<Any>{3}}};
  for (int indent : {0, 1, 2, 4}) Write(nested, indent);
  Write(nested, "two");
  List<Any> cycle;
  cycle.push_back(Array<Any>{cycle});
  Write(cycle, nullptr);
  List<Any> twice;
  Write(Array<Any>{twice, twice}, nullptr);
  Write(Call("ffi.Dict", "a", 1), nullptr);
  Write(Call("ffi.Map", 1, 2), nullptr);
  Write(Call("ffi.Map", "a", Call("ffi.Map"), "b", Array<Any>{1}), 2);
}
