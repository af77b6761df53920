//! The callbacks of a walk, chosen by a value's type.
//! Header section: upstream's `RuntimeTypeIndexMatch` in object.h.

use crate::abi::TypeIndex;
use crate::any::{Any, AnyView};
use crate::container::Array;
use crate::error::{Error, Result, type_error};
use crate::function::Function;
use crate::type_table::is_instance;

/// A callback, and the type whose values it takes.
pub(super) struct Callback {
    target: TypeIndex,
    pub(super) function: Function,
    /// An upstream callback's third member, if it has one: whether it takes the mode of mutation.
    pub(super) takes_mode: bool,
}

/// Callbacks by type. A walk calls the first one that accepts the value's type.
pub(super) struct Callbacks(Vec<Callback>);

impl Callbacks {
    /// Reads an array of `MEMBERS` (two or three) values per callback.
    ///
    /// # Errors
    /// `TypeError` for any other value.
    pub(super) fn read<const MEMBERS: usize>(view: &AnyView<'_>) -> Result<Self> {
        let read = |entry: &Any| {
            // As upstream, which converts lists of callbacks, but not a callback in a list.
            let entry = entry.as_view().borrow::<Array>().ok_or_else(malformed)?;
            let [target, function, rest @ ..] = entry.as_slice() else { return Err(malformed()) };
            if entry.len() != MEMBERS {
                return Err(malformed());
            }
            let takes_mode = rest.first().map_or(Ok(false), Any::cast)?;
            Ok(Callback { target: TypeIndex(integer(target)?), function: function.cast()?, takes_mode })
        };
        view.cast::<Array>()?.iter().map(read).collect::<Result<_>>().map(Self)
    }

    /// The first callback for values of a type.
    pub(super) fn find(&self, index: TypeIndex) -> Option<&Callback> {
        self.0.iter().find(|callback| is_for(callback.target, index))
    }
}

#[cold]
fn malformed() -> Error {
    type_error("a callback is an array of a type index and a function")
}

/// An integer as a type index, cut to 32 bits as upstream's.
pub(super) fn integer(value: &Any) -> Result<i32> {
    value.cast::<i64>().map(|number| number as i32)
}

fn is_for(target: TypeIndex, index: TypeIndex) -> bool {
    match target {
        _ if target == index => true,
        TypeIndex::ANY => true,
        TypeIndex::STR => index == TypeIndex::SMALL_STR,
        TypeIndex::BYTES => index == TypeIndex::SMALL_BYTES,
        TypeIndex::OBJECT => index.is_object(),
        _ => index.is_object() && target.is_object() && is_instance(index, target),
    }
}
