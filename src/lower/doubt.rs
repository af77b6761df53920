//! Where the good path has a doubt: `bind` raises what is wrong, or makes arguments that the good path accepts.

use super::program::Encoded;
use crate::ir::{ConvertOp, DataRef, FuncRef, FunctionBuilder, Hint, IntCC, Linkage, Module, StackSlot, Type, Value};

/// What `bind` has to know of a signature.
#[derive(Clone, Copy)]
pub(super) struct Doubt {
    pub program: Encoded,
    /// The table that the program is in.
    pub messages: DataRef,
    pub bind: FuncRef,
    /// How many arguments there are once defaults stand where some were left out.
    pub passed: usize,
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

    /// Asks `bind`. Returns what it does where it refuses; goes on with what it has made elsewhere.
    pub(super) fn ask(&self, b: &mut FunctionBuilder<'_>, given: Given, scratch: StackSlot) -> Given {
        let table = b.data_addr(self.messages, 0);
        let program = b.iconst(Type::I32, i64::from(self.program.offset));
        let scratch = b.stack_addr(scratch);
        let num_args = b.convert(ConvertOp::SExt, Type::I64, given.num_args);
        let made = Given { args: scratch, num_args: b.iconst(Type::I32, self.passed as i64) };
        if let Some(code) = b.call(self.bind, &[table, program, given.args, num_args, scratch]) {
            let (accepted, refused) = (b.block(), b.cold_block());
            let ok = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(ok, accepted, refused, Hint::None);
            b.switch_to(refused);
            b.ret(Some(code));
            b.switch_to(accepted);
        }
        made
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
        let made = self.ask(&mut b, Given { args, num_args }, scratch);
        let code = b.call(wrapper, &[handle, made.args, made.num_args, result]);
        b.ret(code);
        b.finish()
    }
}
