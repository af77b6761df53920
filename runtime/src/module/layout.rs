//! The memory of modules: a module of this crate has the fields of upstream's `ModuleObj`, and its own after them. With
//! a C++ part, it also begins with a vtable pointer, before the header. Header: `extra/module.h`.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::cxx::{methods, vtable};
use super::implementation::ModuleImpl;
use crate::abi::*;
use crate::container::Array;
use crate::function::Function;
use crate::heap::{AsObject, ObjectLayout, ObjectRef, WeakRef, make_object, make_prefixed_object, release};

/// The fields of upstream's modules.
#[repr(C)]
struct Fields {
    header: TVMFFIObject,
    /// NULL or an array. With a C++ part never NULL, as C++ code expects.
    imports: AtomicPtr<TVMFFIObject>,
    /// In C++ modules the map of functions that [`Lookups`] has here. In this crate's modules, the address of [`MARK`].
    mark: AtomicPtr<u8>,
}

/// No C++ module has a map at this address.
static MARK: u8 = 0;

#[repr(C)]
struct ModuleObject {
    fields: Fields,
    body: ModuleBody,
}

/// The functions that lookups by a module's code have returned. The module keeps them for its whole lifetime.
#[derive(Default)]
pub(super) struct Lookups {
    pub(super) found: HashMap<String, Function>,
    /// Functions that were found before `newer` was set. Code may be about to call one of them.
    pub(super) retired: Vec<Function>,
    pub(super) newer: Option<WeakRef>,
}

/// The Rust part of a module. Fields drop in order: functions from a library's code drop before the library.
pub(super) struct ModuleBody {
    pub(super) lookups: Mutex<Lookups>,
    pub(super) implementation: Box<dyn ModuleImpl>,
}

// SAFETY: repr(C) with the header first.
unsafe impl ObjectLayout for ModuleObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::MODULE;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller. A field `imports` that isn't NULL owns its reference, which moves out here.
        unsafe {
            let imports = std::mem::replace((*object).fields.imports.get_mut(), null_mut());
            // Not recursive, so a long chain of imports doesn't overflow the stack.
            release(ObjectRef::from_raw(imports).into_iter());
            (&raw mut (*object).body).drop_in_place();
        }
    }
}

/// A new module object without imports.
pub(super) fn new(implementation: Box<dyn ModuleImpl>) -> ObjectRef {
    let vtable = vtable();
    let imports = no_imports();
    let build = |header| ModuleObject {
        fields: Fields { header, imports: AtomicPtr::new(imports), mark: AtomicPtr::new((&raw const MARK).cast_mut()) },
        body: ModuleBody { lookups: Mutex::default(), implementation },
    };
    let object = match vtable {
        Some(vtable) => make_prefixed_object(vtable, build),
        None => make_object(0, |header, _| build(header)),
    };
    // SAFETY: both functions return the object's one strong reference.
    unsafe { ObjectRef::from_non_null(object) }
}

/// The value of the field `imports` without imports: an owned reference to an empty array, or NULL.
pub(super) fn no_imports() -> *mut TVMFFIObject {
    vtable().map_or(null_mut(), |_| Array::default().into_object().into_raw())
}

/// True if a module object was made by this crate, or is a C++ module that the C++ part can use.
pub(super) fn is_module(object: &ObjectRef) -> bool {
    is_marked(object) || methods().is_some()
}

fn is_marked(object: &ObjectRef) -> bool {
    // SAFETY: the object is alive, and in every implementation two words follow the header.
    let mark = unsafe { &(*object.as_ptr().cast::<Fields>()).mark };
    std::ptr::eq(mark.load(Ordering::Relaxed), &raw const MARK)
}

/// The field `imports` of a module.
///
/// # Safety
/// [`is_module`] must hold for the object.
pub(super) unsafe fn imports_of(object: &ObjectRef) -> &AtomicPtr<TVMFFIObject> {
    // SAFETY: both kinds of modules have this field. In C++ modules it is a pointer that this crate alone changes while
    // it has several users.
    unsafe { &(*object.as_ptr().cast::<Fields>()).imports }
}

/// The body of a module that this crate has made.
pub(super) fn body_of(object: &ObjectRef) -> Option<&ModuleBody> {
    // SAFETY: a marked object has this layout.
    is_marked(object).then(|| unsafe { &(*object.as_ptr().cast::<ModuleObject>()).body })
}

/// The module object that the value of a library's `__tvm_ffi__library_ctx` refers to. With a C++ part it may also be
/// the address of a C++ object, in which a vtable pointer precedes the header.
///
/// # Safety
/// The value must be NULL, or a module that is alive.
pub(crate) unsafe fn object_of_context(context: *mut c_void) -> *mut TVMFFIObject {
    if context.is_null() || methods().is_none() {
        return context.cast();
    }
    // The type index and the padding after it, if a vtable pointer precedes the header. Otherwise these are the two
    // halves of the address of the deleter.
    // SAFETY: a header has three words, so two of them and half of the third precede this place in each case.
    let [index, padding] = unsafe { context.byte_add(2 * size_of::<u64>()).cast::<[i32; 2]>().read() };
    let offset = if (index, padding) == (TypeIndex::MODULE.0, 0) { size_of::<*const c_void>() } else { 0 };
    context.wrapping_byte_add(offset).cast()
}
