//! Global functions as they are collected, before the table has them.

use super::signature::{explain, of, wrong_number};
use crate::any::{Any, AnyView};
use crate::error::Result;
use crate::function::Function;

/// A closure that takes `N` arguments, and raises `TypeError` for any other number, or for arguments that are not as the signature says.
fn fixed<const N: usize, F>(
    signature: impl Fn() -> &'static str + Send + Sync + 'static,
    body: F,
) -> impl Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    move |args| match args.try_into() {
        // Arguments are looked at when something went wrong, so that a call that succeeds doesn't pay.
        Ok(args) => body(args).map_err(|error| explain(signature(), args, error)),
        Err(_) => Err(wrong_number(signature(), args.len())),
    }
}

/// A function that takes `N` arguments, as its signature says: `(type, type) -> type`.
pub(crate) fn with_args<const N: usize, F>(signature: &'static str, body: F) -> Function
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    Function::from_packed(fixed(move || signature, body))
}

/// Functions by name, as they are collected.
#[derive(Default)]
pub(crate) struct Globals(pub(super) Vec<(&'static str, Function)>);

impl Globals {
    /// A function of any number of arguments.
    pub(crate) fn packed<F>(&mut self, name: &'static str, body: F)
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static,
    {
        self.0.push((name, Function::built_in(body)));
    }

    /// A function whose signature is in the table of them.
    pub(crate) fn fixed<const N: usize, F>(&mut self, name: &'static str, body: F)
    where
        F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
    {
        self.0.push((name, Function::built_in(fixed(move || of(name).unwrap_or(name), body))));
    }
}
