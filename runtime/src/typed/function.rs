//! Functions from closures with typed parameters.

use super::schema::TypeSchema;
use crate::any::{Any, AnyView, TryFromAny};
use crate::error::{Error, Result, kind};
use crate::function::Function;

/// A result of a typed function: a value, or a [`Result`] with an error to raise.
#[diagnostic::on_unimplemented(
    message = "a function of TVM FFI can't return `{Self}`",
    label = "this type is not a value of TVM FFI",
    note = "a result is a type that implements `Into<Any>` and `TypeSchema`, or a `Result` of one with an error that \
        implements `Into<Error>`"
)]
pub trait ReturnValue {
    /// The value, or the error to raise.
    ///
    /// # Errors
    /// The error of a `Result`.
    fn into_any(self) -> Result<Any>;

    /// As [`TypeSchema::type_name`].
    fn type_name() -> String;

    /// As [`TypeSchema::type_schema`].
    fn type_schema() -> String;
}

impl<T: Into<Any> + TypeSchema> ReturnValue for T {
    fn into_any(self) -> Result<Any> {
        Ok(self.into())
    }

    fn type_name() -> String {
        <T as TypeSchema>::type_name()
    }

    fn type_schema() -> String {
        <T as TypeSchema>::type_schema()
    }
}

impl<T: Into<Any> + TypeSchema, E: Into<Error>> ReturnValue for Result<T, E> {
    fn into_any(self) -> Result<Any> {
        self.map(T::into).map_err(E::into)
    }

    fn type_name() -> String {
        T::type_name()
    }

    fn type_schema() -> String {
        T::type_schema()
    }
}

/// A closure or function with the parameters `Args`, a tuple.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of types that TVM FFI has",
    label = "expected a function of such types",
    note = "a typed function is `Fn + Send + Sync + 'static` and has at most 12 parameters",
    note = "each parameter implements `TryFromAny` and `TypeSchema`, and is no reference: `String`, not `&str`",
    note = "the result implements `ReturnValue`",
    note = "`Function::from_packed` takes arguments of any type"
)]
pub trait TypedFunction<Args>: Send + Sync + 'static {
    /// Converts the arguments and calls the closure; `name` is for messages.
    ///
    /// # Errors
    /// `TypeError` for a wrong number of arguments or a wrong type; `ValueError` for a value that doesn't fit; the
    /// closure's own errors.
    fn call_typed(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any>;

    /// The parameters and the result as shown in messages: `(0: int, 1: str) -> float`.
    fn signature() -> String;

    /// The types of the parameters and the result, in the format of [`TypeSchema::type_schema`].
    fn schema() -> String;
}

macro_rules! typed {
    ($len:literal: $($name:ident $index:tt)*) => {
        impl<F, R, $($name),*> TypedFunction<($($name,)*)> for F
        where
            F: Fn($($name),*) -> R + Send + Sync + 'static,
            R: ReturnValue,
            $($name: TryFromAny + TypeSchema,)*
        {
            fn call_typed(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any> {
                // Built only when a message needs it.
                let signature = || format!("{name}{}", <Self as TypedFunction<($($name,)*)>>::signature());
                if args.len() != $len {
                    return Err(wrong_number(&signature(), $len, args.len()));
                }
                self($(argument::<$name>(args, $index, &signature)?),*).into_any()
            }

            fn signature() -> String {
                let params: &[String] = &[$(format!("{}: {}", $index, $name::type_name())),*];
                format!("({}) -> {}", params.join(", "), R::type_name())
            }

            fn schema() -> String {
                let params: &[String] = &[$($name::type_schema()),*];
                let (result, params) = (R::type_schema(), params.join(","));
                format!("{{\"type\":\"ffi.Function\",\"named_args\":{{\"return\":[{result}],\"params\":[{params}]}}}}")
            }
        }
    };
}
typed!(0:);
typed!(1: A 0);
typed!(2: A 0 B 1);
typed!(3: A 0 B 1 C 2);
typed!(4: A 0 B 1 C 2 D 3);
typed!(5: A 0 B 1 C 2 D 3 E 4);
typed!(6: A 0 B 1 C 2 D 3 E 4 G 5);
typed!(7: A 0 B 1 C 2 D 3 E 4 G 5 H 6);
typed!(8: A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7);
typed!(9: A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7 J 8);
typed!(10: A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7 J 8 K 9);
typed!(11: A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7 J 8 K 9 L 10);
typed!(12: A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7 J 8 K 9 L 10 M 11);

#[cold]
fn wrong_number(signature: &str, expected: usize, got: usize) -> Error {
    let message = format!(
        "Mismatched number of arguments when calling: `{signature}`. Expected {expected} but got {got} arguments"
    );
    Error::new(kind::TYPE_ERROR, &message)
}

/// Converts the argument at `index`.
#[inline]
fn argument<T: TryFromAny + TypeSchema>(
    args: &[AnyView<'_>],
    index: usize,
    signature: &impl Fn() -> String,
) -> Result<T> {
    let view = args.get(index).copied().unwrap_or_default();
    T::try_from_view(view)
        .map_err(|error| wrong_argument(&error, index, &signature(), &T::type_name(), || T::mismatch(view)))
}

#[cold]
fn wrong_argument(error: &Error, index: usize, signature: &str, expected: &str, got: impl FnOnce() -> String) -> Error {
    if error.kind() != kind::TYPE_ERROR {
        let message = format!("Mismatched value of argument #{index} when calling: `{signature}`. {}", error.message());
        return Error::new(error.kind(), &message);
    }
    let got = got();
    Error::new(
        kind::TYPE_ERROR,
        &format!(
            "Mismatched type on argument #{index} when calling: `{signature}`. Expected `{expected}` but got `{got}`"
        ),
    )
}

impl Function {
    /// Creates a function from a closure of up to twelve typed parameters. Arguments are converted according to
    /// [`TryFromAny`].
    ///
    /// ```
    /// use tvm_ffi_runtime::{Error, Function, Result};
    ///
    /// let divide = Function::from_typed(|x: i64, y: i64| {
    ///     x.checked_div(y).ok_or_else(|| Error::new("ValueError", "division by zero"))
    /// });
    /// assert_eq!(divide.call((7, 2))?.cast::<i64>()?, 3);
    /// let message = divide.call((7,)).unwrap_err().to_string();
    /// assert!(message.ends_with("when calling: `(0: int, 1: int) -> int`. Expected 2 but got 1 arguments"));
    /// let message = divide.call((7, "x")).unwrap_err().to_string();
    /// assert!(message.starts_with("TypeError: Mismatched type on argument #1 when calling"));
    /// assert!(message.ends_with("Expected `int` but got `ffi.SmallStr`"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Errors and panics of the closure are handled as in [`Function::from_packed`].
    pub fn from_typed<Args: 'static>(closure: impl TypedFunction<Args>) -> Self {
        Self::from_typed_named("", closure)
    }

    /// As [`Function::from_typed`], with a name for messages.
    pub fn from_typed_named<Args: 'static>(name: &str, closure: impl TypedFunction<Args>) -> Self {
        let name: Box<str> = name.into();
        Self::from_packed(move |args| closure.call_typed(&name, args))
    }

    /// Calls the function and converts its result.
    ///
    /// ```
    /// # use tvm_ffi_runtime::{Error, Function};
    /// let add = Function::from_typed(|x: i64, y: i64| x + y);
    /// let sum: i64 = add.call_as((1, 2))?;
    /// assert_eq!(sum, 3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Function::call`]; `TypeError` or `ValueError` when the result doesn't convert.
    #[track_caller]
    pub fn call_as<R: TryFromAny>(&self, args: impl crate::function::CallArgs) -> Result<R> {
        self.call(args)?.cast()
    }
}
