// Shared by the programs of this directory: prints a line for each outcome, errors included. Outputs contain no
// addresses and no times, since they must be the same with every library.

#ifndef SHOW_H_
#define SHOW_H_

#include <tvm/ffi/tvm_ffi.h>

#include <exception>
#include <iostream>
#include <string>

// Prints values the same way as their text.
template <typename T>
void Show(const std::string& what, const T& value) {
  std::cout << what << ": " << value << '\n';
}

// Runs `body` and prints the error that it raises, or that it raised none.
template <typename Body>
void ShowError(const std::string& what, Body body) {
  try {
    body();
    Show(what, "no error");
  } catch (const tvm::ffi::Error& error) {
    Show(what, error.kind() + ": " + error.message());
  } catch (const std::exception& error) {
    Show(what, std::string("C++: ") + error.what());
  }
}

// Calls a global function of the library.
template <typename... Args>
tvm::ffi::Any Call(const char* name, Args&&... args) {
  return tvm::ffi::Function::GetGlobalRequired(name)(std::forward<Args>(args)...);
}

#endif  // SHOW_H_
