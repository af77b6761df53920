//! Types of fields that reflection shows.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::any::{Any, AnyView, TryFromAny};
use crate::error::{Result, type_error};
use crate::typed::TypeSchema;

/// A value that a field of an object may have.
///
/// Fields of values that become an [`Any`] are read-only: Rust code has references to them. What others may write is a [`Mutable`].
pub trait Field: Send + Sync + 'static {
    /// Whether others may write the field.
    const IS_WRITABLE: bool;

    /// The value.
    fn get_any(&self) -> Any;

    /// Writes the value.
    ///
    /// # Errors
    /// `TypeError` where the field is read-only; as [`TryFromAny::try_from_view`].
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

/// A field that others may write, at any time and from any thread.
#[derive(Default)]
pub struct Mutable<T>(Mutex<T>);

impl<T> Mutable<T> {
    /// A field of that value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// The value.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.lock().clone()
    }

    /// Sets the value, and gives the one before.
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
        // The old value is dropped without the lock.
        drop(self.set(value));
        Ok(())
    }

    fn schema() -> String {
        T::type_schema()
    }
}
