//! Functions of a library that are registered as global functions while the library is loaded.

use super::abi::{byte_array, store_any};
use super::{capi, ffi_call};
use crate::ir::{DataRef, Emitter, FuncRef, FuncSig, Hint, Module, Type, Val};
use tvm_ffi_runtime::abi::TypeIndex;

/// The runtime's global function that unregisters a global function.
const REMOVE: &str = "ffi.FunctionRemoveGlobal";

/// A function of the library and its name as a global function.
#[derive(Debug)]
pub(super) struct Global {
    pub func: FuncRef,
    pub name: String,
}

/// Defines the constructor that registers functions, and the destructor that unregisters them. A function is not
/// registered if its global name is taken; a constructor can't report that. A name is only unregistered if it still
/// refers to the library's own function.
pub(super) fn define(module: &mut Module, globals: &[Global]) {
    if globals.is_empty() {
        return;
    }
    let (register, take_back) = (define_register(module), define_take_back(module));
    let constructor = module.declare_cold("__tvm_ffi_codegen_register_globals", FuncSig::default());
    let destructor = module.declare_cold("__tvm_ffi_codegen_take_back_globals", FuncSig::default());
    let mut places: Vec<(DataRef, DataRef, i64)> = Vec::with_capacity(globals.len());
    for (number, global) in globals.iter().enumerate() {
        let text = [global.name.as_bytes(), &[0]].concat();
        let text = module.add_data(format!("__tvm_ffi_codegen_global_name_{number}"), text, 1);
        let cell = module.add_state(format!("__tvm_ffi_codegen_global_{number}"), 8, 8);
        places.push((text, cell, global.name.len() as i64));
    }
    module.define(constructor, |c| {
        for (global, (text, cell, size)) in globals.iter().zip(&places) {
            c.call(register, &[c.data(*text, 0), c.i64(*size), c.data(*cell, 0), c.func_addr(global.func)]);
        }
        c.ret(None);
    });
    module.define(destructor, |c| {
        for (text, cell, size) in places.iter().rev() {
            c.call(take_back, &[c.data(*text, 0), c.i64(*size), c.data(*cell, 0)]);
        }
        c.ret(None);
    });
    module.constructors.push(constructor);
    module.destructors.push(destructor);
}

/// Calls a C function that writes a handle to its last parameter; returns the handle, or NULL if it fails. Clears the
/// raised error.
fn handle_of<'c>(c: Emitter<'c>, function: capi::CFunction, args: &[Val<'c>]) -> Val<'c> {
    let (out, null) = (c.var(Type::Ptr), c.null());
    out.set(null);
    let code = capi::result(c, function, &[args, &[out.address()]].concat());
    let (failed, done) = (c.cold_block(), c.block());
    let handle = c.block_param(done, Type::Ptr);
    let made = out.get();
    c.branch_with(code.is(0), (done, &[made]), (failed, &[]), Hint::Likely);
    c.switch_to(failed);
    ffi_call::drop_raised(c);
    c.jump(done, &[null]);
    c.switch_to(done);
    handle
}

/// `void register(const char* name, int64_t size, void** cell, TVMFFISafeCallType function)`: the cell owns the
/// registered function.
fn define_register(module: &mut Module) -> FuncRef {
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::Ptr], None);
    module.cold_local("__tvm_ffi_codegen_register_global", sig, |c| {
        let [name, size, cell, function] = c.params();
        let (keep, refused, done) = (c.block(), c.cold_block(), c.block());
        let null = c.null();
        let object = handle_of(c, capi::FUNCTION_CREATE, &[null, function, null]);
        c.or_leave(object.is_not(0), done);
        let code = capi::result(c, capi::FUNCTION_SET_GLOBAL, &[byte_array(c, name, size), object, c.i32(0)]);
        c.branch(code.is(0), keep, refused, Hint::Likely);
        c.switch_to(keep);
        cell.store(0, object);
        c.jump(done, &[]);
        c.switch_to(refused);
        ffi_call::drop_raised(c);
        ffi_call::release(c, object);
        c.jump(done, &[]);
        c.switch_to(done);
        c.ret(None);
    })
}

/// `void take_back(const char* name, int64_t size, void** cell)`
fn define_take_back(module: &mut Module) -> FuncRef {
    let remove = module.add_data("__tvm_ffi_codegen_remove_global", REMOVE.as_bytes().to_vec(), 1);
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr], None);
    module.cold_local("__tvm_ffi_codegen_take_back_global", sig, |c| {
        let [name, size, cell] = c.params();
        let [done, release, other, ours] = c.blocks();
        let own = cell.load(Type::Ptr, 0);
        c.or_leave(own.is_not(0), done);
        cell.store(0, c.null());
        let present = handle_of(c, capi::FUNCTION_GET_GLOBAL, &[byte_array(c, name, size)]);
        c.or_leave(present.is_not(0), release);
        c.branch(present.is(own), ours, other, Hint::Likely);
        c.switch_to(ours);
        let text = byte_array(c, c.data(remove, 0), c.i64(REMOVE.len() as i64));
        let function = handle_of(c, capi::FUNCTION_GET_GLOBAL, &[text]);
        c.or_leave(function.is_not(0), other);
        let (arg, result) = (ffi_call::any_slot(c), ffi_call::any_slot(c));
        c.with(|b| store_any(b, arg.value(), TypeIndex::RAW_STR, name.value()));
        let code = ffi_call::call(c, function, arg, 1, result);
        ffi_call::release(c, function);
        let failed = c.cold_block();
        c.branch(code.is(0), other, failed, Hint::Likely);
        c.switch_to(failed);
        ffi_call::drop_raised(c);
        c.jump(other, &[]);
        c.switch_to(other);
        ffi_call::release(c, present);
        c.jump(release, &[]);
        c.switch_to(release);
        ffi_call::release(c, own);
        c.jump(done, &[]);
        c.switch_to(done);
        c.ret(None);
    })
}
