//! Launches on the CPU: a function that is called for each block of the grid.
//!
//! The generated code has no threads. It calls a *parallel-for*, which does: `int32_t (*)(int64_t blocks, int32_t
//! (*block)(void* data, int64_t index), void* data)`. A library asks the global function [`PARALLEL_FOR`] for one at
//! its first launch. If it isn't registered, the library uses its own loop on the calling thread.

use super::super::device_api::config;
use super::super::once::{self, Source, State};
use crate::ir::{
    AbiParam, BinaryOp, Block, DataRef, Extension, FuncRef, FuncSig, FunctionBuilder, Hint, Module, Type, Val, Value,
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
        b.structured(|c| {
            let fail = |code| c.jump(failed, &[code]);
            let parallel_for = once::load_state(c, self.parallel_for, || c.data(pool, self.caller), fail);
            let [config, params] = launch.map(|address| c.val(address));
            let code = c.result(self.run, &[config, params, parallel_for, c.func_addr(self.block)]);
            c.branch_with(code.is(0), (done, &[]), (failed, &[code]), Hint::Likely);
        });
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
    module.local_once(RUN, FuncSig::c([Type::Ptr; 4], Some(Type::I32)), |c| {
        let [config, params, parallel_for, block] = c.params();
        // below 2^63, because a grid's extents are below 2^31, 2^16 and 2^16
        let extent = |at| config.load(Type::I32, config::GRID + at).zext();
        let count = [0, 4, 8].into_iter().fold(c.i64(1), |count, at| count * extent(at));
        let data = c.slot(16);
        data.store(0, config);
        data.store(8, params);
        c.ret(c.call_indirect(parallel_for_signature(), parallel_for, &[count, block, data]));
    })
}

/// A parallel-for that calls the blocks in order, on the calling thread.
fn one_by_one(module: &mut Module) -> FuncRef {
    module.local_once(ONE_BY_ONE, parallel_for_signature(), |c| {
        let [count, block, data] = c.params();
        let failed = c.block();
        let code = c.block_param(failed, Type::I32);
        c.for_up(count, |index| {
            let code = c.indirect_result(block_signature(), block, &[data, index]);
            c.or_fail(code.is(0), failed, &[code]);
        });
        c.ret(c.i32(0));
        c.switch_to(failed);
        c.ret(code);
    })
}

fn block(module: &mut Module, function: &BlockFunction, params: &[BlockParam]) -> FuncRef {
    let sig = prototype(params);
    let callee = match function {
        BlockFunction::Symbol(name) => Some(module.import(name, sig.clone())),
        BlockFunction::Address(_) | BlockFunction::Other => None,
    };
    let name = format!("__tvm_ffi_codegen_block_{}", module.functions.len());
    module.local(name, block_signature(), |c| {
        let [data, index] = c.params();
        let [config, addresses] = [0, 8].map(|at| data.load(Type::Ptr, at));
        let grid = [0, 4, 8].map(|at| config.load(Type::I32, config::GRID + at));
        let [x, y, _] = grid.map(Val::zext);
        let rows = index.binary(BinaryOp::UDiv, x);
        let places = [(index, BinaryOp::URem, x), (rows, BinaryOp::URem, y), (rows, BinaryOp::UDiv, y)];
        let places = places.map(|(of, op, by)| of.binary(op, by)).map(Val::truncate);
        let mut args = Vec::new();
        for (param, at) in params.iter().zip((0..).step_by(8)) {
            let address = addresses.load(Type::Ptr, at);
            args.push(match param {
                BlockParam::Value(param) => address.load(param.ty, 0),
                BlockParam::Struct => address,
            });
        }
        args.extend(places.into_iter().chain(grid));
        match (callee, function) {
            (Some(callee), _) => c.call(callee, &args),
            (None, BlockFunction::Address(address)) => c.call_indirect(sig, c.ptr(*address), &args),
            (None, BlockFunction::Symbol(_) | BlockFunction::Other) => None,
        };
        c.ret(c.i32(0));
    })
}
