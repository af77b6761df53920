//! The C symbols of `c_api.h` and `extra/c_env_api.h`.
//! Every body runs inside the guard of `boundary`: a panic or an error becomes -1 with a raised error.
//! [`symbols`] lists them all by name, for linkers that resolve names at run time.
//!
//! With the feature `hidden` no symbol is exported; with `external` none is defined here, and [`symbols`] lists those of the process's
//! runtime.
#![cfg_attr(feature = "hidden", allow(non_snake_case))]

use std::ffi::c_void;

/// Declares the files of the C symbols, where they are this crate's.
macro_rules! own {
    ($($file:ident)*) => {$(
        #[cfg(not(feature = "external"))]
        mod $file;
        #[cfg(not(feature = "external"))]
        pub use $file::*;
    )*};
}
own!(call env errors modules objects tensors types values);

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
        /// Every C symbol of an external runtime with its address; none where there is no runtime.
        #[cfg(feature = "external")]
        pub fn symbols() -> &'static [(&'static str, SymbolAddress)] {
            static TABLE: std::sync::OnceLock<Vec<(&str, SymbolAddress)>> = std::sync::OnceLock::new();
            if let Some(table) = TABLE.get() {
                return table;
            }
            // Looked for again next time, in case that a runtime comes.
            if crate::external::api().is_err() {
                return &[];
            }
            TABLE.get_or_init(|| {
                let names: &[&str] = &[$(stringify!($name)),*];
                let address = |name: &&'static str| {
                    let symbol = std::ffi::CString::new(*name).ok()?;
                    let address = crate::external::address(&symbol).ok().filter(|address| !address.is_null())?;
                    Some((*name, SymbolAddress(address)))
                };
                names.iter().filter_map(address).collect()
            })
        }

        /// Every C symbol of this crate with its address.
        #[cfg(not(feature = "external"))]
        pub fn symbols() -> &'static [(&'static str, SymbolAddress)] {
            static TABLE: &[(&str, SymbolAddress)] =
                &[$((stringify!($name), SymbolAddress($name as *const c_void))),*];
            TABLE
        }

        // The linker exports them from every program and library that this crate is linked into, as it does what is
        // `__declspec(dllexport)` in C. Elsewhere that is the linker's option `-rdynamic`.
        #[cfg(all(windows, target_pointer_width = "64", not(any(feature = "hidden", feature = "external"))))]
        std::arch::global_asm!(
            ".pushsection .drectve,\"yni\"",
            $(concat!(".ascii \" -export:", stringify!($name), "\""),)*
            ".popsection",
        );
    };
}

/// Checks that [`symbols`] are those of the runtime that this crate uses. A program that gives the addresses to code of its own asks first.
///
/// # Errors
/// `RuntimeError` that says what to do. The C symbols of this file lead to another runtime, which the process had, for all to see, when this
/// file was loaded. With the feature `external`, as [`check_runtime`](crate::check_runtime).
pub fn check_symbols() -> crate::Result<()> {
    #[cfg(feature = "external")]
    return crate::check_runtime();
    #[cfg(not(feature = "external"))]
    {
        let elsewhere = symbols().first().and_then(|(_, address)| crate::process::elsewhere(address.as_ptr()));
        elsewhere.map_or(Ok(()), |file| Err(crate::error::runtime_error(&crate::process::two_runtimes(&file))))
    }
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
