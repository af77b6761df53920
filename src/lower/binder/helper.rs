//! One runtime helper under construction: its checks, its way out, its messages.

use super::state::BinderState;
use super::structured::{Condition, StructuredCode};
use crate::ir::{Block, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, Module, Type, Value};
use crate::lower::capi::{self, CFunction};
use crate::lower::constants::ConstantPool;
use crate::lower::protocol::{Capabilities, Capability, CapabilityBit, Directive, Field, Piece, TypeKind};

/// Kinds of errors that checks raise.
pub(super) const TYPE_ERROR: &str = "TypeError";
pub(super) const VALUE_ERROR: &str = "ValueError";

/// The functions that `bind` calls. A function that would be called from one place alone is part of its caller; a function that nothing
/// needs isn't there.
#[derive(Clone, Copy)]
pub(super) struct LocalHelpers {
    pub(super) report: FuncRef,
    /// `int32_t check(State*, const ParamDescriptor* param, const TVMFFIAny* from, TVMFFIAny* to)`
    pub(super) check: Option<FuncRef>,
    /// `int32_t dim(State*, const DimDescriptor* dim, int64_t got, int64_t flags)`; see [`dims`].
    pub(super) dim: Option<FuncRef>,
    /// `int64_t eval(State*, const uint32_t* code, int64_t target)`: sets [`Field::HasValue`].
    pub(super) eval: Option<FuncRef>,
    /// `void copy_path(const Path* from, Path* to)`
    pub(super) copy_path: Option<FuncRef>,
}

impl LocalHelpers {
    pub(super) fn declare(module: &mut Module, capabilities: Capabilities, report: FuncRef) -> Self {
        use Type::{I32, I64, Ptr};
        let count = |asked: &[Capability]| asked.iter().filter(|capability| capabilities.has(**capability)).count();
        let recurses = [TypeKind::Optional, TypeKind::Tuple].into_iter().any(|kind| capabilities.has(kind));
        let check = capabilities.has(Capability::Elements) || recurses;
        let dim = count(&[Capability::Ranked, Capability::Strided, Capability::ShapeRank, Capability::Expr]) > 1;
        let eval = count(&[Capability::Expr, Capability::Constraint, Capability::ResultDim]) > 0;
        let copy_path = count(&[Capability::Elements, Capability::Expr]) > 0;
        let mut local = |needed: bool, name: &str, params: &[Type], ret: Option<Type>| {
            needed.then(|| {
                let name = format!("__tvm_ffi_codegen_{name}");
                let func = module.declare(name, FuncSig::new(params.iter().copied(), ret), Linkage::Local);
                module.functions[func].cold = true;
                func
            })
        };
        LocalHelpers {
            report,
            check: local(check, "check", &[Ptr, Ptr, Ptr, Ptr], Some(I32)),
            dim: local(dim, "dim", &[Ptr, Ptr, I64, I64], Some(I32)),
            eval: local(eval, "eval", &[Ptr, Ptr, I64], Some(I64)),
            // objects have this symbol
            copy_path: local(copy_path, "copy_place", &[Ptr, Ptr], None),
        }
    }
}

/// One runtime helper under construction.
pub(super) struct Binder<'m, 't> {
    pub(super) b: FunctionBuilder<'m>,
    pub(super) pool: &'t mut ConstantPool,
    /// The capabilities that the descriptors ask for.
    pub(super) capabilities: Capabilities,
    /// The constant pool that has the helpers' own texts.
    pub(super) own: DataRef,
    pub(super) state: Value,
    pub(super) helpers: LocalHelpers,
    /// Takes a template, and raises its error.
    pub(super) fail: Option<(Block, Value)>,
    /// Takes a code, and returns it.
    pub(super) exit: Option<(Block, Value)>,
}

impl<'m> StructuredCode<'m> for Binder<'m, '_> {
    fn builder(&mut self) -> &mut FunctionBuilder<'m> {
        &mut self.b
    }
}

impl<'m> BinderState<'m> for Binder<'m, '_> {
    fn state(&self) -> Value {
        self.state
    }

    fn has_containers(&self) -> bool {
        self.has(Capability::Elements)
    }
}

/// A piece of a message that is a field of the state.
pub(super) fn piece(directive: Directive, field: Field) -> Piece<'static> {
    Piece::Value(directive, field as u32)
}

/// The path of the parameter, or of the value inside it.
pub(super) const PATH: Piece<'static> = Piece::Value(Directive::ValuePath, Field::Path as u32);
/// ` on argument #1`
pub(super) const ARGUMENT: [Piece<'static>; 2] =
    [Piece::Text(" on argument #"), Piece::Value(Directive::Number, Field::Arg as u32)];
pub(super) const GOT: Piece<'static> = Piece::Text(", got ");
pub(super) const GOT_NUMBER: Piece<'static> = Piece::Value(Directive::Number, Field::Got as u32);
pub(super) const EXPECTED_NUMBER: Piece<'static> = Piece::Value(Directive::Number, Field::Expected as u32);
pub(super) const EXPECTED_TEXT: Piece<'static> = Piece::Value(Directive::String, Field::Text as u32);
pub(super) const GOT_TYPE: Piece<'static> = Piece::Value(Directive::Type, Field::Got as u32);

impl Binder<'_, '_> {
    pub(super) fn has(&self, feature: impl CapabilityBit) -> bool {
        self.capabilities.has(feature)
    }

    pub(super) fn finish(mut self) {
        if let Some((fail, template)) = self.fail {
            self.b.switch_to(fail);
            let own = self.own(0);
            if let Some(code) = self.b.call(self.helpers.report, &[own, template, self.state]) {
                self.leave(code);
            }
        }
        if let Some((exit, code)) = self.exit {
            self.b.switch_to(exit);
            self.b.ret(Some(code));
        }
        self.b.finish();
    }

    /// An address in the constant pool that has the helpers' own texts.
    pub(super) fn own(&mut self, offset: u32) -> Value {
        self.b.data_addr(self.own, offset)
    }

    /// Returns a code.
    pub(super) fn leave(&mut self, code: Value) {
        let (exit, _) = *self.exit.get_or_insert_with(|| {
            let exit = self.b.block();
            (exit, self.b.block_param(exit, Type::I32))
        });
        self.b.jump(exit, &[code]);
    }

    /// Goes on where `cond` holds, else raises.
    pub(super) fn require(&mut self, cond: impl Into<Condition>, kind: &str, pieces: &[Piece<'_>]) {
        self.require_telling(cond, kind, pieces, |_| {});
    }

    /// The same; `tell` sets what only this message tells.
    pub(super) fn require_telling(
        &mut self,
        cond: impl Into<Condition>,
        kind: &str,
        pieces: &[Piece<'_>],
        tell: impl FnOnce(&mut Self),
    ) {
        let template = self.pool.template(kind, pieces);
        let (ok, bad) = (self.b.block(), self.b.cold_block());
        self.branch_likely(cond.into(), ok, bad);
        self.b.switch_to(bad);
        tell(self);
        let (fail, _) = *self.fail.get_or_insert_with(|| {
            let fail = self.b.cold_block();
            (fail, self.b.block_param(fail, Type::I32))
        });
        let template = self.b.iconst(Type::I32, i64::from(template));
        self.b.jump(fail, &[template]);
        self.b.switch_to(ok);
    }

    /// ` when calling: ..., expected `
    pub(super) fn calling(&self) -> Piece<'static> {
        let directive = if self.has(Directive::Stated) { Directive::Calling } else { Directive::String };
        piece(directive, Field::Calling)
    }

    /// Requires a property of the parameter: `Mismatched {what} on argument ..., expected {expected}`.
    pub(super) fn require_of(
        &mut self,
        cond: impl Into<Condition>,
        kind: &str,
        what: &[Piece<'_>],
        expected: &[Piece<'_>],
    ) {
        self.require_of_telling(cond, kind, what, expected, |_| {});
    }

    /// The same; `tell` sets what only this message tells.
    pub(super) fn require_of_telling(
        &mut self,
        cond: impl Into<Condition>,
        kind: &str,
        what: &[Piece<'_>],
        expected: &[Piece<'_>],
        tell: impl FnOnce(&mut Self),
    ) {
        let argument = match self.has(Capability::Values) {
            true => &[Piece::Value(Directive::Argument, Field::Arg as u32)][..],
            false => &ARGUMENT,
        };
        let pieces = [&[Piece::Text("Mismatched ")][..], what, argument, &[self.calling()], expected].concat();
        self.require_telling(cond, kind, &pieces, tell);
    }

    /// Requires a type: `Mismatched type of {path} on argument ..., expected {expected}`.
    pub(super) fn require_type(&mut self, cond: impl Into<Condition>, expected: &[Piece<'_>]) {
        self.require_of(cond, TYPE_ERROR, &[Piece::Text("type of "), PATH], expected);
    }

    /// Requires a value: `Mismatched value of {path} on argument ..., expected {expected}`.
    pub(super) fn require_value(&mut self, cond: Value, expected: &[Piece<'_>]) {
        self.require_of(cond, VALUE_ERROR, &[Piece::Text("value of "), PATH], expected);
    }

    /// Requires that the argument has a type that the parameter accepts.
    pub(super) fn require_accepted(&mut self, ok: impl Into<Condition>) {
        self.require_type(ok, &[EXPECTED_TEXT, GOT, GOT_TYPE]);
    }

    /// Requires that the pointer to an object or string is not NULL (C4.4, C5.1).
    pub(super) fn require_non_null(&mut self, payload: Value) {
        let there = self.is_not(payload, 0);
        self.require_type(there, &[EXPECTED_TEXT, Piece::Text(", got a NULL pointer to one")]);
    }

    /// Inside a container, requires a type that needs no conversion (C9.8).
    pub(super) fn require_as_it_is(&mut self, ok: Value) {
        if !self.has(Capability::Elements) {
            return;
        }
        let strict = self.field(Field::Strict);
        let free = self.is(strict, 0);
        let ok = self.or(free, ok);
        self.require_type(ok, &[EXPECTED_TEXT, Piece::Text(" (elements are not converted), got "), GOT_TYPE]);
    }

    /// Calls a function that has raised where it doesn't return 0; goes on where it returns 0.
    pub(super) fn call_or_fail(&mut self, function: FuncRef, args: &[Value]) {
        let Some(code) = self.b.call(function, args) else { return };
        let ok = self.b.icmp_imm(IntCC::Eq, code, 0);
        self.pass_up_unless(ok, code);
    }

    /// Goes on where `ok` holds, else returns `code`.
    pub(super) fn pass_up_unless(&mut self, ok: Value, code: Value) {
        let (next, failed) = (self.b.block(), self.b.cold_block());
        self.b.branch(ok, next, failed, Hint::Likely);
        self.b.switch_to(failed);
        self.leave(code);
        self.b.switch_to(next);
    }

    /// Runs `then` where `cond` holds, else `otherwise`; where descriptors ask only for one of the two capabilities, no branch is made.
    pub(super) fn either(
        &mut self,
        first: Capability,
        second: Capability,
        cond: Value,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        match (self.has(first), self.has(second)) {
            (true, true) => self.when_else(cond, then, otherwise),
            (true, false) => then(self),
            (false, true) => otherwise(self),
            (false, false) => {}
        }
    }

    /// Returns 0.
    pub(super) fn succeed(&mut self) {
        let done = self.b.iconst(Type::I32, 0);
        self.leave(done);
    }

    pub(super) fn import(&mut self, function: CFunction) -> FuncRef {
        capi::import(self.b.module(), function)
    }
}
