//! Collects built-in global functions before they are added to the table.

use super::signature::{explain, of, wrong_number};
use crate::any::{Any, AnyView};
use crate::error::Result;
use crate::function::Function;

/// Wraps a body that takes `N` arguments. The wrapper raises `TypeError` for any other number of arguments, and for
/// arguments that don't match the signature.
fn fixed<const N: usize, F>(
    signature: impl Fn() -> &'static str + Send + Sync + 'static,
    body: F,
) -> impl Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    move |args| match args.try_into() {
        // Compare the arguments with the signature only after an error, so successful calls don't pay for it.
        Ok(args) => body(args).map_err(|error| explain(signature(), args, error)),
        Err(_) => Err(wrong_number(signature(), args.len())),
    }
}

/// A function with `N` arguments and a signature such as `(type, type) -> type`.
pub(crate) fn with_args<const N: usize, F>(signature: &'static str, body: F) -> Function
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    Function::from_packed(fixed(move || signature, body))
}

/// As [`with_args`], for the type table: made before any allocator is set, and not counted as a live object.
pub(crate) fn built_in<const N: usize, F>(signature: &'static str, body: F) -> Function
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    Function::built_in(fixed(move || signature, body))
}

/// The collected functions, by name.
#[derive(Default)]
pub(crate) struct Globals(pub(super) Vec<(&'static str, Function)>);

impl Globals {
    /// Adds a function that takes any number of arguments.
    pub(crate) fn packed<F>(&mut self, name: &'static str, body: F)
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static,
    {
        self.0.push((name, Function::built_in(body)));
    }

    /// Adds a function with `N` arguments. Its signature is in `signature`'s table.
    pub(crate) fn fixed<const N: usize, F>(&mut self, name: &'static str, body: F)
    where
        F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
    {
        self.0.push((name, Function::built_in(fixed(move || of(name).unwrap_or(name), body))));
    }
}
