//! Raising errors, whose messages print values of any type.

use super::builder::Body;
use super::calls::{ArgKind, CallArg, CallArgs};
use super::control::unreachable;
use super::expr::{Expr, Operand, Ops};
use super::function::{BodyLowerer, Failure};
use super::held::Held;
use super::pack;
use crate::ir::{Hint, Type, Value};
use crate::lower::abi::{CELL_DATA, PAYLOAD, TYPE_INDEX};
use crate::lower::protocol::{Directive, MAX_FIELDS, Piece};
use crate::lower::symbol_call::KnownArg;
use crate::spec::ScalarType;
use tvm_ffi_runtime::abi::TypeIndex;

/// A value in a message.
pub(super) enum Shown {
    /// A string known at compile time.
    Text(String),
    /// A value computed by the code, printed with a directive.
    Value(Directive, Value),
}

/// The message of an error.
struct Message<'b> {
    operation: &'static str,
    kind: String,
    /// The literal pieces, one more than there are values.
    pieces: Vec<String>,
    values: Vec<CallArg<'b>>,
}

impl Body<'_> {
    /// The maximum number of values computed at run time that a message of [`raise`](Self::raise) or
    /// [`ensure`](Self::ensure) prints.
    pub const MAX_MESSAGE_VALUES: usize = MAX_FIELDS as usize;

    /// Returns from the function with an error. Each `{}` of the message prints the next value. Integers and truth
    /// values print as numbers, strings print as they are, and all other values print like Python's `repr` (with the
    /// global function `ffi.ReprPrint`). A `uint64` above `i64::MAX` prints as a negative number.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::{Engine, Kernel, Signature};
    ///
    /// let signature: Signature = "refuse(name: str, rate: float64)".parse()?;
    /// let kernel = Kernel::body(|b| b.raise("mylang.RateError", "{} at {}", (b.param(0), b.arg("rate"))));
    /// // SAFETY: the body reads no memory.
    /// let refuse = unsafe { Engine::new()?.compile(&signature, &kernel)? };
    /// let error = refuse.call(("dropout", 1.5)).unwrap_err();
    /// assert_eq!((error.kind(), error.message()), ("mylang.RateError", "dropout at 1.5"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn raise<'b>(&'b self, kind: &str, message: &str, values: impl CallArgs<'b>) {
        self.is_in_graph("raise");
        let values = values.into_args();
        self.record(|recorder| recorder.raise(kind, message, &values));
        let message = self.message("raise", kind, message, values);
        match message.is_some_and(|message| self.raise_message(message)) {
            true => self.emit(unreachable),
            false => self.end(),
        }
    }

    /// [Raises](Self::raise) unless `cond` holds. The values are printed only then, so none can be moved.
    pub fn ensure<'b>(&'b self, cond: Expr<'b>, kind: &str, message: &str, values: impl CallArgs<'b>) {
        const OPERATION: &str = "ensure";
        self.is_in_graph(OPERATION);
        let cond = self.coerce("ensure: the condition", ScalarType::Bool, cond.into());
        let values = values.into_args();
        self.record(|recorder| recorder.ensure(cond, kind, message, &values));
        let Some(message) = self.message(OPERATION, kind, message, values) else { return };
        if message.values.iter().any(|value| matches!(value.0, ArgKind::Moved(_))) {
            return self.error(OPERATION, "a value in the message is moved, and only an error would take it");
        }
        let ok = self.emit(|l| {
            let (ok, bad) = (l.b.block(), l.b.cold_block());
            l.b.branch(cond.value, ok, bad, Hint::Likely);
            l.b.switch_to(bad);
            Some(ok)
        });
        if !self.raise_message(message) {
            // the error of the message is recorded
            self.emit(|l| l.succeed());
        }
        self.emit(|l| ok.into_iter().for_each(|ok| l.b.switch_to(ok)));
    }

    fn message<'b>(
        &self,
        operation: &'static str,
        kind: &str,
        message: &str,
        values: Vec<CallArg<'b>>,
    ) -> Option<Message<'b>> {
        let pieces: Vec<String> = message.split("{}").map(str::to_owned).collect();
        let (places, given) = (pieces.len() - 1, values.len());
        if places != given {
            self.error(operation, format!("the message prints {places} values, got {given}"));
        }
        let is_text = !kind.is_empty() && !kind.contains('\0') && !message.contains('\0');
        if !is_text {
            self.error(operation, "the kind is empty, or there is a NUL in the text");
        }
        (places == given && is_text).then(|| Message { operation, kind: kind.to_owned(), pieces, values })
    }

    /// Ends the current path with an error. Returns `false` if a value can't be printed, without ending the path.
    fn raise_message<'b>(&'b self, message: Message<'b>) -> bool {
        let Message { operation, kind, pieces, values } = message;
        let depth = self.emit(|l| l.exits.depth());
        let shown: Option<Vec<Shown>> = values.iter().map(|value| show(self, operation, value)).collect();
        let Some(shown) = shown else { return false };
        let (mut parts, mut fields) = (vec![Piece::Text(&pieces[0])], Vec::new());
        for (shown, text) in shown.iter().zip(&pieces[1..]) {
            parts.push(match shown {
                Shown::Text(text) => Piece::Text(text),
                Shown::Value(directive, value) => {
                    fields.push(*value);
                    Piece::Value(*directive, fields.len() as u32 - 1)
                }
            });
            parts.push(Piece::Text(text));
        }
        if fields.len() > Self::MAX_MESSAGE_VALUES {
            let max = Self::MAX_MESSAGE_VALUES;
            self.error(operation, format!("a message prints at most {max} values, this one {}", fields.len()));
            return false;
        }
        self.emit(|l| {
            let template = l.pool.constants.template(&kind, &parts);
            l.raise(Failure { template, values: fields });
            l.exits.cut(depth);
        });
        true
    }
}

/// Prepares a value for a message; values created for it are held from then on.
pub(super) fn show(body: &dyn Ops, operation: &str, value: &CallArg<'_>) -> Option<Shown> {
    match &value.0 {
        ArgKind::Str(text) => return Some(Shown::Text(text.replace('\0', ""))),
        ArgKind::Scalar(Operand::Int(value)) => return Some(Shown::Text(value.to_string())),
        ArgKind::Scalar(Operand::Bool(value)) => {
            return Some(Shown::Text(if *value { "True" } else { "False" }.to_owned()));
        }
        ArgKind::Scalar(Operand::Expr(expr)) if expr.ty().is_int() || expr.ty() == ScalarType::Bool => {
            let number = expr.used(operation).converted(ScalarType::Int64).value;
            return Some(Shown::Value(Directive::Number, number));
        }
        _ => {}
    }
    let is_text = value.known() == KnownArg::Str;
    let packed = pack::evaluate_all(body, operation, std::slice::from_ref(value))?;
    body.emit(|l| {
        let text = match is_text {
            true => {
                let any = l.any_slot();
                l.own(&packed[0], any);
                l.hold(Held::Value(any));
                any
            }
            false => l.made_by("ffi.ReprPrint", &packed),
        };
        Some(Shown::Value(Directive::String, l.c_string(text)))
    })
}

impl BodyLowerer<'_> {
    /// The address of the NUL-terminated characters of the str at an address, as an `I64`.
    pub(super) fn c_string(&mut self, any: Value) -> Value {
        self.b.structured(|c| {
            let any = c.val(any);
            let (index, inside) = (any.load(Type::I32, TYPE_INDEX), any + PAYLOAD);
            let [object, join] = c.blocks();
            let text = c.block_param(join, Type::Ptr);
            c.branch_with(index.is(TypeIndex::SMALL_STR.0), (join, &[inside]), (object, &[]), Hint::None);
            c.switch_to(object);
            c.jump(join, &[any.load(Type::Ptr, PAYLOAD).load(Type::Ptr, CELL_DATA)]);
            c.switch_to(join);
            text.address().value()
        })
    }
}
