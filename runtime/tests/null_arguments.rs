//! A NULL argument that the header doesn't allow is an error. A function without a return code ignores it.

use std::ptr::{null, null_mut};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::capi::*;
use tvm_ffi_runtime::error::take_raised;

use crate::support::*;

/// The call failed and raised an error.
#[track_caller]
fn check(code: i32) {
    assert_eq!(code, -1);
    assert!(!take_raised().unwrap().kind().is_empty());
}

#[test]
fn null_is_an_error() {
    let key = bytes("k");
    let mut handle = null_mut();
    let mut any = TVMFFIAny::none();
    let mut dtype = DLDataType::VOID;
    // SAFETY: NULL is what these functions must take; everything else passed is valid.
    unsafe {
        check(TVMFFIObjectIncRef(null_mut()));
        // As upstream: releasing NULL succeeds.
        assert_eq!(TVMFFIObjectDecRef(null_mut()), 0);
        check(TVMFFIObjectCreateOpaque(null_mut(), 74, None, null_mut()));
        check(TVMFFITypeKeyToIndex(null(), null_mut()));
        check(TVMFFITypeKeyToIndex(&key, null_mut()));
        check(TVMFFIFunctionCreate(null_mut(), None, None, null_mut()));
        check(TVMFFIFunctionGetGlobal(null(), null_mut()));
        check(TVMFFIFunctionSetGlobal(&key, null_mut(), 0));
        check(TVMFFIFunctionSetGlobalFromMethodInfo(null(), 0));
        check(TVMFFIFunctionCall(null_mut(), null_mut(), 0, null_mut()));
        check(TVMFFIAnyViewToOwnedAny(null(), null_mut()));
        check(TVMFFITensorFromDLPack(null_mut(), 0, 0, null_mut()));
        check(TVMFFITensorFromDLPackVersioned(null_mut(), 0, 0, null_mut()));
        check(TVMFFITensorToDLPack(null_mut(), null_mut()));
        check(TVMFFITensorToDLPackVersioned(null_mut(), null_mut()));
        check(TVMFFITensorCreateUnsafeView(null_mut(), null(), null_mut()));
        check(TVMFFIStringFromByteArray(null(), null_mut()));
        check(TVMFFIBytesFromByteArray(null(), null_mut()));
        check(TVMFFIDataTypeFromString(null(), null_mut()));
        check(TVMFFIDataTypeToString(null(), null_mut()));
        check(TVMFFITypeGetOrAllocIndex(null(), -1, 0, 0, 0, -1));
        check(TVMFFITypeRegisterField(64, null()));
        check(TVMFFITypeRegisterMethod(64, null()));
        check(TVMFFITypeRegisterMetadata(64, null()));
        check(TVMFFITypeRegisterAttr(64, null(), null()));
        check(TVMFFIHandleInitOnce(null_mut(), None));
        check(TVMFFIHandleDeinitOnce(null_mut(), None));
        check(TVMFFIEnvTensorAlloc(null_mut(), null_mut()));
        check(TVMFFIEnvRegisterCAPI(null(), null_mut()));
        check(TVMFFIEnvModLookupFromImports(null_mut(), null(), null_mut()));
        check(TVMFFIEnvModLookupFromImports(null_mut(), null(), &mut handle));
        check(TVMFFIEnvModLookupFromImports(null_mut(), c"f".as_ptr(), &mut handle));
        check(TVMFFIEnvModRegisterContextSymbol(null(), null_mut()));
        check(TVMFFIEnvModRegisterSystemLibSymbol(null(), null_mut()));
        // With a valid output, so the input is checked.
        check(TVMFFITensorFromDLPack(null_mut(), 0, 0, &mut handle));
        check(TVMFFIAnyViewToOwnedAny(null(), &mut any));
        check(TVMFFIDataTypeFromString(null(), &mut dtype));
    }
}

#[test]
fn null_without_a_code_is_ignored() {
    // SAFETY: NULL is what these functions must take.
    unsafe {
        TVMFFIGetVersion(null_mut());
        TVMFFIErrorMoveFromRaised(null_mut());
        TVMFFIErrorSetRaised(null_mut());
        assert!(take_raised().is_none());
        TVMFFIErrorSetRaisedFromCStr(null(), null());
        assert_eq!(take_raised().unwrap().to_string(), ": ");
        TVMFFIErrorSetRaisedFromCStrParts(null(), null(), 3);
        assert_eq!(take_raised().unwrap().message(), "");
        assert!(TVMFFIGetTypeAttrColumn(null()).is_null());
        take_raised().unwrap();
        assert!(!TVMFFIBacktrace(null(), 0, null(), 0).is_null());
        assert_eq!(TVMFFIErrorCreate(null(), null(), null(), null_mut()), -1);
    }
    assert!(take_raised().is_none());
}
