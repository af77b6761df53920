//! Prototypes of kernels: as a C header that a C compiler accepts, as the IR's, and as lists of parameters.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::convention::c_type::CType;
use super::convention::param::KernelParam;
use super::convention::params;
use super::convention::{Convention, KernelReturn, c_names};
use super::error::LowerError;
use super::kernel::{Kernel, Target};
use crate::ir::FuncSig;
use crate::spec::Signature;

/// What the prototypes need: the headers of the `apache-tvm-ffi` package where they are found, else the same in short.
const PRELUDE: &str = "\
#include <stddef.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include(<tvm/ffi/c_api.h>)
#include <tvm/ffi/c_api.h>
#define TVM_FFI_CODEGEN_HAS_C_API
#endif
#endif

#ifndef TVM_FFI_CODEGEN_HAS_C_API
#ifndef TVM_FFI_CODEGEN_TYPES
#define TVM_FFI_CODEGEN_TYPES
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
typedef void* TVMFFIObjectHandle;
typedef struct {
  int32_t type_index;
  union { uint32_t zero_padding; uint32_t small_str_len; };
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
    const char* v_c_str;
    TVMFFIObjectHandle v_obj;
    DLDataType v_dtype;
    DLDevice v_device;
    char v_bytes[8];
    uint64_t v_uint64;
  };
} TVMFFIAny;
#endif
#endif
";

/// The prototype of a kernel as C has it, with a semicolon. A name that is none in C, or that means something else there, stands in an
/// `__asm__` label. (Functions of C's library aren't looked at: a kernel called `memcpy` is declared so.)
///
/// ```
/// use tvm_ffi_codegen::lower::{Convention, KernelReturn, c_prototype};
///
/// let signature = "scale(x: Tensor([n], float32), f: float64)".parse()?;
/// let prototype = c_prototype(&signature, "scale", Convention::Flat, KernelReturn::Nothing)?;
/// assert_eq!(prototype, "void scale(float* x, double f, int64_t n);");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Such a kernel doesn't fit the signature.
pub fn c_prototype(
    signature: &Signature,
    symbol: &str,
    convention: Convention,
    returns: KernelReturn,
) -> Result<String, LowerError> {
    Names::default().prototype(signature, symbol, &Kernel::symbol(symbol).convention(convention).returning(returns))
}

/// A C header with the prototypes of kernels. It stands alone: it includes `tvm/ffi/c_api.h` where the compiler finds it, and has its
/// own words for what it needs of it otherwise.
///
/// # Errors
/// One of the kernels doesn't fit its signature.
pub fn c_header<'a>(
    kernels: impl IntoIterator<Item = (&'a Signature, &'a str, Convention, KernelReturn)>,
) -> Result<String, LowerError> {
    let stated = kernels.into_iter().map(|(signature, symbol, convention, returns)| {
        (signature, symbol, Kernel::symbol(symbol).convention(convention).returning(returns))
    });
    header(&stated.collect::<Vec<_>>())
}

/// A C header with the prototypes of native kernels, each with its signature and its symbol.
fn header(kernels: &[(&Signature, &str, Kernel)]) -> Result<String, LowerError> {
    let own = kernels.iter().map(|(_, symbol, _)| *symbol).filter(|symbol| c_names::is_free_for_function(symbol));
    let mut names = Names { taken: own.map(str::to_owned).collect(), made: HashMap::new() };
    let mut header = format!("#pragma once\n{PRELUDE}\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n");
    for (signature, symbol, kernel) in kernels {
        let prototype = names.prototype(signature, symbol, kernel)?;
        // a text in it may have lines
        let signature = signature.to_string().replace(['\n', '\r'], " ");
        // writing to a String doesn't fail
        let _ = writeln!(header, "// {signature}\n{prototype}\n");
    }
    header.push_str("#ifdef __cplusplus\n}\n#endif\n");
    Ok(header)
}

/// The prototype of a kernel of convention `flat`.
///
/// # Errors
/// Such a kernel doesn't fit the signature.
pub fn flat_signature(signature: &Signature, returns: KernelReturn) -> Result<FuncSig, LowerError> {
    Kernel::symbol("kernel").returning(returns).prototype(signature)
}

impl Kernel {
    /// A C header with the kernel's prototype; for a body, or no kernel, that of a native kernel in its place.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn header(&self, signature: &Signature) -> Result<String, LowerError> {
        header(&[(signature, &*self.name_in_c(signature), self.as_native())])
    }

    /// The kernel's prototype in C, as [`c_prototype`] writes it; for a body, or no kernel, that of a native kernel in its place.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn c_prototype(&self, signature: &Signature) -> Result<String, LowerError> {
        self.prototype_in_c(signature, &self.name_in_c(signature))
    }

    /// As [`c_prototype`](Self::c_prototype), by another symbol.
    pub(crate) fn prototype_in_c(&self, signature: &Signature, symbol: &str) -> Result<String, LowerError> {
        Names::default().prototype(signature, symbol, &self.as_native())
    }

    /// The name of the C function: the kernel's symbol, or, where it has none, the function's name.
    fn name_in_c(&self, signature: &Signature) -> String {
        match self.target() {
            Some(Target::Symbol(name)) => name.clone(),
            _ => signature.name().to_owned(),
        }
    }

    /// The C parameters of the kernel, in the order of its prototype, with the values that the wrapper passes for them; for a body, or no
    /// kernel, those of a native kernel in its place.
    ///
    /// A compiler writes the kernel's function from this list, which has as many parameters as the function that
    /// [`embed`](crate::embed) declares for it:
    ///
    /// ```
    /// use tvm_ffi_codegen::{Kernel, ParamPart, ParamSource};
    ///
    /// let signature = "scale(x: Tensor([n], float32), f: float64)".parse()?;
    /// let mut meanings = Vec::new();
    /// for param in Kernel::symbol("scale").parameters(&signature)? {
    ///     meanings.push(match &param.source {
    ///         ParamSource::Argument(x, ParamPart::Data) => format!("{param}: the elements of {x}"),
    ///         ParamSource::Argument(f, ParamPart::Value) => format!("{param}: the scalar {f}"),
    ///         ParamSource::Symbol { name, .. } => format!("{param}: the dimension {name}"),
    ///         other => format!("{param}: {other}"),
    ///     });
    /// }
    /// assert_eq!(
    ///     meanings,
    ///     ["float* x: the elements of x", "double f: the scalar f", "int64_t n: the dimension n"]
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn parameters(&self, signature: &Signature) -> Result<Vec<KernelParam>, LowerError> {
        Ok(self.checked(signature)?.c_params(signature))
    }

    /// The type that the kernel's function returns in C, `None` for `void`; for a body, or no kernel, that of a native kernel in its place.
    /// For a status that is an `int32_t`.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn return_type(&self, signature: &Signature) -> Result<Option<CType>, LowerError> {
        self.checked(signature)?;
        Ok(params::c_result(signature, self.c_return(signature)))
    }

    /// The prototype in IR; for a body, or no kernel, that of a native kernel in its place.
    pub(crate) fn prototype(&self, signature: &Signature) -> Result<FuncSig, LowerError> {
        Ok(self.checked(signature)?.func_sig(signature))
    }

    /// The result; for a body, or no kernel, that of a native kernel in its place.
    fn c_return(&self, signature: &Signature) -> KernelReturn {
        self.as_native().returns(signature).unwrap_or(KernelReturn::Nothing)
    }

    /// The symbol by which a kernel is linked; `None` for an address, a body, or no kernel.
    #[cfg(feature = "_engine")] // without a backend there are no modules to look into
    pub(crate) fn linked_symbol(&self) -> Option<&str> {
        match self.target() {
            Some(Target::Symbol(name)) => Some(name),
            Some(Target::Address(_) | Target::Launch(_) | Target::FirstUses(_)) | None => None,
        }
    }

    /// A native kernel that fits the signature.
    fn checked(&self, signature: &Signature) -> Result<Kernel, LowerError> {
        let kernel = self.as_native();
        kernel.check(signature)?;
        Ok(kernel)
    }

    /// The kernel, or a native one in the place of a body or of none.
    fn as_native(&self) -> Kernel {
        if self.target().is_some() { self.clone() } else { Kernel::symbol("kernel") }
    }
}

/// Names in C of symbols that can't be declared by their own.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    made: HashMap<String, String>,
}

impl Names {
    fn prototype(&mut self, signature: &Signature, symbol: &str, kernel: &Kernel) -> Result<String, LowerError> {
        kernel.check(signature)?;
        // another symbol than the kernel's own may be none of a kernel
        Kernel::symbol(symbol).returning(kernel.c_return(signature)).check(signature)?;
        let returned = params::c_result(signature, kernel.c_return(signature));
        let returned = returned.map_or_else(|| "void".to_owned(), |ty| ty.to_string());
        let params = kernel.c_params(signature);
        let params: Vec<String> = params.iter().map(KernelParam::to_string).collect();
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        if c_names::is_free_for_function(symbol) {
            return Ok(format!("{returned} {symbol}({params});"));
        }
        let name = self.name(symbol);
        Ok(format!("{returned} {name}({params}) __asm__({});", literal(symbol)))
    }

    fn name(&mut self, symbol: &str) -> &str {
        let taken = &mut self.taken;
        self.made.entry(symbol.to_owned()).or_insert_with(|| {
            let plain = symbol.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
            let mut name: String = "kernel_".chars().chain(plain).collect();
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        })
    }
}

/// A text as C has it.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_ascii_control() => format!("\\{:03o}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
