//! Field types that are visible to reflection.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::any::{Any, AnyView, TryFromAny};
use crate::error::{Result, type_error};
use crate::typed::TypeSchema;

/// A value that an object's field can have.
///
/// Fields whose values convert to [`Any`] are read-only, because Rust code holds references to them. For a field that
/// other code can write, use [`Mutable`].
#[diagnostic::on_unimplemented(
    message = "a field that reflection shows can't be `{Self}`",
    label = "expected a value of TVM FFI, or a `Mutable` of one",
    note = "`#[object(skip)]` keeps a field from reflection"
)]
pub trait Field: Send + Sync + 'static {
    /// True if other code can write the field.
    const IS_WRITABLE: bool;

    /// Returns the value.
    fn get_any(&self) -> Any;

    /// Writes the value.
    ///
    /// # Errors
    /// `TypeError` when the field is read-only; otherwise as [`TryFromAny::try_from_view`].
    fn set_any(&self, value: AnyView<'_>) -> Result<()>;

    /// As [`TypeSchema::type_schema`].
    fn schema() -> String;
}

impl<T: Clone + Into<Any> + TypeSchema + Send + Sync + 'static> Field for T {
    const IS_WRITABLE: bool = false;

    fn get_any(&self) -> Any {
        self.clone().into()
    }

    fn set_any(&self, _value: AnyView<'_>) -> Result<()> {
        Err(type_error("the field is read-only"))
    }

    fn schema() -> String {
        T::type_schema()
    }
}

/// A field that other code can write at any time and from any thread.
#[derive(Default)]
pub struct Mutable<T>(Mutex<T>);

impl<T> Mutable<T> {
    /// Creates a field with this value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Returns a copy of the value.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.lock().clone()
    }

    /// Sets the value and returns the previous one.
    pub fn set(&self, value: T) -> T {
        std::mem::replace(&mut *self.lock(), value)
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> From<T> for Mutable<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Clone + Into<Any> + TryFromAny + TypeSchema + Send + 'static> Field for Mutable<T> {
    const IS_WRITABLE: bool = true;

    fn get_any(&self) -> Any {
        self.get().into()
    }

    fn set_any(&self, value: AnyView<'_>) -> Result<()> {
        let value = T::try_from_view(value)?;
        // The old value is dropped after the lock is released.
        drop(self.set(value));
        Ok(())
    }

    fn schema() -> String {
        T::type_schema()
    }
}
