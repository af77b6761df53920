// Backtraces of C functions, and how many lines `TVM_TRACEBACK_LIMIT` leaves. The library under test records whole
// stacks, as upstream's always does.

#include <cstdlib>

#include "show.h"

namespace {

// The lines of this program's functions. The lines of the program's start differ, and so does the last line of
// upstream's: its stack ends with an address of no code.
std::string OwnLines(const TVMFFIByteArray& backtrace) {
  std::string text(backtrace.data, backtrace.size), own;
  size_t start = 0, lines = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1, ++lines) {
    std::string line = text.substr(start, end - start);
    if (line.find("in Leaf") != std::string::npos || line.find("in Deep") != std::string::npos) own += line + ";";
  }
  return (lines > 100 ? "many lines: " : "") + own;
}

}  // namespace

extern "C" {

__attribute__((noinline)) std::string LeafTrace(bool named, int across) {
  const char* file = named ? "place.cc" : nullptr;
  return OwnLines(*TVMFFIBacktrace(file, named ? 7 : 0, named ? "Leaf" : nullptr, across));
}

__attribute__((noinline)) std::string DeepTrace(int depth, bool named, int across) {
  return depth == 0 ? LeafTrace(named, across) : DeepTrace(depth - 1, named, across);
}

__attribute__((noinline)) void LeafRaise() { TVMFFIErrorSetRaisedFromCStr("ValueError", "wrong"); }

__attribute__((noinline)) void DeepRaise(int depth) {
  if (depth == 0) return LeafRaise();
  DeepRaise(depth - 1);
}

}  // extern "C"

int main() {
  setenv("TVM_FFI_BACKTRACE", "1", 1);
  for (const char* limit : {"", "0", "1", "2", "3", "-1", "x", " 2", "2 ", "+2", "2.5", "99999999999", "512"}) {
    setenv("TVM_TRACEBACK_LIMIT", limit, 1);
    Show("limit", limit);
    Show("plain", DeepTrace(3, false, 0));
    Show("named", DeepTrace(3, true, 0));
    Show("across", DeepTrace(3, false, 1));
    DeepRaise(2);
    TVMFFIObjectHandle error = nullptr;
    TVMFFIErrorMoveFromRaised(&error);
    Show("raised", OwnLines(reinterpret_cast<TVMFFIErrorCell*>(static_cast<TVMFFIObject*>(error) + 1)->backtrace));
    TVMFFIObjectDecRef(error);
  }
  std::string deep = DeepTrace(600, false, 0);
  Show("600 calls, characters", deep.size());
}
