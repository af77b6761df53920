//! Storage of objects: the current allocator provides storage for every body, with a header before it.
//! The builtin allocator stores the block's layout in a prefix, so it can free blocks of any alignment. 16 bytes are
//! enough for the prefix of usual alignment. Header section: "ObjectAllocHeader and CustomAllocator".

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::{count, live, raised, spare};
use crate::abi::*;
use crate::external;

/// The fields that the builtin allocator writes directly before a body of usual alignment. The header is the last one.
#[repr(C)]
struct Prefix {
    total_size: usize,
    header: TVMFFIObjectAllocHeader,
}

/// The fields that the builtin allocator writes directly before a body of larger alignment.
#[repr(C)]
struct AlignedPrefix {
    align: usize,
    body_offset: usize,
    prefix: Prefix,
}

const _: () = assert!(size_of::<Prefix>() <= spare::ALIGN && align_of::<AlignedPrefix>() <= spare::ALIGN);

struct Builtin(TVMFFICustomAllocator);
// SAFETY: the builtin allocator's fields never change and its context is NULL.
unsafe impl Sync for Builtin {}

static BUILTIN: Builtin =
    Builtin(TVMFFICustomAllocator { allocate: Some(builtin_allocate), context: std::ptr::null_mut() });

const fn builtin() -> *mut TVMFFICustomAllocator {
    (&raw const BUILTIN.0).cast_mut()
}

static CURRENT: AtomicPtr<TVMFFICustomAllocator> = AtomicPtr::new(builtin());

/// The allocator that new objects use; never NULL.
#[inline]
pub fn current_allocator() -> *mut TVMFFICustomAllocator {
    external::allocator().unwrap_or_else(|| CURRENT.load(Ordering::Acquire))
}

/// Installs the allocator for objects created from now on; NULL restores the builtin one.
///
/// # Safety
/// A non-NULL allocator, its context and its function must stay valid for the whole process and
/// follow the contract of `TVMFFICustomAllocator`.
pub unsafe fn set_current_allocator(allocator: *mut TVMFFICustomAllocator) {
    // SAFETY: promised by the caller.
    if unsafe { external::set_allocator(allocator) } {
        return;
    }
    CURRENT.store(if allocator.is_null() { builtin() } else { allocator }, Ordering::Release);
}

unsafe extern "C" fn builtin_allocate(
    size: usize,
    alignment: usize,
    _type_index: i32,
    _context: *mut c_void,
) -> *mut c_void {
    if alignment <= spare::ALIGN { allocate_usual(size) } else { allocate_aligned(size, alignment) }
}

#[inline]
fn allocate_usual(size: usize) -> *mut c_void {
    let Some(total_size) = size.checked_add(spare::ALIGN) else {
        return std::ptr::null_mut();
    };
    let (block, total_size) = spare::allocate(total_size);
    if block.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the block is at least this long.
    let body = unsafe { block.add(spare::ALIGN) };
    let header = TVMFFIObjectAllocHeader { delete_space: Some(delete_usual) };
    // SAFETY: the prefix fits between the block's start and the body. It is aligned, because the body and the prefix's
    // size are.
    unsafe { body.cast::<Prefix>().sub(1).write(Prefix { total_size, header }) };
    body.cast()
}

#[cold]
fn allocate_aligned(size: usize, align: usize) -> *mut c_void {
    let body_offset = size_of::<AlignedPrefix>().next_multiple_of(align);
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
    let header = TVMFFIObjectAllocHeader { delete_space: Some(delete_aligned) };
    let prefix = AlignedPrefix { align, body_offset, prefix: Prefix { total_size, header } };
    // SAFETY: as above. The prefix is aligned: the body's offset is a multiple of an alignment that is at least the
    // prefix's, and so is the prefix's size.
    unsafe { body.cast::<AlignedPrefix>().sub(1).write(prefix) };
    body.cast()
}

unsafe extern "C" fn delete_usual(body: *mut c_void) {
    // SAFETY: only headers that `allocate_usual` wrote refer to this function. The prefix therefore precedes the body,
    // and block and size are those of one allocation.
    unsafe {
        let total_size = (*body.cast::<Prefix>().sub(1)).total_size;
        spare::free(body.cast::<u8>().sub(spare::ALIGN), total_size);
    }
}

unsafe extern "C" fn delete_aligned(body: *mut c_void) {
    // SAFETY: only headers that `allocate_aligned` wrote refer to this function. The prefix therefore precedes the
    // body, the block starts `body_offset` before the body, and the layout is the block's.
    unsafe {
        let AlignedPrefix { align, body_offset, prefix } = body.cast::<AlignedPrefix>().sub(1).read();
        let layout = Layout::from_size_align_unchecked(prefix.total_size, align);
        dealloc(body.cast::<u8>().sub(body_offset), layout);
    }
}

/// Storage for a body, from the current allocator.
///
/// If a custom allocator fails or returns misaligned storage, its raised error is dropped and the builtin allocator
/// provides the storage. If that fails too, the result is `None`.
#[inline]
pub(super) fn allocate(layout: Layout, type_index: TypeIndex) -> Option<NonNull<u8>> {
    let allocator = current_allocator();
    if allocator == builtin() { allocate_builtin(layout) } else { allocate_custom(allocator, layout, type_index) }
}

#[cold]
#[inline(never)]
fn allocate_custom(
    allocator: *mut TVMFFICustomAllocator,
    layout: Layout,
    type_index: TypeIndex,
) -> Option<NonNull<u8>> {
    // SAFETY: the code that set the current allocator promised that it stays valid for the whole process.
    let TVMFFICustomAllocator { allocate, context } = unsafe { *allocator };
    if let Some(allocate) = allocate {
        // SAFETY: the allocator's contract; size and alignment come from a valid layout.
        let body = unsafe { allocate(layout.size(), layout.align(), type_index.0, context) };
        match NonNull::new(body.cast::<u8>()) {
            Some(body) if body.addr().get().is_multiple_of(layout.align()) => return Some(body),
            // SAFETY: the storage is new, and no other code has it.
            Some(body) => unsafe { delete_space(body.as_ptr().cast()) },
            None => drop(raised::take()),
        }
    }
    allocate_builtin(layout)
}

/// Storage for a body, from the builtin allocator.
#[inline]
fn allocate_builtin(layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: the builtin allocator takes any valid layout.
    let body = unsafe { builtin_allocate(layout.size(), layout.align(), 0, std::ptr::null_mut()) };
    NonNull::new(body.cast())
}

/// Frees the storage of a body.
///
/// # Safety
/// The storage must come from an allocator, and must not be used any more.
#[inline]
unsafe fn delete_space(body: *mut c_void) {
    // SAFETY: every allocator places an initialised header right before the body.
    let header = unsafe { body.cast::<TVMFFIObjectAllocHeader>().sub(1).read() };
    if let Some(delete_space) = header.delete_space {
        if std::ptr::fn_addr_eq(delete_space, delete_usual as unsafe extern "C" fn(*mut c_void)) {
            // The most common case: the same function, called directly instead of through the header.
            // SAFETY: as below.
            return unsafe { delete_usual(body) };
        }
        // SAFETY: the header's contract: called once, with the body, when no reference is left.
        unsafe { delete_space(body) };
    }
}

/// Moves a value that isn't an object to the heap; [`take_out`] moves it back. Returns the value when out of memory.
#[inline]
pub(crate) fn try_place<T>(value: T) -> Result<*mut T, T> {
    const { assert!(align_of::<T>() <= spare::ALIGN) };
    let (block, _) = spare::allocate(size_of::<T>());
    if block.is_null() {
        return Err(value);
    }
    // SAFETY: the block is new, and large and aligned enough.
    unsafe { block.cast::<T>().write(value) };
    Ok(block.cast())
}

/// As [`try_place`], for callers that can't report a failure: aborts the process when out of memory.
#[inline]
pub(crate) fn place<T>(value: T) -> *mut T {
    try_place(value).unwrap_or_else(|_| handle_alloc_error(Layout::new::<T>()))
}

/// Moves a value out of its heap block and frees the block.
///
/// # Safety
/// The pointer must come from [`try_place`] or [`place`], and must not be used any more.
#[inline]
pub(crate) unsafe fn take_out<T>(placed: *mut T) -> T {
    // SAFETY: the block holds the value, and its size is the one that `place` requested.
    unsafe {
        let value = placed.read();
        spare::free(placed.cast(), spare::size_of_block(size_of::<T>()));
        value
    }
}

/// A Rust type that is laid out as an object: `repr(C)`, with [`TVMFFIObject`] first.
///
/// # Safety
/// The type must be `repr(C)` with a [`TVMFFIObject`] as its first field.
pub(crate) unsafe trait ObjectLayout {
    /// The type index of its objects.
    const TYPE_INDEX: TypeIndex;

    /// Drops the fields after the header if they own anything. It must not create a reference to the whole object,
    /// because holders of weak references may be reading its counts.
    ///
    /// # Safety
    /// No strong reference may be left, and the fields must not be used any more.
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

/// Moves an object into new storage, followed by `tail` more bytes (uninitialised).
///
/// `build` makes the object from its header and the address of the tail. The result owns the object's one strong
/// reference. For callers that can't report a failure: aborts the process when out of memory, like any failed Rust
/// allocation.
#[inline]
pub(crate) fn make_object<T: ObjectLayout>(tail: usize, build: impl FnOnce(TVMFFIObject, *mut u8) -> T) -> NonNull<T> {
    try_make_object(tail, build).unwrap_or_else(|| no_memory::<T>(tail))
}

/// As [`make_object`], but returns `None` and drops `build` when out of memory.
#[inline]
pub(crate) fn try_make_object<T: ObjectLayout>(
    tail: usize,
    build: impl FnOnce(TVMFFIObject, *mut u8) -> T,
) -> Option<NonNull<T>> {
    let object = make_object_in(tail, build, |layout| allocate(layout, T::TYPE_INDEX))?;
    live::made(object.as_ptr());
    Some(object)
}

fn layout<T>(tail: usize) -> Option<Layout> {
    size_of::<T>().checked_add(tail).and_then(|size| Layout::from_size_align(size, align_of::<T>()).ok())
}

#[cold]
#[inline(never)]
fn no_memory<T>(tail: usize) -> ! {
    handle_alloc_error(layout::<T>(tail).unwrap_or_else(Layout::new::<T>))
}

/// As [`make_object`], with storage from the builtin allocator. It is for objects that this crate makes for itself
/// while other threads wait for them. A custom allocator could call back into the crate, so it must not run meanwhile.
pub(crate) fn make_own_object<T: ObjectLayout>(build: impl FnOnce(TVMFFIObject) -> T) -> NonNull<T> {
    let own = |header| TVMFFIObject { deleter: Some(delete_own_object::<T>), ..header };
    make_object_in(0, |header, _| build(own(header)), allocate_builtin).unwrap_or_else(|| no_memory::<T>(0))
}

/// As [`make_object`], for an object whose type is registered at run time.
pub(crate) fn make_object_with_index<T: ObjectLayout>(
    index: TypeIndex,
    build: impl FnOnce(TVMFFIObject) -> T,
) -> NonNull<T> {
    let object = make_object_in(
        0,
        |header, _| build(TVMFFIObject { type_index: index.0, ..header }),
        |layout| allocate(layout, index),
    )
    .unwrap_or_else(|| no_memory::<T>(0));
    live::made(object.as_ptr());
    object
}

#[inline]
fn make_object_in<T: ObjectLayout>(
    tail: usize,
    build: impl FnOnce(TVMFFIObject, *mut u8) -> T,
    allocate: impl FnOnce(Layout) -> Option<NonNull<u8>>,
) -> Option<NonNull<T>> {
    let body = allocate(layout::<T>(tail)?)?.cast::<T>();
    // SAFETY: `allocate` returned storage of the size and alignment of `T` that no other code uses.
    unsafe { body.write(build(new_header::<T>(), tail_ptr(body))) };
    Some(body)
}

/// The address of the bytes after an object.
pub(crate) fn tail_ptr<T>(object: NonNull<T>) -> *mut u8 {
    // Wrapping, because the storage may end exactly there.
    object.as_ptr().wrapping_add(1).cast()
}

/// Drops a panic's payload. If that panics again, the second payload is leaked.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// The deleter of every object made by [`make_object`].
unsafe extern "C" fn delete_object<T: ObjectLayout>(object: *mut c_void, flags: c_int) {
    if flags & kTVMFFIObjectDeleterFlagBitMaskWeak != 0 {
        live::gone(object);
    }
    // SAFETY: promised by the caller; the allocator's storage begins with the object.
    unsafe { delete::<T>(object, object, flags) };
}

/// The deleter of every object made by [`make_own_object`]. These objects don't count as live.
unsafe extern "C" fn delete_own_object<T: ObjectLayout>(object: *mut c_void, flags: c_int) {
    // SAFETY: as in `delete_object`.
    unsafe { delete::<T>(object, object, flags) };
}

/// Destroys an object, frees its storage, or both. A panic in the destructor is swallowed, because no caller of the C
/// API could handle it.
///
/// # Safety
/// No strong reference, or no reference at all, is left, as the flags say. Each flag is passed once. An allocator
/// provided `storage` for the object.
#[inline]
pub(super) unsafe fn delete<T: ObjectLayout>(object: *mut c_void, storage: *mut c_void, flags: c_int) {
    if flags & kTVMFFIObjectDeleterFlagBitMaskStrong != 0 {
        // SAFETY: the counting protocol calls this once, with the object that `make_object` wrote, after the last
        // strong reference is gone.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { T::drop_fields(object.cast()) }));
        if let Err(payload) = dropped {
            drop_payload(payload);
        }
    }
    if flags & kTVMFFIObjectDeleterFlagBitMaskWeak != 0 {
        // SAFETY: no reference of either kind is left.
        unsafe { delete_space(storage) };
    }
}
