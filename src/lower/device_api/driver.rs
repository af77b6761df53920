//! The driver of an API. It is located at the first use, by its library's and functions' names, and stays open while
//! the generated library is loaded.

use super::api::{Api, Call};
use super::outcome::{self, Failed};
use super::system::System;
use crate::ir::{AbiParam, DataRef, Emitter, FuncRef, FuncSig, Hint, Module, Type, Val};
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
    /// The driver's library, and the name of the function that resolves others.
    library: DataRef,
    get: Option<DataRef>,
    /// `int32_t open(void** result)`: the initialiser of the cell.
    open: FuncRef,
    /// `int32_t claim(void** cell)`: 1 if the caller has to do the cell's work, 0 once the work is done.
    claim: FuncRef,
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
        let functions = module.add_state(name("functions"), 0, 8);
        let rows = module.add_data(name("rows"), Vec::new(), 4);
        let library = module.add_data(name("library"), c_string(system.library(api)), 1);
        let get = api.get_proc_address.map(|get| module.add_data(name("get"), c_string(get), 1));
        let sig = FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..FuncSig::new([Type::Ptr], None) };
        let open = module.declare_cold(name("open"), sig);
        let claim = claim(module, system);
        Driver { api, system, cell, functions, rows, library, get, open, claim }
    }

    /// Writes the table of functions and defines the code that opens the driver. `graphs` tells whether the module has
    /// graphs.
    pub(super) fn finish(&self, module: &mut Module, graphs: bool) {
        let api = self.api;
        let calls = if graphs { Call::ALL } else { &Call::ALL[..Call::COUNT_WITHOUT_GRAPHS] };
        let mut rows = vec![0; row::SIZE as usize * calls.len()];
        for (row, &call) in rows.chunks_mut(row::SIZE as usize).zip(calls) {
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
        module.data[self.functions].bytes = vec![0; 8 * calls.len()];
        module.data[self.rows].bytes = rows;
        self.define_open(module, calls.len() as i64);
    }

    /// Calls a function of the driver, which must be open; returns its status.
    pub(super) fn call<'c>(&self, c: Emitter<'c>, call: Call, args: &[Val<'c>]) -> Val<'c> {
        let callee = self.address(c, call);
        c.indirect_result(self.api.signature(call), callee, args)
    }

    /// Opens the driver unless it is open; returns the initialiser's code.
    pub(super) fn require<'c>(&self, c: Emitter<'c>) -> Val<'c> {
        capi::result(c, capi::HANDLE_INIT_ONCE, &[c.data(self.cell, 0), c.func_addr(self.open)])
    }

    /// Whether the driver, which must be open, has an optional function; a `Bool`.
    pub(super) fn has<'c>(&self, c: Emitter<'c>, call: Call) -> Val<'c> {
        self.address(c, call).is_not(0)
    }

    /// The address of a driver function. The driver must be open.
    pub(super) fn address<'c>(&self, c: Emitter<'c>, call: Call) -> Val<'c> {
        c.data(self.functions, 8 * call as u32).load(Type::Ptr, 0)
    }

    /// A function's name and minimum version, both C strings. `place` is its index in the table, an `I64`.
    pub(super) fn name_and_version<'c>(&self, place: Val<'c>) -> [Val<'c>; 2] {
        let name = self.row(place);
        [name, name + row::VERSION]
    }

    fn row<'c>(&self, place: Val<'c>) -> Val<'c> {
        let offset = place * row::SIZE;
        place.emitter().data(self.rows, 0) + offset
    }

    /// Continues if the caller has to do a cell's work. `done` writes the code for a cell with its work done, which
    /// ends the function.
    pub(super) fn claim(&self, cell: Val<'_>, done: impl FnOnce()) {
        let c = cell.emitter();
        let [claimed, filled] = c.blocks();
        c.branch(c.result(self.claim, &[cell]).is_not(0), claimed, filled, Hint::None);
        c.switch_to(filled);
        done();
        c.switch_to(claimed);
    }

    /// The code of [`Self::open`]. It never closes a library: the driver runs threads, so its code must stay loaded.
    fn define_open(&self, module: &mut Module, count: i64) {
        module.define(self.open, |c| {
            let failed = c.cold_block();
            let outcome = c.block_param(failed, Type::I64);
            let (name, null) = (c.data(self.library, 0), c.null());
            let library = self.system.open(name);
            let zero = c.i32(0);
            let none = Failed::Library.with(zero);
            c.or_fail(library.is_not(0), failed, &[none]);
            let getter = self.get.map(|get| {
                let getter = self.system.find(library, c.data(get, 0));
                let none = Failed::Function.with(zero);
                c.or_fail(getter.is_not(0), failed, &[none]);
                getter
            });
            let [next, look, find, after, done] = c.blocks();
            let number = c.block_param(next, Type::I64);
            c.jump(next, &[c.i64(0)]);
            c.switch_to(next);
            c.branch(number.ult(count), look, done, Hint::Likely);
            c.switch_to(look);
            let row = self.row(number);
            let need = row.load(Type::I32, row::NEED);
            c.branch(need.is(row::NO), after, find, Hint::None);
            c.switch_to(find);
            let place = c.data(self.functions, 0).element(number, Type::I64);
            match getter {
                Some(getter) => {
                    let params = [Type::Ptr, Type::Ptr, Type::I32, Type::I64, Type::Ptr];
                    let sig = FuncSig::c(params, Some(Type::I32));
                    let (version, flags) = (row.load(Type::I32, row::NUMBER), c.i64(0));
                    let status = c.indirect_result(sig, getter, &[row, place, version, flags, null]);
                    let (fine, address) = (status.is(0), place.load(Type::Ptr, 0));
                    place.store(0, fine.select(address, null));
                }
                None => place.store(0, self.system.find(library, row)),
            }
            let address = place.load(Type::Ptr, 0);
            let missing = c.cold_block();
            c.branch(address.is_not(0), after, missing, Hint::Likely);
            c.switch_to(missing);
            let optional = need.is(row::OPTIONAL);
            let none = Failed::Function.with(number.truncate());
            c.branch_with(optional, (after, &[]), (failed, &[none]), Hint::None);
            c.switch_to(after);
            c.jump(next, &[number + 1]);
            c.switch_to(done);
            let status = self.call(c, Call::Init, &[zero]);
            let none = Failed::Call(Call::Init).with(status);
            c.or_fail(status.is(0), failed, &[none]);
            c.param(0).store(0, c.data(self.functions, 0));
            c.ret(zero);
            c.switch_to(failed);
            c.ret(outcome::to_code(outcome));
        });
    }
}

fn c_string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// A function that lets one thread do a cell's work while others wait. `TVMFFIHandleInitOnce` can't do this: its
/// initialisers take no argument, so they don't know the device.
fn claim(module: &mut Module, system: System) -> FuncRef {
    const SYMBOL: &str = "__tvm_ffi_codegen_claim";
    module.cold_local_once(SYMBOL, FuncSig::c([Type::Ptr], Some(Type::I32)), |c| {
        let cell = c.param(0);
        let [look, empty, filled, wait, mine, done] = c.blocks();
        c.jump(look, &[]);
        c.switch_to(look);
        let value = cell.load_acquire();
        c.branch(value.is(0), empty, filled, Hint::None);
        c.switch_to(empty);
        let before = cell.compare_exchange(c.null(), c.ptr(CLAIMED));
        c.branch(before.is(0), mine, look, Hint::Likely);
        c.switch_to(filled);
        c.branch(value.is(CLAIMED as i64), wait, done, Hint::Unlikely);
        c.switch_to(wait);
        system.pause(c);
        c.jump(look, &[]);
        for (block, result) in [(mine, 1), (done, 0)] {
            c.switch_to(block);
            c.ret(c.i32(result));
        }
    })
}

/// Ends a claim: sets the cell to its value, or empties it again after a failure.
pub(super) fn end_claim<'c>(cell: Val<'c>, value: Val<'c>) {
    cell.compare_exchange(cell.emitter().ptr(CLAIMED), value);
}
