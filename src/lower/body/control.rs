//! Control flow of a body: conditionals and returning.

use std::array;

use super::builder::Body;
use super::expr::{Expr, Operand};
use super::function::BodyLowerer;
use super::types::{ir_type, value_type};
use crate::host::tree::StatementKind;
use crate::ir::Hint;
use crate::lower::convention::returns_value;
use crate::spec::{ParamType, ScalarType};

impl Body<'_> {
    /// Runs `then` if `cond` holds.
    pub fn if_<'b>(&'b self, cond: Expr<'b>, then: impl FnOnce()) {
        self.if_else(cond, then, || {});
    }

    /// Runs `then` if `cond` holds, otherwise `otherwise`.
    pub fn if_else<'b>(&'b self, cond: Expr<'b>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        let [] = self.if_else_n(
            cond,
            || {
                then();
                []
            },
            || {
                otherwise();
                []
            },
        );
    }

    /// The value of `then` if `cond` holds, otherwise that of `otherwise`; only one of them runs.
    pub fn if_else_value<'b>(
        &'b self,
        cond: Expr<'b>,
        then: impl FnOnce() -> Expr<'b>,
        otherwise: impl FnOnce() -> Expr<'b>,
    ) -> Expr<'b> {
        let [value] = self.if_else_n(cond, || [then()], || [otherwise()]);
        value
    }

    fn if_else_n<'b, const N: usize>(
        &'b self,
        cond: Expr<'b>,
        then: impl FnOnce() -> [Expr<'b>; N],
        otherwise: impl FnOnce() -> [Expr<'b>; N],
    ) -> [Expr<'b>; N] {
        let cond = self.coerce("if: the condition", ScalarType::Bool, cond.into());
        let blocks = self.emit(|l| {
            let (yes, no, join) = (l.b.block(), l.b.block(), l.b.block());
            l.b.branch(cond.value, yes, no, Hint::None);
            l.b.switch_to(yes);
            Some((no, join))
        });
        let Some((no, join)) = blocks else { return then() };
        let yes_values = self.inside(|| {
            let values = then().map(|e| e.used("if: the value"));
            self.recorder().zip(values.first()).inspect(|(recorder, value)| recorder.block_value(**value));
            values
        });
        self.emit(|l| {
            l.b.jump(join, &yes_values.map(|e| e.value));
            l.b.switch_to(no);
        });
        let no_values = self.inside(|| {
            let values = otherwise();
            self.recorder().zip(values.first()).inspect(|(recorder, value)| recorder.block_value(**value));
            array::from_fn::<_, N, _>(|i| match yes_values[i].is_missing() {
                true => yes_values[i],
                false => self.coerce("if: the other value", yes_values[i].ty(), values[i].into()),
            })
        });
        self.emit(|l| {
            l.b.jump(join, &no_values.map(|e| e.value));
            l.b.switch_to(join);
        });
        if N == 0 {
            self.record(|recorder| recorder.if_(cond));
        }
        yes_values.map(|e| {
            let value = self.value(|l| l.b.block_param(join, ir_type(e.ty())));
            self.expr(value, e.ty()).like(e).recorded(|recorder| recorder.chosen(cond))
        })
    }

    /// Returns from the function with a scalar.
    pub fn ret<'b>(&'b self, value: impl Into<Operand<'b>>) {
        self.is_in_graph("ret");
        let Some(ty) = self.signature.ret().and_then(ParamType::as_scalar) else {
            self.error("ret", format!("`{}` returns no scalar", self.signature));
            return self.end();
        };
        let given = value.into();
        let value = self.coerce("ret", value_type(ty), given);
        self.record(|recorder| recorder.return_operand(given));
        self.emit(|l| {
            l.succeed_with(ty, value.value);
            unreachable(l);
        });
    }

    /// Returns from a function that returns nothing.
    pub fn ret_none(&self) {
        self.is_in_graph("ret_none");
        if let Some(ty) = self.signature.ret().filter(|ret| returns_value(ret)) {
            self.error("ret_none", format!("the function returns {ty}"));
        }
        self.record(|_| StatementKind::Return(None));
        self.end();
    }

    /// Ends the current path by returning: the code that follows doesn't run, even if the call that ends it has an
    /// error.
    pub(super) fn end(&self) {
        self.emit(|l| {
            l.succeed();
            unreachable(l);
        });
    }
}

/// Continues in an unreachable block, for code that a body writes after leaving.
pub(super) fn unreachable(l: &mut BodyLowerer<'_>) {
    let after = l.b.block();
    l.b.switch_to(after);
}
