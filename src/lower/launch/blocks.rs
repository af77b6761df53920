//! Launches on the CPU: a function that is called for each block of the grid, by as many threads as there are processors.
//!
//! The threads are the launch's own and end with it. Generated code finds them in the C library, so that a library of it needs nothing else, whichever runtime it
//! is loaded into.

use super::super::arithmetic::extremum;
use super::super::device_api::config;
use crate::ir::{
    AbiParam, BinaryOp, ConvertOp, Extension, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags,
    Module, Type, Value,
};
use crate::spec::DimOp;

/// The function behind a launch on the CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::lower) enum BlockFunction {
    /// A symbol that is imported.
    Symbol(String),
    /// An address of this process.
    Address(u64),
    /// Another kernel, which is a mistake.
    Other,
}

/// A parameter of a block function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum BlockParam {
    /// A value.
    Value(AbiParam),
    /// The address of a struct.
    Struct,
}

/// A block function in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// `void run(const CUlaunchConfig* config, void** params, void (*block)(config, params, int64_t index))`.
    run: FuncRef,
    /// `void block(const CUlaunchConfig* config, void** params, int64_t index)`: calls the function for one block.
    block: FuncRef,
}

/// The most threads of a launch, whose identities are in its frame.
const MOST_THREADS: i64 = 64;

/// The state that the threads of a launch share, in its frame. At 0 is the index of the next block that nobody has taken.
mod state {
    pub(super) const SIZE: u32 = 40;
    pub(super) const COUNT: i32 = 8;
    pub(super) const CONFIG: i32 = 16;
    pub(super) const PARAMS: i32 = 24;
    pub(super) const BLOCK: i32 = 32;
}

/// The C prototype of a block function: its parameters, and behind them the block's place in the grid and the grid's extents, in x, y and z.
pub(in crate::lower) fn prototype(params: &[BlockParam]) -> FuncSig {
    let place = AbiParam { ext: Extension::Unsigned, ..AbiParam::new(Type::I32) };
    let of_param = |param: &BlockParam| match param {
        BlockParam::Value(param) => *param,
        BlockParam::Struct => AbiParam::new(Type::Ptr),
    };
    FuncSig { params: params.iter().map(of_param).chain([place; 6]).collect(), ..FuncSig::default() }
}

impl Blocks {
    /// Adds a block function to a module.
    pub(super) fn new(module: &mut Module, function: &BlockFunction, params: &[BlockParam]) -> Self {
        let worker = worker(module);
        Blocks { run: run(module, worker), block: block(module, function, params) }
    }

    /// Calls the function for each block of a grid that has one at least.
    pub(super) fn launch(self, b: &mut FunctionBuilder<'_>, config: Value, params: Value) {
        let block = b.func_addr(self.block);
        b.call(self.run, &[config, params, block]);
    }
}

fn block_signature() -> FuncSig {
    FuncSig::c([Type::Ptr, Type::Ptr, Type::I64], None)
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
    let [config, addresses, index] = [0, 1, 2].map(|i| b.param(i));
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
    b.ret(None);
    b.finish()
}

/// `void* worker(void* state)`: takes blocks until there are no more.
fn worker(module: &mut Module) -> FuncRef {
    const SYMBOL: &str = "__tvm_ffi_codegen_blocks_worker";
    if let Some((known, _)) = module.function_named(SYMBOL) {
        return known;
    }
    let func = module.declare(SYMBOL, FuncSig::c([Type::Ptr], Some(Type::Ptr)), Linkage::Local);
    let mut b = FunctionBuilder::new(module, func);
    let state = b.param(0);
    let count = b.load(Type::I64, state, state::COUNT, MemFlags::ALIGNED);
    let config = b.load(Type::Ptr, state, state::CONFIG, MemFlags::ALIGNED);
    let params = b.load(Type::Ptr, state, state::PARAMS, MemFlags::ALIGNED);
    let block = b.load(Type::Ptr, state, state::BLOCK, MemFlags::ALIGNED);
    let (next, take, mine, done) = (b.block(), b.block(), b.block(), b.block());
    b.jump(next, &[]);
    b.switch_to(next);
    let before = b.load_acquire(state);
    let index = b.convert(ConvertOp::PtrToInt, Type::I64, before);
    let is_there = b.icmp(IntCC::ULt, index, count);
    b.branch(is_there, take, done, Hint::Likely);
    b.switch_to(take);
    let after = b.ptr_add_imm(before, 1);
    let found = b.compare_exchange(state, before, after);
    let taken = b.icmp(IntCC::Eq, found, before);
    b.branch(taken, mine, next, Hint::Likely);
    b.switch_to(mine);
    let sig = b.signature(block_signature());
    b.call_indirect(sig, block, &[config, params, index]);
    b.jump(next, &[]);
    b.switch_to(done);
    let null = b.ptr_const(0);
    b.ret(Some(null));
    b.finish()
}

fn run(module: &mut Module, worker: FuncRef) -> FuncRef {
    const SYMBOL: &str = "__tvm_ffi_codegen_blocks_run";
    if let Some((known, _)) = module.function_named(SYMBOL) {
        return known;
    }
    let create = [Type::Ptr, Type::Ptr, Type::Ptr, Type::Ptr];
    let create = module.import("pthread_create", FuncSig::c(create, Some(Type::I32)));
    let join = module.import("pthread_join", FuncSig::c([Type::I64, Type::Ptr], Some(Type::I32)));
    let processors = module.import("get_nprocs", FuncSig::c([], Some(Type::I32)));
    let func = module.declare(SYMBOL, FuncSig::c([Type::Ptr, Type::Ptr, Type::Ptr], None), Linkage::Local);
    let mut b = FunctionBuilder::new(module, func);
    let [config, params, block] = [0, 1, 2].map(|i| b.param(i));
    // below 2^63, as extents of grids are below 2^31, 2^16 and 2^16
    let mut count = b.i64(1);
    for at in [0, 4, 8] {
        let extent = b.load(Type::I32, config, config::GRID + at, MemFlags::ALIGNED);
        let extent = b.convert(ConvertOp::ZExt, Type::I64, extent);
        count = b.binary(BinaryOp::Mul, count, extent);
    }
    let (state, threads) = (b.slot(state::SIZE, 8), b.slot(8 * MOST_THREADS as u32, 8));
    let (state, threads) = (b.stack_addr(state), b.stack_addr(threads));
    let (none, null) = (b.i64(0), b.ptr_const(0));
    let fields =
        [(0, none), (state::COUNT, count), (state::CONFIG, config), (state::PARAMS, params), (state::BLOCK, block)];
    for (at, value) in fields {
        b.store(value, state, at, MemFlags::ALIGNED);
    }
    // this thread is one of them
    let found = b.call(processors, &[]);
    let wanted = match found {
        Some(count) => b.convert(ConvertOp::SExt, Type::I64, count),
        None => b.i64(1),
    };
    let most = b.i64(MOST_THREADS);
    let mut wanted = extremum(&mut b, DimOp::Min, wanted, most);
    wanted = extremum(&mut b, DimOp::Min, wanted, count);
    wanted = b.binary_imm(BinaryOp::Sub, wanted, 1);

    let (start, one, started, help, wait, done) = (b.block(), b.block(), b.block(), b.block(), b.block(), b.block());
    let number = b.block_param(start, Type::I64);
    let running = b.block_param(help, Type::I64);
    let joined = b.block_param(wait, Type::I64);
    b.jump(start, &[none]);
    b.switch_to(start);
    let more = b.icmp(IntCC::SLt, number, wanted);
    b.branch_with(more, (one, &[]), (help, &[number]), Hint::None);
    b.switch_to(one);
    let at = b.binary_imm(BinaryOp::Mul, number, 8);
    let at = b.ptr_add(threads, at);
    let entry = b.func_addr(worker);
    let status = b.call(create, &[at, null, entry, state]);
    let fine = match status {
        Some(status) => b.icmp_imm(IntCC::Eq, status, 0),
        None => b.bconst(false),
    };
    // without another thread, those that there are do its work
    b.branch_with(fine, (started, &[]), (help, &[number]), Hint::Likely);
    b.switch_to(started);
    let after = b.binary_imm(BinaryOp::Add, number, 1);
    b.jump(start, &[after]);
    b.switch_to(help);
    b.call(worker, &[state]);
    b.jump(wait, &[running]);
    b.switch_to(wait);
    let (last, some) = (b.icmp_imm(IntCC::Eq, joined, 0), b.block());
    b.branch(last, done, some, Hint::None);
    b.switch_to(some);
    let before = b.binary_imm(BinaryOp::Sub, joined, 1);
    let at = b.binary_imm(BinaryOp::Mul, before, 8);
    let at = b.ptr_add(threads, at);
    let thread = b.load(Type::I64, at, 0, MemFlags::ALIGNED);
    b.call(join, &[thread, null]);
    b.jump(wait, &[before]);
    b.switch_to(done);
    b.ret(None);
    b.finish()
}
