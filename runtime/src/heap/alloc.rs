//! Storage of objects: every body comes from the current allocator, behind its header.
//! The builtin allocator keeps the block's layout in a prefix, so that it frees any alignment.
//! Header section: "ObjectAllocHeader and CustomAllocator".

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::{count, raised};
use crate::abi::*;

/// What the builtin allocator writes right before a body; the header is the last field.
#[repr(C)]
struct Prefix {
    total_size: usize,
    align: usize,
    body_offset: usize,
    header: TVMFFIObjectAllocHeader,
}

struct Builtin(TVMFFICustomAllocator);
// SAFETY: the builtin allocator's fields never change and its context is NULL.
unsafe impl Sync for Builtin {}

static BUILTIN: Builtin =
    Builtin(TVMFFICustomAllocator { allocate: Some(builtin_allocate), context: std::ptr::null_mut() });

/// NULL stands for the builtin allocator.
static CURRENT: AtomicPtr<TVMFFICustomAllocator> = AtomicPtr::new(std::ptr::null_mut());

/// The allocator that new objects use; never NULL.
pub fn current_allocator() -> *mut TVMFFICustomAllocator {
    #[cfg(feature = "external")]
    if let Some(get) = crate::external::api().ok().and_then(|api| api.TVMFFIGetCustomAllocator) {
        // SAFETY: the function takes nothing, and gives what is valid for the process.
        let current = unsafe { get() };
        if !current.is_null() {
            return current;
        }
    }
    let current = CURRENT.load(Ordering::Acquire);
    if current.is_null() { (&raw const BUILTIN.0).cast_mut() } else { current }
}

/// Installs the allocator of objects created from now on; NULL restores the builtin one.
///
/// # Safety
/// A non-NULL allocator, its context and its function must stay valid for the whole process and
/// follow the contract of `TVMFFICustomAllocator`.
pub unsafe fn set_current_allocator(allocator: *mut TVMFFICustomAllocator) {
    #[cfg(feature = "external")]
    if let Some(set) = crate::external::api().ok().and_then(|api| api.TVMFFISetCustomAllocator) {
        // SAFETY: promised by the caller. A failure has no other way out, and leaves the allocator that was there.
        unsafe { set(allocator) };
        return;
    }
    CURRENT.store(allocator, Ordering::Release);
}

unsafe extern "C" fn builtin_allocate(
    size: usize,
    alignment: usize,
    _type_index: i32,
    _context: *mut c_void,
) -> *mut c_void {
    let align = alignment.max(align_of::<Prefix>());
    let body_offset = size_of::<Prefix>().next_multiple_of(align);
    let Some(total_size) = body_offset.checked_add(size) else {
        return std::ptr::null_mut();
    };
    let Ok(layout) = Layout::from_size_align(total_size, align) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout's size is at least that of the prefix, so it is not zero.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: `body_offset` lies within the block and leaves room for the prefix before it.
    let body = unsafe { block.add(body_offset) };
    let prefix = Prefix {
        total_size,
        align,
        body_offset,
        header: TVMFFIObjectAllocHeader { delete_space: Some(builtin_delete_space) },
    };
    // SAFETY: the prefix fits between the block's start and the body, and is aligned because the
    // body's offset is a multiple of an alignment of at least the prefix's and so is its size.
    unsafe { body.cast::<Prefix>().sub(1).write(prefix) };
    body.cast()
}

unsafe extern "C" fn builtin_delete_space(body: *mut c_void) {
    // SAFETY: this function is only found in headers that `builtin_allocate` wrote, so the prefix
    // precedes the body, the block starts `body_offset` before it, and the layout is the block's.
    unsafe {
        let prefix = body.cast::<Prefix>().sub(1).read();
        let layout = Layout::from_size_align_unchecked(prefix.total_size, prefix.align);
        dealloc(body.cast::<u8>().sub(prefix.body_offset), layout);
    }
}

/// Storage for a body, from the current allocator.
///
/// Objects made by this crate's Rust constructors cannot report a failed allocation. When a
/// custom allocator fails, or gives storage that is not aligned as asked, its raised error is dropped
/// and the builtin allocator serves the object; when that fails too, the process ends as for any failed
/// Rust allocation.
fn allocate(layout: Layout, type_index: TypeIndex) -> NonNull<u8> {
    let allocator = current_allocator();
    // SAFETY: the current allocator is the builtin one or was promised valid for the process.
    let TVMFFICustomAllocator { allocate, context } = unsafe { *allocator };
    if let Some(allocate) = allocate {
        // SAFETY: the allocator's contract; size and alignment come from a valid layout.
        let body = unsafe { allocate(layout.size(), layout.align(), type_index.0, context) };
        match NonNull::new(body.cast::<u8>()) {
            Some(body) if body.addr().get().is_multiple_of(layout.align()) => return body,
            // SAFETY: the storage is new, and nobody else knows of it.
            Some(body) => unsafe { delete_space(body.as_ptr().cast()) },
            None => drop(raised::take()),
        }
    }
    allocate_builtin(layout)
}

/// Storage for a body, from the builtin allocator.
fn allocate_builtin(layout: Layout) -> NonNull<u8> {
    // SAFETY: the builtin allocator takes any valid layout.
    let body = unsafe { builtin_allocate(layout.size(), layout.align(), 0, std::ptr::null_mut()) };
    NonNull::new(body.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives the storage of a body back.
///
/// # Safety
/// The storage must come from an allocator, and nothing use it any more.
unsafe fn delete_space(body: *mut c_void) {
    // SAFETY: every allocator places an initialised header right before the body.
    let header = unsafe { body.cast::<TVMFFIObjectAllocHeader>().sub(1).read() };
    if let Some(delete_space) = header.delete_space {
        // SAFETY: the header's contract: called once, with the body, when no reference is left.
        unsafe { delete_space(body) };
    }
}

/// A Rust type that is laid out as an object: `repr(C)`, with [`TVMFFIObject`] first.
///
/// # Safety
/// The type must be `repr(C)` with a [`TVMFFIObject`] as its first field.
pub(crate) unsafe trait ObjectLayout {
    /// The type index of its objects.
    const TYPE_INDEX: TypeIndex;

    /// Drops what lies behind the header, where that owns something. No reference to the whole object may be made: those who hold weak
    /// references may be reading its counts.
    ///
    /// # Safety
    /// No strong reference may be left, and nothing use the fields any more.
    unsafe fn drop_fields(_object: *mut Self) {}
}

/// The header of a new object of type `T`, with one strong reference.
pub(crate) fn new_header<T: ObjectLayout>() -> TVMFFIObject {
    TVMFFIObject {
        combined_ref_count: AtomicU64::new(count::BOTH_ONE),
        type_index: T::TYPE_INDEX.0,
        __padding: 0,
        deleter: Some(delete_object::<T>),
    }
}

/// The deleter of objects of type `T`.
pub(crate) fn deleter_of<T: ObjectLayout>() -> TVMFFIObjectDeleter {
    delete_object::<T>
}

/// Moves an object into new storage with `tail` more bytes behind it (uninitialised).
///
/// `build` makes the object from its header and the address of the tail. The result owns the
/// object's one strong reference.
pub(crate) fn make_object<T: ObjectLayout>(tail: usize, build: impl FnOnce(TVMFFIObject, *mut u8) -> T) -> NonNull<T> {
    make_object_in(tail, build, |layout| allocate(layout, T::TYPE_INDEX))
}

/// As [`make_object`], with storage from the builtin allocator: for objects that this crate makes for itself while others wait for it,
/// so that no custom allocator, which may call back, runs meanwhile.
pub(crate) fn make_own_object<T: ObjectLayout>(build: impl FnOnce(TVMFFIObject) -> T) -> NonNull<T> {
    make_object_in(0, |header, _| build(header), allocate_builtin)
}

/// As [`make_object`], for an object of a type that is registered at run time.
pub(crate) fn make_object_with_index<T: ObjectLayout>(
    index: TypeIndex,
    build: impl FnOnce(TVMFFIObject) -> T,
) -> NonNull<T> {
    make_object_in(
        0,
        |header, _| build(TVMFFIObject { type_index: index.0, ..header }),
        |layout| allocate(layout, index),
    )
}

fn make_object_in<T: ObjectLayout>(
    tail: usize,
    build: impl FnOnce(TVMFFIObject, *mut u8) -> T,
    allocate: impl FnOnce(Layout) -> NonNull<u8>,
) -> NonNull<T> {
    let layout = size_of::<T>()
        .checked_add(tail)
        .and_then(|size| Layout::from_size_align(size, align_of::<T>()).ok())
        .unwrap_or_else(|| handle_alloc_error(Layout::new::<T>()));
    let body = allocate(layout).cast::<T>();
    let object = build(new_header::<T>(), tail_ptr(body));
    // SAFETY: `allocate` gave storage of the size and alignment of `T` that nobody else uses.
    unsafe { body.write(object) };
    body
}

/// Where the bytes behind an object begin.
pub(crate) fn tail_ptr<T>(object: NonNull<T>) -> *mut u8 {
    // Wrapping, because the storage may end right there.
    object.as_ptr().wrapping_add(1).cast()
}

/// Drops what a panic carried. That may panic again, and is then forgotten.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// The deleter of every object made by [`make_object`]. A panic of the destructor is swallowed:
/// no caller of the C API could take it.
unsafe extern "C" fn delete_object<T: ObjectLayout>(object: *mut c_void, flags: c_int) {
    if flags & kTVMFFIObjectDeleterFlagBitMaskStrong != 0 {
        // SAFETY: the counting protocol calls this once, with the object that `make_object` wrote,
        // after the last strong reference is gone.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { T::drop_fields(object.cast()) }));
        if let Err(payload) = dropped {
            drop_payload(payload);
        }
    }
    if flags & kTVMFFIObjectDeleterFlagBitMaskWeak != 0 {
        // SAFETY: no reference of either kind is left.
        unsafe { delete_space(object) };
    }
}
