//! Macros that make errors, and return them.

/// An [`Error`](crate::Error) of a kind, with a formatted message: `err!(ValueError, "{n} is negative")`.
///
/// ```
/// let error = tvm_ffi_runtime::err!(ValueError, "{} is negative", -1);
/// assert_eq!(error.to_string(), "ValueError: -1 is negative");
/// ```
#[macro_export]
macro_rules! err {
    ($kind:ident, $($message:tt)+) => {
        $crate::Error::new(::std::stringify!($kind), &::std::format!($($message)+))
    };
}

/// Returns an error from a function. The function's error type is [`Error`](crate::Error) or converts from it:
/// `bail!(ValueError, "{n} is negative")`.
///
/// ```
/// fn root(x: f64) -> tvm_ffi_runtime::Result<f64> {
///     if x < 0.0 {
///         tvm_ffi_runtime::bail!(ValueError, "{x} is negative");
///     }
///     Ok(x.sqrt())
/// }
/// assert_eq!(root(-1.0).unwrap_err().to_string(), "ValueError: -1 is negative");
/// ```
#[macro_export]
macro_rules! bail {
    ($kind:ident, $($message:tt)+) => {
        return ::std::result::Result::Err(::std::convert::Into::into($crate::err!($kind, $($message)+)))
    };
}

/// Returns an error as [`bail!`](crate::bail) if a condition doesn't hold:
/// `ensure!(n >= 0, ValueError, "{n} is negative")`.
///
/// ```
/// fn half(n: i64) -> tvm_ffi_runtime::Result<i64> {
///     tvm_ffi_runtime::ensure!(n % 2 == 0, ValueError, "{n} is odd");
///     Ok(n / 2)
/// }
/// assert_eq!(half(4)?, 2);
/// assert_eq!(half(3).unwrap_err().message(), "3 is odd");
/// # Ok::<(), tvm_ffi_runtime::Error>(())
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $kind:ident, $($message:tt)+) => {
        if !$condition {
            $crate::bail!($kind, $($message)+);
        }
    };
}
