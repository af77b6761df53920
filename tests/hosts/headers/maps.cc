// Maps and dicts: C++ reads, iterates and changes those of the library in place, and the library those of C++.

#include "show.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace tvm::ffi;

namespace {

std::string Text(const Any& value) {
  if (auto number = value.as<int64_t>()) return std::to_string(*number);
  if (auto text = value.try_cast<String>()) return std::string(*text);
  return value.GetTypeKey();
}

// The entries in the order of iteration, in reverse, and through the library's iterator.
template <typename Container>
void ShowEntries(const std::string& what, const Container& container, const char* functor) {
  std::string forward, back, theirs;
  for (const auto& [key, value] : container) forward += Text(Any(key)) + "=" + Text(Any(value)) + " ";
  if (container.size() > 0) {
    auto it = container.end();
    do {
      --it;
      back += Text(Any((*it).first)) + " ";
    } while (it != container.begin());
    Function next = Call(functor, container).template cast<Function>();
    do {
      theirs += Text(next(0)) + "=" + Text(next(1)) + " ";
    } while (next(2).template cast<bool>());
  }
  Show(what, std::to_string(container.size()) + ": " + forward + "| " + back);
  Show(what + ", by the library", theirs == forward ? "the same" : theirs);
}

template <typename... Args>
Map<Any, Any> LibraryMap(Args&&... args) {
  return Call("ffi.Map", std::forward<Args>(args)...).template cast<Map<Any, Any>>();
}

// A map that the library makes, with `count` entries.
Map<Any, Any> LibraryMapOf(int count) {
  std::vector<Any> keys;
  for (int i = 0; i < count; ++i) {
    if (i % 3 == 0) {
      keys.emplace_back(i);
    } else if (i % 3 == 1) {
      keys.emplace_back("k" + std::to_string(i));
    } else {
      keys.emplace_back("a longer key " + std::to_string(i));
    }
    keys.emplace_back(i * i);
  }
  std::vector<AnyView> args(keys.begin(), keys.end());
  Any result;
  Function::GetGlobalRequired("ffi.Map").CallPacked(args.data(), static_cast<int32_t>(args.size()), &result);
  return result.cast<Map<Any, Any>>();
}

void ReadTheLibrarys() {
  for (int count : {0, 1, 2, 3, 4, 5, 8, 17, 100}) {
    Map<Any, Any> map = LibraryMapOf(count);
    ShowEntries("map of " + std::to_string(count), map, "ffi.MapForwardIterFunctor");
    int found = 0;
    for (int i = 0; i < count + 20; ++i) {
      found += static_cast<int>(map.count(i)) + static_cast<int>(map.count(String("k" + std::to_string(i)))) +
               static_cast<int>(map.count(String("a longer key " + std::to_string(i))));
    }
    Show("found", found);
  }
  Map<Any, Any> twice = LibraryMap("a", 1, "b", 2, "a", 3, 1, 4, true, 5, 1.0, 6, nullptr, 7);
  ShowEntries("keys of many types", twice, "ffi.MapForwardIterFunctor");
  ShowEntries("keys that are there again", LibraryMap(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 2, 7, 1, 8),
              "ffi.MapForwardIterFunctor");
  ShowError("no such key", [&] { (void)twice.at("c"); });
  ShowError("no such key, to the library", [&] { Call("ffi.MapGetItem", twice, "c"); });
  Show("missing", Call("ffi.MapGetItemOrMissing", twice, "c").same_as(Call("ffi.GetInvalidObject")));
}

void ChangeTheLibrarys() {
  // This is the one reference, so C++ changes the library's map in place, and grows it.
  Map<Any, Any> map = LibraryMap("a", 1);
  for (int i = 0; i < 40; ++i) map.Set(i, i + 1);
  ShowEntries("grown by C++", map, "ffi.MapForwardIterFunctor");
  Map<Any, Any> shared = map;
  map.Set("b", 2);
  for (int i = 0; i < 38; ++i) map.erase(i);
  ShowEntries("copied and erased by C++", map, "ffi.MapForwardIterFunctor");
  Show("the first one", shared.size());
  Map<Any, Any> large = LibraryMapOf(100);
  for (int i = 0; i < 100; i += 3) large.erase(i);
  large.Set(7, 7);
  ShowEntries("a large one", large, "ffi.MapForwardIterFunctor");

  Dict<Any, Any> dict = Call("ffi.Dict", "x", 1, "y", 2).cast<Dict<Any, Any>>();
  Dict<Any, Any> other = dict;
  for (int i = 0; i < 3; ++i) {
    dict.Set(i, i);
    Call("ffi.DictSetItem", dict, i + 100, i);
    ShowEntries("in turn " + std::to_string(i), other, "ffi.DictForwardIterFunctor");
  }
  dict.Set("x", "again");
  Call("ffi.DictSetItem", dict, "y", "again");
  ShowEntries("keys that are there", other, "ffi.DictForwardIterFunctor");
  Call("ffi.DictErase", dict, 1);
  dict.erase("x");
  Call("ffi.DictErase", dict, "no such key");
  ShowEntries("erased by both", other, "ffi.DictForwardIterFunctor");
  dict.clear();
  Show("cleared", Call("ffi.DictSize", dict).cast<int64_t>());
  for (int i = 0; i < 9; ++i) Call("ffi.DictSetItem", dict, i, i);
  Call("ffi.DictClear", dict);
  Show("cleared by the library", dict.size());
  for (int i = 0; i < 30; ++i) dict.Set(i, i);
  ShowEntries("filled again", other, "ffi.DictForwardIterFunctor");
  ShowError("no such key", [&] { Call("ffi.DictGetItem", dict, -1); });
}

void LetTheLibraryReadOurs() {
  Map<Any, Any> map;
  for (int i = 0; i < 70; ++i) {
    map.Set(i, i * 2);
    map.Set("key " + std::to_string(i), i);
    if (i == 1 || i == 2 || i == 4 || i == 69) {
      int64_t sum = 0;
      for (int k = 0; k <= i + 3; ++k) {
        sum += Call("ffi.MapCount", map, k).cast<int64_t>();
        sum += Call("ffi.MapCount", map, "key " + std::to_string(k)).cast<int64_t>() * 1000;
      }
      Show("found by the library", sum);
    }
  }
  ShowEntries("C++'s", map, "ffi.MapForwardIterFunctor");
  Show("as a dict", Call("ffi.DictSize", Any(map).cast<Dict<Any, Any>>()).cast<int64_t>());

  // C++'s dict. The library grows it from its first two slots on.
  Dict<Any, Any> dict;
  for (int i = 0; i < 50; ++i) Call("ffi.DictSetItem", dict, i, "a value of the library");
  for (int i = 0; i < 50; i += 2) Call("ffi.DictErase", dict, i);
  for (int i = 0; i < 60; i += 5) dict.Set(i, "C++'s");
  ShowEntries("C++'s dict", dict, "ffi.DictForwardIterFunctor");

  Map<String, Array<int64_t>> typed{{"one", {1}}, {"two", {1, 2}}};
  Show("typed", Call("ffi.MapGetItem", typed, "two").cast<Array<int64_t>>().size());
  ShowError("typed, of other types", [] { (void)Any(LibraryMap("a", 1, 2, 3)).cast<Map<String, int64_t>>(); });
  Show("typed, of the library", Any(LibraryMap("a", 1, "b", 2)).cast<Map<String, int64_t>>().at("b"));
}

// Makes the same changes to a dict, in C++ or with the library, and to a model of it.
void Random() {
  std::mt19937 random(17);
  Dict<Any, Any> dict = Call("ffi.Dict").cast<Dict<Any, Any>>();
  std::vector<std::pair<int, int>> model;
  auto find = [&](int key) {
    return std::find_if(model.begin(), model.end(), [&](const auto& entry) { return entry.first == key; });
  };
  int wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    int key = static_cast<int>(random() % 200), value = round;
    Any name = key % 2 ? Any(key) : Any("key number " + std::to_string(key));
    bool by_library = random() % 2;
    if (random() % 3 && model.size() < 150) {
      if (by_library) {
        Call("ffi.DictSetItem", dict, name, value);
      } else {
        dict.Set(name, value);
      }
      auto found = find(key);
      if (found == model.end()) {
        model.emplace_back(key, value);
      } else {
        found->second = value;
      }
    } else {
      if (by_library) {
        Call("ffi.DictErase", dict, name);
      } else {
        dict.erase(name);
      }
      auto found = find(key);
      if (found != model.end()) model.erase(found);
    }
    int probe = static_cast<int>(random() % 200);
    Any probe_name = probe % 2 ? Any(probe) : Any("key number " + std::to_string(probe));
    auto found = find(probe);
    bool is_there = by_library ? Call("ffi.DictCount", dict, probe_name).cast<int64_t>() : dict.count(probe_name);
    wrong += is_there != (found != model.end());
    if (is_there) wrong += dict.at(probe_name).cast<int>() != found->second;
    wrong += dict.size() != model.size();
  }
  Show("wrong", wrong);
  ShowEntries("in the end", dict, "ffi.DictForwardIterFunctor");
}

}  // namespace

int main() {
  ReadTheLibrarys();
  ChangeTheLibrarys();
  LetTheLibraryReadOurs();
  Random();
}
