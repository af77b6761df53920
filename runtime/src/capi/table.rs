//! The list of the C symbols.

use std::ffi::c_void;

/// The address of a C symbol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SymbolAddress(pub(super) *const c_void);

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

/// Calls a macro with the names of all C symbols.
macro_rules! with_symbols {
    ($callback:ident) => {
        $callback! {
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
        }
    };
}
pub(super) use with_symbols;
