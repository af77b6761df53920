//! Launch hooks, for the helpers: a library tells the process of its launches.
//!
//! Launches call the driver through addresses in the [state]. A process that sets a hook replaces these addresses, so a
//! launch tests nothing. The process's part is `crate::launch_hooks`. Its functions are in a *table*, which a global
//! function returns. Without that global function, a library's launches have no hooks.

use super::driver::Driver;
use super::state;
use crate::ir::{DataRef, Emitter, FuncRef, FuncSig, Hint, Module, Type, Val};
use crate::lower::abi::{PAYLOAD, TYPE_INDEX};
use crate::lower::{ffi_call, once};
use tvm_ffi_runtime::abi::TypeIndex;

use super::api::Call;

/// The global function that returns the address of the table, as an opaque pointer.
pub(crate) const LAUNCH_HOOKS: &str = "tvm_ffi_codegen.launch_hooks";

/// The functions of the table, by their offsets.
mod table {
    /// `void attach(void* state, int32_t device_type, void* param_info)`: the state's functions may be replaced from
    /// now on. `param_info` is the address of `cuKernelGetParamInfo`, or NULL. A state may be attached more than once.
    pub(super) const ATTACH: i32 = 0;
    /// `void note(void* state, void* kernel, const char* name)`: a kernel is loaded.
    pub(super) const NOTE: i32 = 8;
    /// `void detach(void* state)`: the state's memory is about to be freed.
    pub(super) const DETACH: i32 = 16;
}

/// The functions of the process's table, for the helpers that a module defines.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchHooks {
    /// `void* find(void)`: the address of the table, or NULL.
    find: FuncRef,
}

impl LaunchHooks {
    pub(super) fn new(module: &mut Module) -> Self {
        const SYMBOL: &str = "__tvm_ffi_codegen_hooks";
        let known = module.function_named(SYMBOL).map(|(func, _)| func);
        let find = known.unwrap_or_else(|| {
            let name = module.add_data("__tvm_ffi_codegen_hooks_name", LAUNCH_HOOKS.as_bytes().to_vec(), 1);
            module.cold_local(SYMBOL, FuncSig::c([], Some(Type::Ptr)), |c| find(c, name))
        });
        LaunchHooks { find }
    }

    /// The address of the table, or NULL. It runs code of the process, so no claim may be held.
    pub(super) fn find<'c>(self, c: Emitter<'c>) -> Val<'c> {
        c.result(self.find, &[])
    }

    /// Keeps the table's address in the state and attaches the state, unless the address is NULL.
    pub(super) fn attach<'c>(self, driver: &Driver, state: Val<'c>, table: Val<'c>) {
        let c = state.emitter();
        state.store(state::HOOKS, table);
        let kind = c.i32(driver.api.device.0.into());
        let param_info = match driver.api.function(Call::ParamInfo) {
            Some(_) => driver.address(c, Call::ParamInfo),
            None => c.null(),
        };
        call(state, table::ATTACH, &[state, kind, param_info]);
    }

    /// Tells the name of a loaded kernel, a C string.
    pub(super) fn note<'c>(self, state: Val<'c>, kernel: Val<'c>, name: Val<'c>) {
        call(state, table::NOTE, &[state, kernel, name]);
    }

    /// Detaches the state.
    pub(super) fn detach(self, state: Val<'_>) {
        call(state, table::DETACH, &[state]);
    }
}

/// Calls a function of the table, unless the state has no table.
fn call<'c>(state: Val<'c>, function: i32, args: &[Val<'c>]) {
    let c = state.emitter();
    let table = state.load(Type::Ptr, state::HOOKS);
    c.pass_unless(table.is_not(0), || {
        let sig = FuncSig::c(args.iter().map(|arg| arg.ty()), None);
        c.call_indirect(sig, table.load(Type::Ptr, function), args);
    });
}

/// The code of [`LaunchHooks::find`]. A launch doesn't need hooks, so an error of the global function is dropped.
fn find(c: Emitter<'_>, name: DataRef) {
    let cell = c.slot(8);
    cell.store(0, c.null());
    let look_up = c.func(once::look_up_global);
    let code = c.result(look_up, &[c.data(name, 0), c.i64(LAUNCH_HOOKS.len() as i64), cell]);
    let [found, no, none, failed] = c.blocks();
    c.branch(code.is(0), found, no, Hint::Likely);
    c.switch_to(no);
    c.branch(code.is(once::NOT_FOUND), none, failed, Hint::Likely);
    c.switch_to(none);
    c.ret(c.null());

    c.switch_to(found);
    let function = cell.load(Type::Ptr, 0);
    let (any, none) = (ffi_call::any_slot(c), c.null());
    let code = ffi_call::call(c, function, none, 0, any);
    ffi_call::release(c, function);
    c.or_fail(code.is(0), failed, &[]);
    let (index, pointer) = (any.load(Type::I32, TYPE_INDEX), any.load(Type::Ptr, PAYLOAD));
    c.pass_unless(index.ge(TypeIndex::STATIC_OBJECT_BEGIN.0), || ffi_call::release(c, pointer));
    c.ret(index.is(TypeIndex::OPAQUE_PTR.0).select(pointer, none));

    c.switch_to(failed);
    ffi_call::drop_raised(c);
    c.ret(c.null());
}
