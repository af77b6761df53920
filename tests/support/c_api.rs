//! The runtime's C functions by name: those of the bundled runtime, or with the feature `external-runtime` those of the
//! loaded library.

use std::ffi::{c_int, c_void};

use tvm_ffi_codegen::runtime::abi::{DLPackManagedTensorAllocator, TVMFFIFieldInfo};
use tvm_ffi_codegen::runtime::capi;

/// The address of a C function.
pub fn address(name: &str) -> *const u8 {
    let found = capi::symbols().iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("the runtime has no {name}")).1.as_ptr().cast()
}

/// Declares functions of the C header. Each is looked up once.
macro_rules! c_functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        /// # Safety
        /// The same as in the C header.
        #[allow(non_snake_case)]
        pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            static ADDRESS: std::sync::LazyLock<usize> =
                std::sync::LazyLock::new(|| $crate::support::c_api::address(stringify!($name)).expose_provenance());
            let function = std::ptr::with_exposed_provenance::<u8>(*ADDRESS);
            // SAFETY: the function of this name has this prototype; the rest is the caller's promise.
            unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn($($ty),*) $(-> $ret)?>(function)($($arg),*) }
        }
    )*};
}

pub(crate) use c_functions;

c_functions! {
    fn TVMFFITypeRegisterField(index: i32, info: *const TVMFFIFieldInfo) -> c_int;
    fn TVMFFIEnvSetStream(device_type: i32, device_id: i32, stream: *mut c_void, old: *mut *mut c_void) -> c_int;
    fn TVMFFIEnvSetDLPackManagedTensorAllocator(
        allocator: Option<DLPackManagedTensorAllocator>,
        global: c_int,
        old: *mut Option<DLPackManagedTensorAllocator>
    ) -> c_int;
}
