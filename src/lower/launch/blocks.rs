//! Launches on the CPU: a function that is called for each block of the grid.
//!
//! The generated code has no threads. It calls a *parallel-for*, which does: `int32_t (*)(int64_t blocks, int32_t
//! (*block)(void* data, int64_t index), void* data)`. A library asks the global function [`PARALLEL_FOR`] for one at
//! its first launch. If it isn't registered, the library uses its own loop on the calling thread.

use super::super::device_api::config;
use super::super::once::{self, Source, State};
use crate::ir::{
    AbiParam, BinaryOp, Block, ConvertOp, DataRef, Extension, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage,
    MemFlags, Module, Type, Value,
};

/// The global function that returns the address of a parallel-for.
pub(crate) const PARALLEL_FOR: &str = "tvm_ffi_codegen.parallel_for";

/// The symbol of the function that calls the parallel-for.
const RUN: &str = "__tvm_ffi_codegen_blocks_run";
/// The symbol of the parallel-for of a library that finds no other.
const ONE_BY_ONE: &str = "__tvm_ffi_codegen_blocks_one_by_one";

/// The function that a launch on the CPU calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::lower) enum BlockFunction {
    /// An imported symbol.
    Symbol(String),
    /// An address of this process.
    Address(u64),
    /// Another kind of kernel, which is an error.
    Other,
}

/// A parameter of a block function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum BlockParam {
    /// A scalar value.
    Value(AbiParam),
    /// The address of a struct.
    Struct,
}

/// A block function in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Runs a launch; see [`run`].
    run: FuncRef,
    /// Calls the function for one block; see [`block_signature`].
    block: FuncRef,
    /// The parallel-for.
    parallel_for: State,
    /// The offset of the signature's printed form in the constant pool, a C string.
    caller: u32,
}

/// The C prototype of a block function: its parameters, then the block's position in the grid and the grid's extents,
/// each in x, y and z.
pub(in crate::lower) fn prototype(params: &[BlockParam]) -> FuncSig {
    let place = AbiParam { ext: Extension::Unsigned, ..AbiParam::new(Type::I32) };
    let of_param = |param: &BlockParam| match param {
        BlockParam::Value(param) => *param,
        BlockParam::Struct => AbiParam::new(Type::Ptr),
    };
    FuncSig { params: params.iter().map(of_param).chain([place; 6]).collect(), ..FuncSig::default() }
}

impl Blocks {
    /// Adds a block function to a module. `parallel_for` comes from [`source`]; `caller` is the offset of the printed
    /// signature.
    pub(super) fn new(
        module: &mut Module,
        function: &BlockFunction,
        params: &[BlockParam],
        parallel_for: State,
        caller: u32,
    ) -> Self {
        Blocks { run: run(module), block: block(module, function, params), parallel_for, caller }
    }

    /// Calls the function for each block of a nonempty grid, and ends the current block. It continues in `done`, or in
    /// `failed`, which takes a code.
    pub(super) fn launch(
        self,
        b: &mut FunctionBuilder<'_>,
        pool: DataRef,
        launch: [Value; 2],
        done: Block,
        failed: Block,
    ) {
        let caller = |b: &mut FunctionBuilder<'_>| b.data_addr(pool, self.caller);
        let fail = |b: &mut FunctionBuilder<'_>, code: Value| b.jump(failed, &[code]);
        let parallel_for = once::load_state(b, self.parallel_for, caller, fail);
        let ([config, params], block) = (launch, b.func_addr(self.block));
        match b.call(self.run, &[config, params, parallel_for, block]) {
            Some(code) => {
                let fine = b.icmp_imm(IntCC::Eq, code, 0);
                b.branch_with(fine, (done, &[]), (failed, &[code]), Hint::Likely);
            }
            None => b.jump(done, &[]),
        }
    }
}

/// The global function that returns the parallel-for of a module.
pub(super) fn source(module: &mut Module) -> Source<'static> {
    Source { name: PARALLEL_FOR, what: "the threads", default: Some(one_by_one(module)) }
}

/// `int32_t block(void* data, int64_t index)`: calls a launch's function for one block. `data` is an array of two
/// addresses: the launch's `CUlaunchConfig`, and the array of its parameters' addresses.
fn block_signature() -> FuncSig {
    FuncSig::c([Type::Ptr, Type::I64], Some(Type::I32))
}

/// The signature of a parallel-for.
fn parallel_for_signature() -> FuncSig {
    FuncSig::c([Type::I64, Type::Ptr, Type::Ptr], Some(Type::I32))
}

/// `int32_t run(const CUlaunchConfig* config, void** params, void* parallel_for, void* block)`: passes a launch's
/// blocks to the parallel-for.
fn run(module: &mut Module) -> FuncRef {
    if let Some((known, _)) = module.function_named(RUN) {
        return known;
    }
    let sig = FuncSig::c([Type::Ptr; 4], Some(Type::I32));
    let func = module.declare(RUN, sig, Linkage::Local);
    let mut b = FunctionBuilder::new(module, func);
    let [config, params, parallel_for, block] = [0, 1, 2, 3].map(|i| b.param(i));
    // below 2^63, because a grid's extents are below 2^31, 2^16 and 2^16
    let mut count = b.i64(1);
    for at in [0, 4, 8] {
        let extent = b.load(Type::I32, config, config::GRID + at, MemFlags::ALIGNED);
        let extent = b.convert(ConvertOp::ZExt, Type::I64, extent);
        count = b.binary(BinaryOp::Mul, count, extent);
    }
    let data = b.slot(16, 8);
    let data = b.stack_addr(data);
    b.store(config, data, 0, MemFlags::ALIGNED);
    b.store(params, data, 8, MemFlags::ALIGNED);
    let sig = b.signature(parallel_for_signature());
    let code = b.call_indirect(sig, parallel_for, &[count, block, data]);
    b.ret(code);
    b.finish()
}

/// A parallel-for that calls the blocks in order, on the calling thread.
fn one_by_one(module: &mut Module) -> FuncRef {
    if let Some((known, _)) = module.function_named(ONE_BY_ONE) {
        return known;
    }
    let func = module.declare(ONE_BY_ONE, parallel_for_signature(), Linkage::Local);
    let mut b = FunctionBuilder::new(module, func);
    let [count, block, data] = [0, 1, 2].map(|i| b.param(i));
    let failed = b.block();
    let code = b.block_param(failed, Type::I32);
    b.for_each_below(count, |b, index| {
        let sig = b.signature(block_signature());
        if let Some(code) = b.call_indirect(sig, block, &[data, index]) {
            let (next, fine) = (b.block(), b.icmp_imm(IntCC::Eq, code, 0));
            b.branch_with(fine, (next, &[]), (failed, &[code]), Hint::Likely);
            b.switch_to(next);
        }
    });
    let fine = b.iconst(Type::I32, 0);
    b.ret(Some(fine));
    b.switch_to(failed);
    b.ret(Some(code));
    b.finish()
}

fn block(module: &mut Module, function: &BlockFunction, params: &[BlockParam]) -> FuncRef {
    let sig = prototype(params);
    let callee = match function {
        BlockFunction::Symbol(name) => Some(module.import(name, sig.clone())),
        BlockFunction::Address(_) | BlockFunction::Other => None,
    };
    let name = format!("__tvm_ffi_codegen_block_{}", module.functions.len());
    let func = module.declare(name, block_signature(), Linkage::Local);
    let mut b = FunctionBuilder::new(module, func);
    let (data, index) = (b.param(0), b.param(1));
    let [config, addresses] = [0, 8].map(|at| b.load(Type::Ptr, data, at, MemFlags::ALIGNED));
    let grid = [0, 4, 8].map(|at| b.load(Type::I32, config, config::GRID + at, MemFlags::ALIGNED));
    let [x, y, _] = grid.map(|extent| b.convert(ConvertOp::ZExt, Type::I64, extent));
    let rows = b.binary(BinaryOp::UDiv, index, x);
    let places =
        [b.binary(BinaryOp::URem, index, x), b.binary(BinaryOp::URem, rows, y), b.binary(BinaryOp::UDiv, rows, y)];
    let places = places.map(|place| b.convert(ConvertOp::Truncate, Type::I32, place));
    let mut args = Vec::new();
    for (param, at) in params.iter().zip((0..).step_by(8)) {
        let address = b.load(Type::Ptr, addresses, at, MemFlags::ALIGNED);
        args.push(match param {
            BlockParam::Value(param) => b.load(param.ty, address, 0, MemFlags::ALIGNED),
            BlockParam::Struct => address,
        });
    }
    args.extend(places.into_iter().chain(grid));
    match (callee, function) {
        (Some(callee), _) => b.call(callee, &args),
        (None, BlockFunction::Address(address)) => {
            let (sig, callee) = (b.signature(sig), b.ptr_const(*address));
            b.call_indirect(sig, callee, &args)
        }
        (None, BlockFunction::Symbol(_) | BlockFunction::Other) => None,
    };
    let fine = b.iconst(Type::I32, 0);
    b.ret(Some(fine));
    b.finish()
}
