//! Launches on the CPU: a function that is called for each block of the grid, by as many threads as there are processors, those of [`pool`].

use super::super::device_api::config;
use super::pool::{self, block_signature};
use crate::ir::{
    AbiParam, BinaryOp, ConvertOp, Extension, FuncRef, FuncSig, FunctionBuilder, Linkage, MemFlags, Module, Type, Value,
};

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
    /// Runs a launch; see [`pool::declare`].
    run: FuncRef,
    /// Calls the function for one block; see [`block_signature`].
    block: FuncRef,
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
        Blocks { run: pool::declare(module), block: block(module, function, params) }
    }

    /// Calls the function for each block of a grid that has one at least.
    pub(super) fn launch(self, b: &mut FunctionBuilder<'_>, config: Value, params: Value) {
        let block = b.func_addr(self.block);
        b.call(self.run, &[config, params, block]);
    }
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
