//! The C symbols of `c_api.h` and `extra/c_env_api.h`.
//! Every body runs inside the guard of `boundary`: a panic or an error becomes -1 with a raised error.
//! [`symbols`] lists them all by name, for linkers that resolve names at run time.

use std::ffi::c_void;

mod call;
mod env;
mod errors;
mod modules;
mod objects;
mod tensors;
mod types;
mod values;

pub use call::*;
pub use env::*;
pub use errors::*;
pub use modules::*;
pub use objects::*;
pub use tensors::*;
pub use types::*;
pub use values::*;

/// The address of a C symbol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SymbolAddress(*const c_void);

// SAFETY: the address of a function is the same on every thread and points at code.
unsafe impl Send for SymbolAddress {}
// SAFETY: as above.
unsafe impl Sync for SymbolAddress {}

impl SymbolAddress {
    /// The address.
    pub const fn as_ptr(self) -> *const c_void {
        self.0
    }
}

macro_rules! symbol_table {
    ($($name:ident),* $(,)?) => {
        /// Every C symbol of this crate with its address.
        pub fn symbols() -> &'static [(&'static str, SymbolAddress)] {
            static TABLE: &[(&str, SymbolAddress)] =
                &[$((stringify!($name), SymbolAddress($name as *const c_void))),*];
            TABLE
        }

        // The linker exports them from every program and library that this crate is linked into, as it does what is
        // `__declspec(dllexport)` in C. Elsewhere that is the linker's option `-rdynamic`.
        #[cfg(all(windows, target_pointer_width = "64"))]
        std::arch::global_asm!(
            ".pushsection .drectve,\"yni\"",
            $(concat!(".ascii \" -export:", stringify!($name), "\""),)*
            ".popsection",
        );
    };
}

symbol_table!(
    TVMFFIGetVersion,
    TVMFFIObjectIncRef,
    TVMFFIObjectDecRef,
    TVMFFIObjectCreateOpaque,
    TVMFFIGetCustomAllocator,
    TVMFFISetCustomAllocator,
    TVMFFITypeKeyToIndex,
    TVMFFIFunctionCreate,
    TVMFFIFunctionGetGlobal,
    TVMFFIFunctionSetGlobal,
    TVMFFIFunctionSetGlobalFromMethodInfo,
    TVMFFIFunctionCall,
    TVMFFIAnyViewToOwnedAny,
    TVMFFIErrorMoveFromRaised,
    TVMFFIErrorSetRaised,
    TVMFFIErrorSetRaisedFromCStr,
    TVMFFIErrorSetRaisedFromCStrParts,
    TVMFFIErrorCreate,
    TVMFFIErrorCreateWithCauseAndExtraContext,
    TVMFFITensorFromDLPack,
    TVMFFITensorToDLPack,
    TVMFFITensorFromDLPackVersioned,
    TVMFFITensorToDLPackVersioned,
    TVMFFITensorCreateUnsafeView,
    TVMFFIStringFromByteArray,
    TVMFFIBytesFromByteArray,
    TVMFFIBigIntFromByteArray,
    TVMFFIBigIntGetContentByteArray,
    TVMFFIDataTypeFromString,
    TVMFFIDataTypeToString,
    TVMFFITypeGetOrAllocIndex,
    TVMFFIGetTypeInfo,
    TVMFFITypeRegisterField,
    TVMFFITypeRegisterMethod,
    TVMFFITypeRegisterMetadata,
    TVMFFITypeRegisterAttr,
    TVMFFIGetTypeAttrColumn,
    TVMFFIBacktrace,
    TVMFFIHandleInitOnce,
    TVMFFIHandleDeinitOnce,
    TVMFFIEnvSetStream,
    TVMFFIEnvGetStream,
    TVMFFIEnvSetDLPackManagedTensorAllocator,
    TVMFFIEnvGetDLPackManagedTensorAllocator,
    TVMFFIEnvTensorAlloc,
    TVMFFIEnvCheckSignals,
    TVMFFIEnvRegisterCAPI,
    TVMFFIEnvModLookupFromImports,
    TVMFFIEnvModRegisterContextSymbol,
    TVMFFIEnvModRegisterSystemLibSymbol,
);
