//! The module under construction, with its constant pool: what wrappers, bodies and the binder are lowered into.

use super::constants::ConstantPool;
use super::device_api::{Drivers, Mark};
use super::launch_description::NotedLaunches;
use super::once::Handles;
use super::symbol_call::SymbolCall;
use crate::ir::{self, FuncSig};
use crate::spec::Signature;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::symbol;

/// What the symbols of all begin with that a module has for its wrappers.
pub(super) const OWN_SYMBOLS: &str = "__tvm_ffi_codegen_";

/// The constant pool of a module under construction, with the data that it will be.
#[derive(Debug)]
pub(super) struct Pool {
    pub constants: ConstantPool,
    pub data: ir::DataRef,
}

/// An IR module under construction.
#[derive(Debug)]
pub(super) struct Unit {
    pub module: ir::Module,
    pub pool: Pool,
    /// The functions that the module's code looks up once, and its library context.
    pub handles: Handles,
    /// The device drivers that the module's launches go to, and their kernels.
    pub drivers: Drivers,
    /// The launches of the function that is lowered, or was last.
    pub launches: NotedLaunches,
    /// The calls of functions by their symbols, which are checked once all functions are there.
    pub symbol_calls: Vec<SymbolCall>,
    /// What stands before each function's name in its symbol.
    pub prefix: String,
    /// A wrapper calls `bind` in every call.
    pub always_binds: bool,
}

/// How much of a unit there is.
#[derive(Debug)]
pub(super) struct UnitMark {
    functions: usize,
    data: usize,
    symbol_calls: usize,
    launches: Mark,
}

impl Unit {
    /// An empty module for a target of this byte order.
    pub(super) fn new(endianness: Endianness) -> Self {
        let mut module = ir::Module::for_endianness(endianness);
        let data = module.add_data("__tvm_ffi_codegen_messages", Vec::new(), 4);
        let pool = Pool { constants: ConstantPool::new(endianness), data };
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

    /// The state of the unit before a function.
    pub(super) fn mark(&self) -> UnitMark {
        UnitMark {
            functions: self.module.functions.len(),
            data: self.module.data.len(),
            symbol_calls: self.symbol_calls.len(),
            launches: self.drivers.mark(),
        }
    }

    /// Takes back what came after a mark, and all that is known of it. Functions and data are only ever appended.
    pub(super) fn truncate(&mut self, mark: &UnitMark) {
        self.module.truncate_functions(mark.functions);
        self.module.truncate_data(mark.data);
        self.handles.truncate(mark.functions, mark.data);
        self.symbol_calls.truncate(mark.symbol_calls);
        self.drivers.truncate(&mark.launches);
    }

    /// The module, complete.
    pub(super) fn finish(mut self) -> ir::Module {
        self.handles.finish(&mut self.module);
        self.drivers.finish(&mut self.module);
        self.module.data[self.pool.data].bytes = self.pool.constants.into_bytes();
        self.module
    }
}

pub(super) const DEFINED: &str = "a function that it defines";

/// What stands in the way of importing a symbol: something else of that name.
pub(super) fn import_conflict(module: &ir::Module, name: &str, signature: &FuncSig) -> Option<String> {
    if module.data.values().any(|data| data.name == name) {
        return Some("data".to_owned());
    }
    // the runtime helpers are defined once all wrappers are there
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
