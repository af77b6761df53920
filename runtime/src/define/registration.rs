//! The properties that a type declares before it is registered.

use std::marker::PhantomData;

use crate::abi::{TVMFFIFieldInfo, TVMFFIObjectCreator};
use crate::any::Any;
use crate::function::Function;

/// The properties of a field besides its type.
#[derive(Debug, Default)]
pub struct FieldOptions {
    /// Its documentation.
    pub doc: &'static str,
    /// Its default value, for code that creates objects from fields.
    pub default: Option<Any>,
}

pub(super) struct NewField {
    pub(super) info: TVMFFIFieldInfo,
    pub(super) metadata: String,
    pub(super) default: Any,
}

pub(super) struct NewMethod {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) flags: i64,
    pub(super) function: Function,
    pub(super) metadata: String,
}

/// The properties that a type declares.
pub struct Registration<T> {
    pub(super) doc: &'static str,
    pub(super) creator: Option<TVMFFIObjectCreator>,
    pub(super) fields: Vec<NewField>,
    pub(super) methods: Vec<NewMethod>,
    pub(super) attributes: Vec<(&'static str, Any)>,
    pub(super) of: PhantomData<T>,
}

impl<T> std::fmt::Debug for Registration<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}
