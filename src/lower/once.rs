//! One-time handles of a library: functions that its code looks up once and keeps in writable cells of the library.
//!
//! A cell is NULL until it is needed. Code reads it with an *acquire* load. If it is NULL, the code calls
//! `TVMFFIHandleInitOnce` (tvm/ffi/c_api.h) with the cell and the *initialiser*, a function of the module that performs
//! the look-up. A destructor of the module releases the references that cells own.

use std::collections::HashMap;

use super::abi::{PAYLOAD, TYPE_INDEX, byte_array, store_none};
use super::capi;
use super::constants::ConstantPool;
use super::protocol::{Directive, Field, Piece, helpers};
use crate::ir::{Block, Data, DataKind, DataRef, Emitter, FuncRef, FuncSig, Hint, Module, Type, Val};
use tvm_ffi_runtime::abi::symbol::LIBRARY_CTX;
use tvm_ffi_runtime::abi::{TVMFFIAny, TypeIndex};

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
    /// The pointer's name in errors.
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
            Some(context) => module.define(initialiser, |c| look_up_import(c, text, context)),
            None => {
                let shared = look_up_global(module);
                module.define(initialiser, |c| {
                    let (text, len) = (c.data(text, 0), c.i64(name.len() as i64));
                    c.ret(c.call(shared, &[text, len, c.param(0)]));
                });
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
        let fetch = module.cold_local(symbol, sig, |c| fetch_state(c, source, handle, cell, constants, pool));
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
        let func = module.cold_local(symbol, FuncSig::default(), |c| {
            for looked in &self.order {
                c.call(give_up, &[c.data(self.known[looked].cell, 0)]);
            }
            c.ret(None);
        });
        module.destructors.push(func);
    }
}

/// `void give_up(void** cell)`: empties a cell and releases its reference, if any.
fn give_up(module: &mut Module) -> FuncRef {
    let dec_ref = capi::import(module, capi::OBJECT_DEC_REF);
    module.cold_local("__tvm_ffi_codegen_release_handle", FuncSig::new([Type::Ptr], None), |c| {
        let cell = c.param(0);
        let handle = cell.load_acquire();
        c.pass_unless(handle.is_not(0), || {
            cell.store(0, c.null());
            c.call(dec_ref, &[handle]);
        });
        c.ret(None);
    })
}

/// The code of a [`State::fetch`].
fn fetch_state<'c>(
    c: Emitter<'c>,
    Source { name, what, default }: Source<'_>,
    handle: Handle,
    cell: DataRef,
    constants: &mut ConstantPool,
    pool: DataRef,
) {
    let caller = c.param(0);
    let keep = |none: Val<'c>, pointer: Val<'c>| {
        c.data(cell, 0).compare_exchange(none, pointer);
        c.ret(c.i32(0));
    };
    let mut raise = |kind: &str, before: &str, after: &[Piece<'_>], got: [Val<'c>; 2]| {
        let pieces = [&[Piece::Text(before), Piece::Value(Directive::String, 2)], after].concat();
        let template = constants.template(kind, &pieces);
        let context = c.slot(24);
        for (at, value) in [(0, got[0]), (8, got[1]), (16, caller)] {
            context.store(at, value);
        }
        helpers::raise(c, pool, template, Some(context))
    };
    let function = load(c, handle, |code| {
        let [missing, other] = c.blocks();
        c.branch(code.is(NOT_FOUND), missing, other, Hint::None);
        c.switch_to(other);
        c.ret(code);
        c.switch_to(missing);
        match default {
            Some(default) => keep(c.null(), c.func_addr(default)),
            None => {
                let zero = c.i64(0);
                let text = format!("global function `{name}`, which provides {what} of `");
                c.ret(raise("RuntimeError", &text, &[Piece::Text("`, is not registered")], [zero, zero]));
            }
        }
    });
    let any = c.slot(size_of::<TVMFFIAny>());
    c.with(|b| store_none(b, any.value()));
    let (none, count) = (c.null(), c.i32(0));
    let code = capi::result(c, capi::FUNCTION_CALL, &[function, none, count, any]);
    let [called, failed] = c.blocks();
    c.branch(code.is(0), called, failed, Hint::Likely);
    c.switch_to(failed);
    c.ret(code);
    c.switch_to(called);
    let index = any.load(Type::I32, TYPE_INDEX);
    let pointer = any.load(Type::Ptr, PAYLOAD);
    let [right, wrong, null, there] = c.blocks();
    c.branch(index.is(TypeIndex::OPAQUE_PTR.0), right, wrong, Hint::Likely);
    c.switch_to(right);
    c.branch(pointer.is_not(0), there, null, Hint::Likely);
    let before = format!("Mismatched type of result of `{name}`, which provides {what} of `");
    const EXPECTED: &str = "`, expected a handle that is not NULL, got ";
    c.switch_to(null);
    let zero = c.i64(0);
    c.ret(raise("TypeError", &before, &[Piece::Text(&format!("{EXPECTED}NULL"))], [zero, zero]));
    c.switch_to(wrong);
    // create the message before its subject is released
    let got = [index.sext(), pointer.address()];
    let after = [Piece::Text(EXPECTED), Piece::Value(Directive::Type, Field::Got as u32)];
    let code = raise("TypeError", &before, &after, got);
    c.pass_unless(index.ge(TypeIndex::STATIC_OBJECT_BEGIN.0), || {
        capi::call(c, capi::OBJECT_DEC_REF, &[pointer]);
    });
    c.ret(code);
    c.switch_to(there);
    keep(none, pointer);
}

/// `int32_t look_up_global(const char* name, int64_t size, void** result)`: looks up a global function. The caller owns
/// the result. All initialisers share this helper.
pub(super) fn look_up_global(module: &mut Module) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_look_up_global";
    let sig = FuncSig::c([Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32));
    module.cold_local_once(NAME, sig, |c| {
        let [text, size, result] = c.params();
        let code = capi::result(c, capi::FUNCTION_GET_GLOBAL, &[byte_array(c, text, size), result]);
        let [found, failed, missing] = c.blocks();
        c.branch(code.is(0), found, failed, Hint::Likely);
        c.switch_to(failed);
        c.ret(code);
        c.switch_to(found);
        let (there, done) = (result.load(Type::Ptr, 0).is_not(0), c.block());
        c.branch(there, done, missing, Hint::Likely);
        for (block, code) in [(missing, NOT_FOUND), (done, 0)] {
            c.switch_to(block);
            c.ret(c.i32(code));
        }
    })
}

/// `int32_t find(void** cell, void* initialiser, uint32_t template)`: fills a cell. If the initialiser finds nothing,
/// it raises the error of a template in the pool.
fn find(module: &mut Module, pool: DataRef) -> FuncRef {
    const NAME: &str = "__tvm_ffi_codegen_find";
    let sig = FuncSig::c([Type::Ptr, Type::Ptr, Type::I32], Some(Type::I32));
    module.cold_local_once(NAME, sig, |c| {
        let [cell, initialiser, template] = c.params();
        let code = capi::result(c, capi::HANDLE_INIT_ONCE, &[cell, initialiser]);
        let [missing, done] = c.blocks();
        c.branch(code.is(NOT_FOUND), missing, done, Hint::Unlikely);
        c.switch_to(done);
        c.ret(code);
        c.switch_to(missing);
        c.ret(helpers::raise_computed(c, c.data(pool, 0), template, None));
    })
}

/// The address of a global function, looked up once. If it isn't registered, the template's error is raised and its
/// code is passed to the block `exit`.
pub(super) fn load_global<'c>(c: Emitter<'c>, handle: Handle, pool: DataRef, template: u32, exit: Block) -> Val<'c> {
    load_cell(c, handle.cell, exit, |cell| {
        let initialiser = c.func_addr(handle.initialiser);
        let template = c.i32(i64::from(template));
        let find = c.func(|module| find(module, pool));
        c.result(find, &[cell, initialiser, template])
    })
}

/// `int32_t look_up(void** result)`: looks up a function of the imports. The module caches and owns it. The cell takes
/// its own reference, because it may outlive the module.
fn look_up_import(c: Emitter<'_>, name: DataRef, context: DataRef) {
    let result = c.param(0);
    let context = c.data(context, 0).load_acquire();
    let [look, missing, found, failed, done] = c.blocks();
    c.branch(context.is_not(0), look, missing, Hint::Likely);
    c.switch_to(missing);
    c.ret(c.i32(NO_CONTEXT));
    c.switch_to(look);
    let code = capi::result(c, capi::ENV_MOD_LOOKUP_FROM_IMPORTS, &[context, c.data(name, 0), result]);
    c.branch(code.is(0), found, failed, Hint::Likely);
    c.switch_to(failed);
    c.ret(code);
    c.switch_to(found);
    let handle = result.load(Type::Ptr, 0);
    let (there, nothing) = (handle.is_not(0), c.block());
    c.branch(there, done, nothing, Hint::Likely);
    c.switch_to(nothing);
    c.ret(c.i32(NOT_FOUND));
    c.switch_to(done);
    c.ret(capi::call(c, capi::OBJECT_INC_REF, &[handle]));
}

/// The address of a handle's function, once its cell is filled. If the initialiser fails, `failed` is called with its
/// code in a cold block, and has to terminate that block.
pub(super) fn load<'c>(c: Emitter<'c>, handle: Handle, failed: impl FnOnce(Val<'c>)) -> Val<'c> {
    let fill = |cell| {
        let initialiser = c.func_addr(handle.initialiser);
        capi::result(c, capi::HANDLE_INIT_ONCE, &[cell, initialiser])
    };
    load_cell_or(c, handle.cell, fill, failed)
}

/// The pointer of a state, once it is fetched for `caller`, a C string. If that fails, `failed` is called with the code
/// in a cold block, and has to terminate that block.
pub(super) fn load_state<'c>(
    c: Emitter<'c>,
    state: State,
    caller: impl FnOnce() -> Val<'c>,
    failed: impl FnOnce(Val<'c>),
) -> Val<'c> {
    load_cell_or(c, state.cell, |_| c.result(state.fetch, &[caller()]), failed)
}

/// The pointer in a cell, as [`load_cell`]. `failed` is called with a nonzero code, in a cold block.
fn load_cell_or<'c>(
    c: Emitter<'c>,
    cell: DataRef,
    fill: impl FnOnce(Val<'c>) -> Val<'c>,
    failed: impl FnOnce(Val<'c>),
) -> Val<'c> {
    let exit = c.cold_block();
    let code = c.block_param(exit, Type::I32);
    let pointer = load_cell(c, cell, exit, fill);
    c.aside(exit, || failed(code));
    pointer
}

/// The pointer in a cell; the fast path is one load. If it is NULL, `fill` emits a call that fills the cell. A nonzero
/// code is passed to the block `exit`.
fn load_cell<'c>(c: Emitter<'c>, cell: DataRef, exit: Block, fill: impl FnOnce(Val<'c>) -> Val<'c>) -> Val<'c> {
    let cell = c.data(cell, 0);
    let first = cell.load_acquire();
    let (go_on, empty, done) = (c.block(), c.cold_block(), c.cold_block());
    let pointer = c.block_param(go_on, Type::Ptr);
    c.branch_with(first.is_not(0), (go_on, &[first]), (empty, &[]), Hint::Likely);
    c.switch_to(empty);
    let code = fill(cell);
    c.branch_with(code.is(0), (done, &[]), (exit, &[code]), Hint::Likely);
    c.switch_to(done);
    c.jump(go_on, &[cell.load_acquire()]);
    c.switch_to(go_on);
    pointer
}
