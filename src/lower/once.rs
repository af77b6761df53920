//! One-time handles of a library: functions that its code looks up once and keeps in writable cells of the library.
//!
//! A cell is NULL until it is needed. Code reads it with an *acquire* load. If it is NULL, the code calls
//! `TVMFFIHandleInitOnce` (tvm/ffi/c_api.h) with the cell and the *initialiser*, a function of the module that performs
//! the look-up. A destructor of the module releases the references that cells own.

use std::collections::HashMap;
use std::mem::offset_of;

use super::abi::{PAYLOAD, TYPE_INDEX, store_none};
use super::capi;
use super::constants::ConstantPool;
use super::protocol::{Directive, Field, Piece, helpers};
use crate::ir::{
    Block, ConvertOp, Data, DataKind, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, MemFlags, Module, Type,
    Value,
};
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;
use tvm_ffi_runtime::abi::{TVMFFIAny, TVMFFIByteArray, TypeIndex};

/// A function that code looks up once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Looked {
    /// A global function, by its name.
    Global(String),
    /// A function of the library's imports, by its name.
    Import(String),
}

/// The cell of a handle, and the function that fills it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    pub cell: DataRef,
    pub initialiser: FuncRef,
}

/// A pointer that a global function returns, such as a compiler's own state: its cell, and the function that fills the
/// cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub cell: DataRef,
    /// `int32_t fetch(const char* caller)`: fills the cell. Without such a pointer, it raises an error that names the
    /// caller.
    pub fetch: FuncRef,
}

/// A global function that returns a pointer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    /// What the pointer is, in errors.
    pub what: &'static str,
    /// The function to take the address of if the global function isn't registered. If `None`, that is an error.
    pub default: Option<FuncRef>,
}

impl<'a> Source<'a> {
    /// The global function that returns a compiler's own state.
    pub(super) fn of_state(name: &'a str) -> Self {
        Source { name, what: "the state", default: None }
    }
}

/// The code of an initialiser that found nothing under the name and raised no error.
pub(super) const NOT_FOUND: i64 = 0x5446_4601;
/// The code of an initialiser that needs the library's context if it isn't set.
pub(super) const NO_CONTEXT: i64 = 0x5446_4602;

/// The one-time handles of a module under construction.
#[derive(Debug, Default)]
pub(super) struct Handles {
    known: HashMap<Looked, Handle>,
    /// By the names of the global functions that return them.
    states: HashMap<String, State>,
    /// In order of their first use.
    order: Vec<Looked>,
    /// `__tvm_ffi__library_ctx`, once it is needed.
    context: Option<DataRef>,
    /// The number of cells so far.
    cells: u32,
}

impl Handles {
    /// The handle of a function, created on first use. `prefix` is the prefix of a system library's symbols.
    pub(super) fn get(&mut self, module: &mut Module, prefix: &str, looked: &Looked) -> Handle {
        if let Some(known) = self.known.get(looked) {
            return *known;
        }
        let cell = self.cell(module, "handle", 8);
        let number = self.cells;
        let sig = FuncSig { ret: Some(crate::ir::AbiParam::signed(Type::I32)), ..FuncSig::new([Type::Ptr], None) };
        let initialiser = module.declare_cold(format!("__tvm_ffi_codegen_look_up_{number}"), sig);
        let context = matches!(looked, Looked::Import(_)).then(|| self.context(module, prefix));
        let (Looked::Global(name) | Looked::Import(name)) = looked;
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        let text = module.add_data(format!("__tvm_ffi_codegen_name_{number}"), text, 1);
        match context {
            Some(context) => {
                let mut b = FunctionBuilder::new(module, initialiser);
                look_up_import(&mut b, text, context);
                b.finish();
            }
            None => {
                let shared = look_up_global(module);
                let mut b = FunctionBuilder::new(module, initialiser);
                let (text, len, result) = (b.data_addr(text, 0), b.i64(name.len() as i64), b.param(0));
                let code = b.call(shared, &[text, len, result]);
                b.ret(code);
                b.finish();
            }
        }
        let handle = Handle { cell, initialiser };
        self.known.insert(looked.clone(), handle);
        self.order.push(looked.clone());
        handle
    }

    /// The pointer that a global function returns, fetched once for the library. `constants` is the module's pool;
    /// `pool` is the data that will hold it.
    ///
    /// The global function is called outside of the one-time initialiser, because otherwise it might wait for the
    /// initialiser's lock. If several threads come first at the same time, each calls it, and all use the pointer of
    /// one of them.
    pub(super) fn state(
        &mut self,
        module: &mut Module,
        prefix: &str,
        source: Source<'_>,
        constants: &mut ConstantPool,
        pool: DataRef,
    ) -> State {
        if let Some(known) = self.states.get(source.name) {
            return *known;
        }
        let handle = self.get(module, prefix, &Looked::Global(source.name.to_owned()));
        let cell = self.cell(module, "state", 8);
        let sig = FuncSig { ret: Some(crate::ir::AbiParam::signed(Type::I32)), ..FuncSig::new([Type::Ptr], None) };
        let symbol = format!("__tvm_ffi_codegen_fetch_{}", self.cells);
        let fetch = FunctionBuilder::define_cold(module, symbol, sig, |b| {
            fetch_state(b, source, handle, cell, constants, pool);
        });
        let state = State { cell, fetch };
        self.states.insert(source.name.to_owned(), state);
        state
    }

    /// A zeroed cell, local to the library.
    pub(super) fn cell(&mut self, module: &mut Module, what: &str, bytes: usize) -> DataRef {
        self.cells += 1;
        module.add_state(format!("__tvm_ffi_codegen_{what}_{}", self.cells), bytes, 8)
    }

    /// The variable that holds the library's context (tvm/ffi/extra/module.h).
    pub(super) fn context(&mut self, module: &mut Module, prefix: &str) -> DataRef {
        *self.context.get_or_insert_with(|| {
            module.data.push(Data {
                name: format!("{prefix}{LIBRARY_CTX}"),
                bytes: vec![0; 8],
                align: 8,
                kind: DataKind::Variable,
                addresses: Vec::new(),
            })
        })
    }

    /// Defines the destructor that releases all references, if there are any.
    pub(super) fn finish(&self, module: &mut Module) {
        if self.order.is_empty() {
            return;
        }
        let give_up = give_up(module);
        let symbol = "__tvm_ffi_codegen_release_handles";
        let func = FunctionBuilder::define_cold(module, symbol, FuncSig::default(), |b| {
            for looked in &self.order {
                let cell = b.data_addr(self.known[looked].cell, 0);
                b.call(give_up, &[cell]);
            }
            b.ret(None);
        });
        module.destructors.push(func);
    }
}

/// `void give_up(void** cell)`: empties a cell and releases its reference, if any.
fn give_up(module: &mut Module) -> FuncRef {
    let dec_ref = capi::import(module, capi::OBJECT_DEC_REF);
    FunctionBuilder::define_cold(module, "__tvm_ffi_codegen_release_handle", FuncSig::new([Type::Ptr], None), |b| {
        let cell = b.param(0);
        let handle = b.load_acquire(cell);
        let (release, done) = (b.block(), b.block());
        let filled = b.icmp_imm(IntCC::Ne, handle, 0);
        b.branch(filled, release, done, Hint::None);
        b.switch_to(release);
        let null = b.ptr_const(0);
        b.store(null, cell, 0, MemFlags::ALIGNED);
        b.call(dec_ref, &[handle]);
        b.jump(done, &[]);
        b.switch_to(done);
        b.ret(None);
    })
}

/// The code of a [`State::fetch`].
fn fetch_state(
    b: &mut FunctionBuilder<'_>,
    Source { name, what, default }: Source<'_>,
    handle: Handle,
    cell: DataRef,
    constants: &mut ConstantPool,
    pool: DataRef,
) {
    let caller = b.param(0);
    let keep = |b: &mut FunctionBuilder<'_>, none: Value, pointer: Value| {
        let cell = b.data_addr(cell, 0);
        b.compare_exchange(cell, none, pointer);
        leave(b, 0);
    };
    let mut raise = |b: &mut FunctionBuilder<'_>, kind: &str, before: &str, after: &[Piece<'_>], got: [Value; 2]| {
        let pieces = [&[Piece::Text(before), Piece::Value(Directive::String, 2)], after].concat();
        let template = constants.template(kind, &pieces);
        let slot = b.slot(24, 8);
        let context = b.stack_addr(slot);
        for (at, value) in [(0, got[0]), (8, got[1]), (16, caller)] {
            b.store(value, context, at, MemFlags::ALIGNED);
        }
        let (table, template) = (b.data_addr(pool, 0), b.iconst(Type::I32, i64::from(template)));
        let report = helpers::report(b.module());
        b.call(report, &[table, template, context])
    };
    let mut refused = None;
    let function = load(b, handle, |b, code| refused = Some((b.current(), code)));
    if let Some((block, code)) = refused {
        let here = b.current();
        b.switch_to(block);
        let (missing, other) = (b.block(), b.block());
        let not_found = b.icmp_imm(IntCC::Eq, code, NOT_FOUND);
        b.branch(not_found, missing, other, Hint::None);
        b.switch_to(other);
        b.ret(Some(code));
        b.switch_to(missing);
        match default {
            Some(default) => {
                let (none, default) = (b.ptr_const(0), b.func_addr(default));
                keep(b, none, default);
            }
            None => {
                let zero = b.i64(0);
                let text = format!("global function `{name}` is not registered, which gives {what} of `");
                let code = raise(b, "RuntimeError", &text, &[Piece::Text("`")], [zero, zero]);
                b.ret(code);
            }
        }
        b.switch_to(here);
    }
    let any = b.slot(size_of::<TVMFFIAny>() as u32, 8);
    let any = b.stack_addr(any);
    store_none(b, any);
    let (none, count) = (b.ptr_const(0), b.iconst(Type::I32, 0));
    let call = capi::import(b.module(), capi::FUNCTION_CALL);
    let (called, failed) = (b.block(), b.block());
    if let Some(code) = b.call(call, &[function, none, count, any]) {
        let fine = b.icmp_imm(IntCC::Eq, code, 0);
        b.branch(fine, called, failed, Hint::Likely);
        b.switch_to(failed);
        b.ret(Some(code));
    }
    b.switch_to(called);
    let index = b.load(Type::I32, any, TYPE_INDEX, MemFlags::ALIGNED);
    let pointer = b.load(Type::Ptr, any, PAYLOAD, MemFlags::ALIGNED);
    let (right, wrong, null, there) = (b.block(), b.block(), b.block(), b.block());
    let is = b.icmp_imm(IntCC::Eq, index, i64::from(TypeIndex::OPAQUE_PTR.0));
    b.branch(is, right, wrong, Hint::Likely);
    b.switch_to(right);
    let filled = b.icmp_imm(IntCC::Ne, pointer, 0);
    b.branch(filled, there, null, Hint::Likely);
    let before = format!("Mismatched type of result of `{name}`, which gives {what} of `");
    const EXPECTED: &str = "`, expected a handle that is not NULL, got ";
    b.switch_to(null);
    let zero = b.i64(0);
    let code = raise(b, "TypeError", &before, &[Piece::Text(&format!("{EXPECTED}NULL"))], [zero, zero]);
    b.ret(code);
    b.switch_to(wrong);
    // create the message before its subject is released
    let got = b.convert(ConvertOp::SExt, Type::I64, index);
    let payload = b.convert(ConvertOp::PtrToInt, Type::I64, pointer);
    let after = [Piece::Text(EXPECTED), Piece::Value(Directive::Type, Field::Got as u32)];
    let code = raise(b, "TypeError", &before, &after, [got, payload]);
    let (object, plain) = (b.block(), b.block());
    let is_object = b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::STATIC_OBJECT_BEGIN.0));
    b.branch(is_object, object, plain, Hint::None);
    b.switch_to(object);
    let dec_ref = capi::import(b.module(), capi::OBJECT_DEC_REF);
    b.call(dec_ref, &[pointer]);
    b.jump(plain, &[]);
    b.switch_to(plain);
    b.ret(code);
    b.switch_to(there);
    keep(b, none, pointer);
}

fn leave(b: &mut FunctionBuilder<'_>, code: i64) {
    let code = b.iconst(Type::I32, code);
    b.ret(Some(code));
}

/// `int32_t look_up_global(const char* name, int64_t size, void** result)`: looks up a global function. The caller owns
/// the result. All initialisers share this helper.
fn look_up_global(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_look_up_global";
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32));
    FunctionBuilder::define_cold_once(module, NAME, sig, |b| {
        let (text, size, result) = (b.param(0), b.param(1), b.param(2));
        let slot = b.slot(size_of::<TVMFFIByteArray>() as u32, 8);
        let array = b.stack_addr(slot);
        b.store(text, array, offset_of!(TVMFFIByteArray, data) as i32, MemFlags::ALIGNED);
        b.store(size, array, offset_of!(TVMFFIByteArray, size) as i32, MemFlags::ALIGNED);
        let get = capi::import(b.module(), capi::FUNCTION_GET_GLOBAL);
        let code = b.call(get, &[array, result]);
        let (found, failed, missing) = (b.block(), b.block(), b.block());
        if let Some(code) = code {
            let fine = b.icmp_imm(IntCC::Eq, code, 0);
            b.branch(fine, found, failed, Hint::Likely);
        }
        b.switch_to(failed);
        b.ret(code);
        b.switch_to(found);
        let handle = b.load(Type::Ptr, result, 0, MemFlags::ALIGNED);
        let there = b.icmp_imm(IntCC::Ne, handle, 0);
        let done = b.block();
        b.branch(there, done, missing, Hint::Likely);
        b.switch_to(missing);
        leave(b, NOT_FOUND);
        b.switch_to(done);
        leave(b, 0);
    })
}

/// `int32_t find(void** cell, void* initialiser, uint32_t template)`: fills a cell. If the initialiser finds nothing,
/// it raises the error of a template in the pool.
fn find(module: &mut Module, pool: DataRef) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_find";
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I32], Some(Type::I32));
    FunctionBuilder::define_cold_once(module, NAME, sig, |b| {
        let (cell, initialiser, template) = (b.param(0), b.param(1), b.param(2));
        let init = capi::import(b.module(), capi::HANDLE_INIT_ONCE);
        let code = b.call(init, &[cell, initialiser]);
        let (missing, done) = (b.block(), b.block());
        if let Some(code) = code {
            let not_found = b.icmp_imm(IntCC::Eq, code, NOT_FOUND);
            b.branch(not_found, missing, done, Hint::Unlikely);
        }
        b.switch_to(done);
        b.ret(code);
        b.switch_to(missing);
        let table = b.data_addr(pool, 0);
        let report = helpers::report(b.module());
        // the template reads nothing from its context, so any address will do
        let code = b.call(report, &[table, template, table]);
        b.ret(code);
    })
}

/// The address of a global function, looked up once. If it isn't registered, the template's error is raised and its
/// code is passed to the block `exit`.
pub(super) fn load_global(
    b: &mut FunctionBuilder<'_>,
    handle: Handle,
    pool: DataRef,
    template: u32,
    exit: Block,
) -> Value {
    load_cell(b, handle.cell, exit, |b, cell| {
        let initialiser = b.func_addr(handle.initialiser);
        let template = b.iconst(Type::I32, i64::from(template));
        let find = find(b.module(), pool);
        b.call(find, &[cell, initialiser, template])
    })
}

/// `int32_t look_up(void** result)`: looks up a function of the imports. The module caches and owns it. The cell takes
/// its own reference, because it may outlive the module.
fn look_up_import(b: &mut FunctionBuilder<'_>, name: DataRef, context: DataRef) {
    let result = b.param(0);
    let variable = b.data_addr(context, 0);
    let context = b.load_acquire(variable);
    let (look, missing, found, failed, done) = (b.block(), b.block(), b.block(), b.block(), b.block());
    let there = b.icmp_imm(IntCC::Ne, context, 0);
    b.branch(there, look, missing, Hint::Likely);
    b.switch_to(missing);
    leave(b, NO_CONTEXT);
    b.switch_to(look);
    let name = b.data_addr(name, 0);
    let look_up = capi::import(b.module(), capi::ENV_MOD_LOOKUP_FROM_IMPORTS);
    let code = b.call(look_up, &[context, name, result]);
    if let Some(code) = code {
        let fine = b.icmp_imm(IntCC::Eq, code, 0);
        b.branch(fine, found, failed, Hint::Likely);
    }
    b.switch_to(failed);
    b.ret(code);
    b.switch_to(found);
    let handle = b.load(Type::Ptr, result, 0, MemFlags::ALIGNED);
    let there = b.icmp_imm(IntCC::Ne, handle, 0);
    let nothing = b.block();
    b.branch(there, done, nothing, Hint::Likely);
    b.switch_to(nothing);
    leave(b, NOT_FOUND);
    b.switch_to(done);
    let inc_ref = capi::import(b.module(), capi::OBJECT_INC_REF);
    let code = b.call(inc_ref, &[handle]);
    b.ret(code);
}

/// The address of a handle's function, once its cell is filled. If the initialiser fails, `failed` is called with its
/// code in a cold block, and has to terminate that block.
pub(super) fn load(
    b: &mut FunctionBuilder<'_>,
    handle: Handle,
    failed: impl FnOnce(&mut FunctionBuilder<'_>, Value),
) -> Value {
    let (exit, code) = code_block(b);
    let function = load_cell(b, handle.cell, exit, |b, cell| {
        let initialiser = b.func_addr(handle.initialiser);
        let init = capi::import(b.module(), capi::HANDLE_INIT_ONCE);
        b.call(init, &[cell, initialiser])
    });
    aside(b, exit, code, failed);
    function
}

/// The pointer of a state, once it is fetched for `caller`, a C string. If that fails, `failed` is called with the code
/// in a cold block, and has to terminate that block.
pub(super) fn load_state(
    b: &mut FunctionBuilder<'_>,
    state: State,
    caller: impl FnOnce(&mut FunctionBuilder<'_>) -> Value,
    failed: impl FnOnce(&mut FunctionBuilder<'_>, Value),
) -> Value {
    let (exit, code) = code_block(b);
    let pointer = load_cell(b, state.cell, exit, |b, _| {
        let caller = caller(b);
        b.call(state.fetch, &[caller])
    });
    aside(b, exit, code, failed);
    pointer
}

/// The pointer in a cell; the fast path is one load. If it is NULL, `fill` emits a call that fills the cell. A nonzero
/// code is passed to the block `exit`.
fn load_cell(
    b: &mut FunctionBuilder<'_>,
    cell: DataRef,
    exit: Block,
    fill: impl FnOnce(&mut FunctionBuilder<'_>, Value) -> Option<Value>,
) -> Value {
    let cell = b.data_addr(cell, 0);
    let first = b.load_acquire(cell);
    let (go_on, empty, done) = (b.block(), b.cold_block(), b.cold_block());
    let pointer = b.block_param(go_on, Type::Ptr);
    let filled = b.icmp_imm(IntCC::Ne, first, 0);
    b.branch_with(filled, (go_on, &[first]), (empty, &[]), Hint::Likely);
    b.switch_to(empty);
    if let Some(code) = fill(b, cell) {
        let fine = b.icmp_imm(IntCC::Eq, code, 0);
        b.branch_with(fine, (done, &[]), (exit, &[code]), Hint::Likely);
    }
    b.switch_to(done);
    let filled = b.load_acquire(cell);
    b.jump(go_on, &[filled]);
    b.switch_to(go_on);
    pointer
}

/// A cold block whose parameter is a code.
fn code_block(b: &mut FunctionBuilder<'_>) -> (Block, Value) {
    let block = b.cold_block();
    (block, b.block_param(block, Type::I32))
}

/// Emits a block that takes a code, then returns to the current block.
fn aside(b: &mut FunctionBuilder<'_>, block: Block, code: Value, write: impl FnOnce(&mut FunctionBuilder<'_>, Value)) {
    let here = b.current();
    b.switch_to(block);
    write(b, code);
    b.switch_to(here);
}
