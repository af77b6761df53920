//! The state of one call, which the runtime helpers of [`bind`](crate::lower::binder) share: values that messages show, the present path,
//! the bindings. It is in the scratch memory behind the arguments. The bindings are right behind it, so that one address leads to all, in few
//! bytes of code. [`report`](crate::lower::binder::report) reads it as a template's context.

use super::layout::offset;
use crate::lower::abi::ANY_SIZE;
use crate::spec::MAX_CONTAINER_DEPTH;

/// A path that messages show: `xs[3].shape[0]`. The [`Step`]s into containers follow it. In the binder's state is the present path, in a
/// [`Binding`] the path of the value that made it.
#[repr(C)]
pub(in crate::lower) struct Path {
    /// The address of the parameter's name.
    pub name: u64,
    /// The address of the text between the name and the dimension: `.shape[`. NULL where the path has neither.
    pub member: u64,
    /// The number of the dimension.
    pub dim: u64,
    /// Number of steps.
    pub depth: u64,
}

/// Offset of the steps of a path.
pub(in crate::lower) const STEPS: i32 = size_of::<Path>() as i32;

/// A step of a path into a container.
#[repr(C)]
pub(in crate::lower) struct Step {
    /// The address of the container's name.
    pub name: u64,
    /// [`StepKind`].
    pub kind: u64,
    /// The element's number, or the address of the `TVMFFIAny` that is a str.
    pub value: u64,
}

/// Bytes of a [`Step`].
pub(in crate::lower) const STEP_SIZE: i32 = size_of::<Step>() as i32;

/// How a [`Step`] is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(in crate::lower) enum StepKind {
    /// `[3]`
    Index,
    /// `["key"]`
    Text,
    /// `[...]`
    Other,
    /// `.keys()[3]`
    Key,
}

/// The binding of a symbol or of a device slot.
#[repr(C)]
pub(in crate::lower) struct Binding {
    pub value: i64,
    /// Where the value comes from. Its name is NULL where the symbol has no value.
    pub path: Path,
}

/// A dimension that is deferred.
#[repr(C)]
pub(in crate::lower) struct Deferred {
    /// The address of its descriptor; NULL once it is decided.
    pub dim: u64,
    /// The size or stride that came.
    pub got: i64,
    /// The argument's number.
    pub arg: u64,
    /// 1 for a size, 0 for a stride.
    pub is_size: u64,
    pub path: Path,
}

/// Bytes of a path with steps into `depth` containers.
pub(in crate::lower) const fn path_size(depth: usize) -> i64 {
    (size_of::<Path>() + depth * size_of::<Step>()) as i64
}

/// Bytes of a binding whose path has steps into `depth` containers.
pub(in crate::lower) const fn binding_size(depth: usize) -> i64 {
    offset!(Binding, path) as i64 + path_size(depth)
}

/// Bytes of a deferred dimension whose path has steps into `depth` containers.
pub(in crate::lower) const fn deferred_size(depth: usize) -> i64 {
    offset!(Deferred, path) as i64 + path_size(depth)
}

const _: () =
    assert!(binding_size(MAX_CONTAINER_DEPTH) <= u8::MAX as i64, "a signature's descriptor tells it in a byte");

/// Words of 8 bytes. The words that each signature uses come first, and then the present path.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Field {
    /// What came; for a type the payload follows, for a text its length.
    Got,
    Payload,
    /// What was expected, as a number.
    Expected,
    /// What was expected, as text.
    Text,
    /// The argument's number; negative for a value that isn't an argument. Where messages or places depend on it, the
    /// number goes on: with constraints, and then the result.
    Arg,
    Calling,
    /// The address of the present path.
    Path,
    /// The address of the path that bound a symbol or a device slot.
    Origin,
    /// A symbol's name.
    Symbol,
    /// The wrapper's constant pool.
    Pool,
    /// The bindings of device slots, behind those of symbols.
    DeviceBindings,
    /// Free scratch memory.
    Memory,
    /// The size of a binding, where there are containers.
    BindingSize = BEHIND_PATH,
    /// The expression that is looked at.
    Expr,
    /// Deferred dimensions: the first, how many, the size of one.
    Deferred,
    DeferredCount,
    DeferredSize,
    /// Not 0 inside a container, where nothing is converted.
    Strict,
    /// Which time a dimension is looked at; see [`Pass`].
    Pass,
    /// Whether the last expression had a value.
    HasValue,
    /// The number that the fast path expects in place of the last dimension.
    Accepted,
}

/// When a dimension is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lower) enum Pass {
    /// With its argument: it may be deferred.
    First,
    /// Later: it may stay deferred.
    Again,
    /// In the end.
    Last,
}

/// Offset of the present path.
pub(in crate::lower) const PATH: i32 = 8 * (Field::Memory as i32 + 1);
/// The number of the first field behind the present path.
const BEHIND_PATH: isize = 12 + path_size(MAX_CONTAINER_DEPTH) as isize / 8;
const _: () = assert!(8 * BEHIND_PATH == PATH as isize + path_size(MAX_CONTAINER_DEPTH) as isize);

/// Bytes of the state.
pub(in crate::lower) const SIZE: i64 = 8 * (Field::Accepted as i64 + 1);

/// Where in the scratch memory the bindings of symbols begin: behind the arguments and `bind`'s state.
pub(in crate::lower) const fn bindings_offset(params: usize) -> i64 {
    params as i64 * ANY_SIZE as i64 + SIZE
}
