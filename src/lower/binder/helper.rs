//! One runtime helper under construction: its checks, exits and messages.

use std::cell::{Cell, RefCell};

use super::state::BinderState;
use super::structured::Condition;
use crate::ir::{Block, DataRef, Emitter, FuncRef, FuncSig, Module, Type, Val};
use crate::lower::abi::store_none;
use crate::lower::capi::{self, CFunction};
use crate::lower::constants::ConstantPool;
use crate::lower::ffi_call;
use crate::lower::protocol::{Capabilities, Capability, CapabilityBit, Directive, Field, Piece, TypeKind};

/// The kinds of errors that checks raise.
pub(super) const TYPE_ERROR: &str = "TypeError";
pub(super) const VALUE_ERROR: &str = "ValueError";

/// The functions that `bind` calls. A function with a single caller is inlined there; an unused one is not defined.
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
        let recurses =
            [TypeKind::Optional, TypeKind::Tuple, TypeKind::Record].into_iter().any(|kind| capabilities.has(kind));
        let check = capabilities.has(Capability::Elements) || recurses;
        let dim = count(&[Capability::Ranked, Capability::Strided, Capability::ShapeRank, Capability::Expr]) > 1;
        let eval = count(&[Capability::Expr, Capability::Constraint, Capability::ResultDim]) > 0;
        let copy_path = count(&[Capability::Elements, Capability::Expr]) > 0;
        let mut local = |needed: bool, name: &str, params: &[Type], ret: Option<Type>| {
            needed.then(|| {
                let name = format!("__tvm_ffi_codegen_{name}");
                module.declare_cold(name, FuncSig::new(params.iter().copied(), ret))
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
pub(super) struct Binder<'c, 't> {
    pub(super) c: Emitter<'c>,
    pub(super) pool: RefCell<&'t mut ConstantPool>,
    /// The capabilities that the descriptors require.
    pub(super) capabilities: Capabilities,
    /// The constant pool with the helpers' own strings.
    pub(super) own: DataRef,
    pub(super) state: Cell<Val<'c>>,
    pub(super) helpers: LocalHelpers,
    /// The block that takes a template and raises its error.
    pub(super) fail: Cell<Option<(Block, Val<'c>)>>,
    /// The block that takes a code and returns it.
    pub(super) exit: Cell<Option<(Block, Val<'c>)>>,
}

impl<'c> BinderState<'c> for Binder<'c, '_> {
    fn code(&self) -> Emitter<'c> {
        self.c
    }

    fn state(&self) -> Val<'c> {
        self.state.get()
    }

    fn has_containers(&self) -> bool {
        self.has(Capability::Elements)
    }
}

/// A piece of a message that prints a field of the state.
pub(super) fn piece(directive: Directive, field: Field) -> Piece<'static> {
    Piece::Value(directive, field as u32)
}

/// The path of the parameter, or of a value inside it.
pub(super) const PATH: Piece<'static> = Piece::Value(Directive::ValuePath, Field::Path as u32);
/// ` on argument #1`
pub(super) const ARGUMENT: [Piece<'static>; 2] =
    [Piece::Text(" on argument #"), Piece::Value(Directive::Number, Field::Arg as u32)];
pub(super) const GOT: Piece<'static> = Piece::Text(", got ");
pub(super) const GOT_NUMBER: Piece<'static> = Piece::Value(Directive::Number, Field::Got as u32);
pub(super) const EXPECTED_NUMBER: Piece<'static> = Piece::Value(Directive::Number, Field::Expected as u32);
pub(super) const EXPECTED_TEXT: Piece<'static> = Piece::Value(Directive::String, Field::Text as u32);
pub(super) const GOT_TYPE: Piece<'static> = Piece::Value(Directive::Type, Field::Got as u32);

impl<'c> Binder<'c, '_> {
    pub(super) fn has(&self, feature: impl CapabilityBit) -> bool {
        self.capabilities.has(feature)
    }

    pub(super) fn finish(self) {
        let c = self.c;
        if let Some((fail, template)) = self.fail.get() {
            c.switch_to(fail);
            self.leave(c.result(self.helpers.report, &[self.own(0), template, self.state()]));
        }
        if let Some((exit, code)) = self.exit.get() {
            c.switch_to(exit);
            c.ret(code);
        }
    }

    /// An address in the constant pool with the helpers' own strings.
    pub(super) fn own(&self, offset: u32) -> Val<'c> {
        self.c.data(self.own, offset)
    }

    /// The address of a string in the constant pool with the helpers' own strings.
    pub(super) fn own_text(&self, text: &str) -> Val<'c> {
        let offset = self.pool.borrow_mut().text(text);
        self.own(offset)
    }

    /// The block that takes an `I32`; created on first use.
    fn taking(&self, place: &Cell<Option<(Block, Val<'c>)>>, block: impl FnOnce(Emitter<'c>) -> Block) -> Block {
        let (block, value) = place.get().unwrap_or_else(|| {
            let block = block(self.c);
            (block, self.c.block_param(block, Type::I32))
        });
        place.set(Some((block, value)));
        block
    }

    /// Returns a code.
    pub(super) fn leave(&self, code: Val<'c>) {
        let exit = self.taking(&self.exit, Emitter::block);
        self.c.jump(exit, &[code]);
    }

    /// Continues if `cond` holds, otherwise raises an error.
    pub(super) fn require(&self, cond: impl Into<Condition<'c>>, kind: &str, pieces: &[Piece<'_>]) {
        self.require_telling(cond, kind, pieces, || {});
    }

    /// Like [`require`](Self::require); `tell` sets the fields that only this message prints.
    pub(super) fn require_telling(
        &self,
        cond: impl Into<Condition<'c>>,
        kind: &str,
        pieces: &[Piece<'_>],
        tell: impl FnOnce(),
    ) {
        let template = self.pool.borrow_mut().template(kind, pieces);
        let (ok, bad) = (self.c.block(), self.c.cold_block());
        cond.into().branch(self.c, ok, bad);
        self.c.switch_to(bad);
        tell();
        let fail = self.taking(&self.fail, Emitter::cold_block);
        self.c.jump(fail, &[self.c.i32(template.into())]);
        self.c.switch_to(ok);
    }

    /// ` when calling: ..., expected `
    pub(super) fn calling(&self) -> Piece<'static> {
        let directive = if self.has(Directive::Stated) { Directive::Calling } else { Directive::String };
        piece(directive, Field::Calling)
    }

    /// Requires a property of the parameter: `Mismatched {what} on argument ..., expected {expected}`.
    pub(super) fn require_of(
        &self,
        cond: impl Into<Condition<'c>>,
        kind: &str,
        what: &[Piece<'_>],
        expected: &[Piece<'_>],
    ) {
        self.require_of_telling(cond, kind, what, expected, || {});
    }

    /// Like [`require_of`](Self::require_of); `tell` sets the fields that only this message prints.
    pub(super) fn require_of_telling(
        &self,
        cond: impl Into<Condition<'c>>,
        kind: &str,
        what: &[Piece<'_>],
        expected: &[Piece<'_>],
        tell: impl FnOnce(),
    ) {
        let argument = match self.has(Capability::Values) {
            true => &[Piece::Value(Directive::Argument, Field::Arg as u32)][..],
            false => &ARGUMENT,
        };
        let pieces = [&[Piece::Text("Mismatched ")][..], what, argument, &[self.calling()], expected].concat();
        self.require_telling(cond, kind, &pieces, tell);
    }

    /// Requires a type: `Mismatched type of {path} on argument ..., expected {expected}`.
    pub(super) fn require_type(&self, cond: impl Into<Condition<'c>>, expected: &[Piece<'_>]) {
        self.require_of(cond, TYPE_ERROR, &[Piece::Text("type of "), PATH], expected);
    }

    /// Requires a value: `Mismatched value of {path} on argument ..., expected {expected}`.
    pub(super) fn require_value(&self, cond: Val<'c>, expected: &[Piece<'_>]) {
        self.require_of(cond, VALUE_ERROR, &[Piece::Text("value of "), PATH], expected);
    }

    /// Requires that the argument has a type that the parameter accepts.
    pub(super) fn require_accepted(&self, ok: impl Into<Condition<'c>>) {
        self.require_type(ok, &[EXPECTED_TEXT, GOT, GOT_TYPE]);
    }

    /// Requires that the pointer to an object or string is not NULL (C4.4, C5.1).
    pub(super) fn require_non_null(&self, payload: Val<'c>) {
        self.require_type(payload.is_not(0), &[EXPECTED_TEXT, Piece::Text(", got NULL")]);
    }

    /// Inside a container, requires a type that needs no conversion (C9.8).
    pub(super) fn require_as_it_is(&self, ok: Val<'c>) {
        if self.has(Capability::Elements) {
            let ok = self.field(Field::Strict).is(0) | ok;
            self.require_type(ok, &[EXPECTED_TEXT, Piece::Text(" (elements are not converted), got "), GOT_TYPE]);
        }
    }

    /// Calls a function that returns 0, or a nonzero code after raising an error. Continues if it returns 0.
    pub(super) fn call_or_fail(&self, function: FuncRef, args: &[Val<'c>]) {
        self.pass_up(self.c.result(function, args));
    }

    /// Continues if a code is 0, otherwise returns the code.
    pub(super) fn pass_up(&self, code: Val<'c>) {
        self.c.require(code.is(0), || self.leave(code));
    }

    /// Runs `then` if `cond` holds, otherwise `otherwise`. Emits no branch if the descriptors require only one of the
    /// two capabilities.
    pub(super) fn either(
        &self,
        first: Capability,
        second: Capability,
        cond: Val<'c>,
        then: impl FnOnce(),
        otherwise: impl FnOnce(),
    ) {
        match (self.has(first), self.has(second)) {
            (true, true) => self.c.when_else(cond, then, otherwise),
            (true, false) => then(),
            (false, true) => otherwise(),
            (false, false) => {}
        }
    }

    /// Returns 0.
    pub(super) fn succeed(&self) {
        self.leave(self.c.i32(0));
    }

    /// Calls a function of the runtime; returns its result.
    pub(super) fn call_c(&self, function: CFunction, args: &[Val<'c>]) -> Val<'c> {
        capi::result(self.c, function, args)
    }

    /// Calls a function object with one argument; returns its code.
    pub(super) fn call_function(&self, function: Val<'c>, arg: Val<'c>, result: Val<'c>) -> Val<'c> {
        ffi_call::call(self.c, function, arg, 1, result)
    }

    /// A `TVMFFIAny` on the stack, initialised to None.
    pub(super) fn any_slot(&self) -> Val<'c> {
        ffi_call::any_slot(self.c)
    }

    /// Writes None.
    pub(super) fn accept_none(&self, to: Val<'c>) {
        self.c.with(|b| store_none(b, to.value()));
    }
}
