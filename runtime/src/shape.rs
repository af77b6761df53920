//! Shape objects: an immutable list of extents.
//! Layout: header, `TVMFFIShapeCell`, the extents.
//! Header sections: `kTVMFFIShape`, `TVMFFIShapeCell`.

use std::fmt;
use std::ops::Deref;

use crate::abi::*;
use crate::any::object_values;
use crate::error::object_wrapper;
use crate::heap::{ObjectLayout, ObjectRef, make_object};

#[repr(C)]
struct ShapeObject {
    header: TVMFFIObject,
    cell: TVMFFIShapeCell,
}

// SAFETY: repr(C) with the header first; the cell follows, as in the header file.
unsafe impl ObjectLayout for ShapeObject {
    const TYPE_INDEX: TypeIndex = TypeIndex::SHAPE;
}

/// An immutable list of extents, `ffi.Shape`. Dereferences to `[i64]`.
#[derive(Clone)]
#[repr(transparent)]
pub struct Shape(ObjectRef);

object_wrapper!(Shape, TypeIndex::SHAPE);
object_values!(Shape);

impl Shape {
    /// A copy of `extents`.
    pub fn new(extents: &[i64]) -> Self {
        Self::of(extents.iter().copied())
    }

    /// A shape of these extents. They go into the object directly, without another list.
    #[inline]
    pub(crate) fn of(extents: impl ExactSizeIterator<Item = i64>) -> Self {
        let len = extents.len();
        let object = make_object::<ShapeObject>(len.saturating_mul(size_of::<i64>()), |header, tail| {
            let data = tail.cast::<i64>();
            let mut size = 0;
            // An iterator may be wrong about its length.
            for extent in extents.take(len) {
                // SAFETY: the tail is new and has room for `len` extents. It is aligned for them because the object's
                // size is a multiple of 8, their alignment.
                unsafe { data.add(size).write(extent) };
                size += 1;
            }
            ShapeObject { header, cell: TVMFFIShapeCell { data, size } }
        });
        // SAFETY: `make_object` returns the object's one strong reference.
        Self(unsafe { ObjectRef::from_non_null(object) })
    }

    /// The extents.
    pub fn as_slice(&self) -> &[i64] {
        // SAFETY: the cell follows the header of every shape object. It describes extents that live as long as the
        // object and never change.
        unsafe {
            let cell = self.0.as_ptr().add(1).cast::<TVMFFIShapeCell>().read();
            if cell.data.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(cell.data, cell.size)
        }
    }
}

impl Deref for Shape {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.as_slice()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}
