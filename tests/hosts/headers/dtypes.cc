// Custom element types: their owner registers two global functions, which turn names into type codes and back.

#include "show.h"

#include <tvm/ffi/dtype.h>
#include <tvm/ffi/reflection/registry.h>

using namespace tvm::ffi;

namespace {

void ShowType(const char* name) {
  ShowError(name, [&] {
    DLDataType type = StringToDLDataType(name);
    Show(std::string(name) + " code, bits, lanes", std::to_string(type.code) + " " + std::to_string(type.bits) + " " +
                                                       std::to_string(static_cast<int16_t>(type.lanes)));
    Show(std::string(name) + " back", DLDataTypeToString(type));
  });
}

}  // namespace

int main() {
  reflection::GlobalDef()
      .def("dtype.get_custom_type_code",
           [](const String& name) -> int64_t {
             if (name == "posit") return 131;
             if (name == "a name with 8x4") return 132;
             TVM_FFI_THROW(ValueError) << "no custom type `" << name << "`";
             TVM_FFI_UNREACHABLE();
           })
      .def("dtype.get_custom_type_name", [](int64_t code) -> String {
        if (code == 131) return "posit";
        if (code == 132) return "a name with 8x4";
        TVM_FFI_THROW(ValueError) << "no custom type of code " << code;
        TVM_FFI_UNREACHABLE();
      });
  for (const char* name : {"custom[posit]8", "custom[posit]", "custom[posit]16x4", "custom[posit]8xvscalex2",
                           "custom[a name with 8x4]64x2", "custom[other]8", "custom[]8", "custom[posit]256",
                           "custom[posit]8x0", "custom[posit]8x70000", "custom[posit]8y", "float32x4", "nonsense"}) {
    ShowType(name);
  }
  ShowError("unknown code", [] { Show("unknown code", DLDataTypeToString(DLDataType{200, 8, 1})); });
}
