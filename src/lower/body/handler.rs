//! Error handling in a body: `try`, and what a handler can do with a caught error.

use std::fmt;

use super::builder::Body;
use super::calls::{CallArg, CallArgs, KnownOwned, Owned};
use super::control::unreachable;
use super::expr::Expr;
use super::function::BodyLowerer;
use super::held::Held;
use crate::host::Word;
use crate::ir::{BinaryOp, FuncRef, FuncSig, Hint, IntCC, MemFlags, Module, Type, Val, Value};
use crate::lower::abi::error::{CAUSE_CHAIN, KIND};
use crate::lower::abi::{PAYLOAD, store_any};
use crate::lower::encode::{Subject, shown};
use crate::lower::once::{self, Source};
use crate::lower::{capi, ffi_call};
use crate::spec::ScalarType;
use tvm_ffi_runtime::abi::TypeIndex;

/// The error caught by a handler of [`Body::try_`]. The handler owns it and releases it at its end, unless it raises
/// the error again.
#[derive(Clone, Copy)]
pub struct Caught<'b, 'a> {
    body: &'b Body<'a>,
    owned: Owned<'b>,
    code: Value,
}

impl<'a> Body<'a> {
    /// Runs `attempt`. If an error leaves it, `handler` receives the error. The function then continues after both.
    ///
    /// This catches errors of callees and of the body's own checks. It doesn't catch errors of the environment (code
    /// -2), such as a signal that Python has received, or a code without an error object.
    ///
    #[cfg_attr(feature = "_engine", doc = "```")]
    #[cfg_attr(not(feature = "_engine"), doc = "```text")]
    /// use tvm_ffi_codegen::runtime::{Error, Function, registry};
    /// use tvm_ffi_codegen::{Engine, Kernel, ScalarType, Signature};
    ///
    /// let load = |key: i64| match key {
    ///     0 => Err(Error::new("KeyError", "nothing")),
    ///     1 => Err(Error::new("OSError", "the disk is gone")),
    ///     key => Ok(10 * key),
    /// };
    /// registry::set_global("host.load", Function::from_typed(load), true)?;
    ///
    /// let signature: Signature = "load(key: int64) -> int64".parse()?;
    /// let load = Kernel::body(|b| {
    ///     let key = b.arg("key");
    ///     b.try_(
    ///         || b.ret(b.call_global("host.load", (key,)).returns(ScalarType::Int64).value()),
    ///         |error| {
    ///             b.if_(error.is_kind("KeyError"), || b.ret(-1));
    ///             error.raise_from("RuntimeError", "can't load {}", [key]);
    ///         },
    ///     );
    ///     b.ret(0); // nothing comes here
    /// });
    /// // SAFETY: the body reads no memory.
    /// let load = unsafe { Engine::new()?.compile(&signature, &load)? };
    /// assert_eq!(load.call((4,))?.cast::<i64>()?, 40);
    /// assert_eq!(load.call((0,))?.cast::<i64>()?, -1);
    /// let error = load.call((1,)).unwrap_err();
    /// assert_eq!(error.to_string(), "RuntimeError: can't load 1");
    /// assert_eq!(error.cause().ok_or("no cause")?.to_string(), "OSError: the disk is gone");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_<'b>(&'b self, attempt: impl FnOnce(), handler: impl FnOnce(Caught<'b, 'a>)) {
        self.is_in_graph("try");
        let blocks = self.emit(|l| {
            let (caught, join) = (l.b.cold_block(), l.b.block());
            let code = l.b.block_param(caught, Type::I32);
            l.hold(Held::Handler(caught));
            Some((caught, join, code, l.exits.depth() - 1))
        });
        let Some((caught, join, code, depth)) = blocks else { return };
        self.inside(attempt);
        let owned = self.emit(|l| {
            l.let_go(depth);
            l.b.jump(join, &[]);
            l.b.switch_to(caught);
            let location = l.b.location();
            l.b.set_location(None);
            let (look, pass) = (l.b.cold_block(), l.b.cold_block());
            let environments = l.b.icmp_imm(IntCC::Eq, code, ffi_call::ENVIRONMENT_ERROR);
            l.b.branch(environments, pass, look, Hint::None);
            l.b.switch_to(look);
            let error = l.b.structured(|c| ffi_call::take_raised(c).value());
            let there = l.b.icmp_imm(IntCC::Ne, error, 0);
            let handle = l.b.block();
            l.b.branch(there, handle, pass, Hint::Likely);
            l.b.switch_to(pass);
            l.exit(code);
            l.b.switch_to(handle);
            l.b.set_location(location);
            let any = l.any_slot();
            store_any(&mut l.b, any, TypeIndex::ERROR, error);
            Some(any)
        });
        let Some(any) = owned else { return };
        let mut named = None;
        self.inside(|| {
            self.emit(|l| l.hold(Held::Value(any)));
            let owned = Owned {
                body: self,
                any,
                scope: super::expr::Ops::scope(self),
                known: KnownOwned::Nothing,
                loops: self.emit(|l| Some(l.exits.loops())),
            };
            named = self.recorder().map(|recorder| recorder.caught(owned));
            handler(Caught { body: self, owned, code });
        });
        self.emit(|l| {
            l.b.jump(join, &[]);
            l.b.switch_to(join);
        });
        if let Some(named) = named {
            self.record(|recorder| recorder.try_(named));
        }
    }
}

impl<'b> Caught<'b, '_> {
    /// Whether the error has that kind, such as `ValueError`.
    pub fn is_kind(self, kind: &str) -> Expr<'b> {
        self.owned.used("is_kind");
        let value = self.body.value(|l| {
            let error = l.b.load(Type::Ptr, self.owned.any, PAYLOAD, MemFlags::ALIGNED);
            let data = l.b.load(Type::Ptr, error, KIND, MemFlags::ALIGNED);
            let size = l.b.load(Type::I64, error, KIND + 8, MemFlags::ALIGNED);
            is_text(l, (data, size), kind)
        });
        self.body.expr(value, ScalarType::Bool).recorded(|recorder| recorder.is_kind(self.owned, kind))
    }

    /// The error object, an `ffi.Error`, as an argument.
    pub fn error(self) -> Owned<'b> {
        self.owned
    }

    /// Raises the error again with its original code. It leaves the function or goes to the next enclosing handler.
    pub fn raise_again(self) {
        self.body.is_in_graph("raise_again");
        self.owned.used("raise_again");
        self.body.record(|recorder| recorder.raise_again(self.owned));
        self.body.emit(|l| {
            let error = l.b.load(Type::Ptr, self.owned.any, PAYLOAD, MemFlags::ALIGNED);
            crate::lower::abi::store_none(&mut l.b, self.owned.any);
            l.b.structured(|c| ffi_call::set_raised(c, c.val(error)));
            let location = l.b.location();
            // the backtrace already has the error's lines
            l.b.set_location(None);
            l.exit(self.code);
            l.b.set_location(location);
            unreachable(l);
        });
    }

    /// Raises another error with this one as its cause. The kind, message and values are those of [`Body::raise`].
    pub fn raise_from(self, kind: &str, message: &str, values: impl CallArgs<'b>) {
        if self.body.is_in_graph("raise_from") {
            return;
        }
        self.owned.used("raise_from");
        let values = values.into_args();
        self.body.record(|recorder| recorder.raise_from(kind, message, &values, self.owned));
        match self.body.recorder() {
            Some(recorder) => recorder.pause(|| self.raise_with_cause(kind, message, values)),
            None => self.raise_with_cause(kind, message, values),
        }
    }

    fn raise_with_cause(self, kind: &str, message: &str, values: Vec<CallArg<'b>>) {
        // raise the new error here and catch it again, to set its cause
        self.body.try_(
            || self.body.raise(kind, message, values),
            |new| {
                self.body.emit(|l| {
                    let cause = l.b.load(Type::Ptr, self.owned.any, PAYLOAD, MemFlags::ALIGNED);
                    let error = l.b.load(Type::Ptr, new.owned.any, PAYLOAD, MemFlags::ALIGNED);
                    // no other code has the new error yet, so its cell can be written
                    let before = l.b.load(Type::Ptr, error, CAUSE_CHAIN, MemFlags::ALIGNED);
                    let (set, done) = (l.b.block(), l.b.block());
                    let free = l.b.icmp_imm(IntCC::Eq, before, 0);
                    l.b.branch(free, set, done, Hint::Likely);
                    l.b.switch_to(set);
                    l.b.store(cause, error, CAUSE_CHAIN, MemFlags::ALIGNED);
                    crate::lower::abi::store_none(&mut l.b, self.owned.any);
                    l.b.jump(done, &[]);
                    l.b.switch_to(done);
                });
                new.raise_again();
            },
        );
    }
}

impl fmt::Debug for Caught<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caught({:?})", self.owned)
    }
}

/// Whether some characters, given by their address and their number, are a text.
pub(super) fn is_text(l: &mut BodyLowerer<'_>, (data, size): (Value, Value), text: &str) -> Value {
    let same = same_text(l.b.module());
    let constant = if text.contains('\0') {
        l.constant(text.as_bytes().to_vec())
    } else {
        let offset = l.pool.constants.text(text);
        l.b.data_addr(l.pool.data, offset)
    };
    let len = l.b.i64(text.len() as i64);
    match l.b.call(same, &[data, size, constant, len]) {
        Some(same) => l.b.icmp_imm(IntCC::Ne, same, 0),
        None => l.b.bconst(false),
    }
}

/// `int32_t same_text(const char* a, int64_t a_size, const char* b, int64_t b_size)`: returns 1 if the bytes are equal.
fn same_text(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_same_text";
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::I64], Some(Type::I32));
    module.cold_local_once(NAME, sig, |c| {
        let [a, a_size, other, other_size] = c.params();
        let [head, look, next, differ, same] = c.blocks();
        let at = c.block_param(head, Type::I64);
        let zero = c.i64(0);
        c.branch_with(a_size.is(other_size), (head, &[zero]), (differ, &[]), Hint::None);
        c.switch_to(head);
        c.branch(at.lt(a_size), look, same, Hint::None);
        c.switch_to(look);
        let (left, right) = (a + at, other + at);
        c.branch(left.load(Type::I8, 0).is(right.load(Type::I8, 0)), next, differ, Hint::None);
        c.switch_to(next);
        c.jump(head, &[at + 1]);
        for (block, result) in [(differ, 0), (same, 1)] {
            c.switch_to(block);
            c.ret(c.i32(result));
        }
    })
}

impl Body<'_> {
    /// Checks for signals of the environment, such as Python's `KeyboardInterrupt`, each time this point has been
    /// reached `turns` times. Use it in long loops. It calls `TVMFFIEnvCheckSignals`; if a signal is pending, the
    /// function returns its code.
    pub fn check_signals_every(&self, turns: u32) {
        self.is_in_graph("check_signals_every");
        if turns == 0 {
            return self.error("check_signals_every", "expected a number of turns of at least 1, got 0");
        }
        self.record(|recorder| recorder.done_with(Word::CheckSignalsEvery, turns));
        self.emit(|l| {
            let slot = l.b.slot(8, 8);
            l.b.at_entry(|b| {
                let (counter, first) = (b.stack_addr(slot), b.i64(i64::from(turns)));
                b.store(first, counter, 0, MemFlags::ALIGNED);
            });
            let counter = l.b.stack_addr(slot);
            let before = l.b.load(Type::I64, counter, 0, MemFlags::ALIGNED);
            let left = l.b.binary_imm(BinaryOp::Sub, before, 1);
            l.b.store(left, counter, 0, MemFlags::ALIGNED);
            let (look, next) = (l.b.cold_block(), l.b.block());
            let due = l.b.icmp_imm(IntCC::SLe, left, 0);
            l.b.branch(due, look, next, Hint::Unlikely);
            l.b.switch_to(look);
            let again = l.b.i64(i64::from(turns));
            l.b.store(again, counter, 0, MemFlags::ALIGNED);
            let check = capi::import(l.b.module(), capi::ENV_CHECK_SIGNALS);
            if let Some(code) = l.b.call(check, &[]) {
                l.exit_unless_zero(code);
            }
            l.b.jump(next, &[]);
            l.b.switch_to(next);
        });
    }

    /// The opaque pointer to the compiler's own state, as returned by the global function `name`, such as
    /// `mylang.get_global_state`. It is fetched once for the whole library, and is never NULL.
    pub fn env_state(&self, name: &str) -> Expr<'_> {
        if name.is_empty() || name.contains('\0') {
            self.error("env_state", "the name is empty or holds a NUL byte");
            return self.placeholder(ScalarType::Handle);
        }
        let value = self.value(|l| {
            let source = Source::of_state(name);
            let state = l.handles.state(l.b.module(), l.prefix, source, &mut l.pool.constants, l.pool.data);
            let caller = l.pool.constants.text(&shown(l.signature, Subject::Call));
            let (data, mut refused) = (l.pool.data, None);
            let pointer = l.b.structured(|c| {
                let refuse = |code: Val<'_>| refused = Some((c.current(), code.value()));
                once::load_state(c, state, || c.data(data, caller), refuse).value()
            });
            if let Some((block, code)) = refused {
                let here = l.b.current();
                l.b.switch_to(block);
                l.exit(code);
                l.b.switch_to(here);
            }
            pointer
        });
        self.expr(value, ScalarType::Handle).recorded(|recorder| recorder.env_state(name))
    }

    /// Raises a `RecursionError` if more than `most` calls of this function are active, counted across all threads.
    /// Call it at the start of a body that may recurse without end, to raise an error before the stack overflows.
    pub fn limit_recursion(&self, max: u32) {
        self.is_in_graph("limit_recursion");
        self.record(|recorder| recorder.done_with(Word::LimitRecursion, max));
        let text = self
            .emit(|l| format!("maximum recursion depth of {max} exceeded in `{}`", shown(l.signature, Subject::Call)));
        self.emit(|l| {
            let cell = l.handles.cell(l.b.module(), "depth", 8);
            let address = l.b.data_addr(cell, 0);
            let one = l.b.i64(1);
            let before = l.b.atomic_add(address, one);
            l.hold(Held::Depth(cell));
            let fine = l.b.icmp_imm(IntCC::SLt, before, i64::from(max));
            l.check(fine, |l| super::function::Failure {
                template: l.pool.constants.template("RecursionError", &[crate::lower::protocol::Piece::Text(&text)]),
                values: Vec::new(),
            });
        });
    }
}
