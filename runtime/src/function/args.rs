//! Argument lists of [`Function::call`](super::Function::call): tuples, slices and vectors. A tuple's values become
//! views in one array on the stack. No header section: this is the Rust side of a call.

use crate::any::{AnyView, ToAnyView};
use crate::error::Result;

/// A list of arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` isn't a list of arguments",
    label = "expected a tuple of arguments",
    note = "one argument is a tuple with a comma: `(x,)`",
    note = "each argument implements `ToAnyView`"
)]
pub trait CallArgs {
    /// Runs `call` with the arguments as views.
    ///
    /// # Errors
    /// The errors of `call`.
    fn with_views<R>(&self, call: impl FnOnce(&[AnyView<'_>]) -> Result<R>) -> Result<R>;
}

impl<T: CallArgs + ?Sized> CallArgs for &T {
    #[inline]
    fn with_views<R>(&self, call: impl FnOnce(&[AnyView<'_>]) -> Result<R>) -> Result<R> {
        (**self).with_views(call)
    }
}

impl CallArgs for () {
    #[inline]
    fn with_views<R>(&self, call: impl FnOnce(&[AnyView<'_>]) -> Result<R>) -> Result<R> {
        call(&[])
    }
}

impl CallArgs for [AnyView<'_>] {
    #[inline]
    fn with_views<R>(&self, call: impl FnOnce(&[AnyView<'_>]) -> Result<R>) -> Result<R> {
        call(self)
    }
}

impl<const N: usize> CallArgs for [AnyView<'_>; N] {
    #[inline]
    fn with_views<R>(&self, call: impl FnOnce(&[AnyView<'_>]) -> Result<R>) -> Result<R> {
        call(self)
    }
}

impl CallArgs for Vec<AnyView<'_>> {
    #[inline]
    fn with_views<R>(&self, call: impl FnOnce(&[AnyView<'_>]) -> Result<R>) -> Result<R> {
        call(self)
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: ToAnyView),*> CallArgs for ($($name,)*) {
            #[inline]
            #[allow(non_snake_case)]
            fn with_views<R>(
                &self,
                call: impl FnOnce(&[AnyView<'_>]) -> Result<R>,
            ) -> Result<R> {
                let ($($name,)*) = self;
                $(let $name = $name.to_arg();)*
                call(&[$($name.as_view()),*])
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
tuples!(A B C D E F G H I J K L M);
tuples!(A B C D E F G H I J K L M N);
tuples!(A B C D E F G H I J K L M N O);
tuples!(A B C D E F G H I J K L M N O P);
