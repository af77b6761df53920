// Prints the type keys and the global functions of the library that it runs with, one a line.

#include <tvm/ffi/tvm_ffi.h>

#include <iostream>

int main() {
  using namespace tvm::ffi;
  const Any keys = Function::GetGlobalRequired("ffi.GetRegisteredTypeKeys")();
  for (const String& key : keys.cast<Array<String>>()) {
    std::cout << "type " << key << '\n';
  }
  for (const String& name : Function::ListGlobalNames()) {
    std::cout << "function " << name << '\n';
  }
}
