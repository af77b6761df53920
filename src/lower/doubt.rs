//! Where the good path has a doubt: `bind` raises what is wrong, or makes arguments that the good path accepts.

use super::program::Encoded;
use crate::ir::{
    BinaryOp, Block, ConvertOp, DataRef, FuncRef, FunctionBuilder, Hint, IntCC, Linkage, Module, StackSlot, Type,
    UnaryOp, Value,
};

/// What `bind` has to know of a signature.
#[derive(Clone, Copy)]
pub(super) struct Doubt {
    pub program: Encoded,
    /// The table that the program is in.
    pub messages: DataRef,
    pub bind: FuncRef,
    /// How many arguments there are once defaults stand where some were left out.
    pub passed: usize,
    /// The function returns something.
    pub has_result: bool,
}

/// Arguments as `bind` takes and makes them.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub args: Value,
    pub num_args: Value,
}

impl Doubt {
    /// The memory that `bind` writes to.
    pub(super) fn scratch(&self, b: &mut FunctionBuilder<'_>) -> StackSlot {
        b.slot(self.program.scratch.bytes.max(1), 8)
    }

    /// Calls `bind`: 0 where it accepts.
    fn call_bind(&self, b: &mut FunctionBuilder<'_>, args: Value, num_args: Value, scratch: Value) -> Option<Value> {
        let table = b.data_addr(self.messages, 0);
        let program = b.iconst(Type::I32, i64::from(self.program.offset));
        b.call(self.bind, &[table, program, args, num_args, scratch])
    }

    /// What `bind` has made.
    fn made(&self, b: &mut FunctionBuilder<'_>, scratch: Value) -> Given {
        Given { args: scratch, num_args: b.iconst(Type::I32, self.passed as i64) }
    }

    /// Asks `bind`. Returns what it does where it refuses; goes on with what it has made elsewhere.
    pub(super) fn ask(&self, b: &mut FunctionBuilder<'_>, given: Given, scratch: StackSlot) -> Given {
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
        self.made(b, scratch)
    }

    /// The function that a good path leaves to, of the same prototype: asks, and calls the wrapper again. So the wrapper has no frame
    /// of its own for it.
    pub(super) fn define(&self, module: &mut Module, wrapper: FuncRef) -> FuncRef {
        let decl = &module.functions[wrapper];
        let (name, signature) = (format!("{}-doubt", decl.name), decl.signature.clone());
        let func = module.declare(name, signature, Linkage::Local);
        module.functions[func].cold = true;
        let mut b = FunctionBuilder::new(module, func);
        let [handle, args, num_args, result] = [0, 1, 2, 3].map(|i| b.param(i));
        let scratch = self.scratch(&mut b);
        let scratch = b.stack_addr(scratch);
        // What has been made was refused: a bug, which is to end in an error all the same. `bind` raises one of a number below 0.
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
        let made = self.made(&mut b, scratch);
        let marked = mark(&mut b, made.args);
        let result = if self.has_result { result } else { b.ptr_const(0) };
        if let Some(code) = b.call(wrapper, &[marked, made.args, made.num_args, result]) {
            b.jump(done, &[code]);
        }
        b.switch_to(done);
        b.ret(Some(code));
        b.finish()
    }
}

/// The handle with which a wrapper gets what `bind` has made; no wrapper looks at it. An odd address is nobody's.
fn mark(b: &mut FunctionBuilder<'_>, args: Value) -> Value {
    b.ptr_add_imm(args, 1)
}

/// How a wrapper comes to ask `bind`.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// Before all else: all checks are left to it.
    AskFirst,
    /// Where there is a doubt; what it makes goes to the kernel as it is.
    AskInside,
    /// Where there is a doubt, by a [function](Doubt::define) of its own; what it makes is taken apart by the good path.
    Leave(FuncRef),
}

/// The beginning of a wrapper.
pub(super) struct Entry {
    /// What the good path takes apart.
    pub given: Given,
    /// Where a doubt leads.
    pub doubt: Block,
    /// Where `bind` has been asked: what it has written to.
    pub asked: Option<StackSlot>,
    /// Where a doubt turned out to be none, with what `bind` has made.
    accepted: Option<(Block, Given)>,
}

impl Entry {
    /// Begins a wrapper; the good path goes on in the current block.
    pub(super) fn new(b: &mut FunctionBuilder<'_>, doubt: &Doubt, way: Way) -> Self {
        let entry = b.current();
        let [args, num_args] = [1, 2].map(|i| b.param(i));
        let given = Given { args, num_args };
        match way {
            Way::AskFirst => {
                let (block, scratch) = (b.block(), doubt.scratch(b));
                b.jump(block, &[]);
                b.switch_to(block);
                let given = doubt.ask(b, given, scratch);
                Entry { given, doubt: block, asked: Some(scratch), accepted: None }
            }
            Way::AskInside => {
                let (block, scratch) = (b.cold_block(), doubt.scratch(b));
                b.switch_to(block);
                let made = doubt.ask(b, given, scratch);
                let accepted = Some((b.current(), made));
                b.switch_to(entry);
                Entry { given, doubt: block, asked: None, accepted }
            }
            Way::Leave(outside) => {
                let block = b.cold_block();
                b.switch_to(block);
                // what the wrapper doesn't use needn't be kept for this
                let (handle, null) = (b.param(0), b.ptr_const(0));
                let result = if doubt.has_result { b.param(3) } else { null };
                let code = b.call(outside, &[handle, args, num_args, result]);
                b.ret(code);
                b.switch_to(entry);
                Entry { given, doubt: block, asked: None, accepted: None }
            }
        }
    }

    /// Where a kernel takes the arguments themselves: those of the good path, or those that `bind` has made.
    pub(super) fn join(&self, b: &mut FunctionBuilder<'_>) -> Given {
        let Some((accepted, made)) = self.accepted else { return self.given };
        let join = b.block();
        let given = Given { args: b.block_param(join, Type::Ptr), num_args: b.block_param(join, Type::I32) };
        for (block, from) in [(b.current(), self.given), (accepted, made)] {
            b.switch_to(block);
            b.jump(join, &[from.args, from.num_args]);
        }
        b.switch_to(join);
        given
    }
}
