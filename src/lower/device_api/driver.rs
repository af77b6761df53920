//! The driver of an API. It is located at the first use, by its library's and functions' names, and stays open while
//! the generated library is loaded.

use super::api::{Api, Call};
use super::outcome::{self, Failed};
use super::system::System;
use crate::ir::{
    AbiParam, BinaryOp, ConvertOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module,
    Type, Value,
};
use crate::lower::capi;
use crate::lower::protocol::Encode;

/// The driver of an API in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    pub api: &'static Api,
    /// The operating system that the driver runs on.
    pub system: System,
    /// Holds the address of the function table once the functions are resolved.
    cell: DataRef,
    /// The addresses of the functions.
    functions: DataRef,
    /// The [rows](row) of the functions.
    rows: DataRef,
    /// `int32_t open(void** result)`: the initialiser of the cell.
    open: FuncRef,
    /// `int32_t claim(void** cell)`: 1 if the caller has to do the cell's work, 0 once the work is done.
    pub claim: FuncRef,
}

/// The layout of a driver function in the module's data. It starts with the name, a C string.
mod row {
    pub(super) const SIZE: i64 = 56;
    /// The minimum version, a C string: `12.0`.
    pub(super) const VERSION: i64 = 40;
    /// The minimum version as a number, then whether the driver must have the function.
    pub(super) const NUMBER: i32 = 48;
    pub(super) const NEED: i32 = 52;
    /// The API has no such function.
    pub(super) const NO: i64 = 0;
    pub(super) const NEEDED: i64 = 1;
    pub(super) const OPTIONAL: i64 = 2;
}

/// The contents of a cell while a thread does its work.
pub(super) const CLAIMED: u64 = 1;

impl Driver {
    pub(super) fn new(module: &mut Module, api: &'static Api, system: System) -> Self {
        let name = |what: &str| format!("__tvm_ffi_codegen_{}_{what}", api.name);
        let cell = module.add_state(name("driver"), 8, 8);
        let functions = module.add_state(name("functions"), 8 * Call::ALL.len(), 8);
        let mut rows = vec![0; row::SIZE as usize * Call::ALL.len()];
        for (row, call) in rows.chunks_mut(row::SIZE as usize).zip(Call::ALL) {
            let function = api.function(call);
            let version = function.map_or(0, |function| function.version);
            let mut put = |at: usize, bytes: &[u8]| row[at..][..bytes.len()].copy_from_slice(bytes);
            put(0, api.function_name(call).as_bytes());
            let text = format!("{}.{}", version / 1000, version % 1000 / 10);
            put(row::VERSION as usize, text.as_bytes());
            let need = match function {
                None => row::NO,
                Some(function) if function.optional => row::OPTIONAL,
                Some(_) => row::NEEDED,
            };
            for (at, number) in [(row::NUMBER, version), (row::NEED, need as u32)] {
                let mut bytes = Vec::new();
                number.write(module.endianness, &mut bytes);
                put(at as usize, &bytes);
            }
        }
        let rows = module.add_data(name("rows"), rows, 4);
        let library = module.add_data(name("library"), c_string(system.library(api)), 1);
        let get = api.get_proc_address.map(|get| module.add_data(name("get"), c_string(get), 1));
        let sig = FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..FuncSig::new([Type::Ptr], None) };
        let open = module.declare(name("open"), sig, Linkage::Local);
        module.functions[open].cold = true;
        let claim = claim(module, system);
        let driver = Driver { api, system, cell, functions, rows, open, claim };
        driver.define_open(module, library, get);
        driver
    }

    /// Calls a function of the driver, which must be open; returns its status.
    pub(super) fn call(&self, b: &mut FunctionBuilder<'_>, call: Call, args: &[Value]) -> Value {
        let sig = b.signature(self.api.signature(call));
        let callee = self.address(b, call);
        match b.call_indirect(sig, callee, args) {
            Some(status) => status,
            None => b.iconst(Type::I32, 0),
        }
    }

    /// Opens the driver unless it is open; returns the initialiser's code.
    pub(super) fn require(&self, b: &mut FunctionBuilder<'_>) -> Option<Value> {
        let (cell, initialiser) = (b.data_addr(self.cell, 0), b.func_addr(self.open));
        let init = capi::import(b.module(), capi::HANDLE_INIT_ONCE);
        b.call(init, &[cell, initialiser])
    }

    /// Whether the driver, which must be open, has an optional function; a `Bool`.
    pub(super) fn has(&self, b: &mut FunctionBuilder<'_>, call: Call) -> Value {
        let callee = self.address(b, call);
        b.icmp_imm(IntCC::Ne, callee, 0)
    }

    /// The address of a driver function. The driver must be open.
    pub(super) fn address(&self, b: &mut FunctionBuilder<'_>, call: Call) -> Value {
        let place = b.data_addr(self.functions, 8 * call as u32);
        b.load(Type::Ptr, place, 0, MemFlags::ALIGNED)
    }

    /// A function's name and minimum version, both C strings. `place` is its index in the table, an `I64`.
    pub(super) fn name_and_version(&self, b: &mut FunctionBuilder<'_>, place: Value) -> [Value; 2] {
        let name = self.row(b, place);
        [name, b.ptr_add_imm(name, row::VERSION)]
    }

    fn row(&self, b: &mut FunctionBuilder<'_>, place: Value) -> Value {
        let offset = b.binary_imm(BinaryOp::Mul, place, row::SIZE);
        let rows = b.data_addr(self.rows, 0);
        b.ptr_add(rows, offset)
    }

    /// The code of [`Self::open`]. It never closes a library: the driver runs threads, so its code must stay loaded.
    fn define_open(&self, module: &mut Module, library: DataRef, get: Option<DataRef>) {
        let mut builder = FunctionBuilder::new(module, self.open);
        let b = &mut builder;
        let failed = b.cold_block();
        let outcome = b.block_param(failed, Type::I64);
        let (name, null) = (b.data_addr(library, 0), b.ptr_const(0));
        let library = self.system.open(b, name);
        let zero = b.iconst(Type::I32, 0);
        let none = Failed::Library.with(b, zero);
        require_non_null(b, library, failed, none);
        let getter = get.map(|get| {
            let name = b.data_addr(get, 0);
            let getter = self.system.find(b, library, name);
            let none = Failed::Function.with(b, zero);
            require_non_null(b, getter, failed, none);
            getter
        });
        let (next, look, find, after, done) = (b.block(), b.block(), b.block(), b.block(), b.block());
        let number = b.block_param(next, Type::I64);
        let first = b.i64(0);
        b.jump(next, &[first]);
        b.switch_to(next);
        let more = b.icmp_imm(IntCC::ULt, number, Call::ALL.len() as i64);
        b.branch(more, look, done, Hint::Likely);
        b.switch_to(look);
        let row = self.row(b, number);
        let need = b.load(Type::I32, row, row::NEED, MemFlags::ALIGNED);
        let none = b.icmp_imm(IntCC::Eq, need, row::NO);
        b.branch(none, after, find, Hint::None);
        b.switch_to(find);
        let functions = b.data_addr(self.functions, 0);
        let place = b.element(functions, number, Type::I64);
        match getter {
            Some(getter) => {
                let params = [Type::Ptr, Type::Ptr, Type::I32, Type::I64, Type::Ptr];
                let sig = b.signature(FuncSig::c(params, Some(Type::I32)));
                let (version, flags) = (b.load(Type::I32, row, row::NUMBER, MemFlags::ALIGNED), b.i64(0));
                let status = b.call_indirect(sig, getter, &[row, place, version, flags, null]).unwrap_or(zero);
                let fine = b.icmp_imm(IntCC::Eq, status, 0);
                let address = b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
                let address = b.select(fine, address, null);
                b.store(address, place, 0, MemFlags::ALIGNED);
            }
            None => {
                let address = self.system.find(b, library, row);
                b.store(address, place, 0, MemFlags::ALIGNED);
            }
        }
        let address = b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
        let missing = b.cold_block();
        let there = b.icmp_imm(IntCC::Ne, address, 0);
        b.branch(there, after, missing, Hint::Likely);
        b.switch_to(missing);
        let optional = b.icmp_imm(IntCC::Eq, need, row::OPTIONAL);
        let short = b.convert(ConvertOp::Truncate, Type::I32, number);
        let outcome_of_function = Failed::Function.with(b, short);
        b.branch_with(optional, (after, &[]), (failed, &[outcome_of_function]), Hint::None);
        b.switch_to(after);
        let following = b.binary_imm(BinaryOp::Add, number, 1);
        b.jump(next, &[following]);
        b.switch_to(done);
        let status = self.call(b, Call::Init, &[zero]);
        let outcome_of_init = Failed::Call(Call::Init).with(b, status);
        let (next, fine) = (b.block(), b.icmp_imm(IntCC::Eq, status, 0));
        b.branch_with(fine, (next, &[]), (failed, &[outcome_of_init]), Hint::Likely);
        b.switch_to(next);
        let (result, functions) = (b.param(0), b.data_addr(self.functions, 0));
        b.store(functions, result, 0, MemFlags::ALIGNED);
        b.ret(Some(zero));
        b.switch_to(failed);
        let code = outcome::to_code(b, outcome);
        b.ret(Some(code));
        builder.finish();
    }
}

fn c_string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

fn require_non_null(b: &mut FunctionBuilder<'_>, pointer: Value, failed: crate::ir::Block, outcome: Value) {
    let (next, there) = (b.block(), b.icmp_imm(IntCC::Ne, pointer, 0));
    b.branch_with(there, (next, &[]), (failed, &[outcome]), Hint::Likely);
    b.switch_to(next);
}

/// A function that lets one thread do a cell's work while others wait. `TVMFFIHandleInitOnce` can't do this: its
/// initialisers take no argument, so they don't know the device.
fn claim(module: &mut Module, system: System) -> FuncRef {
    const SYMBOL: &str = "__tvm_ffi_codegen_claim";
    if let Some((known, _)) = module.function_named(SYMBOL) {
        return known;
    }
    let func = module.declare(SYMBOL, FuncSig::c([Type::Ptr], Some(Type::I32)), Linkage::Local);
    module.functions[func].cold = true;
    let mut b = FunctionBuilder::new(module, func);
    let cell = b.param(0);
    let (look, empty, filled, wait, mine, done) = (b.block(), b.block(), b.block(), b.block(), b.block(), b.block());
    b.jump(look, &[]);
    b.switch_to(look);
    let value = b.load_acquire(cell);
    let is_empty = b.icmp_imm(IntCC::Eq, value, 0);
    b.branch(is_empty, empty, filled, Hint::None);
    b.switch_to(empty);
    let (null, claimed) = (b.ptr_const(0), b.ptr_const(CLAIMED));
    let before = b.compare_exchange(cell, null, claimed);
    let won = b.icmp_imm(IntCC::Eq, before, 0);
    b.branch(won, mine, look, Hint::Likely);
    b.switch_to(filled);
    let busy = b.icmp_imm(IntCC::Eq, value, CLAIMED as i64);
    b.branch(busy, wait, done, Hint::Unlikely);
    b.switch_to(wait);
    system.pause(&mut b);
    b.jump(look, &[]);
    b.switch_to(mine);
    let one = b.iconst(Type::I32, 1);
    b.ret(Some(one));
    b.switch_to(done);
    let zero = b.iconst(Type::I32, 0);
    b.ret(Some(zero));
    b.finish()
}

/// Ends a claim: sets the cell to its value, or empties it again after a failure.
pub(super) fn end_claim(b: &mut FunctionBuilder<'_>, cell: Value, value: Value) {
    let claimed = b.ptr_const(CLAIMED);
    b.compare_exchange(cell, claimed, value);
}
