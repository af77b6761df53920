//! Lowering: a signature and a kernel become IR. Every rule of the TVM FFI ABI is here, once.
//!
//! A wrapper is little more than its good path: few branches that accept what callers nearly always pass. Where one
//! fails, cold code hands the arguments and the signature as data (`program`) to a routine that all wrappers share
//! (`support`). It runs the checks exactly, in the contract's order (`docs/contract.md`), and either raises the first
//! mismatch, or makes arguments that the good path accepts, with which the wrapper starts again.

mod body;
mod decode;
mod division;
mod doubt;
mod error;
mod fast;
mod fields;
mod kernel;
mod library;
mod messages;
mod metadata;
mod program;
mod result;
mod support;
mod wrapper;

use crate::ir;
use crate::spec::Signature;
use target_lexicon::Endianness;
use tvm_ffi_runtime::abi::symbol;

pub use body::{Body, Expr, Operand, TensorRef};
pub use error::{BodyMistake, LowerError};
pub use kernel::{Convention, Kernel, KernelReturn, c_header, c_prototype, flat_signature};
pub use library::LibraryLowering;
pub use metadata::{metadata, type_schema};
pub use support::{BIND_SYMBOL, Capabilities, REPORT_SYMBOL, TAKE_RESULT_SYMBOL, support_module};

use messages::Messages;

/// What the symbols of all begin with that a module has for its wrappers.
const OWN_SYMBOLS: &str = "__tvm_ffi_codegen_";

/// Where the routines come from that all wrappers share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Routines {
    /// Imported as [`BIND_SYMBOL`], [`TAKE_RESULT_SYMBOL`] and [`REPORT_SYMBOL`]: one copy serves many modules, as in a JIT.
    #[default]
    Import,
    /// Defined in the module itself once it is complete, as far as its wrappers use them, and unseen outside: for objects and modules that stand alone.
    Define,
}

/// Lowers wrappers into one IR module, in which they share their message texts.
#[derive(Debug)]
pub struct Lowering {
    module: ir::Module,
    routines: Routines,
    messages: ir::DataRef,
    texts: Messages,
    /// What stands before each function's name in its symbol.
    prefix: String,
    /// A wrapper calls the bind routine in every call.
    always_binds: bool,
}

impl Lowering {
    /// An empty module for this machine, or another of its byte order.
    pub fn new(routines: Routines) -> Self {
        Self::for_endianness(routines, ir::HOST_ENDIANNESS)
    }

    /// An empty module for a target of this byte order (`Triple::endianness` tells it).
    pub fn for_endianness(routines: Routines, endianness: Endianness) -> Self {
        let mut module = ir::Module::for_endianness(endianness);
        let messages = module.add_data("__tvm_ffi_codegen_messages", Vec::new(), 4);
        let texts = Messages::new(endianness);
        Lowering { module, routines, messages, texts, prefix: String::new(), always_binds: false }
    }

    /// The symbol of a wrapper.
    fn symbol(&self, signature: &Signature) -> String {
        match self.prefix.as_str() {
            "" => signature.symbol(),
            prefix => format!("{}{prefix}{}", symbol::FUNCTION, signature.name()),
        }
    }

    /// Adds a wrapper, exported as [`Signature::symbol`].
    ///
    /// # Errors
    /// The name is taken, the kernel doesn't fit the signature, or its body has mistakes. The module is then as it was,
    /// but for imports and message texts that nothing uses.
    pub fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<ir::FuncRef, LowerError> {
        let symbol = self.symbol(signature);
        if self.module.function_named(&symbol).is_some() {
            return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
        }
        // some of these are defined only once all wrappers are there
        if symbol.starts_with(OWN_SYMBOLS) {
            return Err(LowerError::ReservedName { name: signature.name().to_owned(), symbol });
        }
        kernel.check(signature)?;
        kernel.check_symbol(signature, &symbol, &self.module)?;
        let declared = self.module.functions.len();
        let mut result = wrapper::lower(self, signature, kernel);
        if !self.texts.is_in_reach() {
            let function = signature.name().to_owned();
            result = Err(LowerError::TooManyMessages { function, most: messages::MAX_BYTES });
        }
        if result.is_err() {
            // functions are only ever appended, so that this takes back what the wrapper declared
            self.module.truncate_functions(declared);
        }
        result
    }

    /// What the wrappers so far ask of the runtime helpers.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::used_by(&self.texts)
    }

    /// Whether any wrapper so far calls the bind routine in every call, not only on its slow path.
    pub fn always_binds(&self) -> bool {
        self.always_binds
    }

    /// The module, complete.
    pub fn finish(mut self) -> ir::Module {
        if self.routines == Routines::Define {
            support::define(&mut self.module, ir::Linkage::Local, self.messages, &mut self.texts);
        }
        self.module.data[self.messages].bytes = self.texts.into_bytes();
        self.module
    }
}

/// Lowers one wrapper to a module of its own.
///
/// # Errors
/// As [`Lowering::add`].
pub fn lower(signature: &Signature, kernel: &Kernel, routines: Routines) -> Result<ir::Module, LowerError> {
    let mut lowering = Lowering::new(routines);
    lowering.add(signature, kernel)?;
    Ok(lowering.finish())
}
