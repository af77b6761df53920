//! Records the values that operations compute.

use super::{Recorder, at, name_of};
use crate::host::tree::{At, ExprKind, StatementKind};
use crate::lower::body::expr::{Expr, Ops};

impl Recorder {
    /// Sets the value of the current block.
    pub(in crate::lower::body) fn block_value(&self, value: Expr<'_>) {
        let value = self.expr(value);
        if let Some(open) = self.state.borrow_mut().open.last_mut() {
            open.value = Some(value);
        }
    }

    /// Records the operation that has computed a value.
    pub(in crate::lower::body) fn value(&self, value: Expr<'_>, kind: ExprKind) {
        let id = self.let_(kind);
        self.know_id((value.value, value.ty()), id);
    }

    /// Records a value that needs no code. `is_read` for a scalar that is read as its own type.
    pub(super) fn silent_value(&self, value: Expr<'_>, kind: ExprKind, is_read: bool) {
        let key = (value.value, value.ty());
        if self.state.borrow().values.contains_key(&key) {
            return;
        }
        let id = self.let_(kind);
        self.state.borrow_mut().lets.silent.insert(id);
        if is_read {
            self.state.borrow_mut().lets.reads.insert(id);
        }
        self.know_id(key, id);
    }

    /// A new name for a value of a loop.
    pub(super) fn loop_value(&self, value: Expr<'_>) -> At<String> {
        let id = self.new_id();
        self.know_id((value.value, value.ty()), id);
        at(name_of(id))
    }
}

impl<'b> Expr<'b> {
    /// Records the operation that has computed this value.
    pub(in crate::lower::body) fn recorded(self, operation: impl FnOnce(&Recorder) -> ExprKind) -> Self {
        if let Some(recorder) = self.body.recorder() {
            recorder.value(self, operation(recorder));
        }
        self
    }
}

impl dyn Ops + '_ {
    /// Records a statement.
    pub(in crate::lower::body) fn record(&self, statement: impl FnOnce(&Recorder) -> StatementKind) {
        if let Some(recorder) = self.recorder() {
            recorder.statement(statement(recorder));
        }
    }
}
