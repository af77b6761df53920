//! The C functions of TVM FFI that generated code imports, with their prototypes. This one table also documents the
//! symbols that a module needs.

use crate::ir::Type::{I32, Ptr};
use crate::ir::{Emitter, FuncRef, FuncSig, Module, Type, Val};

/// A C function: its symbol, and the types of its parameters and result.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CFunction {
    /// The symbol.
    pub symbol: &'static str,
    /// The C prototype, as in the header.
    pub prototype: &'static str,
    /// The code that imports it.
    pub importer: Importer,
    params: &'static [Type],
    ret: Option<Type>,
}

/// The code that imports a C function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Importer {
    /// Runtime helpers, and possibly wrappers.
    Helper,
    /// Only wrappers.
    Wrapper,
    /// The parts of a library other than wrappers.
    Library,
}

macro_rules! functions {
    ($($name:ident = $importer:ident $symbol:literal $params:expr => $ret:expr, $prototype:literal;)*) => {
        $(
            pub(super) const $name: CFunction = CFunction {
                symbol: $symbol,
                prototype: $prototype,
                importer: Importer::$importer,
                params: &$params,
                ret: $ret,
            };
        )*

        /// Every C function that generated code may import, by symbol. Which of them a module imports depends on its
        /// signatures and kernels. The headers are tvm/ffi/c_api.h and tvm/ffi/extra/c_env_api.h.
        pub const C_FUNCTIONS: &[CFunction] = &[$($name),*];
    };
}

functions! {
    ANY_VIEW_TO_OWNED_ANY = Wrapper "TVMFFIAnyViewToOwnedAny" [Ptr, Ptr] => Some(I32),
        "int TVMFFIAnyViewToOwnedAny(const TVMFFIAny* any_view, TVMFFIAny* out)";
    BYTES_FROM_BYTE_ARRAY = Helper "TVMFFIBytesFromByteArray" [Ptr, Ptr] => Some(I32),
        "int TVMFFIBytesFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out)";
    DATA_TYPE_FROM_STRING = Helper "TVMFFIDataTypeFromString" [Ptr, Ptr] => Some(I32),
        "int TVMFFIDataTypeFromString(const TVMFFIByteArray* str, DLDataType* out)";
    ENV_CHECK_SIGNALS = Wrapper "TVMFFIEnvCheckSignals" [] => Some(I32),
        "int TVMFFIEnvCheckSignals()";
    ENV_GET_STREAM = Wrapper "TVMFFIEnvGetStream" [I32, I32] => Some(Ptr),
        "TVMFFIStreamHandle TVMFFIEnvGetStream(int32_t device_type, int32_t device_id)";
    ENV_MOD_LOOKUP_FROM_IMPORTS = Wrapper "TVMFFIEnvModLookupFromImports" [Ptr, Ptr, Ptr] => Some(I32),
        "int TVMFFIEnvModLookupFromImports(TVMFFIObjectHandle library_ctx, const char* func_name, TVMFFIObjectHandle* \
         out)";
    ENV_MOD_REGISTER_SYSTEM_LIB_SYMBOL = Library "TVMFFIEnvModRegisterSystemLibSymbol" [Ptr, Ptr] => Some(I32),
        "int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol)";
    ENV_TENSOR_ALLOC = Wrapper "TVMFFIEnvTensorAlloc" [Ptr, Ptr] => Some(I32),
        "int TVMFFIEnvTensorAlloc(DLTensor* prototype, TVMFFIObjectHandle* out)";
    ERROR_MOVE_FROM_RAISED = Helper "TVMFFIErrorMoveFromRaised" [Ptr] => None,
        "void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* result)";
    ERROR_SET_RAISED = Wrapper "TVMFFIErrorSetRaised" [Ptr] => None,
        "void TVMFFIErrorSetRaised(TVMFFIObjectHandle error)";
    ERROR_SET_RAISED_FROM_C_STR_PARTS = Helper "TVMFFIErrorSetRaisedFromCStrParts" [Ptr, Ptr, I32] => None,
        "void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** message_parts, int32_t num_parts)";
    FUNCTION_CALL = Helper "TVMFFIFunctionCall" [Ptr, Ptr, I32, Ptr] => Some(I32),
        "int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result)";
    FUNCTION_CREATE = Wrapper "TVMFFIFunctionCreate" [Ptr, Ptr, Ptr, Ptr] => Some(I32),
        "int TVMFFIFunctionCreate(void* self, TVMFFISafeCallType safe_call, void (*deleter)(void* self), \
         TVMFFIObjectHandle* out)";
    FUNCTION_GET_GLOBAL = Helper "TVMFFIFunctionGetGlobal" [Ptr, Ptr] => Some(I32),
        "int TVMFFIFunctionGetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle* out)";
    FUNCTION_SET_GLOBAL = Library "TVMFFIFunctionSetGlobal" [Ptr, Ptr, I32] => Some(I32),
        "int TVMFFIFunctionSetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle f, int allow_override)";
    GET_TYPE_INFO = Helper "TVMFFIGetTypeInfo" [I32] => Some(Ptr),
        "const TVMFFITypeInfo* TVMFFIGetTypeInfo(int32_t type_index)";
    HANDLE_INIT_ONCE = Helper "TVMFFIHandleInitOnce" [Ptr, Ptr] => Some(I32),
        "int TVMFFIHandleInitOnce(void** handle_addr, int (*init_func)(void** result))";
    OBJECT_DEC_REF = Helper "TVMFFIObjectDecRef" [Ptr] => Some(I32),
        "int TVMFFIObjectDecRef(TVMFFIObjectHandle obj)";
    OBJECT_INC_REF = Wrapper "TVMFFIObjectIncRef" [Ptr] => Some(I32),
        "int TVMFFIObjectIncRef(TVMFFIObjectHandle obj)";
    STRING_FROM_BYTE_ARRAY = Helper "TVMFFIStringFromByteArray" [Ptr, Ptr] => Some(I32),
        "int TVMFFIStringFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out)";
    TENSOR_CREATE_UNSAFE_VIEW = Wrapper "TVMFFITensorCreateUnsafeView" [Ptr, Ptr, Ptr] => Some(I32),
        "int TVMFFITensorCreateUnsafeView(TVMFFIObjectHandle source, const DLTensor* prototype, TVMFFIObjectHandle* \
         out)";
    TYPE_KEY_TO_INDEX = Helper "TVMFFITypeKeyToIndex" [Ptr, Ptr] => Some(I32),
        "int TVMFFITypeKeyToIndex(const TVMFFIByteArray* type_key, int32_t* out_tindex)";
}

/// Imports a function of the table into a module, once.
pub(super) fn import(module: &mut Module, function: CFunction) -> FuncRef {
    module.import(function.symbol, FuncSig::c(function.params.iter().copied(), function.ret))
}

/// Calls a function of the table; returns its result, if it has one.
pub(super) fn call<'c>(c: Emitter<'c>, function: CFunction, args: &[Val<'c>]) -> Option<Val<'c>> {
    let function = c.func(|module| import(module, function));
    c.call(function, args)
}

/// Calls a function of the table that has a result; returns the result.
pub(super) fn result<'c>(c: Emitter<'c>, function: CFunction, args: &[Val<'c>]) -> Val<'c> {
    call(c, function, args).unwrap_or_else(|| c.i32(0))
}
