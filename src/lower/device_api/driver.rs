//! The driver behind an API: found at the first use, by the names of its library and functions, and kept for as long as the library is loaded.

use super::api::{Api, Call};
use super::layout::MOST_DEVICES;
use super::outcome::{self, Failed};
use super::system::System;
use crate::ir::{
    AbiParam, BinaryOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value,
};
use crate::lower::capi;

/// The driver of an API in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    pub api: &'static Api,
    /// The system that the driver is on.
    pub system: System,
    /// Holds the address of the functions, once they are known.
    cell: DataRef,
    /// The addresses of the functions.
    functions: DataRef,
    /// The names of the functions, [`NAME`] bytes for each.
    pub names: DataRef,
    /// The [records](record) of the devices.
    pub devices: DataRef,
    /// `int32_t open(void** result)`: the initialiser of the cell.
    open: FuncRef,
    /// `int32_t claim(void** cell)`: 1 where the caller has to do the work that the cell stands for, 0 once it is done.
    pub claim: FuncRef,
}

/// The knowledge of a device.
pub(super) mod record {
    pub(in crate::lower::device_api) const SIZE: i64 = 64;
    // At 0 is the cell, which is 0, 1 while it is claimed, else its own address.
    /// The primary context.
    pub(in crate::lower::device_api) const CONTEXT: i32 = 8;
    /// The device, as the driver numbers it.
    pub(in crate::lower::device_api) const DEVICE: i32 = 16;
    /// Ten times the major compute capability, and the minor one.
    pub(in crate::lower::device_api) const CAPABILITY: i32 = 20;
    /// The most threads of a block, and the most in x, y and z.
    pub(in crate::lower::device_api) const BLOCK: i32 = 24;
    /// The most shared memory of a block.
    pub(in crate::lower::device_api) const SHARED: i32 = 40;
}

/// Bytes of a function's name and least version, with their NULs.
pub(super) const NAME: i64 = 48;
/// The offset of the least version's text in those bytes.
pub(super) const VERSION: i64 = 40;
/// A cell whose work a thread is doing.
pub(super) const CLAIMED: u64 = 1;

impl Driver {
    pub(super) fn new(module: &mut Module, api: &'static Api, system: System) -> Self {
        let name = |what: &str| format!("__tvm_ffi_codegen_{}_{what}", api.name);
        let cell = module.add_state(name("driver"), 8, 8);
        let functions = module.add_state(name("functions"), 8 * api.functions.len(), 8);
        let mut names = vec![0; NAME as usize * api.functions.len()];
        for (row, function) in names.chunks_mut(NAME as usize).zip(api.functions) {
            row[..function.name.len()].copy_from_slice(function.name.as_bytes());
            let version = format!("{}.{}", function.version / 1000, function.version % 1000 / 10);
            row[VERSION as usize..][..version.len()].copy_from_slice(version.as_bytes());
        }
        let names = module.add_data(name("names"), names, 1);
        let devices = module.add_state(name("devices"), (MOST_DEVICES * record::SIZE) as usize, 8);
        let library = module.add_data(name("library"), c_string(system.library(api)), 1);
        let get = api.get_proc_address.map(|get| module.add_data(name("get"), c_string(get), 1));
        let sig = FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..FuncSig::new([Type::Ptr], None) };
        let open = module.declare(name("open"), sig, Linkage::Local);
        module.functions[open].cold = true;
        let claim = claim(module, system);
        let driver = Driver { api, system, cell, functions, names, devices, open, claim };
        driver.define_open(module, library, get);
        driver
    }

    /// Calls a function of the driver, which is open; gives its status.
    pub(super) fn call(&self, b: &mut FunctionBuilder<'_>, call: Call, args: &[Value]) -> Value {
        let function = self.api.function(call);
        let sig = b.signature(function.signature());
        let address = b.data_addr(self.functions, 8 * call as u32);
        let callee = b.load(Type::Ptr, address, 0, MemFlags::ALIGNED);
        match b.call_indirect(sig, callee, args) {
            Some(status) => status,
            None => b.iconst(Type::I32, 0),
        }
    }

    /// Opens the driver, unless it is open; gives the code of its initialiser.
    pub(super) fn require(&self, b: &mut FunctionBuilder<'_>) -> Option<Value> {
        let (cell, initialiser) = (b.data_addr(self.cell, 0), b.func_addr(self.open));
        let init = capi::import(b.module(), capi::HANDLE_INIT_ONCE);
        b.call(init, &[cell, initialiser])
    }

    /// Whether the driver, which is open, has a function that drivers may do without; a `Bool`.
    pub(super) fn has(&self, b: &mut FunctionBuilder<'_>, call: Call) -> Value {
        let address = b.data_addr(self.functions, 8 * call as u32);
        let callee = b.load(Type::Ptr, address, 0, MemFlags::ALIGNED);
        b.icmp_imm(IntCC::Ne, callee, 0)
    }

    /// The record of a device, whose number an `I32` is.
    pub(super) fn record(&self, b: &mut FunctionBuilder<'_>, device: Value) -> Value {
        row(b, self.devices, device, record::SIZE)
    }

    /// Whether the driver is open, a `Bool`.
    pub(super) fn is_open(&self, b: &mut FunctionBuilder<'_>) -> Value {
        let cell = b.data_addr(self.cell, 0);
        let filled = b.load_acquire(cell);
        b.icmp_imm(IntCC::Ne, filled, 0)
    }

    /// The code of [`Self::open`]. Nothing is closed again: a driver has threads of its own, whose code may not go.
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
        for (number, function) in (0..).zip(self.api.functions).filter(|(_, function)| !function.name.is_empty()) {
            let name = b.data_addr(self.names, number * NAME as u32);
            let place = b.data_addr(self.functions, 8 * number);
            let number = b.iconst(Type::I32, i64::from(number));
            let none = Failed::Function.with(b, number);
            match getter {
                Some(getter) => {
                    let params = [Type::Ptr, Type::Ptr, Type::I32, Type::I64, Type::Ptr];
                    let sig = b.signature(FuncSig::c(params, Some(Type::I32)));
                    let (version, flags) = (b.iconst(Type::I32, i64::from(function.version)), b.i64(0));
                    let status = b.call_indirect(sig, getter, &[name, place, version, flags, null]).unwrap_or(zero);
                    let fine = b.icmp_imm(IntCC::Eq, status, 0);
                    let (next, without) = (b.block(), b.cold_block());
                    b.branch(fine, next, without, Hint::Likely);
                    b.switch_to(without);
                    match function.optional {
                        true => {
                            b.store(null, place, 0, MemFlags::ALIGNED);
                            b.jump(next, &[]);
                        }
                        false => b.jump(failed, &[none]),
                    }
                    b.switch_to(next);
                }
                None => {
                    let address = self.system.find(b, library, name);
                    b.store(address, place, 0, MemFlags::ALIGNED);
                }
            }
            if !function.optional {
                let address = b.load(Type::Ptr, place, 0, MemFlags::ALIGNED);
                require_non_null(b, address, failed, none);
            }
        }
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

/// The address of a row of state, whose number an `I32` is.
pub(super) fn row(b: &mut FunctionBuilder<'_>, rows: DataRef, number: Value, bytes: i64) -> Value {
    let number = b.convert(crate::ir::ConvertOp::ZExt, Type::I64, number);
    let offset = b.binary_imm(BinaryOp::Mul, number, bytes);
    let rows = b.data_addr(rows, 0);
    b.ptr_add(rows, offset)
}

/// The function that lets one thread do the work that a cell stands for, while others wait. `TVMFFIHandleInitOnce` can't: its initialisers take no
/// argument, so that they can't tell the device.
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

/// Ends a claim: the cell gets what it stands for, or is empty again.
pub(super) fn end_claim(b: &mut FunctionBuilder<'_>, cell: Value, value: Value) {
    let claimed = b.ptr_const(CLAIMED);
    b.compare_exchange(cell, claimed, value);
}
