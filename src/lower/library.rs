//! What a library carries beside wrappers, by the conventions of tvm/ffi/extra/module.h: metadata and docs, its context, and for a
//! system library its registration.

use std::mem::offset_of;

use super::at_exit::register_destructors;
use super::capi;
use super::error::LowerError;
use super::ffi_call;
use super::globals::{self, Global};
use super::kernel::Kernel;
use super::launch_description::LaunchDescription;
use super::metadata::metadata_with;
use super::module::{Lowering, RuntimeHelpers};
use super::protocol::Capabilities;
use super::unit::Unit;
use crate::ir::{
    AbiParam, BinaryOp, Data, DataKind, DataRef, FuncDecl, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage,
    MemFlags, Module, Type,
};
use crate::spec::Signature;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::TVMFFIByteArray;
use tvm_ffi_runtime::abi::symbol::{DOC, FUNCTION, LIBRARY_BIN, METADATA};

/// What a function's name may not begin with, as its symbol would then be one of those that say something else of a library.
const RESERVED: [&str; 4] = ["_library_ctx", "_library_bin", "_metadata_", "_doc_"];

/// Lowers wrappers into one IR module, with all that an object file of a library carries beside them. Whoever loads the file runs the module's destructors: threads of
/// launches on the CPU [stay](Lowering::threads_stay).
#[derive(Debug)]
pub struct LibraryLowering {
    lowering: Lowering,
    system: bool,
    carries_modules: bool,
    /// Whether functions carry their metadata.
    metadata: bool,
    /// Whether destructors are registered by a constructor.
    at_exit: bool,
    /// Texts that functions return, and the data that they will be: of each function its metadata, and its doc behind that.
    texts: Vec<u8>,
    data: DataRef,
    /// Makes a str of a part of the texts.
    string: Option<FuncRef>,
    /// What is registered as global functions.
    globals: Vec<Global>,
    /// What is exported, in order: functions, and in a system library what it registers besides its context.
    exported: Vec<FuncRef>,
}

impl LibraryLowering {
    /// A library that a host loads as a file, for targets of this byte order.
    pub fn new(endianness: Endianness) -> Self {
        Self::with_prefix(None, endianness)
    }

    /// A system library: one that is part of the program, and registers its symbols by `TVMFFIEnvModRegisterSystemLibSymbol`
    /// (extra/c_env_api.h) when that starts. The prefix is that of `ffi.SystemLib`, and of all exported C symbols, so that
    /// several of them can be linked into one program: `__tvm_ffi_<prefix><name>`, `<prefix>__tvm_ffi__metadata_<name>`.
    ///
    /// # Errors
    /// The prefix has characters that no symbol has.
    pub fn system(prefix: &str, endianness: Endianness) -> Result<Self, LowerError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        if prefix.starts_with(|c: char| c.is_ascii_digit()) || !prefix.chars().all(plain) {
            return Err(LowerError::Prefix { prefix: prefix.to_owned() });
        }
        Ok(Self::with_prefix(Some(prefix), endianness))
    }

    fn with_prefix(prefix: Option<&str>, endianness: Endianness) -> Self {
        let mut lowering = Lowering::for_endianness(RuntimeHelpers::Define, endianness);
        // destructors are in the object's lists, or registered
        lowering.threads_stay(true);
        lowering.unit.prefix = prefix.unwrap_or_default().to_owned();
        let data = lowering.unit.module.add_data("__tvm_ffi_codegen_texts", Vec::new(), 1);
        let (texts, exported) = (Vec::new(), Vec::new());
        LibraryLowering {
            lowering,
            system: prefix.is_some(),
            carries_modules: false,
            metadata: true,
            at_exit: false,
            texts,
            data,
            string: None,
            globals: Vec::new(),
            exported,
        }
    }

    /// Leaves the metadata of functions out: their docs, if they have any, are all that hosts then read of them.
    pub fn without_metadata(&mut self) {
        self.metadata = false;
    }

    /// Lets the module import the runtime helpers, for whoever puts it beside a copy of them.
    pub fn import_helpers(&mut self) {
        self.lowering.helpers = RuntimeHelpers::Import;
    }

    /// The capabilities that the wrappers so far need of the runtime helpers.
    pub fn capabilities(&self) -> Capabilities {
        self.lowering.capabilities()
    }

    /// States whether the target is Windows. There a constructor registers the destructors by `atexit`, as COFF has no place for them, and launches
    /// find drivers as [`Lowering::for_windows`] says. Without this call there is no `atexit`, and drivers are found as on this machine.
    pub fn for_windows(&mut self, yes: bool) {
        self.at_exit = yes;
        self.lowering.for_windows(yes);
    }

    /// Lets a system library register `<prefix>__tvm_ffi__library_bin` too, which another object has to define then. Any other library is
    /// asked for that symbol when it is loaded.
    pub fn carries_modules(&mut self) {
        self.carries_modules = true;
    }

    /// Adds a wrapper, its metadata unless left out, and its doc if there is one.
    ///
    /// # Errors
    /// As [`Lowering::add`]; the kernel is an address of this process; or the name is one that libraries use otherwise.
    pub fn add(&mut self, signature: &Signature, kernel: &Kernel, doc: Option<&str>) -> Result<(), LowerError> {
        let name = signature.name();
        let prefix = &self.lowering.unit.prefix;
        let symbol = self.lowering.unit.symbol(signature);
        let (metadata_symbol, doc_symbol) = (format!("{prefix}{METADATA}{name}"), format!("{prefix}{DOC}{name}"));
        let full = format!("{prefix}{name}");
        let taken = |taken: &&String| {
            let known = self.lowering.unit.module.function_named(taken);
            // a body before this function may call it by its symbol
            let calls = |known: &FuncDecl| {
                **taken == symbol
                    && known.linkage == Linkage::Import
                    && known.signature == ffi_call::safe_call_signature()
            };
            // Another wrapper of that name is for `Lowering::add` to report.
            known.is_some_and(|(_, known)| known.linkage != Linkage::Export && !calls(known))
        };
        let reserved = RESERVED.iter().any(|reserved| full.starts_with(reserved)).then_some(&symbol);
        if let Some(symbol) = reserved.or([&symbol, &metadata_symbol, &doc_symbol].into_iter().find(taken)) {
            return Err(LowerError::ReservedName { name: name.to_owned(), symbol: symbol.clone() });
        }
        if kernel.function_address().is_some() {
            return Err(LowerError::AddressInFile { function: name.to_owned() });
        }
        kernel.check_linked_elsewhere(signature)?;
        let wrapper = self.lowering.add(signature, kernel)?;
        self.exported.push(wrapper);
        if self.metadata {
            let metadata = metadata_with(signature, self.lowering.launches());
            self.returns_text(metadata_symbol, &metadata);
        }
        if let Some(doc) = doc {
            self.returns_text(doc_symbol, doc);
        }
        Ok(())
    }

    /// Adds a body as a C function, for native code of the library.
    ///
    /// # Errors
    /// As [`Lowering::add_c_function`].
    pub fn add_c_function(&mut self, signature: &Signature, body: &Kernel) -> Result<(), LowerError> {
        self.lowering.add_c_function(signature, body).map(drop)
    }

    /// Defines a function of the packed prototype that returns a text, as a str of the runtime's making: it may outlive the library.
    fn returns_text(&mut self, symbol: String, text: &str) {
        let offset = self.texts.len() as u32;
        self.texts.extend_from_slice(text.as_bytes());
        // ends it for those who find it in a file: the code knows its length
        self.texts.push(0);
        let module = &mut self.lowering.unit.module;
        let string = *self.string.get_or_insert_with(|| define_string(module));
        let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], None);
        let sig = FuncSig { ret: Some(AbiParam::signed(Type::I32)), ..sig };
        let func = module.declare(symbol, sig, Linkage::Export);
        module.functions[func].cold = true;
        let mut b = FunctionBuilder::new(module, func);
        let result = b.param(3);
        let data = b.data_addr(self.data, offset);
        let size = b.i64(text.len() as i64);
        let code = b.call(string, &[data, size, result]);
        b.ret(code);
        self.exported.push(b.finish());
    }

    /// The launches of the function that was added last: that of its kernel, or those of its body.
    pub fn launches(&self) -> &[LaunchDescription] {
        self.lowering.launches()
    }

    /// Lets a constructor register a function of the library as a global function, under a name that nobody has taken by then, and a destructor
    /// take it back.
    ///
    /// # Errors
    /// The library has no such function so far, or the name is none, or another function has it.
    pub fn register_global(&mut self, function: &str, global: &str) -> Result<(), LowerError> {
        let unit = &self.lowering.unit;
        let symbol = format!("{FUNCTION}{}{function}", unit.prefix);
        let known = unit.module.function_named(&symbol).filter(|(_, known)| known.linkage == Linkage::Export);
        let problem = match known {
            None => "the library has no such function",
            Some(_) if global.is_empty() || global.contains('\0') => "the name is empty or holds a NUL byte",
            Some(_) if self.globals.iter().any(|known| known.name == global) => "the library registers it already",
            Some((func, _)) => {
                self.globals.push(Global { func, name: global.to_owned() });
                return Ok(());
            }
        };
        let (function, global) = (function.to_owned(), global.to_owned());
        Err(LowerError::Global { function, global, problem: problem.to_owned() })
    }

    /// The mistakes of calls by symbol: see [`Lowering::check_calls`].
    pub fn check_calls<'s>(&self, signatures: impl IntoIterator<Item = &'s Signature>) -> Vec<LowerError> {
        self.lowering.check_calls(signatures)
    }

    /// The module, complete.
    pub fn finish(mut self) -> Module {
        // exists from the start, and only now is as long as the code says
        self.lowering.unit.module.data[self.data].bytes = std::mem::take(&mut self.texts);
        let prefix = if self.system { self.lowering.unit.prefix.clone() } else { String::new() };
        let Unit { module, handles, .. } = &mut self.lowering.unit;
        let context = handles.context(module, &prefix);
        if self.system {
            if self.carries_modules {
                let module = &mut self.lowering.unit.module;
                // Data in truth; what is undefined has no type in an object, and only its address is wanted here.
                self.exported.push(module.import(&format!("{prefix}{LIBRARY_BIN}"), FuncSig::default()));
            }
            let constructor = self.define_registration(context);
            self.lowering.unit.module.constructors.push(constructor);
        }
        globals::define(&mut self.lowering.unit.module, &self.globals);
        let mut module = self.lowering.finish();
        if self.at_exit {
            register_destructors(&mut module);
        }
        module
    }

    /// Defines a function that registers the context and all of `exported`.
    fn define_registration(&mut self, context: DataRef) -> FuncRef {
        let module = &mut self.lowering.unit.module;
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
        let func = module.declare("__tvm_ffi_codegen_register", FuncSig::default(), Linkage::Local);
        module.functions[func].cold = true;
        let mut b = FunctionBuilder::new(module, func);
        // Nobody is there to be told of a failure: upstream's function has none.
        let name = b.data_addr(names, context_name);
        let address = b.data_addr(context, 0);
        b.call(register, &[name, address]);
        let (head, one, scan, done) = (b.block(), b.block(), b.block(), b.block());
        let (index, name) = (b.block_param(head, Type::I64), b.block_param(head, Type::Ptr));
        let at = b.block_param(scan, Type::Ptr);
        let (zero, count) = (b.i64(0), b.i64(self.exported.len() as i64));
        let (first, table) = (b.data_addr(names, 0), b.data_addr(table, 0));
        b.jump(head, &[zero, first]);
        b.switch_to(head);
        let more = b.icmp(IntCC::SLt, index, count);
        b.branch(more, one, done, Hint::None);
        b.switch_to(one);
        let entry = b.element(table, index, Type::Ptr);
        let address = b.load(Type::Ptr, entry, 0, MemFlags::READONLY);
        b.call(register, &[name, address]);
        let step = b.i64(1);
        let next = b.binary(BinaryOp::Add, index, step);
        b.jump(scan, &[name]);
        // the next name is behind this one's NUL
        b.switch_to(scan);
        let byte = b.load(Type::I8, at, 0, MemFlags::READONLY);
        let behind = b.ptr_add_imm(at, 1);
        let end = b.icmp_imm(IntCC::Eq, byte, 0);
        b.branch_with(end, (head, &[next, behind]), (scan, &[behind]), Hint::None);
        b.switch_to(done);
        b.ret(None);
        b.finish()
    }
}

/// `int32_t string(const char* data, int64_t size, TVMFFIAny* result)`: its error, and the code of it, are the runtime's.
fn define_string(module: &mut Module) -> FuncRef {
    let sig = FuncSig::new([Type::Ptr, Type::I64, Type::Ptr], Some(Type::I32));
    let make = capi::import(module, capi::STRING_FROM_BYTE_ARRAY);
    let func = module.declare("__tvm_ffi_codegen_string", sig, Linkage::Local);
    module.functions[func].cold = true;
    let mut b = FunctionBuilder::new(module, func);
    let slot = b.slot(size_of::<TVMFFIByteArray>() as u32, align_of::<TVMFFIByteArray>() as u32);
    let array = b.stack_addr(slot);
    let (data, size, result) = (b.param(0), b.param(1), b.param(2));
    b.store(data, array, offset_of!(TVMFFIByteArray, data) as i32, MemFlags::ALIGNED);
    b.store(size, array, offset_of!(TVMFFIByteArray, size) as i32, MemFlags::ALIGNED);
    let code = b.call(make, &[array, result]);
    b.ret(code);
    b.finish()
}
