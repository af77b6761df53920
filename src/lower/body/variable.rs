//! Making calls, storing their results in variables, and returning results.

use super::builder::Body;
use super::calls::{Call, CallArg, CallResult, KnownOwned, Owned, new_owned};
use super::control::unreachable;
use super::invoke;
use super::pack::{Packed, evaluate};
use crate::lower::convention::writes_result;
use crate::lower::symbol_call::KnownArg;
use crate::spec::ParamType;

impl<'b> Call<'b> {
    /// Makes the call. The result is checked like a parameter of that type, and the body owns it.
    pub fn returns(self, ty: impl Into<ParamType>) -> CallResult<'b> {
        let (body, ty) = (self.body, ty.into());
        let call = body.recorder().map(|recorder| recorder.call(&self, Some(&ty)));
        let result = invoke::call(self, Some(ty), false);
        if let Some((recorder, call)) = body.recorder().zip(call) {
            recorder.result_of(result, call);
        }
        result
    }

    /// Makes the call, and releases its result.
    pub fn run(self) {
        self.body.record(|recorder| recorder.run(recorder.call(&self, None)));
        invoke::call(self, None, false);
    }
}

/// A variable that owns a value of any type, initially None.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'b> {
    pub(super) owned: Owned<'b>,
}

impl Body<'_> {
    /// Creates a variable for values of any type. Use it to carry a value out of a loop or conditional. It is released
    /// at the end of the block that created it.
    pub fn variable(&self) -> Variable<'_> {
        self.is_in_graph("var");
        let owned = new_owned(self, KnownOwned::Nothing);
        self.recorder().inspect(|recorder| recorder.variable(owned));
        Variable { owned }
    }
}

impl<'b> Variable<'b> {
    /// Sets the variable, and releases the old value. A moved value is transferred; any other value is copied, or its
    /// reference count is incremented.
    pub fn set(self, value: impl Into<CallArg<'b>>) {
        let value = value.into();
        self.owned.body.record(|recorder| recorder.set(self.owned, &value));
        invoke::assign(self.owned, value);
    }

    /// The value, as an argument. The variable remains the owner.
    pub fn get(self) -> Owned<'b> {
        self.owned
    }

    /// The value as the stated type, with the same checks as a call's result.
    pub fn cast(self, ty: impl Into<ParamType>) -> CallResult<'b> {
        let ty = ty.into();
        let result = invoke::cast(self.owned, "a variable", ty.clone());
        self.owned.body.recorder().inspect(|recorder| recorder.cast_variable(self.owned, result, ty));
        result
    }
}

impl Body<'_> {
    /// Returns from the function with a value that isn't a scalar. The wrapper checks it against the signature's return
    /// type. A value that the body owns is moved; any other value is copied, or its reference count is incremented.
    /// For the return types `dtype` and `device`, the value must be a
    /// [`DTypeValue`](super::DTypeValue) or a [`DeviceValue`](super::DeviceValue).
    ///
    /// Return a scalar with [`ret`](Self::ret). If the signature states the type of a returned tensor, write to
    /// [`result`](Self::result) instead.
    pub fn ret_value<'b>(&'b self, value: impl Into<CallArg<'b>>) {
        const OPERATION: &str = "ret_value";
        self.is_in_graph(OPERATION);
        let (ret, value) = (self.signature.ret(), value.into());
        self.record(|recorder| recorder.return_arg(&value));
        let returned = match ret {
            Some(ty @ (ParamType::DType | ParamType::Device)) => self.return_bits(ty, &value),
            Some(ty) if writes_result(ty) => invoke::return_value(self, value),
            _ => {
                self.error(OPERATION, format!("`{}` returns no value that the body makes", self.signature));
                false
            }
        };
        if !returned {
            self.end();
        }
    }

    /// Returns a dtype or a device; `false` after an error.
    fn return_bits(&self, ty: &ParamType, value: &CallArg<'_>) -> bool {
        const OPERATION: &str = "ret_value";
        if value.known() != KnownArg::of(ty) {
            self.error(OPERATION, format!("expected a value of type `{ty}`"));
            return false;
        }
        let Some(Packed::Of(_, payload)) = evaluate(self, OPERATION, value) else { return false };
        self.emit(|l| {
            l.succeed_with_bits(ty, payload);
            unreachable(l);
        });
        true
    }
}
