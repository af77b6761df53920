//! Functions of a library that are global functions while the library is loaded.

use std::mem::offset_of;

use super::abi::store_any;
use super::{capi, ffi_call};
use crate::ir::{DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module, Type, Value};
use tvm_ffi_runtime::abi::{TVMFFIByteArray, TypeIndex};

/// The runtime's global function that takes another back.
const REMOVE: &str = "ffi.FunctionRemoveGlobal";

/// A function of the library with the name that it has as a global function.
#[derive(Debug)]
pub(super) struct Global {
    pub func: FuncRef,
    pub name: String,
}

/// Defines the constructor that registers functions, and the destructor that takes them back. A function whose global name is taken is not
/// registered: nobody is there to be told. Only a name that still leads to the library's own function is taken back.
pub(super) fn define(module: &mut Module, globals: &[Global]) {
    if globals.is_empty() {
        return;
    }
    let (register, take_back) = (define_register(module), define_take_back(module));
    let local = |module: &mut Module, name: &str| {
        let func = module.declare(name, FuncSig::default(), Linkage::Local);
        module.functions[func].cold = true;
        func
    };
    let constructor = local(module, "__tvm_ffi_codegen_register_globals");
    let destructor = local(module, "__tvm_ffi_codegen_take_back_globals");
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

/// A `TVMFFIByteArray` in the frame.
fn byte_array(b: &mut FunctionBuilder<'_>, data: Value, size: Value) -> Value {
    let slot = b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
    let array = b.stack_addr(slot);
    b.store(data, array, offset_of!(TVMFFIByteArray, data) as i32, MemFlags::ALIGNED);
    b.store(size, array, offset_of!(TVMFFIByteArray, size) as i32, MemFlags::ALIGNED);
    array
}

/// Calls a C function that writes a handle to its last parameter; gives the handle, NULL where it fails. No error stays raised.
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

/// Goes on in one block where a pointer isn't NULL, and in another where it is; the present block becomes the first.
fn unless_null(b: &mut FunctionBuilder<'_>, pointer: Value, null: crate::ir::Block) {
    let there = b.block();
    let is = b.icmp_imm(IntCC::Ne, pointer, 0);
    b.branch(is, there, null, Hint::None);
    b.switch_to(there);
}

/// `void register(const char* name, int64_t size, void** cell, TVMFFISafeCallType function)`: the cell owns what is registered.
fn define_register(module: &mut Module) -> FuncRef {
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr, Type::Ptr], None);
    let func = module.declare("__tvm_ffi_codegen_register_global", sig, Linkage::Local);
    module.functions[func].cold = true;
    let mut b = FunctionBuilder::new(module, func);
    let [name, size, cell, function] = [0, 1, 2, 3].map(|i| b.param(i));
    let (keep, refused, done) = (b.block(), b.cold_block(), b.block());
    let null = b.ptr_const(0);
    let object = handle_of(&mut b, capi::FUNCTION_CREATE, &[null, function, null]);
    unless_null(&mut b, object, done);
    let array = byte_array(&mut b, name, size);
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
    ffi_call::drop_raised(&mut b);
    ffi_call::release(&mut b, object);
    b.jump(done, &[]);
    b.switch_to(done);
    b.ret(None);
    b.finish()
}

/// `void take_back(const char* name, int64_t size, void** cell)`
fn define_take_back(module: &mut Module) -> FuncRef {
    let remove = module.add_data("__tvm_ffi_codegen_remove_global", REMOVE.as_bytes().to_vec(), 1);
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr], None);
    let func = module.declare("__tvm_ffi_codegen_take_back_global", sig, Linkage::Local);
    module.functions[func].cold = true;
    let mut b = FunctionBuilder::new(module, func);
    let [name, size, cell] = [0, 1, 2].map(|i| b.param(i));
    let (done, release, other, ours) = (b.block(), b.block(), b.block(), b.block());
    let own = b.load(Type::Ptr, cell, 0, MemFlags::ALIGNED);
    unless_null(&mut b, own, done);
    let null = b.ptr_const(0);
    b.store(null, cell, 0, MemFlags::ALIGNED);
    let array = byte_array(&mut b, name, size);
    let present = handle_of(&mut b, capi::FUNCTION_GET_GLOBAL, &[array]);
    unless_null(&mut b, present, release);
    let same = b.icmp(IntCC::Eq, present, own);
    b.branch(same, ours, other, Hint::Likely);
    b.switch_to(ours);
    let (text, len) = (b.data_addr(remove, 0), b.i64(REMOVE.len() as i64));
    let text = byte_array(&mut b, text, len);
    let function = handle_of(&mut b, capi::FUNCTION_GET_GLOBAL, &[text]);
    unless_null(&mut b, function, other);
    let (arg, result) = (ffi_call::any_slot(&mut b), ffi_call::any_slot(&mut b));
    store_any(&mut b, arg, TypeIndex::RAW_STR, name);
    let code = ffi_call::call(&mut b, function, arg, 1, result);
    ffi_call::release(&mut b, function);
    if let Some(code) = code {
        let failed = b.cold_block();
        let fine = b.icmp_imm(IntCC::Eq, code, 0);
        b.branch(fine, other, failed, Hint::Likely);
        b.switch_to(failed);
        ffi_call::drop_raised(&mut b);
        b.jump(other, &[]);
    }
    b.switch_to(other);
    ffi_call::release(&mut b, present);
    b.jump(release, &[]);
    b.switch_to(release);
    ffi_call::release(&mut b, own);
    b.jump(done, &[]);
    b.switch_to(done);
    b.ret(None);
    b.finish()
}
