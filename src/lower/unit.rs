//! The module under construction and its constant pool. Wrappers, bodies and the binder are lowered into it.

use super::constants::ConstantPool;
use super::device_api::Drivers;
use super::launch_description::NotedLaunches;
use super::once::Handles;
use super::symbol_call::SymbolCall;
use crate::ir::{self, FuncSig};
use crate::spec::Signature;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::symbol;

/// The common prefix of the symbols that a module defines for its own wrappers.
pub(super) const OWN_SYMBOLS: &str = "__tvm_ffi_codegen_";

/// The constant pool of a module under construction, and the module data that will hold it.
#[derive(Debug)]
pub(super) struct ModulePool {
    pub constants: ConstantPool,
    pub data: ir::DataRef,
}

/// An IR module under construction.
#[derive(Debug)]
pub(super) struct Unit {
    pub module: ir::Module,
    pub pool: ModulePool,
    /// The functions that the module's code looks up once, and its library context.
    pub handles: Handles,
    /// The device drivers that the module's launches use, and their kernels.
    pub drivers: Drivers,
    /// The launches of the function that is being lowered, or was lowered last.
    pub launches: NotedLaunches,
    /// The calls of functions by symbol. They are checked after all functions are lowered.
    pub symbol_calls: Vec<SymbolCall>,
    /// The prefix of each function's name in its symbol.
    pub prefix: String,
    /// Whether a wrapper calls `bind` on every call.
    pub always_binds: bool,
}

impl Unit {
    /// An empty module for a target with this byte order.
    pub(super) fn new(endianness: Endianness) -> Self {
        let mut module = ir::Module::for_endianness(endianness);
        let data = module.add_data("__tvm_ffi_codegen_messages", Vec::new(), 4);
        let pool = ModulePool { constants: ConstantPool::new(endianness), data };
        Unit {
            module,
            pool,
            handles: Handles::default(),
            drivers: Drivers::default(),
            launches: NotedLaunches::default(),
            symbol_calls: Vec::new(),
            prefix: String::new(),
            always_binds: false,
        }
    }

    /// The symbol of a wrapper.
    pub(super) fn symbol(&self, signature: &Signature) -> String {
        match self.prefix.as_str() {
            "" => signature.symbol(),
            prefix => format!("{}{prefix}{}", symbol::FUNCTION, signature.name()),
        }
    }

    /// The symbol of a C function.
    pub(super) fn c_symbol(&self, signature: &Signature) -> String {
        format!("{}{}", self.prefix, signature.name())
    }

    /// The completed module.
    pub(super) fn finish(mut self) -> ir::Module {
        self.handles.finish(&mut self.module);
        self.drivers.finish(&mut self.module);
        self.module.data[self.pool.data].bytes = self.pool.constants.into_bytes();
        self.module
    }
}

pub(super) const DEFINED: &str = "a function that it defines";

/// Why a symbol can't be imported: the module has something else of that name.
pub(super) fn import_conflict(module: &ir::Module, name: &str, signature: &FuncSig) -> Option<String> {
    if module.data.values().any(|data| data.name == name) {
        return Some("data".to_owned());
    }
    // the runtime helpers are defined after all wrappers
    if name.starts_with(OWN_SYMBOLS) {
        return Some(DEFINED.to_owned());
    }
    let (_, known) = module.function_named(name)?;
    match known.linkage {
        ir::Linkage::Import if known.signature == *signature => None,
        ir::Linkage::Import => Some(format!("an import of another prototype, {}", known.signature)),
        _ => Some(DEFINED.to_owned()),
    }
}
