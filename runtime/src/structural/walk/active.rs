//! The objects of visitors and mutators. C++ code makes such objects too, with vtables of its own, and reads and writes
//! the fields of any of them.
//! Header sections: upstream's `StructuralVisitorObj`, `StructuralMutatorObj`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};

use super::super::region;
use crate::abi::*;
use crate::any::Any;
use crate::error::{Result, runtime_error};
use crate::heap::{ObjectLayout, ObjectRef, make_object_with_index};
use crate::reflect::children::object_of;
use crate::type_table::key_to_index;

/// The fields that visitors and mutators have in every implementation.
#[repr(C)]
struct Head {
    header: TVMFFIObject,
    vtable: *const (),
    region: AtomicI32,
}

const _: () = assert!(size_of::<Head>() == SIZE);

/// The size of an object without an implementation's own fields.
pub(super) const SIZE: usize = 40;

/// An object of this crate: the head, and an engine.
#[repr(C)]
struct Body<T> {
    head: Head,
    engine: T,
}

// SAFETY: repr(C) with the header first.
unsafe impl<T> ObjectLayout for Body<T> {
    // A placeholder: objects are created with the type's own index.
    const TYPE_INDEX: TypeIndex = TypeIndex::OBJECT;

    unsafe fn drop_fields(object: *mut Self) {
        // SAFETY: promised by the caller.
        unsafe { (&raw mut (*object).engine).drop_in_place() };
    }
}

/// A kind of active object.
///
/// # Safety
/// `VTABLE` must be the vtable of this crate's objects of the kind alone.
pub(super) unsafe trait Kind: Sized + 'static {
    const KEY: &'static str;
    type VTable: Sync + 'static;
    type Engine: Send + Sync + 'static;
    const VTABLE: &'static Self::VTable;
}

/// A visitor or a mutator, during a walk or kept from one.
pub(super) struct Active<K: Kind> {
    object: ObjectRef,
    kind: std::marker::PhantomData<K>,
}

impl<K: Kind> Active<K> {
    /// A new object around an engine.
    ///
    /// # Errors
    /// `RuntimeError` if the type is gone from the table.
    pub(super) fn new(engine: K::Engine) -> Result<Self> {
        let index = key_to_index(K::KEY).ok_or_else(|| runtime_error(&format!("no type `{}`", K::KEY)))?;
        let object = make_object_with_index(TypeIndex(index), |header| Body {
            head: Head {
                header,
                vtable: std::ptr::from_ref(K::VTABLE).cast(),
                region: AtomicI32::new(kTVMFFIDefRegionKindNone),
            },
            engine,
        });
        // SAFETY: `make_object_with_index` returns the object's one strong reference.
        Ok(unsafe { Self::from_object(ObjectRef::from_non_null(object)) })
    }

    /// # Safety
    /// The object must be one of the kind, of any implementation.
    pub(super) unsafe fn from_object(object: ObjectRef) -> Self {
        Self { object, kind: std::marker::PhantomData }
    }

    pub(super) fn object(&self) -> &ObjectRef {
        &self.object
    }

    fn head(&self) -> NonNull<Head> {
        // SAFETY: an object begins with its head, and its address is not NULL.
        unsafe { NonNull::new_unchecked(self.object.as_ptr().cast()) }
    }

    fn vtable_ptr(&self) -> *const () {
        // SAFETY: the object is alive, and its vtable doesn't change.
        unsafe { (*self.head().as_ptr()).vtable }
    }

    /// The engine, if the object is this crate's.
    pub(super) fn engine(&self) -> Option<&K::Engine> {
        if !std::ptr::eq(self.vtable_ptr(), std::ptr::from_ref(K::VTABLE).cast()) {
            return None;
        }
        // SAFETY: only this crate's objects have the vtable, and they have a body with an engine of the kind.
        Some(unsafe { &(*self.head().as_ptr().cast::<Body<K::Engine>>()).engine })
    }

    /// The vtable.
    ///
    /// # Errors
    /// `RuntimeError` for an object without one, as reflection makes it.
    pub(super) fn vtable(&self) -> Result<&K::VTable> {
        // SAFETY: objects of the kind have a vtable of the kind, which outlives them, or NULL.
        unsafe { self.vtable_ptr().cast::<K::VTable>().as_ref() }
            .ok_or_else(|| runtime_error(&format!("a `{}` without a vtable", K::KEY)))
    }

    /// The current definition region.
    pub(super) fn region(&self) -> i32 {
        // SAFETY: the object is alive. Safe code reaches the field by these functions alone.
        unsafe { &(*self.head().as_ptr()).region }.load(Ordering::Relaxed)
    }

    pub(super) fn set_region(&self, region: i32) {
        // SAFETY: as above.
        unsafe { &(*self.head().as_ptr()).region }.store(region, Ordering::Relaxed);
    }

    /// Enters a region, and returns the one to restore.
    pub(super) fn enter(&self, kind: i32) -> i32 {
        let before = self.region();
        self.set_region(region::enter(before, kind));
        before
    }

    /// Restores the region that was left, if one is noted.
    pub(super) fn restore(&self, region: &mut Option<i32>) {
        if let Some(region) = region.take() {
            self.set_region(region);
        }
    }

    /// Leaves frames from the innermost on, and restores the regions of each. A frame has its regions, its value, and
    /// true if the value isn't in an error's context. Returns the objects of that context.
    pub(super) fn leave<'a>(&self, frames: impl Iterator<Item = ([Option<i32>; 2], &'a Any, bool)>) -> Vec<ObjectRef> {
        let mut nodes = Vec::new();
        for (regions, node, is_bare) in frames {
            regions.into_iter().flatten().for_each(|region| self.set_region(region));
            if !is_bare {
                nodes.extend(object_of(node));
            }
        }
        nodes
    }

    /// Runs `body` in a region.
    pub(super) fn within<R>(&self, kind: i32, body: impl FnOnce() -> R) -> R {
        let before = self.enter(kind);
        let result = body();
        self.set_region(before);
        result
    }
}
