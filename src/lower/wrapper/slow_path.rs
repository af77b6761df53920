//! The slow path: the binder raises the first check that fails, or makes arguments that the fast path accepts.

use crate::ir::{
    BinaryOp, Block, ConvertOp, DataRef, FuncRef, FunctionBuilder, Hint, IntCC, Linkage, Module, StackSlot, Type,
    UnaryOp, Value,
};
use crate::lower::encode::Encoded;
use crate::lower::plan::Plan;

/// The binder's view of a signature.
#[derive(Clone, Copy)]
pub(super) struct SlowPath {
    /// The signature's descriptor.
    pub descriptor: Encoded,
    /// The table that the descriptor is in.
    pub table: DataRef,
    pub bind: FuncRef,
    /// Number of arguments once defaults are filled in.
    pub passed: usize,
    /// The function returns something.
    pub has_result: bool,
}

/// An argument array.
#[derive(Clone, Copy)]
pub(super) struct PackedArgs {
    pub args: Value,
    pub num_args: Value,
}

impl SlowPath {
    /// The memory that the binder writes to.
    fn scratch(&self, b: &mut FunctionBuilder<'_>) -> StackSlot {
        b.slot(self.descriptor.scratch.bytes.max(1), 8)
    }

    /// Calls `bind`, which gives 0 where it accepts the arguments.
    fn call_bind(&self, b: &mut FunctionBuilder<'_>, args: Value, num_args: Value, scratch: Value) -> Option<Value> {
        let table = b.data_addr(self.table, 0);
        let descriptor = b.iconst(Type::I32, i64::from(self.descriptor.offset));
        b.call(self.bind, &[table, descriptor, args, num_args, scratch])
    }

    /// The arguments that the binder has made.
    fn bound(&self, b: &mut FunctionBuilder<'_>, scratch: Value) -> PackedArgs {
        PackedArgs { args: scratch, num_args: b.iconst(Type::I32, self.passed as i64) }
    }

    /// Binds arguments: goes on with those that the binder has made, and returns its code where it refuses.
    fn bind(&self, b: &mut FunctionBuilder<'_>, given: PackedArgs, scratch: StackSlot) -> PackedArgs {
        let scratch = b.stack_addr(scratch);
        let num_args = b.convert(ConvertOp::SExt, Type::I64, given.num_args);
        if let Some(code) = self.call_bind(b, given.args, num_args, scratch) {
            let (accepted, refused) = (b.block(), b.cold_block());
            let ok = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(ok, accepted, refused, Hint::None);
            b.switch_to(refused);
            b.ret(Some(code));
            b.switch_to(accepted);
        }
        self.bound(b, scratch)
    }

    /// Defines the function that a fast path leaves to, of the wrapper's own prototype: it binds the arguments and calls the wrapper again.
    /// So the wrapper needs no frame for the slow path.
    fn define(&self, module: &mut Module, wrapper: FuncRef) -> FuncRef {
        let decl = &module.functions[wrapper];
        let (name, signature) = (format!("{}-doubt", decl.name), decl.signature.clone());
        let func = module.declare(name, signature, Linkage::Local);
        module.functions[func].cold = true;
        let mut b = FunctionBuilder::new(module, func);
        let [handle, args, num_args, result] = [0, 1, 2, 3].map(|i| b.param(i));
        let scratch = self.scratch(&mut b);
        let scratch = b.stack_addr(scratch);
        // Where the wrapper has refused arguments that the binder made, which is a bug, the call has to end in an error all the same:
        // `bind` raises one for a negative number of arguments.
        let marked = mark(&mut b, args);
        let again = b.icmp(IntCC::Eq, handle, marked);
        let again = b.convert(ConvertOp::ZExt, Type::I64, again);
        let never = b.unary(UnaryOp::Neg, again);
        let num_args = b.convert(ConvertOp::SExt, Type::I64, num_args);
        let num_args = b.binary(BinaryOp::Or, num_args, never);
        let (accepted, done) = (b.block(), b.block());
        let code = b.block_param(done, Type::I32);
        if let Some(code) = self.call_bind(&mut b, args, num_args, scratch) {
            let ok = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch_with(ok, (accepted, &[]), (done, &[code]), Hint::None);
        }
        b.switch_to(accepted);
        let bound = self.bound(&mut b, scratch);
        let marked = mark(&mut b, bound.args);
        let result = if self.has_result { result } else { b.ptr_const(0) };
        if let Some(code) = b.call(wrapper, &[marked, bound.args, bound.num_args, result]) {
            b.jump(done, &[code]);
        }
        b.switch_to(done);
        b.ret(Some(code));
        b.finish()
    }
}

/// The handle with which a wrapper gets arguments that the binder has made. No wrapper looks at its handle, and no object is at an odd
/// address.
fn mark(b: &mut FunctionBuilder<'_>, args: Value) -> Value {
    b.ptr_add_imm(args, 1)
}

/// The way from a wrapper to the binder.
#[derive(Clone, Copy)]
pub(super) enum Route {
    /// The wrapper calls the binder before all else, which makes all checks.
    BindFirst,
    /// The fast path leaves to code of the wrapper itself. What the binder makes goes to the kernel as it is.
    BindInline,
    /// The fast path leaves to a [function](SlowPath::define) of its own. The fast path takes what the binder makes.
    Leave(FuncRef),
}

impl Route {
    /// The route of a wrapper, whose slow path it defines if it has a function of its own.
    pub(super) fn new(slow_path: &SlowPath, plan: &Plan<'_>, module: &mut Module, wrapper: FuncRef) -> Self {
        match (plan.binds_first, plan.forward_args) {
            (true, _) => Route::BindFirst,
            (false, true) => Route::BindInline,
            (false, false) => Route::Leave(slow_path.define(module, wrapper)),
        }
    }
}

/// The beginning of a wrapper.
pub(super) struct Prologue {
    /// The arguments that the fast path takes.
    pub given: PackedArgs,
    /// Where failed conditions lead.
    pub slow_path: Block,
    /// The scratch memory of the binder, where it has made all checks.
    pub bound: Option<StackSlot>,
    /// Where the binder has accepted arguments that the fast path refused, with the arguments that it has made.
    accepted: Option<(Block, PackedArgs)>,
}

impl Prologue {
    /// Begins a wrapper; the fast path goes on in the current block.
    pub(super) fn new(b: &mut FunctionBuilder<'_>, slow_path: &SlowPath, route: Route) -> Self {
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
                // a result that the wrapper doesn't write needn't be kept for this call
                let (handle, null) = (b.param(0), b.ptr_const(0));
                let result = if slow_path.has_result { b.param(3) } else { null };
                let code = b.call(function, &[handle, args, num_args, result]);
                b.ret(code);
                b.switch_to(entry);
                Prologue { given, slow_path: block, bound: None, accepted: None }
            }
        }
    }

    /// The arguments for a kernel that takes the array itself: those of the fast path, or those that the binder has made.
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
