//! Global functions as they are collected, before the table has them.

use crate::any::{Any, AnyView};
use crate::error::{Error, Result, kind};
use crate::function::Function;

/// A closure that takes `N` arguments, and raises `TypeError` for any other number.
fn fixed<const N: usize, F>(
    name: &'static str,
    body: F,
) -> impl Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    move |args| match args.try_into() {
        Ok(args) => body(args),
        Err(_) => Err(Error::new(kind::TYPE_ERROR, &format!("{name}: expected {N} arguments, got {}", args.len()))),
    }
}

/// A function that takes `N` arguments, and raises `TypeError` for any other number.
pub(crate) fn with_args<const N: usize, F>(name: &'static str, body: F) -> Function
where
    F: Fn(&[AnyView<'_>; N]) -> Result<Any> + Send + Sync + 'static,
{
    Function::from_packed(fixed(name, body))
}

/// Functions by name, as they are collected.
#[derive(Default)]
pub(crate) struct Globals(pub(super) Vec<(&'static str, Function)>);

impl Globals {
    pub(crate) fn packed(&mut self, name: &'static str, body: fn(&[AnyView<'_>]) -> Result<Any>) {
        self.0.push((name, Function::built_in(body)));
    }

    pub(crate) fn fixed<const N: usize>(&mut self, name: &'static str, body: fn(&[AnyView<'_>; N]) -> Result<Any>) {
        self.0.push((name, Function::built_in(fixed(name, body))));
    }
}
