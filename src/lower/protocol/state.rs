//! The state of one call, which the runtime helpers of [`bind`](crate::lower::binder) share: values that messages show,
//! the present path, the bindings. It is in the scratch memory after the arguments. The bindings follow it directly, so
//! all are reached from one address with short code. [`report`](crate::lower::binder::report) reads it as a template's
//! context.

use super::layout::offset;
use crate::lower::abi::ANY_SIZE;
use crate::spec::{MAX_CONTAINER_DEPTH, Signature};

/// A path that messages show: `xs[3].shape[0]`. The [`Step`]s into containers follow it. The binder's state contains
/// the present path; a [`Binding`] contains the path of the value that created it.
#[repr(C)]
pub(in crate::lower) struct Path {
    /// The address of the parameter's name.
    pub name: u64,
    /// The address of the string between the name and the dimension: `.shape[`. NULL if the path has neither.
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
    /// The element's number, or the address of the `TVMFFIAny` of a str.
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

/// The binding of a variable or of a device slot.
#[repr(C)]
pub(in crate::lower) struct Binding {
    pub value: i64,
    /// The source of the value. Its name is NULL if the variable has no value.
    pub path: Path,
}

/// A deferred dimension.
#[repr(C)]
pub(in crate::lower) struct Deferred {
    /// The address of its descriptor; NULL once resolved.
    pub dim: u64,
    /// The actual size or stride.
    pub got: i64,
    /// The argument's number.
    pub arg: u64,
    /// 1 for a size, 0 for a stride.
    pub is_size: u64,
    pub path: Path,
}

/// Bytes of a path with `depth` steps into containers.
pub(in crate::lower) const fn path_size(depth: usize) -> i64 {
    (size_of::<Path>() + depth * size_of::<Step>()) as i64
}

/// Bytes of a binding with `depth` steps in its path.
pub(in crate::lower) const fn binding_size(depth: usize) -> i64 {
    offset!(Binding, path) as i64 + path_size(depth)
}

/// Bytes of a deferred dimension with `depth` steps in its path.
pub(in crate::lower) const fn deferred_size(depth: usize) -> i64 {
    offset!(Deferred, path) as i64 + path_size(depth)
}

const _: () =
    assert!(binding_size(MAX_CONTAINER_DEPTH) <= u8::MAX as i64, "a signature's descriptor tells it in a byte");

/// The words of the state, 8 bytes each. Those that every signature uses come first, then the present path.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Field {
    /// The actual value. For a type the payload follows, for a string its length.
    Got,
    Payload,
    /// The expected value, as a number.
    Expected,
    /// The expected value, as a string.
    Text,
    /// The argument's number; negative for a value that isn't an argument. If messages or source locations depend on
    /// it, numbering continues with constraints, then the result.
    Arg,
    Calling,
    /// The address of the present path.
    Path,
    /// The address of the path that bound a variable or a device slot.
    Origin,
    /// A variable's name.
    Var,
    /// The wrapper's constant pool.
    Pool,
    /// The bindings of device slots, after those of variables.
    DeviceBindings,
    /// Free scratch memory.
    Memory,
    /// The size of a binding, if there are containers.
    BindingSize = BEHIND_PATH,
    /// The expression that is being evaluated.
    Expr,
    /// Deferred dimensions: the first, their number, the size of one.
    Deferred,
    DeferredCount,
    DeferredSize,
    /// Nonzero inside a container, where values aren't converted.
    Strict,
    /// Which pass checks a dimension; see [`Pass`].
    Pass,
    /// Whether the last expression had a value.
    HasValue,
    /// The number that the fast path expects for the last dimension.
    Accepted,
}

/// The passes that check a dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lower) enum Pass {
    /// Together with its argument: the dimension may be deferred.
    First,
    /// Afterwards: it may stay deferred.
    Again,
    /// At the end.
    Last,
}

/// Offset of the present path.
pub(in crate::lower) const PATH: i32 = 8 * (Field::Memory as i32 + 1);
/// The number of the first field after the present path.
const BEHIND_PATH: isize = 12 + path_size(MAX_CONTAINER_DEPTH) as isize / 8;
const _: () = assert!(8 * BEHIND_PATH == PATH as isize + path_size(MAX_CONTAINER_DEPTH) as isize);

/// Bytes of the state.
pub(in crate::lower) const SIZE: i64 = 8 * (Field::Accepted as i64 + 1);

/// Where the state begins in the scratch memory: after the arguments and, if the signature has records, the address of
/// the [values that the call owns](OWNED).
pub(in crate::lower) fn state_offset(signature: &Signature) -> i64 {
    let slots = signature.passed().count() + usize::from(signature.has_records());
    slots as i64 * i64::from(ANY_SIZE)
}

/// Where the bindings of variables begin in the scratch memory: after `bind`'s state.
pub(in crate::lower) fn bindings_offset(signature: &Signature) -> i64 {
    state_offset(signature) + SIZE
}

/// Offset from the state of the address of [`OwnedValues`], if the signature has records.
pub(in crate::lower) const OWNED: i32 = -ANY_SIZE;

/// The objects that a call with records owns until it ends, because nothing else is certain to keep them alive. The
/// addresses of the objects follow.
#[repr(C)]
pub(in crate::lower) struct OwnedValues {
    pub count: u64,
}
