//! The functions of the C API, and what their parameters take.

use tvm_ffi_codegen::runtime::abi::TVMFFISafeCallType;

// The functions are called by their symbols.
extern crate codegen_c as _;

/// The kind of value that a parameter accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    Signature,
    Kernel,
    Program,
    Cache,
    Function,
    /// Any value.
    Any,
    /// The folder of a cache.
    Folder,
    Int,
    Bool,
    /// One of these texts.
    Text(&'static [&'static str]),
    /// One of these texts, or None.
    Maybe(&'static [&'static str]),
    Bytes,
    /// An array of texts.
    Texts(&'static [&'static str]),
    Numbers,
    /// An array of objects' bytes.
    Objects,
    Kernels,
    /// An array of arrays of a signature, a kernel, and a text or None.
    Functions,
}

use Takes::{
    Any, Bool, Bytes, Cache, Folder, Function, Functions, Int, Kernel, Kernels, Maybe, Numbers, Objects, Program,
};
use Takes::{Signature, Text, Texts};

const SIGNATURES: &[&str] = &[
    "f(x: int64)",
    "f(x: int64) -> int64",
    "g(x: Tensor([n], float32), y: Optional[str])",
    "h(x: Any) -> Any",
    "prepare(device: device)",
    "f(",
];
const PLACES: &[&str] = &[
    "",
    r#"[{"part": "x", "file": "a.py", "line": 3, "function": "f"}]"#,
    r#"[{"part": "where[0]", "file": "a.py", "line": 3, "function": "f"}]"#,
    "[{}]",
];
const SYMBOLS: &[&str] = &["tfc_fuzz_nothing", "missing", "__tvm_ffi_f", ""];
const CONVENTIONS: &[&str] = &["flat", "dltensor", "memref", "packed", "none"];
const RETURNS: &[&str] = &["nothing", "status", "value", "none"];
const ARGS: &[&str] = &["x", "int32(n)", "x, x, 5", "struct(size=8, align=8, 0: x)", "(", ""];
const BODIES: &[&str] = &["{ return x; }", "{ }", "{ raise ValueError(\"no {}\", x); }", "{ return y; }", "{"];
const PROGRAMS: &[&str] = &[
    "fn f(x: int64) -> int64 { return x + 1; }",
    "fn f(x: int64) -> int64 { return g(x); }\nfn g(x: int64) -> int64 { return x; }",
    "fn f(",
    "",
];
const LAUNCHES: &[&str] = &["launch k grid=[n] block=[32]", "launch k grid=[1] block=[1] args=[x]", "launch", ""];
const BACKENDS: &[&str] = &["cranelift", "llvm", "none"];
const LEVELS: &[&str] = &["none", "speed", "size"];
const OPTIONS: &[&str] = &[
    "",
    "{}",
    r#"{"opt_level": "none"}"#,
    r#"{"target": "aarch64-unknown-linux-gnu"}"#,
    r#"{"system_lib": "a_"}"#,
    r#"{"globals": [["f", "fuzz.f"]]}"#,
    r#"{"features": ["avx2", "none"]}"#,
    r#"{"unknown": 1}"#,
    "{",
];
const STAGES: &[&str] = &["signature", "ir", "clif", "asm", "llvm", "none"];
const NAMES: &[&str] = &["a", "b", "a", ""];

/// A function: its name, its code, what its parameters take, and whether it may be called.
pub struct Entry {
    pub name: &'static str,
    pub code: TVMFFISafeCallType,
    pub takes: &'static [Takes],
}

macro_rules! functions {
    ($($symbol:ident($($takes:expr),*);)*) => {
        mod symbols {
            use std::ffi::c_void;

            use tvm_ffi_codegen::runtime::abi::TVMFFIAny;

            unsafe extern "C" {
                $(pub fn $symbol(_: *mut c_void, args: *const TVMFFIAny, num_args: i32, out: *mut TVMFFIAny) -> i32;)*
            }
        }

        pub const ALL: &[Entry] = &[
            $(Entry { name: stringify!($symbol), code: symbols::$symbol, takes: &[$($takes),*] },)*
        ];
    };
}

functions! {
    __tvm_ffi_tfc_build();
    __tvm_ffi_tfc_signature(Text(SIGNATURES), Text(PLACES));
    __tvm_ffi_tfc_signature_json(Signature);
    __tvm_ffi_tfc_kernel_check_only();
    __tvm_ffi_tfc_kernel_symbol(Text(SYMBOLS), Maybe(CONVENTIONS), Maybe(RETURNS), Maybe(ARGS));
    __tvm_ffi_tfc_kernel_object(Objects, Text(SYMBOLS), Maybe(CONVENTIONS), Maybe(RETURNS), Maybe(ARGS));
    __tvm_ffi_tfc_kernel_llvm_ir(Text(BODIES), Text(SYMBOLS), Maybe(CONVENTIONS), Maybe(RETURNS), Maybe(ARGS));
    __tvm_ffi_tfc_kernel_bitcode(Bytes, Text(SYMBOLS), Maybe(CONVENTIONS), Maybe(RETURNS), Maybe(ARGS));
    __tvm_ffi_tfc_kernel_address(Int, Any, Maybe(CONVENTIONS), Maybe(RETURNS), Maybe(ARGS));
    __tvm_ffi_tfc_kernel_launch(Text(LAUNCHES), Objects);
    __tvm_ffi_tfc_kernel_launch_on_cpu(Text(LAUNCHES), Kernel);
    __tvm_ffi_tfc_kernel_prepare(Kernels);
    __tvm_ffi_tfc_kernel_host(Text(BODIES), Texts(NAMES), Objects, Objects);
    __tvm_ffi_tfc_kernel_with_symbols(Kernel, Texts(SYMBOLS), Numbers, Any);
    __tvm_ffi_tfc_kernel_prototype(Signature, Kernel);
    __tvm_ffi_tfc_kernel_header(Signature, Kernel);
    __tvm_ffi_tfc_compile(Signature, Kernel, Objects, Maybe(BACKENDS), Maybe(LEVELS));
    __tvm_ffi_tfc_program(Text(PROGRAMS), Texts(NAMES), Objects);
    __tvm_ffi_tfc_program_text(Program);
    __tvm_ffi_tfc_program_json(Program);
    __tvm_ffi_tfc_program_compile(Program, Objects, Maybe(BACKENDS), Maybe(LEVELS));
    __tvm_ffi_tfc_dispatch_table(Function, Texts(NAMES), Int, Text(NAMES));
    __tvm_ffi_tfc_object(Functions, Text(OPTIONS));
    __tvm_ffi_tfc_load(Functions, Text(OPTIONS), Objects);
    __tvm_ffi_tfc_llvm_ir(Functions, Text(OPTIONS), Bool);
    __tvm_ffi_tfc_cache(Folder, Int);
    __tvm_ffi_tfc_cache_find(Cache, Texts(NAMES));
    __tvm_ffi_tfc_inspect(Text(&["/no file", "/", ""]));
    __tvm_ffi_tfc_inspect_bytes(Bytes, Text(NAMES));
    __tvm_ffi_tfc_explain(Signature, Kernel, Text(STAGES), Maybe(BACKENDS), Maybe(LEVELS));
}
