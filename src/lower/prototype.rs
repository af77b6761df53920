//! Prototypes of kernels: as a C header that a C compiler accepts, as IR, and as lists of parameters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use super::args;
use super::convention::c_type::CType;
use super::convention::param::KernelParam;
use super::convention::params;
use super::convention::{Convention, KernelReturn, c_names};
use super::error::LowerError;
use super::kernel::{Kernel, NativeTarget};
use crate::ir::FuncSig;
use crate::spec::Signature;

/// The declarations that prototypes need: the headers of the `apache-tvm-ffi` package if they are found, else a short
/// equivalent.
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

/// The C prototype of a kernel, with a semicolon. If the symbol isn't a C name, or has another meaning in C, it is in
/// an `__asm__` label. (Functions of the C library aren't considered: a kernel named `memcpy` is declared under that
/// name.)
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
/// A kernel with this convention and result doesn't fit the signature.
pub fn c_prototype(
    signature: &Signature,
    symbol: &str,
    convention: Convention,
    returns: KernelReturn,
) -> Result<String, LowerError> {
    Names::default().prototype(signature, symbol, &Kernel::symbol(symbol).convention(convention).returns(returns))
}

/// A C header with the prototypes of kernels. It is self-contained: it includes `tvm/ffi/c_api.h` if the compiler finds
/// it, and otherwise declares what it needs itself.
///
/// # Errors
/// One of the kernels doesn't fit its signature.
pub fn c_header<'a>(
    kernels: impl IntoIterator<Item = (&'a Signature, &'a str, Convention, KernelReturn)>,
) -> Result<String, LowerError> {
    let stated = kernels.into_iter().map(|(signature, symbol, convention, returns)| {
        (signature, symbol, Kernel::symbol(symbol).convention(convention).returns(returns))
    });
    header(&stated.collect::<Vec<_>>())
}

/// A C header with the prototypes of native kernels, each with its signature and its symbol.
fn header(kernels: &[(&Signature, &str, Kernel)]) -> Result<String, LowerError> {
    let own = kernels.iter().map(|(_, symbol, _)| *symbol).filter(|symbol| c_names::is_free_for_function(symbol));
    let mut names = Names { taken: own.map(str::to_owned).collect(), made: HashMap::new() };
    let (mut prototypes, mut defined) = (String::new(), BTreeMap::new());
    for (signature, symbol, kernel) in kernels {
        defined.append(&mut kernel.struct_definitions(signature));
        let prototype = names.prototype(signature, symbol, kernel)?;
        // a string in it may contain line breaks
        let signature = signature.to_string().replace(['\n', '\r'], " ");
        // writing to a String can't fail
        let _ = writeln!(prototypes, "// {signature}\n{prototype}\n");
    }
    let mut structs: String = [4, 8].into_iter().filter_map(|bytes| of_struct(bytes, &prototypes)).collect();
    if defined.values().any(|definition| definition.contains(args::ALIGNAS)) {
        structs.push_str(&alignas());
    }
    structs.extend(defined.iter().map(|(name, definition)| typedef(name, definition)));
    let mut header =
        format!("#pragma once\n{PRELUDE}{structs}\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{prototypes}");
    header.push_str("#ifdef __cplusplus\n}\n#endif\n");
    Ok(header)
}

/// The C type of structs with `bytes` bytes, if the prototypes use it.
fn of_struct(bytes: u32, prototypes: &str) -> Option<String> {
    let name = CType::Struct(bytes).to_string();
    let used = prototypes.contains(&format!("{name} "));
    used.then(|| typedef(&name, &format!("{{ int32_t words[{}]; }}", bytes / 4)))
}

/// A struct type that several headers may define.
fn typedef(name: &str, definition: &str) -> String {
    let guard = name.to_ascii_uppercase();
    format!("\n#ifndef {guard}\n#define {guard}\ntypedef struct {definition} {name};\n#endif\n")
}

/// The macro that states an alignment.
fn alignas() -> String {
    let name = args::ALIGNAS;
    format!(
        "\n#ifndef {name}\n#ifdef __cplusplus\n#define {name}(bytes) alignas(bytes)\n#else\n\
         #define {name}(bytes) _Alignas(bytes)\n#endif\n#endif\n"
    )
}

/// The prototype of a kernel of convention `flat`.
///
/// # Errors
/// A kernel with this result doesn't fit the signature.
pub fn flat_signature(signature: &Signature, returns: KernelReturn) -> Result<FuncSig, LowerError> {
    Kernel::symbol("kernel").returns(returns).prototype(signature)
}

impl Kernel {
    /// A C header with the kernel's prototype. A body or check-only kernel gets the prototype that a native kernel
    /// would have.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn header(&self, signature: &Signature) -> Result<String, LowerError> {
        header(&[(signature, &*self.name_in_c(signature), self.as_native())])
    }

    /// The kernel's prototype in C, in the form of [`c_prototype`]. A body or check-only kernel gets the prototype that
    /// a native kernel would have.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn c_prototype(&self, signature: &Signature) -> Result<String, LowerError> {
        self.prototype_in_c(signature, &self.name_in_c(signature))
    }

    /// Like [`c_prototype`](Self::c_prototype), with another symbol.
    pub(crate) fn prototype_in_c(&self, signature: &Signature, symbol: &str) -> Result<String, LowerError> {
        Names::default().prototype(signature, symbol, &self.as_native())
    }

    /// The name of the C function: the kernel's symbol, or the function's name if it has none.
    fn name_in_c(&self, signature: &Signature) -> String {
        match self.target() {
            Some(NativeTarget::Symbol(name)) => name.clone(),
            _ => signature.name().to_owned(),
        }
    }

    /// The C parameters of the kernel, in the order of its prototype, with the values that the wrapper passes for them.
    /// A body or check-only kernel gets the parameters that a native kernel would have.
    ///
    /// Use this list when your compiler emits the kernel's function. It has as many parameters as the function that
    /// [`embed`](crate::embed) declares for the kernel:
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
    ///         ParamSource::DimVar { name, .. } => format!("{param}: the dimension {name}"),
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

    /// The C return type of the kernel's function, `None` for `void`. A status is an `int32_t`. A body or check-only
    /// kernel gets the type that a native kernel would have.
    ///
    /// # Errors
    /// The kernel doesn't fit the signature.
    pub fn return_type(&self, signature: &Signature) -> Result<Option<CType>, LowerError> {
        self.as_native().check(signature)?;
        Ok(params::c_result(signature, self.c_return(signature)))
    }

    /// The IR prototype. A body or check-only kernel gets the prototype that a native kernel would have.
    pub(crate) fn prototype(&self, signature: &Signature) -> Result<FuncSig, LowerError> {
        Ok(self.checked(signature)?.func_sig(signature))
    }

    /// The definitions of the structs that the kernel takes by value, by the names of their types.
    fn struct_definitions(&self, signature: &Signature) -> BTreeMap<String, String> {
        let flat = params::params(signature, Convention::Flat, self.c_return(signature));
        self.stated_args().map(|args| args::definitions(args, &flat)).unwrap_or_default()
    }

    /// The kernel's C result. A body or check-only kernel gets the result that a native kernel would have.
    fn c_return(&self, signature: &Signature) -> KernelReturn {
        self.as_native().return_kind(signature).unwrap_or(KernelReturn::Nothing)
    }

    /// The symbol that a kernel is linked by; `None` for an address, a body, or no kernel.
    #[cfg(feature = "_engine")] // without a backend there are no modules to look into
    pub(crate) fn linked_symbol(&self) -> Option<&str> {
        match self.target() {
            Some(NativeTarget::Symbol(name)) => Some(name),
            Some(NativeTarget::Address(_) | NativeTarget::Launch(_) | NativeTarget::FirstUses(_)) | None => None,
        }
    }

    /// A native kernel that fits the signature.
    fn checked(&self, signature: &Signature) -> Result<Kernel, LowerError> {
        let kernel = self.as_native();
        kernel.check(signature)?;
        Ok(kernel)
    }

    /// The kernel itself, or a native one in place of a body or no kernel.
    fn as_native(&self) -> Kernel {
        if self.target().is_some() { self.clone() } else { Kernel::symbol("kernel") }
    }
}

/// C names of symbols that can't be declared under their own name.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    made: HashMap<String, String>,
}

impl Names {
    fn prototype(&mut self, signature: &Signature, symbol: &str, kernel: &Kernel) -> Result<String, LowerError> {
        kernel.check(signature)?;
        // a symbol other than the kernel's own may be reserved
        Kernel::symbol(symbol).returns(kernel.c_return(signature)).check(signature)?;
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

/// A string as a C literal.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_ascii_control() => format!("\\{:03o}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
