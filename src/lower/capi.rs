//! The C functions of TVM FFI that generated code imports, with their prototypes: one table, which is also the documentation of the
//! symbols that a module needs.

use crate::ir::Type::{I32, Ptr};
use crate::ir::{FuncRef, FuncSig, Module, Type};

/// A C function by its symbol, with the types of its parameters and of its result.
#[derive(Clone, Copy, Debug)]
pub struct CFunction {
    /// The symbol.
    pub symbol: &'static str,
    /// The C prototype, as the header has it.
    pub prototype: &'static str,
    params: &'static [Type],
    ret: Option<Type>,
}

macro_rules! functions {
    ($($name:ident = $symbol:literal $params:expr => $ret:expr, $prototype:literal;)*) => {
        $(
            pub(super) const $name: CFunction =
                CFunction { symbol: $symbol, prototype: $prototype, params: &$params, ret: $ret };
        )*

        /// Every C function that generated code may import, by symbol. Which of them a module imports depends on its signatures and
        /// kernels. The headers are tvm/ffi/c_api.h and tvm/ffi/extra/c_env_api.h.
        pub const C_FUNCTIONS: &[CFunction] = &[$($name),*];
    };
}

functions! {
    BYTES_FROM_BYTE_ARRAY = "TVMFFIBytesFromByteArray" [Ptr, Ptr] => Some(I32),
        "int TVMFFIBytesFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out)";
    DATA_TYPE_FROM_STRING = "TVMFFIDataTypeFromString" [Ptr, Ptr] => Some(I32),
        "int TVMFFIDataTypeFromString(const TVMFFIByteArray* str, DLDataType* out)";
    ENV_GET_STREAM = "TVMFFIEnvGetStream" [I32, I32] => Some(Ptr),
        "TVMFFIStreamHandle TVMFFIEnvGetStream(int32_t device_type, int32_t device_id)";
    ENV_MOD_REGISTER_SYSTEM_LIB_SYMBOL = "TVMFFIEnvModRegisterSystemLibSymbol" [Ptr, Ptr] => Some(I32),
        "int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol)";
    ENV_TENSOR_ALLOC = "TVMFFIEnvTensorAlloc" [Ptr, Ptr] => Some(I32),
        "int TVMFFIEnvTensorAlloc(DLTensor* prototype, TVMFFIObjectHandle* out)";
    ERROR_MOVE_FROM_RAISED = "TVMFFIErrorMoveFromRaised" [Ptr] => None,
        "void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* result)";
    ERROR_SET_RAISED_FROM_C_STR_PARTS = "TVMFFIErrorSetRaisedFromCStrParts" [Ptr, Ptr, I32] => None,
        "void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** message_parts, int32_t num_parts)";
    FUNCTION_CALL = "TVMFFIFunctionCall" [Ptr, Ptr, I32, Ptr] => Some(I32),
        "int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result)";
    FUNCTION_GET_GLOBAL = "TVMFFIFunctionGetGlobal" [Ptr, Ptr] => Some(I32),
        "int TVMFFIFunctionGetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle* out)";
    GET_TYPE_INFO = "TVMFFIGetTypeInfo" [I32] => Some(Ptr),
        "const TVMFFITypeInfo* TVMFFIGetTypeInfo(int32_t type_index)";
    OBJECT_DEC_REF = "TVMFFIObjectDecRef" [Ptr] => Some(I32),
        "int TVMFFIObjectDecRef(TVMFFIObjectHandle obj)";
    STRING_FROM_BYTE_ARRAY = "TVMFFIStringFromByteArray" [Ptr, Ptr] => Some(I32),
        "int TVMFFIStringFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out)";
    TYPE_KEY_TO_INDEX = "TVMFFITypeKeyToIndex" [Ptr, Ptr] => Some(I32),
        "int TVMFFITypeKeyToIndex(const TVMFFIByteArray* type_key, int32_t* out_tindex)";
}

/// Imports a function of the table into a module, once.
pub(super) fn import(module: &mut Module, function: CFunction) -> FuncRef {
    module.import(function.symbol, FuncSig::c(function.params.iter().copied(), function.ret))
}
