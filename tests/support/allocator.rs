//! Allocators that count live objects, and live memory of tensors.
//!
//! The bundled runtime creates all objects with the current allocator. With upstream's runtime, only Rust code does. A
//! recording ([`super::recording`]) then finds the remaining C++ objects.
//!
//! Counts are per thread, so tests that run in parallel only see their own.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{LazyLock, OnceLock};

use tvm_ffi_codegen::runtime::abi::{
    DLManagedTensorVersioned, DLPackSetError, DLPackVersion, DLTensor, TVMFFICustomAllocator, TVMFFIObjectAllocHeader,
};
use tvm_ffi_codegen::runtime::object::alloc::{current_allocator, set_current_allocator};

use super::c_api::TVMFFIEnvSetDLPackManagedTensorAllocator;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// The number of objects and tensor memories that this thread has allocated and not freed.
pub fn live() -> isize {
    LIVE.get()
}

/// The runtime's own allocator.
struct Builtin(*mut TVMFFICustomAllocator);
// SAFETY: an allocator is valid for the process, and may be used by any thread.
unsafe impl Send for Builtin {}
// SAFETY: as above.
unsafe impl Sync for Builtin {}

static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| Builtin(current_allocator()));
/// Frees storage of the runtime's own allocator, for objects with the usual alignment.
static DELETE: OnceLock<unsafe extern "C" fn(*mut c_void)> = OnceLock::new();

/// Makes the runtime use these allocators, once, before a test counts.
pub fn install() {
    static INSTALLED: LazyLock<()> = LazyLock::new(|| {
        LazyLock::force(&BUILTIN);
        let allocator = TVMFFICustomAllocator { allocate: Some(allocate), context: null_mut() };
        // SAFETY: it is never freed, and follows the contract.
        unsafe { set_current_allocator(Box::into_raw(Box::new(allocator))) };
        // Another runtime has no tensor allocator unless one is set.
        if cfg!(feature = "external-runtime") {
            // SAFETY: the allocator follows DLPack's rules.
            assert_eq!(unsafe { TVMFFIEnvSetDLPackManagedTensorAllocator(Some(allocate_tensor), 1, null_mut()) }, 0);
        }
    });
    LazyLock::force(&INSTALLED);
}

/// Lets this thread allocate tensors of any device in the host's memory.
#[cfg(any(target_os = "linux", windows))]
pub fn install_for_devices() {
    // SAFETY: the allocator follows DLPack's rules.
    assert_eq!(unsafe { TVMFFIEnvSetDLPackManagedTensorAllocator(Some(allocate_tensor), 0, null_mut()) }, 0);
}

fn count(change: isize) {
    // A thread that ends may free objects when its count no longer exists.
    let _ = LIVE.try_with(|live| live.set(live.get() + change));
}

/// Allocates storage with the runtime's own allocator, and counts it.
unsafe extern "C" fn allocate(size: usize, alignment: usize, type_index: i32, _: *mut c_void) -> *mut c_void {
    // SAFETY: the allocator's contract: storage is preceded by a header, which no other code reads yet.
    unsafe {
        let TVMFFICustomAllocator { allocate, context } = *BUILTIN.0;
        let body = allocate.unwrap()(size, alignment, type_index, context);
        if !body.is_null() {
            let header = body.cast::<TVMFFIObjectAllocHeader>().sub(1);
            let delete = (*header).delete_space.unwrap();
            if std::ptr::fn_addr_eq(*DELETE.get_or_init(|| delete), delete) {
                (*header).delete_space = Some(delete_counted);
                count(1);
            }
        }
        body
    }
}

unsafe extern "C" fn delete_counted(body: *mut c_void) {
    count(-1);
    // SAFETY: the storage is one of `allocate`, which has noted what gives it back.
    unsafe { DELETE.get().unwrap()(body) };
}

/// DLPack's description of a tensor, followed by its sizes, strides and elements. An element has at most 64 bits.
#[repr(C)]
struct Memory {
    managed: DLManagedTensorVersioned,
    dims: Vec<i64>,
    elements: Vec<u64>,
}

unsafe extern "C" fn allocate_tensor(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int {
    // SAFETY: a prototype has its sizes, the result has a place, and an error goes where the caller says.
    unsafe {
        let prototype = &*prototype;
        let shape = std::slice::from_raw_parts(prototype.shape, prototype.ndim as usize);
        let strides = (0..shape.len()).map(|i| shape[i + 1..].iter().product());
        let mut dims: Vec<i64> = shape.iter().copied().chain(strides).collect();
        let (mut elements, length) = (Vec::new(), shape.iter().product::<i64>() as usize);
        if elements.try_reserve_exact(length).is_err() {
            if let Some(set_error) = set_error {
                set_error(context, c"MemoryError".as_ptr(), c"no memory for so many elements".as_ptr());
            }
            return -1;
        }
        elements.resize(length, u64::MAX);
        let dl_tensor = DLTensor {
            data: elements.as_mut_ptr().cast(),
            shape: dims.as_mut_ptr(),
            strides: dims.as_mut_ptr().add(shape.len()),
            byte_offset: 0,
            ..*prototype
        };
        let version = DLPackVersion { major: 1, minor: 1 };
        let (manager_ctx, deleter) = (null_mut(), Some(delete_tensor as unsafe extern "C" fn(_)));
        let managed = DLManagedTensorVersioned { version, manager_ctx, deleter, flags: 0, dl_tensor };
        out.write(Box::into_raw(Box::new(Memory { managed, dims, elements })).cast());
    }
    count(1);
    0
}

unsafe extern "C" fn delete_tensor(tensor: *mut DLManagedTensorVersioned) {
    count(-1);
    // SAFETY: it is the beginning of one of `allocate_tensor`.
    let Memory { dims, elements, .. } = *unsafe { Box::from_raw(tensor.cast::<Memory>()) };
    drop((dims, elements));
}
