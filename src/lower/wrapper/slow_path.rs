//! The slow path: the binder raises the first failed check, or converts the arguments to some that the fast path
//! accepts.

use super::locations::LocationTable;
use super::originals::{MARK, Originals};
use crate::ir::{
    BinaryOp, Block, ConvertOp, DataRef, FuncRef, FunctionBuilder, Hint, IntCC, MemFlags, Module, StackSlot, Type,
    UnaryOp, Value,
};
use crate::lower::abi::{ANY_SIZE, TYPE_INDEX};
use crate::lower::encode::Encoded;
use crate::lower::plan::Plan;
use tvm_ffi_runtime::abi::TypeIndex;

/// What the binder needs from a signature.
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
    /// The defaults for the caller's own arguments, if the body passes some of them on.
    pub originals: Option<&'a Originals>,
    /// The locations to append to the errors of checks.
    pub locations: Option<LocationTable>,
}

/// An argument array.
#[derive(Clone, Copy)]
pub(super) struct PackedArgs {
    pub args: Value,
    pub num_args: Value,
}

impl SlowPath<'_> {
    /// The scratch memory that the binder writes to.
    fn scratch(&self, b: &mut FunctionBuilder<'_>) -> StackSlot {
        b.slot(self.descriptor.scratch.bytes.max(1), 8)
    }

    /// Calls `bind`; it returns 0 if it accepts the arguments.
    fn call_bind(&self, b: &mut FunctionBuilder<'_>, args: Value, num_args: Value, scratch: Value) -> Option<Value> {
        let table = b.data_addr(self.table, 0);
        let descriptor = b.iconst(Type::I32, i64::from(self.descriptor.offset));
        b.call(self.bind, &[table, descriptor, args, num_args, scratch])
    }

    /// The arguments converted by the binder.
    fn bound(&self, b: &mut FunctionBuilder<'_>, scratch: Value) -> PackedArgs {
        PackedArgs { args: scratch, num_args: b.iconst(Type::I32, self.passed as i64) }
    }

    /// Binds arguments: continues with the converted arguments, or returns the binder's code if it rejects them.
    fn bind(&self, b: &mut FunctionBuilder<'_>, given: PackedArgs, scratch: StackSlot) -> PackedArgs {
        let scratch = b.stack_addr(scratch);
        let num_args = b.convert(ConvertOp::SExt, Type::I64, given.num_args);
        if let Some(code) = self.call_bind(b, given.args, num_args, scratch) {
            let (accepted, refused) = (b.block(), b.cold_block());
            let ok = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(ok, accepted, refused, Hint::None);
            b.switch_to(refused);
            if let Some(locations) = &self.locations {
                locations.append(b, scratch, code);
            }
            b.ret(Some(code));
            b.switch_to(accepted);
        }
        self.bound(b, scratch)
    }

    /// Defines the function that a fast path jumps to, with the wrapper's prototype. It binds the arguments and calls
    /// the wrapper again, so the wrapper needs no frame for the slow path.
    fn define(&self, module: &mut Module, wrapper: FuncRef) -> FuncRef {
        let decl = &module.functions[wrapper];
        let (name, signature) = (format!("{}-slow-path", decl.name), decl.signature.clone());
        let func = module.declare_cold(name, signature);
        let mut b = FunctionBuilder::new(module, func);
        let [args, num_args, result] = [1, 2, 3].map(|i| b.param(i));
        let scratch = self.scratch(&mut b);
        let scratch = b.stack_addr(scratch);
        // The result passed to the wrapper in the second call, to be marked. A function without a result uses a slot in
        // this frame.
        let (result, given) = match self.has_result {
            true => (result, result),
            false => {
                let own = b.slot(ANY_SIZE as u32, 8);
                let own = b.stack_addr(own);
                let none = b.iconst(Type::I32, i64::from(TypeIndex::NONE.0));
                b.store(none, own, TYPE_INDEX, MemFlags::ALIGNED);
                let is_null = b.icmp_imm(IntCC::Eq, result, 0);
                (own, b.select(is_null, own, result))
            }
        };
        // A mark before the first call means that the wrapper has rejected the binder's arguments, which is a bug. The
        // call must still end in an error: `bind` raises one for a negative number of arguments.
        let before = b.load(Type::I32, given, TYPE_INDEX, MemFlags::ALIGNED);
        let again = b.icmp_imm(IntCC::Eq, before, MARK);
        let again = b.convert(ConvertOp::ZExt, Type::I64, again);
        let never = b.unary(UnaryOp::Neg, again);
        let num_args = b.convert(ConvertOp::SExt, Type::I64, num_args);
        let num_args = b.binary(BinaryOp::Or, num_args, never);
        let (accepted, done) = (b.block(), b.block());
        let code = b.block_param(done, Type::I32);
        if let Some(code) = self.call_bind(&mut b, args, num_args, scratch) {
            let ok = b.icmp_imm(IntCC::Eq, code, 0);
            match &self.locations {
                None => b.branch_with(ok, (accepted, &[]), (done, &[code]), Hint::None),
                Some(locations) => {
                    let refused = b.cold_block();
                    b.branch(ok, accepted, refused, Hint::None);
                    b.switch_to(refused);
                    locations.append(&mut b, scratch, code);
                    b.jump(done, &[code]);
                }
            }
        }
        b.switch_to(accepted);
        let bound = self.bound(&mut b, scratch);
        let mark = b.iconst(Type::I32, MARK);
        b.store(mark, result, TYPE_INDEX, MemFlags::ALIGNED);
        let handle = match self.originals {
            None => b.ptr_const(0),
            Some(originals) => {
                let given = b.param(2);
                originals.array(&mut b, args, given)
            }
        };
        if let Some(code) = b.call(wrapper, &[handle, bound.args, bound.num_args, result]) {
            if self.has_result {
                // if the wrapper wrote no result, restore the caller's type index
                let after = b.load(Type::I32, result, TYPE_INDEX, MemFlags::ALIGNED);
                let untouched = b.icmp_imm(IntCC::Eq, after, MARK);
                let index = b.select(untouched, before, after);
                b.store(index, result, TYPE_INDEX, MemFlags::ALIGNED);
            }
            b.jump(done, &[code]);
        }
        b.switch_to(done);
        b.ret(Some(code));
        b.finish()
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
        let entry = b.current();
        let [args, num_args] = [1, 2].map(|i| b.param(i));
        let given = PackedArgs { args, num_args };
        match route {
            Route::BindFirst => {
                let (block, scratch) = (b.block(), slow_path.scratch(b));
                b.jump(block, &[]);
                b.switch_to(block);
                let given = slow_path.bind(b, given, scratch);
                Prologue { given, slow_path: block, bound: Some(scratch), accepted: None }
            }
            Route::BindInline => {
                let (block, scratch) = (b.cold_block(), slow_path.scratch(b));
                b.switch_to(block);
                let bound = slow_path.bind(b, given, scratch);
                let accepted = Some((b.current(), bound));
                b.switch_to(entry);
                Prologue { given, slow_path: block, bound: None, accepted }
            }
            Route::Leave(function) => {
                let block = b.cold_block();
                b.switch_to(block);
                // pass a null handle, because the function doesn't use it: no register has to keep the handle
                let (handle, result) = (b.ptr_const(0), b.param(3));
                let code = b.call(function, &[handle, args, num_args, result]);
                b.ret(code);
                b.switch_to(entry);
                Prologue { given, slow_path: block, bound: None, accepted: None }
            }
        }
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
