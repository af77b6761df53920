//! Making calls, variables for the values that they give, and returning such a value.

use super::builder::Body;
use super::calls::{Call, CallArg, CallResult, KnownOwned, Owned, new_owned};
use super::invoke;
use crate::lower::convention::writes_result;
use crate::spec::ParamType;

impl<'b> Call<'b> {
    /// Makes the call. The value that it returns has to be of the type, by the rules for a parameter of that type; it is owned by the body.
    pub fn returns(self, ty: impl Into<ParamType>) -> CallResult<'b> {
        invoke::call(self, Some(ty.into()))
    }

    /// Makes the call, and releases whatever it returns.
    pub fn run(self) {
        invoke::call(self, None);
    }
}

/// A variable that holds any value, of which it is the owner: None at first.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'b> {
    pub(super) owned: Owned<'b>,
}

impl Body<'_> {
    /// A variable for values of any type. It carries what a loop or a conditional has made to the text behind, and is released where the block of the
    /// text ends that it is made in.
    pub fn variable(&self) -> Variable<'_> {
        Variable { owned: new_owned(self, KnownOwned::Nothing) }
    }
}

impl<'b> Variable<'b> {
    /// Gives the variable a value, and releases the one before. A value that is moved goes over; any other is copied, or gets one more reference.
    pub fn set(self, value: impl Into<CallArg<'b>>) {
        self.owned.used("set");
        invoke::assign(self.owned.body, self.owned.any, value.into(), true);
    }

    /// The value, as an argument. The variable stays its owner.
    pub fn get(self) -> Owned<'b> {
        self.owned
    }

    /// The value in the type that is stated: the same checks as of the result of a call.
    pub fn cast(self, ty: impl Into<ParamType>) -> CallResult<'b> {
        invoke::cast(self.owned, "a variable", ty.into())
    }
}

impl Body<'_> {
    /// Returns from the function with a value that isn't a scalar: what the signature says, and what the wrapper then checks. A value that the body
    /// owns is moved; any other is copied, or gets one more reference.
    ///
    /// A scalar is returned by [`ret`](Self::ret), and a tensor whose type the signature states is [`result`](Self::result).
    pub fn ret_value<'b>(&'b self, value: impl Into<CallArg<'b>>) {
        if !self.signature.ret().is_some_and(writes_result) {
            return self.mistake("ret_value", format!("`{}` returns no value that the body makes", self.signature));
        }
        invoke::return_value(self, value.into());
    }
}
