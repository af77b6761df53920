//! Errors of this backend.

use thiserror::Error;

/// An error of the Cranelift backend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Cranelift doesn't support the target, or wrappers can't run there.
    #[error("can't generate code for target `{target}`: {reason}")]
    UnsupportedTarget {
        /// The target triple.
        target: String,
        /// The reason.
        reason: String,
    },
    /// A CPU feature or setting that the target doesn't have.
    #[error("target `{target}` has no setting `{name}`: {reason}")]
    Setting {
        /// The target triple.
        target: String,
        /// The setting's name.
        name: String,
        /// Cranelift's message.
        reason: String,
    },
    /// The module was made for targets of another byte order.
    #[error("the module is for {module:?}-endian targets, and `{target}` is not one")]
    Endianness {
        /// The target triple.
        target: String,
        /// The module's byte order.
        module: target_lexicon::Endianness,
    },
    /// The module already declares the name with a linkage other than import.
    #[error(
        "`{name}` is already defined in the module, or declared as defined there; \
         declare it with `Linkage::Import` if only its callers come first, or give the function another name"
    )]
    Duplicate {
        /// The symbol.
        name: String,
    },
    /// The module declares the name as data.
    #[error("`{name}` is data in the module, but a function is needed")]
    NotAFunction {
        /// The symbol.
        name: String,
    },
    /// A binding names a function that the module doesn't have: its id belongs to another module.
    #[error("`{name}` is bound to a function id that the module doesn't know; ids belong to one module")]
    UnknownBinding {
        /// The import.
        name: String,
    },
    /// The module declares a function of that name with another signature.
    #[error("`{name}` has another signature in the module: expected {expected}, found {found}")]
    SignatureConflict {
        /// The symbol.
        name: String,
        /// The signature that the wrapper needs.
        expected: String,
        /// The signature that the module has.
        found: String,
    },
    /// The module uses the name for something other than a writable variable.
    #[error("`{name}` is no writable variable in the module, but one is needed")]
    NotAVariable {
        /// The symbol.
        name: String,
    },
    /// A name can't be used as a symbol.
    #[error("{name:?} can't be the name of a symbol: it is empty or contains a NUL")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// The code was compiled for a target or settings that the module doesn't accept.
    #[error(
        "the code was compiled for {compiled}, but the module takes {module}; \
         compile it with the module's own `isa()`"
    )]
    IsaMismatch {
        /// The code's target and settings.
        compiled: String,
        /// The module's target and settings.
        module: String,
    },
    /// The code contains something that only a separate object file supports.
    #[error("{what} can't be added to a module, only put into an object file")]
    OnlyInObjects {
        /// The unsupported part, in words.
        what: String,
    },
    /// The target's object format can't hold the code.
    #[error("can't make an object file for `{target}`: {reason}")]
    Object {
        /// The target triple.
        target: String,
        /// The reason.
        reason: String,
    },
    /// A function exceeds a limit of Cranelift.
    #[error("function `{function}` is too large for Cranelift: {message}")]
    TooLarge {
        /// The function.
        function: String,
        /// The limit, in Cranelift's message.
        message: String,
    },
    /// Cranelift rejected a function. This is a bug of this library.
    #[error("internal error: Cranelift can't compile `{function}`: {message}\n{listing}")]
    Codegen {
        /// The function.
        function: String,
        /// Cranelift's message.
        message: String,
        /// The function in the IR, and as CLIF.
        listing: String,
    },
    /// The caller's module failed on code that had passed every check, usually because it ran out of memory.
    #[error("the module can't take the code")]
    Module(#[source] Box<cranelift_module::ModuleError>),
}

impl From<cranelift_module::ModuleError> for Error {
    fn from(source: cranelift_module::ModuleError) -> Self {
        Error::Module(Box::new(source))
    }
}
