//! Functions of a library that are registered as global functions while the library is loaded.

use std::mem::offset_of;

use super::abi::store_any;
use super::{capi, ffi_call};
use crate::ir::{DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type, Value};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

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
    let mut b = FunctionBuilder::new(module, constructor);
    for (global, (text, cell, size)) in globals.iter().zip(&places) {
        let (text, size, cell) = (b.data_addr(*text, 0), b.i64(*size), b.data_addr(*cell, 0));
        let function = b.func_addr(global.func);
        b.call(register, &[text, size, cell, function]);
    }
    b.ret(None);
    b.finish();
    let mut b = FunctionBuilder::new(module, destructor);
    for (text, cell, size) in places.iter().rev() {
        let (text, size, cell) = (b.data_addr(*text, 0), b.i64(*size), b.data_addr(*cell, 0));
        b.call(take_back, &[text, size, cell]);
    }
    b.ret(None);
    b.finish();
    module.constructors.push(constructor);
    module.destructors.push(destructor);
}

/// A `TVMFFIByteArray` on the stack.
fn byte_array(b: &mut FunctionBuilder<'_>, data: Value, size: Value) -> Value {
    let slot = b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
    let array = b.stack_addr(slot);
    b.store(data, array, offset_of!(TVMFFIByteArray, data) as i32, MemFlags::ALIGNED);
    b.store(size, array, offset_of!(TVMFFIByteArray, size) as i32, MemFlags::ALIGNED);
    array
}

/// Calls a C function that writes a handle to its last parameter; returns the handle, or NULL if it fails. Clears the
/// raised error.
fn handle_of(b: &mut FunctionBuilder<'_>, function: capi::CFunction, args: &[Value]) -> Value {
    let slot = b.slot(8, 8);
    let out = b.stack_addr(slot);
    let null = b.ptr_const(0);
    b.store(null, out, 0, MemFlags::ALIGNED);
    let function = capi::import(b.module(), function);
    let code = b.call(function, &[args, &[out]].concat());
    let (failed, done) = (b.cold_block(), b.block());
    let handle = b.block_param(done, Type::Ptr);
    let made = b.load(Type::Ptr, out, 0, MemFlags::ALIGNED);
    if let Some(code) = code {
        let fine = b.icmp_imm(IntCC::Eq, code, 0);
        b.branch_with(fine, (done, &[made]), (failed, &[]), Hint::Likely);
    }
    b.switch_to(failed);
    ffi_call::drop_raised(b);
    b.jump(done, &[null]);
    b.switch_to(done);
    handle
}

/// Branches on whether a pointer is NULL: continues in the first block if not, in `null` if so. The first block becomes
/// the current one.
fn unless_null(b: &mut FunctionBuilder<'_>, pointer: Value, null: crate::ir::Block) {
    let there = b.block();
    let is = b.icmp_imm(IntCC::Ne, pointer, 0);
    b.branch(is, there, null, Hint::None);
    b.switch_to(there);
}

/// `void register(const char* name, int64_t size, void** cell, TVMFFISafeCallType function)`: the cell owns the
/// registered function.
fn define_register(module: &mut Module) -> FuncRef {
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::Ptr], None);
    FunctionBuilder::define_cold(module, "__tvm_ffi_codegen_register_global", sig, |b| {
        let [name, size, cell, function] = [0, 1, 2, 3].map(|i| b.param(i));
        let (keep, refused, done) = (b.block(), b.cold_block(), b.block());
        let null = b.ptr_const(0);
        let object = handle_of(b, capi::FUNCTION_CREATE, &[null, function, null]);
        unless_null(b, object, done);
        let array = byte_array(b, name, size);
        let no = b.iconst(Type::I32, 0);
        let set = capi::import(b.module(), capi::FUNCTION_SET_GLOBAL);
        if let Some(code) = b.call(set, &[array, object, no]) {
            let fine = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(fine, keep, refused, Hint::Likely);
        }
        b.switch_to(keep);
        b.store(object, cell, 0, MemFlags::ALIGNED);
        b.jump(done, &[]);
        b.switch_to(refused);
        ffi_call::drop_raised(b);
        ffi_call::release(b, object);
        b.jump(done, &[]);
        b.switch_to(done);
        b.ret(None);
    })
}

/// `void take_back(const char* name, int64_t size, void** cell)`
fn define_take_back(module: &mut Module) -> FuncRef {
    let remove = module.add_data("__tvm_ffi_codegen_remove_global", REMOVE.as_bytes().to_vec(), 1);
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr], None);
    FunctionBuilder::define_cold(module, "__tvm_ffi_codegen_take_back_global", sig, |b| {
        let [name, size, cell] = [0, 1, 2].map(|i| b.param(i));
        let (done, release, other, ours) = (b.block(), b.block(), b.block(), b.block());
        let own = b.load(Type::Ptr, cell, 0, MemFlags::ALIGNED);
        unless_null(b, own, done);
        let null = b.ptr_const(0);
        b.store(null, cell, 0, MemFlags::ALIGNED);
        let array = byte_array(b, name, size);
        let present = handle_of(b, capi::FUNCTION_GET_GLOBAL, &[array]);
        unless_null(b, present, release);
        let same = b.icmp(IntCC::Eq, present, own);
        b.branch(same, ours, other, Hint::Likely);
        b.switch_to(ours);
        let (text, len) = (b.data_addr(remove, 0), b.i64(REMOVE.len() as i64));
        let text = byte_array(b, text, len);
        let function = handle_of(b, capi::FUNCTION_GET_GLOBAL, &[text]);
        unless_null(b, function, other);
        let (arg, result) = (ffi_call::any_slot(b), ffi_call::any_slot(b));
        store_any(b, arg, TypeIndex::RAW_STR, name);
        let code = ffi_call::call(b, function, arg, 1, result);
        ffi_call::release(b, function);
        if let Some(code) = code {
            let failed = b.cold_block();
            let fine = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(fine, other, failed, Hint::Likely);
            b.switch_to(failed);
            ffi_call::drop_raised(b);
            b.jump(other, &[]);
        }
        b.switch_to(other);
        ffi_call::release(b, present);
        b.jump(release, &[]);
        b.switch_to(release);
        ffi_call::release(b, own);
        b.jump(done, &[]);
        b.switch_to(done);
        b.ret(None);
    })
}
