//! Lowering: a signature and a kernel become IR. Every rule of the TVM FFI ABI is here, once.
//!
//! A wrapper's code runs in the order of the contract (`docs/contract.md`): the number of arguments, the argument array, then
//! each parameter in order; the first check that fails is the one reported. All errors leave through one cold block,
//! which hands a row of the static message table (`messages`) and two values to one routine (`report`) that
//! makes the text and raises it.

mod body;
mod error;
mod kernel;
mod messages;
mod report;
mod scalar;
mod tensor;
mod wrapper;

use crate::ir;
use crate::spec::Signature;

pub use body::{Body, Expr, Operand, TensorRef};
pub use error::{BodyMistake, LowerError};
pub use kernel::{Kernel, KernelReturn, flat_signature};
pub use report::{REPORT_SYMBOL, report_module};

use messages::Messages;

/// Where the routine that makes error messages comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Report {
    /// Imported as [`REPORT_SYMBOL`]: one copy serves many modules, as in a JIT.
    #[default]
    Import,
    /// Defined in the module itself, unseen outside: for objects and modules that stand alone.
    Define,
}

/// Lowers wrappers into one IR module, in which they share their message texts.
#[derive(Debug)]
pub struct Lowering {
    module: ir::Module,
    report: ir::FuncRef,
    messages: ir::DataRef,
    texts: Messages,
}

impl Lowering {
    /// An empty module.
    pub fn new(report: Report) -> Self {
        let mut module = ir::Module::new();
        let report = match report {
            Report::Import => module.import(REPORT_SYMBOL, report::signature()),
            Report::Define => report::define(&mut module, ir::Linkage::Local),
        };
        let messages = module.add_data("messages", Vec::new(), 4);
        Lowering { module, report, messages, texts: Messages::default() }
    }

    /// Adds a wrapper, exported as [`Signature::symbol`].
    ///
    /// # Errors
    /// The name is taken, the kernel doesn't fit the signature, or its body has mistakes. The module is then as it was,
    /// but for imports and message texts that nothing uses.
    pub fn add(&mut self, signature: &Signature, kernel: &Kernel) -> Result<ir::FuncRef, LowerError> {
        if self.module.function_named(&signature.symbol()).is_some() {
            return Err(LowerError::DuplicateName { name: signature.name().to_owned() });
        }
        kernel.check(signature)?;
        let declared = self.module.functions.len();
        let result = wrapper::lower(self, signature, kernel);
        if result.is_err() {
            // functions are only ever appended, so that this takes back what the wrapper declared
            let kept = std::mem::take(&mut self.module.functions).into_iter().take(declared);
            self.module.functions = kept.map(|(_, decl)| decl).collect();
        }
        result
    }

    /// The module, complete.
    pub fn finish(mut self) -> ir::Module {
        self.module.data[self.messages].bytes = self.texts.into_bytes();
        self.module
    }
}

/// Lowers one wrapper to a module of its own.
///
/// # Errors
/// As [`Lowering::add`].
pub fn lower(signature: &Signature, kernel: &Kernel, report: Report) -> Result<ir::Module, LowerError> {
    let mut lowering = Lowering::new(report);
    lowering.add(signature, kernel)?;
    Ok(lowering.finish())
}
