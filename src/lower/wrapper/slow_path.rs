//! The slow path: the binder raises the first failed check, or converts the arguments to some that the fast path
//! accepts.

use super::locations::LocationTable;
use super::originals::{MARK, Originals};
use super::records;
use crate::ir::{Block, DataRef, Emitter, FuncRef, FunctionBuilder, Hint, Module, StackSlot, Type, Val, Value};
use crate::lower::abi::{ANY_SIZE, PAYLOAD, TYPE_INDEX};
use crate::lower::encode::Encoded;
use crate::lower::plan::Plan;
use tvm_ffi_runtime::abi::TypeIndex;

/// The data of a signature that a call of the binder needs.
#[derive(Clone, Copy)]
pub(super) struct SlowPath<'a> {
    /// The signature's descriptor.
    pub descriptor: Encoded,
    /// The table that contains the descriptor.
    pub table: DataRef,
    pub bind: FuncRef,
    /// Number of arguments after defaults are filled in.
    pub passed: usize,
    /// Whether the function returns something.
    pub has_result: bool,
    /// Whether the body uses the handle, which has a closure's captured values.
    pub keeps_handle: bool,
    /// The defaults for the caller's own arguments, if the body passes some of them on.
    pub originals: Option<&'a Originals>,
    /// The locations to append to the errors of checks.
    pub locations: Option<LocationTable>,
    /// Where the scratch memory has the address of what the call owns, if the signature has records.
    pub owned: Option<i32>,
}

/// An argument array.
#[derive(Clone, Copy)]
pub(super) struct PackedArgs {
    pub args: Value,
    pub num_args: Value,
}

impl SlowPath<'_> {
    /// The scratch memory that the binder writes to.
    fn scratch(&self, c: Emitter<'_>) -> StackSlot {
        c.reserve(self.descriptor.scratch.bytes.max(1) as usize)
    }

    /// Calls `bind`; it returns 0 if it accepts the arguments.
    fn call_bind<'c>(&self, args: Val<'c>, num_args: Val<'c>, scratch: Val<'c>) -> Val<'c> {
        let c = args.emitter();
        let (table, descriptor) = (c.data(self.table, 0), c.i32(i64::from(self.descriptor.offset)));
        c.result(self.bind, &[table, descriptor, args, num_args, scratch])
    }

    /// The number of the arguments that the binder has converted.
    fn num_bound<'c>(&self, c: Emitter<'c>) -> Val<'c> {
        c.i32(self.passed as i64)
    }

    /// The handle to pass on: null unless the body uses it, so that no register has to keep it.
    fn handle<'c>(&self, handle: Val<'c>) -> Val<'c> {
        if self.keeps_handle { handle } else { handle.emitter().null() }
    }

    /// Binds the wrapper's arguments: continues with the converted arguments, or returns the binder's code if it
    /// rejects them.
    fn bind_own(&self, c: Emitter<'_>, scratch: StackSlot) -> PackedArgs {
        let scratch = c.stack_addr(scratch);
        if let Some(owned) = self.owned {
            scratch.store(owned, c.param(records::OWNED));
        }
        let code = self.call_bind(c.param(1), c.param(2).sext(), scratch);
        let (accepted, refused) = (c.block(), c.cold_block());
        c.branch(code.is(0), accepted, refused, Hint::None);
        c.switch_to(refused);
        if let Some(locations) = &self.locations {
            locations.append(c, scratch, code);
        }
        c.ret(code);
        c.switch_to(accepted);
        PackedArgs { args: scratch.value(), num_args: self.num_bound(c).value() }
    }

    /// Defines the function that a fast path jumps to, with the wrapper's prototype. It binds the arguments and calls
    /// the wrapper again, so the wrapper needs no frame for the slow path.
    fn define(&self, module: &mut Module, wrapper: FuncRef) -> FuncRef {
        let decl = &module.functions[wrapper];
        let (name, signature) = (format!("{}-slow-path", decl.name), decl.signature.clone());
        module.cold_local(name, signature, |c| {
            let [handle, args, given_args, result] = c.params();
            let scratch = c.stack_addr(self.scratch(c));
            // The result passed to the wrapper in the second call, to be marked. A function without a result uses a
            // slot in this frame.
            let (result, given) = match self.has_result {
                true => (result, result),
                false => {
                    let own = c.slot(ANY_SIZE as usize);
                    own.store(TYPE_INDEX, c.i32(i64::from(TypeIndex::NONE.0)));
                    (own, result.is(0).select(own, result))
                }
            };
            // A mark before the first call means that the wrapper has rejected the binder's arguments, which is a bug.
            // The call must still end in an error: `bind` raises one for a negative number of arguments.
            let before = given.load(Type::I32, TYPE_INDEX);
            let payload = self.originals.map(|_| given.load(Type::I64, PAYLOAD));
            let never = -before.is(MARK).zext();
            let num_args = given_args.sext() | never;
            let (accepted, done) = (c.block(), c.block());
            let exit = c.block_param(done, Type::I32);
            let code = self.call_bind(args, num_args, scratch);
            match &self.locations {
                None => c.branch_with(code.is(0), (accepted, &[]), (done, &[code]), Hint::None),
                Some(locations) => {
                    let refused = c.cold_block();
                    c.branch(code.is(0), accepted, refused, Hint::None);
                    c.switch_to(refused);
                    locations.append(c, scratch, code);
                    c.jump(done, &[code]);
                }
            }
            c.switch_to(accepted);
            let num_args = self.num_bound(c);
            result.store(TYPE_INDEX, c.i32(MARK));
            if let Some(originals) = self.originals {
                result.store(PAYLOAD, originals.array(c, args, given_args));
            }
            let handle = self.handle(handle);
            let code = c.result(wrapper, &[handle, scratch, num_args, result]);
            if self.has_result {
                // if the wrapper wrote no result, restore the caller's
                let after = result.load(Type::I32, TYPE_INDEX);
                let is_unwritten = after.is(MARK);
                result.store(TYPE_INDEX, is_unwritten.select(before, after));
                if let Some(payload) = payload {
                    result.store(PAYLOAD, is_unwritten.select(payload, result.load(Type::I64, PAYLOAD)));
                }
            }
            c.jump(done, &[code]);
            c.switch_to(done);
            c.ret(exit);
        })
    }
}

/// How a wrapper calls the binder.
#[derive(Clone, Copy)]
pub(super) enum Route {
    /// The wrapper calls the binder first, and the binder makes all checks.
    BindFirst,
    /// The slow path is code in the wrapper. The kernel receives the binder's arguments without another check.
    BindInline,
    /// The slow path is a [function](SlowPath::define) of its own. The fast path checks the binder's arguments again.
    Leave(FuncRef),
}

impl Route {
    /// Chooses the route of a wrapper, and defines the slow path's function if the route needs one.
    pub(super) fn new(slow_path: &SlowPath<'_>, plan: &Plan<'_>, module: &mut Module, wrapper: FuncRef) -> Self {
        match (plan.binds_first, plan.forward_args) {
            (true, _) => Route::BindFirst,
            (false, true) => Route::BindInline,
            (false, false) => Route::Leave(slow_path.define(module, wrapper)),
        }
    }
}

/// The start of a wrapper.
pub(super) struct Prologue {
    /// The arguments that the fast path reads.
    pub given: PackedArgs,
    /// The target of failed checks.
    pub slow_path: Block,
    /// The scratch memory of the binder, if it has made all checks.
    pub bound: Option<StackSlot>,
    /// The block where the binder has accepted arguments that the fast path rejected, with the converted arguments.
    accepted: Option<(Block, PackedArgs)>,
}

impl Prologue {
    /// Starts a wrapper; the fast path continues in the current block.
    pub(super) fn new(b: &mut FunctionBuilder<'_>, slow_path: &SlowPath<'_>, route: Route) -> Self {
        let [args, num_args] = [1, 2].map(|i| b.param(i));
        let given = PackedArgs { args, num_args };
        b.structured(|c| match route {
            Route::BindFirst => {
                let (block, scratch) = (c.block(), slow_path.scratch(c));
                c.jump(block, &[]);
                c.switch_to(block);
                let given = slow_path.bind_own(c, scratch);
                Prologue { given, slow_path: block, bound: Some(scratch), accepted: None }
            }
            Route::BindInline => {
                let (block, scratch) = (c.cold_block(), slow_path.scratch(c));
                let mut accepted = None;
                c.aside(block, || {
                    let bound = slow_path.bind_own(c, scratch);
                    accepted = Some((c.current(), bound));
                });
                Prologue { given, slow_path: block, bound: None, accepted }
            }
            Route::Leave(function) => {
                let block = c.cold_block();
                c.aside(block, || {
                    let handle = slow_path.handle(c.param(0));
                    c.ret(c.call(function, &[handle, c.param(1), c.param(2), c.param(3)]));
                });
                Prologue { given, slow_path: block, bound: None, accepted: None }
            }
        })
    }

    /// The arguments for a kernel that takes the array itself: those that the fast path accepted, or those converted by
    /// the binder.
    pub(super) fn join(&self, b: &mut FunctionBuilder<'_>) -> PackedArgs {
        let Some((accepted, bound)) = self.accepted else { return self.given };
        let join = b.block();
        let given = PackedArgs { args: b.block_param(join, Type::Ptr), num_args: b.block_param(join, Type::I32) };
        for (block, from) in [(b.current(), self.given), (accepted, bound)] {
            b.switch_to(block);
            b.jump(join, &[from.args, from.num_args]);
        }
        b.switch_to(join);
        given
    }
}
