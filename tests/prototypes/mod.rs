//! The prototypes in generated headers, tested with a C compiler. Kernels compiled with them receive what the contract
//! says.

mod kinds;
mod table;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tvm_ffi_codegen::explain::{Stage, explain};
use tvm_ffi_codegen::lower::{Convention, c_header};
use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TypeIndex};
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::{Any, Tensor};
use tvm_ffi_codegen::{Backend, Kernel, KernelReturn, OptLevel, ParamType};

use crate::support::args::{Arguments, Form};
use crate::support::exec::{Program, executors};
use crate::support::layout::{Gives, gives};
use crate::support::value::Value;
use crate::support::{compiler, sig, states, streams};
use kinds::{Case, case};
use table::{Passed, received, returned};

/// The results of kernels: the signature's text form, the value in C, and the type index and payload of the
/// `TVMFFIAny`.
const RESULTS: &[(&str, &str, i32, u64)] = &[
    ("", "", 0, 0),
    (" -> int8", "-3", 1, -3i64 as u64),
    (" -> Tensor([2, 3], float32)", "", 70, 0),
    (" -> uint8", "200", 1, 200),
    (" -> float32", "1.5f", 3, 0x3ff8_0000_0000_0000),
    (" -> str", "0x636261", 11, 0x63_6261),
    (" -> int16", "-300", 1, -300i64 as u64),
    (" -> dtype", "(DLDataType){2, 16, 4}", 5, 0x4_1002),
    (" -> uint16", "60000", 1, 60000),
    (" -> Tensor([], int8)", "", 70, 0),
    (" -> int32", "-2000000000", 1, -2_000_000_000i64 as u64),
    (" -> Any", "7", 1, 7),
    (" -> uint32", "4000000000u", 1, 4_000_000_000),
    (" -> bool", "2", 2, 1),
    (" -> device", "(DLDevice){2, 3}", 6, 0x3_0000_0002),
    (" -> int64", "-9000000000000000000", 1, -9_000_000_000_000_000_000i64 as u64),
    (" -> float64", "-0.25", 3, 0xbfd0_0000_0000_0000),
    (" -> uint64", "18446744073709551615u", 1, u64::MAX),
    (" -> handle", "(void*)0x7000", 4, 0x7000),
];

/// A case with its kernel.
struct Kernels {
    convention: Convention,
    returns: KernelReturn,
    symbol: String,
    case: Case,
    /// The value that it returns.
    value: &'static str,
    any: (i32, u64),
}

impl Kernels {
    /// A kernel with the result that the signature states. It returns a status if it must, or if `status` holds.
    fn new(convention: Convention, symbol: String, case: Case, status: bool) -> Self {
        let text = case.signature.ret().map(|ty| format!(" -> {ty}")).unwrap_or_default();
        let result = RESULTS.iter().find(|(ty, ..)| *ty == text);
        let (_, value, index, payload) = *result.unwrap_or_else(|| panic!("{text}: no kernel gives that"));
        let returns = match gives(&case.signature) {
            _ if convention == Convention::Packed => KernelReturn::Status,
            Gives::Written => KernelReturn::Status,
            Gives::Nothing | Gives::Tensor | Gives::Value if status => KernelReturn::Status,
            Gives::Value => KernelReturn::Value,
            Gives::Nothing | Gives::Tensor => KernelReturn::Nothing,
        };
        Kernels { convention, returns, symbol, case, value, any: (index, payload) }
    }

    /// The kernel's definition, with the contract's types. The C compiler compares these with the prototype.
    fn definition(&self, prototype: &str) -> String {
        let signature = &self.case.signature;
        let values: Vec<Value> = self.case.call.args.iter().map(|(_, value)| value.clone()).collect();
        // for objects, only the positions matter here
        let raw = vec![TVMFFIAny::none(); values.len()];
        let noted = received(signature, self.convention, &Passed { values: &values, raw: &raw, result: None });
        let (mut params, mut body) = (Vec::new(), String::new());
        for noted in &noted {
            let names: Vec<String> = (0..noted.types.len()).map(|i| format!("a{}", params.len() + i)).collect();
            params.extend(noted.types.iter().zip(&names).map(|(ty, name)| format!("{ty} {name}")));
            writeln!(body, "  {}({});", noted.by, names.join(", ")).unwrap();
        }
        let packed = self.convention == Convention::Packed;
        if packed || gives(signature) == Gives::Written {
            params.push("TVMFFIAny* result".to_owned());
            if signature.ret().is_some() {
                let (index, payload) = self.any;
                // a small str stores its length
                let length = if index == TypeIndex::SMALL_STR.0 { 3 } else { 0 };
                writeln!(body, "  result->type_index = {index};\n  result->zero_padding = {length};").unwrap();
                writeln!(body, "  result->v_uint64 = {payload}u;").unwrap();
            } else {
                body.push_str("  (void)result;\n");
            }
        }
        let returned = match self.returns {
            KernelReturn::Nothing => "void",
            KernelReturn::Status => {
                if !packed && gives(signature) == Gives::Value {
                    params.push(format!("{}* result", returned(signature).unwrap()));
                    writeln!(body, "  *result = {};", self.value).unwrap();
                }
                body.push_str("  return 0;\n");
                "int32_t"
            }
            KernelReturn::Value => {
                writeln!(body, "  return {};", self.value).unwrap();
                returned(signature).unwrap()
            }
            other => unreachable!("the test knows no {other:?}"),
        };
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        // the C name is the prototype's
        let name = prototype.split('(').next().and_then(|before| before.split(' ').next_back()).unwrap();
        format!("{returned} {name}({params}) {{\n{body}}}\n\n")
    }
}

fn header(kernels: &[Kernels]) -> String {
    c_header(kernels.iter().map(|k| (&k.case.signature, k.symbol.as_str(), k.convention, k.returns))).unwrap()
}

/// The directory for this test's files.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("prototypes-{name}"));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs a compiler; returns whether it exists.
fn compile(mut command: Command, directory: &Path, args: &[&str]) -> bool {
    let compiler = command.get_program().to_string_lossy().into_owned();
    command.current_dir(directory).args(["-Wall", "-Wextra", "-Werror", "-I."]).args(args);
    let Ok(output) = command.output() else {
        let required = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!required, "{compiler} is not installed, and CI skips nothing");
        println!("skipped: {compiler} is not installed");
        return false;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {}:\n{errors}", args.join(" "));
    true
}

/// A library of kernels.
struct Library {
    loaded: libloading::Library,
    words: *const u64,
    count: *mut usize,
}

impl Library {
    /// Compiles the header and the kernels as C, and the header also as C++. `None` without a C compiler.
    fn new(name: &str, kernels: &[Kernels]) -> Option<Self> {
        let directory = directory(name);
        let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
        write("notes.h", include_str!("notes.h"));
        write("header.cc", "#include \"kernels.h\"\n");
        let header = header(kernels);
        write("kernels.h", &header);
        let prototypes = header.lines().filter(|line| line.ends_with(");"));
        let definitions = kernels.iter().zip(prototypes).map(|(kernel, prototype)| kernel.definition(prototype));
        let definitions: String = definitions.collect();
        write(
            "kernels.c",
            &format!("#include \"notes.h\"\n\nuint64_t noted[1 << 16];\nsize_t noted_count;\n\n{definitions}"),
        );
        if !compile(compiler::c(), &directory, &["-shared", "-fPIC", "kernels.c", "-o", "kernels.so"]) {
            return None;
        }
        compile(compiler::cpp(), &directory, &["-fsyntax-only", "header.cc"]);
        // also test with the package's own headers instead of the short equivalent
        if let Ok(include) = std::env::var("TVM_FFI_INCLUDE") {
            let include = format!("-isystem{include}");
            compile(compiler::c(), &directory, &["-fsyntax-only", &include, "kernels.c"]);
            compile(compiler::cpp(), &directory, &["-fsyntax-only", &include, "header.cc"]);
        }
        // SAFETY: a library without initialisers.
        let loaded = unsafe { libloading::Library::new(directory.join("kernels.so")).unwrap() };
        // SAFETY: both have the types declared in `kernels.c`.
        let (words, count) = unsafe {
            (*loaded.get::<*const u64>(b"noted").unwrap(), *loaded.get::<*mut usize>(b"noted_count").unwrap())
        };
        Some(Library { loaded, words, count })
    }

    fn kernel(&self, kernel: &Kernels) -> Kernel {
        // SAFETY: nothing is read through the symbol.
        let address = unsafe { *self.loaded.get::<*const u8>(kernel.symbol.as_bytes()).unwrap() };
        Kernel::address(address).convention(kernel.convention).returns(kernel.returns)
    }

    /// The words recorded since the last call.
    fn take(&self) -> Vec<u64> {
        // SAFETY: the kernels, which no other thread calls, have written that many words.
        unsafe {
            let words = std::slice::from_raw_parts(self.words, self.count.read()).to_vec();
            self.count.write(0);
            words
        }
    }

    /// Calls the wrapper on every executor, with both forms of tensors.
    fn check(&self, kernel: &Kernels) {
        let Kernels { convention, case: Case { signature, call }, any, .. } = kernel;
        let program =
            Program::new(signature.clone(), self.kernel(kernel)).unwrap_or_else(|e| panic!("{signature}\n{e}"));
        let values: Vec<Value> = call.args.iter().map(|(_, value)| value.clone()).collect();
        for executor in executors() {
            let mut runnable = (executor.prepare)(&program).unwrap_or_else(|e| panic!("{signature}\n{e}"));
            for form in [Form::DlTensor, Form::Object] {
                let told = format!("{convention}, {}, tensors as {form:?}: {signature}\n{call:?}", executor.name);
                let args = Arguments::new(call, form);
                let mut result = TVMFFIAny::none();
                streams::set_all();
                states::register_all();
                let code = runnable.call(args.array(), args.num_args(), &raw mut result);
                let error = take_raised().map(|error| error.to_string());
                assert_eq!((code, error), (Ok(0), None), "{told}");
                let (index, payload) = (result.type_index, result.bits());
                // SAFETY: the result is ours.
                let result = unsafe { Any::from_raw(result) };
                let tensor = result.cast::<Tensor>().ok();
                match signature.ret() {
                    Some(ParamType::Tensor(_)) => assert!(tensor.is_some(), "{told}"),
                    _ => assert_eq!((index, payload), *any, "{told}"),
                }
                // SAFETY: the array has that many.
                let raw = unsafe { std::slice::from_raw_parts(args.array(), values.len()) };
                let result = tensor.as_ref().map(Tensor::as_dl_tensor);
                let expected = received(signature, *convention, &Passed { values: &values, raw, result });
                let expected: Vec<u64> = expected.into_iter().flat_map(|noted| noted.words).collect();
                assert_eq!(self.take(), expected, "{told}");
                assert!(args.counts_kept(), "{told}");
            }
        }
    }
}

fn check(name: &str, kernels: &[Kernels]) {
    let Some(library) = Library::new(name, kernels) else { return };
    kernels.iter().for_each(|kernel| library.check(kernel));
}

/// The tested numbers of parameters: every number up to the one that uses all registers of every system, and some
/// larger ones. There is one for each kind of result.
const COUNTS: [usize; RESULTS.len()] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 25, 30, 35, 40];

/// Tests up to forty parameters of every kind, and every kind of result.
fn up_to_forty(convention: Convention) {
    // packed arguments can't include a tensor that the wrapper allocates
    let results = RESULTS.iter().filter(|(ty, ..)| convention != Convention::Packed || !ty.contains("Tensor"));
    let results: Vec<&str> = results.map(|(ty, ..)| *ty).collect();
    let kernel = |(number, count): (usize, usize)| {
        let case = case(convention, count, results[number % results.len()]);
        Kernels::new(convention, format!("kernel{count}"), case, number % 2 == 1)
    };
    let kernels: Vec<Kernels> = COUNTS.into_iter().enumerate().map(kernel).collect();
    check(convention.name(), &kernels);
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn up_to_forty_arguments_flat() {
    up_to_forty(Convention::Flat);
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn up_to_forty_arguments_dltensor() {
    up_to_forty(Convention::DlTensor);
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn up_to_forty_arguments_memref() {
    up_to_forty(Convention::MemRef);
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn up_to_forty_arguments_packed() {
    up_to_forty(Convention::Packed);
}

/// Special names: ones with another meaning in C, ones that conflict with derived names, ones that aren't C names.
const SPECIAL: &[(&str, &str, &str)] = &[
    (
        "int",
        "f(int: int8, for: float32, class: Tensor([while, long], float32), _Bool: bool, restrict: str)",
        "1, 2.5, tensor(float32, [2, 3], data=0x7000), true, str(\"r\")",
    ),
    (
        "a.b",
        "f(x: str, x_size: int64, x_size_: int8, y: Optional[int32], y_given: bool, t: Tuple[int8, int16], t_0: int32, t_1: int64)",
        "str(\"x\"), 5, 6, 7, true, array([1, 2]), 3, 4",
    ),
    (
        "a$b",
        "f(int64_t: int64, size_t: str, uint8_t: bool, DLTensor: Tensor([...], float32), DLDataType: dtype, DLDevice: device, TVMFFIAny: Any, TVMFFIObjectHandle: Function, n: Tensor([int8_t], float32), float64_t: float64)",
        "1, str(\"s\"), true, tensor(float32, [2], data=0x7000), dtype(int8), device(cpu), 7, function, tensor(float32, [2], data=0x7000), 1.5",
    ),
    (
        "a_b",
        "f(result: int8, handle: handle, args: int8, num_args: int32, allocated: Tensor([a], int8), allocated_size0: int8) -> str",
        "1, none, 2, 3, tensor(int8, [2], data=0x7000), 4",
    ),
    (
        "__a_b",
        "f(unix: int8, linux: int16, NULL: int32, INT8_MAX: int64, errno: int32, offsetof: int8, __asm__: int8, __func__: int8, _Static_assert: int8, _Thread_local: int8, _Alignof: int8, __LINE__: int8, char8_t: int8, char16_t: int8, __int128: int8, import: int8, module: int8, __attribute__: int8, _Float32: int8, __inline: int8)",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20",
    ),
    (
        "a.b$",
        "f(a: int8, b: int16 = -2, c: float32 = 1.5, d: bool = True, i: Optional[float64] = 2.5, k: Optional[int8] = None, l: handle = None, m: Any = 7)",
        "1",
    ),
    (
        "DLTensor",
        "f(x: Tensor([n], uint8), y: Tensor([2, 2], bool), dtype_policy=\"sign+bool\")",
        "tensor(int8, [3], data=0x7001), tensor(uint8, [2, 2], data=0x7003)",
    ),
    ("NULL", "f(n: int64, x: Tensor([n, m, k], float32), m: int32)", "3, tensor(float32, [3, 4, 5], data=0x7000), 4"),
    (
        "_Bool",
        "f(x: Optional[Tensor([n], float32)], y: Tensor([n], float32), z: Tensor([n, 1, k], float32))",
        "none, tensor(float32, [5], data=0x7000), tensor(float32, [5, 1, 2], strides=[2, 77, 1], data=0x7000)",
    ),
    ("kernel_a_b", "f(o: Optional[Object(\"a\nb\")], s: str) -> str", "none, str(\"\")"),
    (
        "x3d",
        "f(x: Tensor([2, 1], float32, strides=[1, 5]), y: Tensor([0, 3], float32, strides=[3, 1]))",
        "tensor(float32, [2, 1], strides=[1, 9], data=0x7000), tensor(float32, [0, 3], strides=[8, 8], data=0x7000)",
    ),
    (
        "größe",
        "f(s: EnvStream, x: Optional[Tensor([], int8, device=\"cuda\")], t: Tuple[Tensor([], int8, device=any)], u: EnvStream)",
        "none, array([tensor(int8, [], device=cuda:2, data=0x7000)])",
    ),
    (
        "kernel_a_b_",
        "f(xs: Array[Tensor([n], float32)], x: Tensor([n], float32))",
        "array([]), tensor(float32, [3], data=0x7000)",
    ),
];

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn special_names_and_values() {
    for &convention in Convention::ALL {
        let fits =
            |text: &str| convention != Convention::MemRef || !text.contains("[...]") && !text.contains("device=any");
        let special = SPECIAL.iter().filter(|(_, signature, _)| fits(signature));
        let kernels = special.map(|(symbol, signature, call)| {
            Kernels::new(convention, (*symbol).to_owned(), Case::new(signature, call), true)
        });
        check(&format!("special-{convention}"), &kernels.collect::<Vec<_>>());
    }
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn texts_that_a_call_leaves_out() {
    let text = "f(b: str = \"longer than seven\", c: bytes = \"xyz\", d: dtype = \"int8\", e: device = \"cuda:1\", \
                g: Optional[str] = None, h: str = \"\")";
    let kernels: Vec<Kernels> = [Convention::Flat, Convention::DlTensor, Convention::MemRef]
        .into_iter()
        .map(|convention| Kernels::new(convention, format!("left_out_{convention}"), Case::new(text, ""), false))
        .collect();
    check("left-out", &kernels);
}

#[test]
fn explain_shows_the_header_of_any_kernel() {
    let signature = sig("scale(x: Tensor([n], float32), f: float64)");
    let show =
        |kernel: &Kernel| explain(&signature, kernel, Stage::Header, Backend::Cranelift, OptLevel::None).unwrap();
    let entry = |symbol, convention| c_header([(&signature, symbol, convention, KernelReturn::Nothing)]).unwrap();
    assert_eq!(show(&Kernel::body(|_| {})), entry("scale", Convention::Flat));
    let kernel = Kernel::symbol("scale_2").convention(Convention::DlTensor);
    assert_eq!(show(&kernel), entry("scale_2", Convention::DlTensor));
    assert!(show(&kernel).contains("\nvoid scale_2(DLTensor* x, double f);\n"));
}
