// Arrays, lists, tuples, variants and optional values, made in C++ and by the library.

#include "show.h"

#include <tuple>

using namespace tvm::ffi;

namespace {

template <typename Sequence>
void ShowInts(const std::string& what, const Sequence& sequence) {
  std::string text;
  for (int64_t value : sequence) text += std::to_string(value) + " ";
  Show(what, text);
}

void Arrays() {
  Array<int64_t> array = Call("ffi.Array", 1, 2, 3).cast<Array<int64_t>>();
  ShowInts("array of the library", array);
  Array<int64_t> copy = array;
  copy.push_back(4);
  copy.Set(0, 10);
  ShowInts("copied on write", copy);
  ShowInts("the first one", array);
  Show("size, to the library", Call("ffi.ArraySize", copy).cast<int64_t>());
  Show("item, to the library", Call("ffi.ArrayGetItem", copy, 3).cast<int64_t>());
  Show("contains, to the library", Call("ffi.ArrayContains", copy, 10).cast<bool>());
  copy.erase(copy.begin());
  copy.insert(copy.begin(), array.begin(), array.end());
  copy.resize(5);
  ShowInts("after erase, insert, resize", copy);
  Array<Any> mixed{1, "short", String("a longer string"), 2.5, nullptr};
  Show("mixed", Call("ffi.ArraySize", mixed).cast<int64_t>());
  Show("of strings", mixed[2].cast<std::string>() + mixed[1].cast<std::string>());
  ShowError("array of another type", [&] { (void)Any(mixed).cast<Array<int64_t>>(); });
  Array<double> widened = Any(array).cast<Array<double>>();
  Show("widened", widened[2]);
}

void Lists() {
  List<int64_t> list = Call("ffi.List", 1, 2, 3).cast<List<int64_t>>();
  for (int64_t i = 4; i < 40; ++i) list.push_back(i);
  Call("ffi.ListAppend", list, 40);
  Call("ffi.ListReverse", list);
  list.erase(list.begin() + 2, list.end() - 2);
  ShowInts("list changed by both", list);
  List<Any> own;
  Call("ffi.ListAppend", own, "from the library");
  Call("ffi.ListInsert", own, 0, 1);
  own.insert(own.begin() + 1, List<Any>{});
  Show("own list", own.size());
  Show("last", Call("ffi.ListPop", own, 2).cast<std::string>());
  Call("ffi.ListReserve", own, 100);
  for (int i = 0; i < 200; ++i) own.push_back(i);
  Show("capacity is enough", own.capacity() >= own.size());
  Call("ffi.ListClear", own);
  Show("cleared", own.empty());
  Array<int64_t> array = Any(list).cast<Array<int64_t>>();
  ShowInts("as an array", array);
  ShowInts("as a list", Any(array).cast<List<int64_t>>());
}

void Others() {
  Tuple<int64_t, String, double> tuple(1, "two", 3.0);
  Show("tuple", Call("ffi.ArraySize", tuple).cast<int64_t>());
  Any packed = Call("ffi.Array", 5, "six", 7);
  tuple = packed.cast<Tuple<int64_t, String, double>>();
  Show("tuple of the library", std::string(tuple.get<1>()) + std::to_string(tuple.get<2>()));
  ShowError("tuple of another size", [&] { (void)packed.cast<Tuple<int64_t, String>>(); });
  ShowError("tuple of other types", [&] { (void)packed.cast<Tuple<String, String, double>>(); });

  using Either = Variant<int64_t, String, Array<int64_t>>;
  for (Any value : {Any(3), Any("text"), Call("ffi.Array", 1, 2)}) {
    Either either = value.cast<Either>();
    if (auto number = either.as<int64_t>()) Show("variant, a number", *number);
    if (auto text = either.as<String>()) Show("variant, a string", std::string(*text));
    if (auto array = either.as<Array<int64_t>>()) Show("variant, an array", array->size());
  }
  ShowError("variant of none of them", [] { (void)Any(2.5).cast<Either>(); });

  Optional<Array<int64_t>> none;
  Show("optional", Any(none).type_index());
  Optional<Array<int64_t>> some = Call("ffi.Array", 9).cast<Optional<Array<int64_t>>>();
  Show("optional of the library", (*some)[0]);
  Show("optional string", Any(nullptr).cast<Optional<String>>().has_value());

  Shape shape = Call("ffi.Shape", 2, 3, 4).cast<Shape>();
  Show("shape", shape.Product());
  Show("shape of a list", Call("ffi.List", 5, 6).cast<Shape>()[1]);
}

}  // namespace

int main() {
  Arrays();
  Lists();
  Others();
}
