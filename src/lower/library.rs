//! The parts of a library other than wrappers, following tvm/ffi/extra/module.h: metadata and docs, the library's
//! context, and the registration of a system library.

use super::abi::byte_array;
use super::capi;
use super::error::LowerError;
use super::ffi_call;
use super::globals::{self, Global};
use super::kernel::Kernel;
use super::metadata::metadata_with;
use super::problem::GlobalProblem;
use super::unit::Unit;
use crate::ir::{
    AbiParam, Data, DataKind, DataRef, FuncDecl, FuncRef, FuncSig, Hint, Linkage, MemFlags, Module, Type, Val,
};
use crate::spec::Signature;
use tvm_ffi_runtime::abi::symbol::{DOC, FUNCTION, LIBRARY_BIN, METADATA};

/// Prefixes that a function's name may not have, because its symbol would be one that describes the library.
const RESERVED: [&str; 4] = ["_library_ctx", "_library_bin", "_metadata_", "_doc_"];

/// The library's data other than wrappers, while the module is under construction.
#[derive(Debug)]
pub(super) struct Carried {
    /// Whether functions carry their metadata.
    metadata: bool,
    /// The strings that functions return: each function's metadata, followed by its doc. They will become module data.
    texts: Vec<u8>,
    data: DataRef,
    /// Creates a str from a part of the strings.
    string: Option<FuncRef>,
    /// The functions to register as global functions.
    globals: Vec<Global>,
    /// The exported functions, in order; a system library registers them together with its context.
    exported: Vec<FuncRef>,
}

/// Whether symbols may begin with a prefix. In COFF, a symbol's name also appears in a linker option.
pub(crate) fn is_symbol_prefix(prefix: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    !prefix.starts_with(|c: char| c.is_ascii_digit()) && prefix.chars().all(plain)
}

impl Carried {
    pub(super) fn new(unit: &mut Unit, metadata: bool) -> Self {
        let data = unit.module.add_data("__tvm_ffi_codegen_texts", Vec::new(), 1);
        Carried { metadata, texts: Vec::new(), data, string: None, globals: Vec::new(), exported: Vec::new() }
    }

    /// Checks that a library may have such a function: its symbols have no other meaning, and its kernel exists outside
    /// this process.
    pub(super) fn check(unit: &Unit, signature: &Signature, kernel: &Kernel) -> Result<(), LowerError> {
        let name = signature.name();
        let prefix = &unit.prefix;
        let symbol = unit.symbol(signature);
        let taken = |taken: &&String| {
            let known = unit.module.function_named(taken);
            // the body of an earlier function may call it by its symbol
            let calls = |known: &FuncDecl| {
                **taken == symbol
                    && known.linkage == Linkage::Import
                    && known.signature == ffi_call::safe_call_signature()
            };
            // `Lowering::add` reports another wrapper with the same name.
            known.is_some_and(|(_, known)| known.linkage != Linkage::Export && !calls(known))
        };
        let full = format!("{prefix}{name}");
        let reserved = RESERVED.iter().any(|reserved| full.starts_with(reserved)).then_some(&symbol);
        let symbols = [&symbol, &metadata_symbol(unit, name), &doc_symbol(unit, name)];
        if let Some(symbol) = reserved.or(symbols.into_iter().find(taken)) {
            return Err(LowerError::ReservedName { name: name.to_owned(), symbol: symbol.clone() });
        }
        if kernel.function_address().is_some() {
            return Err(LowerError::AddressInFile { function: name.to_owned() });
        }
        kernel.check_linked_elsewhere(signature)
    }

    /// Adds the data of a wrapper: its metadata, unless the library has none, and its doc, if any.
    pub(super) fn add(&mut self, unit: &mut Unit, wrapper: FuncRef, signature: &Signature) {
        self.exported.push(wrapper);
        if self.metadata {
            let metadata = metadata_with(signature, &unit.launches.described);
            let symbol = metadata_symbol(unit, signature.name());
            self.returns_text(&mut unit.module, symbol, &metadata);
        }
        if let Some(doc) = signature.doc() {
            let symbol = doc_symbol(unit, signature.name());
            self.returns_text(&mut unit.module, symbol, doc);
        }
    }

    /// Defines a function with the packed prototype that returns a string. The runtime creates the str, because it may
    /// outlive the library.
    fn returns_text(&mut self, module: &mut Module, symbol: String, text: &str) {
        let offset = self.texts.len() as u32;
        self.texts.extend_from_slice(text.as_bytes());
        // terminates it for readers of the file; the code knows its length
        self.texts.push(0);
        let string = *self.string.get_or_insert_with(|| define_string(module));
        let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None);
        let sig = FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..sig };
        let func = module.declare(symbol, sig, Linkage::Export);
        module.functions[func].cold = true;
        module.define(func, |c| {
            let (data, size) = (c.data(self.data, offset), c.i64(text.len() as i64));
            c.ret(c.call(string, &[data, size, c.param(3)]));
        });
        self.exported.push(func);
    }

    /// Adds a constructor that registers a function of the library as a global function, unless the name is taken by
    /// then. Also adds a destructor that unregisters it.
    ///
    /// # Errors
    /// The library has no such function, or the name is invalid, or another function already has it.
    pub(super) fn register_global(&mut self, unit: &Unit, function: &str, global: &str) -> Result<(), LowerError> {
        let symbol = format!("{FUNCTION}{}{function}", unit.prefix);
        let known = unit.module.function_named(&symbol).filter(|(_, known)| known.linkage == Linkage::Export);
        let problem = match known {
            None => GlobalProblem::NoSuchFunction,
            Some(_) if global.is_empty() || global.contains('\0') => GlobalProblem::InvalidName,
            Some(_) if self.globals.iter().any(|known| known.name == global) => GlobalProblem::Taken,
            Some((func, _)) => {
                self.globals.push(Global { func, name: global.to_owned() });
                return Ok(());
            }
        };
        Err(no_global(function, global, problem))
    }

    /// Completes the library's module: its strings, its context, and the code that runs when it is loaded. A system
    /// library registers its symbols with `TVMFFIEnvModRegisterSystemLibSymbol` (extra/c_env_api.h). With `modules`,
    /// that includes [`LIBRARY_BIN`], which another object then has to define.
    pub(super) fn finish(mut self, unit: &mut Unit, is_system: bool, modules: bool) {
        // the data exists from the start, but its final size is known only now
        unit.module.data[self.data].bytes = std::mem::take(&mut self.texts);
        let context = unit.handles.context(&mut unit.module, &unit.prefix);
        if is_system {
            if modules {
                // It is data; but undefined symbols have no type in an object, and only the address is needed here.
                let symbol = format!("{}{LIBRARY_BIN}", unit.prefix);
                self.exported.push(unit.module.import(&symbol, FuncSig::default()));
            }
            let constructor = self.define_registration(&mut unit.module, context);
            unit.module.constructors.push(constructor);
        }
        globals::define(&mut unit.module, &self.globals);
    }

    /// Defines a function that registers the context and all functions in `exported`.
    fn define_registration(&self, module: &mut Module, context: DataRef) -> FuncRef {
        let mut names = Vec::new();
        let mut addresses = Vec::with_capacity(self.exported.len());
        for (index, &func) in (0u32..).zip(&self.exported) {
            names.extend_from_slice(module.functions[func].name.as_bytes());
            names.push(0);
            addresses.push((8 * index, func));
        }
        let context_name = names.len() as u32;
        names.extend_from_slice(module.data[context].name.as_bytes());
        names.push(0);
        let names = module.add_data("__tvm_ffi_codegen_names", names, 1);
        let table = module.data.push(Data {
            name: "__tvm_ffi_codegen_addresses".to_owned(),
            bytes: vec![0; 8 * addresses.len()],
            align: 8,
            kind: DataKind::Constant,
            addresses,
        });
        let register = capi::import(module, capi::ENV_MOD_REGISTER_SYSTEM_LIB_SYMBOL);
        let count = self.exported.len() as i64;
        module.cold_local("__tvm_ffi_codegen_register", FuncSig::default(), |c| {
            // Upstream's function can't fail.
            c.call(register, &[c.data(names, context_name), c.data(context, 0)]);
            let read = |ty: Type, at: Val<'_>| c.value(|b| b.load(ty, at.value(), 0, MemFlags::READONLY));
            let [head, one, scan, done] = c.blocks();
            let (index, name) = (c.block_param(head, Type::I64), c.block_param(head, Type::Ptr));
            let at = c.block_param(scan, Type::Ptr);
            let (zero, count) = (c.i64(0), c.i64(count));
            let (first, table) = (c.data(names, 0), c.data(table, 0));
            c.jump(head, &[zero, first]);
            c.switch_to(head);
            c.branch(index.lt(count), one, done, Hint::None);
            c.switch_to(one);
            c.call(register, &[name, read(Type::Ptr, table.element(index, Type::Ptr))]);
            let next = index + 1;
            c.jump(scan, &[name]);
            // the next name follows this one's NUL
            c.switch_to(scan);
            let (byte, behind) = (read(Type::I8, at), at + 1);
            c.branch_with(byte.is(0), (head, &[next, behind]), (scan, &[behind]), Hint::None);
            c.switch_to(done);
            c.ret(None);
        })
    }
}

fn metadata_symbol(unit: &Unit, function: &str) -> String {
    format!("{}{METADATA}{function}", unit.prefix)
}

fn doc_symbol(unit: &Unit, function: &str) -> String {
    format!("{}{DOC}{function}", unit.prefix)
}

/// The error for a function that can't be registered as a global function.
pub(super) fn no_global(function: &str, global: &str, problem: GlobalProblem) -> LowerError {
    LowerError::Global { function: function.to_owned(), global: global.to_owned(), problem }
}

/// `int32_t string(const char* data, int64_t size, TVMFFIAny* result)`: creates a str. Its error and code are the
/// runtime's.
fn define_string(module: &mut Module) -> FuncRef {
    let sig = FuncSig::new([Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32));
    let make = capi::import(module, capi::STRING_FROM_BYTE_ARRAY);
    module.cold_local("__tvm_ffi_codegen_string", sig, |c| {
        let [data, size, result] = c.params();
        c.ret(c.call(make, &[byte_array(c, data, size), result]));
    })
}
