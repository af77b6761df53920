//! One kernel in every form that a compiler may have, on every backend.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex};

use tvm_ffi_codegen::artifact::{ArchiveInput, LibraryBuilder, Triple, write_archive};
use tvm_ffi_codegen::runtime::{Function, Tensor};
use tvm_ffi_codegen::{Backend, Convention, Engine, Kernel};

use super::{compile, engines, floats, int, object, object_by};
use crate::support::sig;

/// A kernel that refers to everything that real kernels do: constants, zero-initialised memory, strings, a jump table,
/// a common symbol. It also uses a table of its own and external functions, a weak function, and an undefined weak one.
const SOURCE: &str = r#"
#include <math.h>
#include <stdint.h>
#include <string.h>

static const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static float scratch[64];
static int64_t offset = 3;
int calls;

__attribute__((noinline)) static float twice(float x) { return 2 * x; }
__attribute__((noinline)) static float half(float x) { return x / 2; }
static float (*const operations[])(float) = {twice, half, expf};

__attribute__((weak, noinline)) float bias(void) { return 0.5f; }
extern int nobody(void) __attribute__((weak));

__attribute__((noinline)) static const char* name(int64_t which) {
    switch (which) {
        case 0: return "twice";
        case 1: return "half, which is shorter";
        case 2: return "exponential";
        case 3: return "?";
        case 4: return "and so on, and so forth";
        case 5: return "";
        default: return "none of them";
    }
}

void kernel(const float* x, float* y, int64_t which, int64_t n) {
    float copy[64];
    calls++;
    for (int64_t i = 0; i < n; i++) scratch[i % 64] = x[i] + table[(i + which) & 7];
    memcpy(copy, scratch, sizeof copy);
    for (int64_t i = 0; i < n; i++) y[i] = operations[which % 3](copy[i % 64]) + bias() + (nobody ? 1000 : 0);
    y[0] += strlen(name(which)) + offset + calls;
}
"#;

const SIGNATURE: &str = "kernel(x: Tensor([n], float32), y: Tensor([n], float32), which: int64)";
const CONSTANTS: [f32; 8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
const LENGTHS: [usize; 7] = [5, 22, 11, 1, 23, 0, 12];

fn check_kernel(engine: &Engine, kernel: &Kernel, what: &str) {
    let function = compile(engine, SIGNATURE, kernel).unwrap_or_else(|error| panic!("{what}: {error}"));
    let x: Vec<f32> = (0..20).map(|i| i as f32 / 8.0).collect();
    for which in 0..7usize {
        let y = Tensor::from_slice(&[0f32; 20], &[20]).unwrap();
        function.call((&Tensor::from_slice(&x, &[20]).unwrap(), &y, which as i64)).unwrap();
        let operation = [|x: f32| 2.0 * x, |x| x / 2.0, f32::exp][which % 3];
        let mut expected: Vec<f32> =
            x.iter().enumerate().map(|(i, x)| operation(x + CONSTANTS[(i + which) % 8]) + 0.5).collect();
        // the kernel counts its calls
        expected[0] += (LENGTHS[which] + 3 + which + 1) as f32;
        for (got, expected) in floats(&y).iter().zip(&expected) {
            assert!((got - expected).abs() <= expected.abs() * 1e-5, "{what}, {which}: got {got}, expected {expected}");
        }
    }
    let error = function.call((1, 2, 3)).unwrap_err();
    assert!(error.message().contains("expected Tensor, got int"), "{error}");
}

/// Position-independent code with a small offset table, where that can be linked: on aarch64 only LLVM can.
const SMALL_TABLE: &str = if cfg!(target_arch = "aarch64") { "-fPIC" } else { "-fpic" };

/// Code that computes with the address of the global offset table. The linker of LLVM's JIT doesn't know all of its
/// relocations.
#[cfg(target_arch = "x86_64")]
#[test]
fn objects_of_the_large_model() {
    for flags in [["-O0", "-fPIC", "-mcmodel=large"], ["-O2", "-fPIC", "-mcmodel=large"]] {
        let kernel = Kernel::object(object_by(SOURCE, &flags), "kernel");
        for engine in engines() {
            match engine.jit().backend() {
                Backend::Cranelift => check_kernel(&engine, &kernel, &format!("{flags:?}")),
                _ => {
                    let error = compile(&engine, SIGNATURE, &kernel).unwrap_err().to_string();
                    assert!(error.contains("R_X86_64_PLTOFF64"), "{error}");
                }
            }
        }
    }
}

#[test]
fn objects_of_a_c_compiler_by_any_model_of_code() {
    let models: [&[&str]; 8] = [
        &["-O2", "-fPIC"],
        &["-O0", "-fPIC"],
        &["-O3", "-fPIC", "-fcommon"],
        &["-O2", "-fPIC", "-fno-plt"],
        &["-O2", "-fPIC", "-ffunction-sections", "-fdata-sections", "-g"],
        &["-O2", "-fPIE"],
        &["-Os", SMALL_TABLE, "-fno-asynchronous-unwind-tables"],
        // flags that distributions add
        &["-O2", "-fPIC", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=0", "-fvisibility=hidden"],
    ];
    for flags in models {
        let kernel = Kernel::object(object_by(SOURCE, flags), "kernel");
        for engine in engines() {
            check_kernel(&engine, &kernel, &format!("{flags:?}, {}", engine.jit().backend()));
        }
    }
}

/// Code that needs its data below 2 GiB. It is loaded there, or the error explains how to avoid that.
#[cfg(target_arch = "x86_64")]
#[test]
fn code_for_low_memory_is_loaded_there_or_refused() {
    let source = SOURCE.replace("twice, half, expf}", "twice, half, exponential}").replace(
        "static float (*const",
        "__attribute__((noinline)) static float exponential(float x) { return expf(x); }\nstatic float (*const",
    );
    for flags in [["-O2", "-fno-pic", "-fno-pie"], ["-O0", "-fno-pic", "-fno-pie"]] {
        let kernel = Kernel::object(object_by(&source.replace("(nobody ? 1000 : 0)", "0"), &flags), "kernel");
        for engine in engines() {
            match engine.jit().backend() {
                Backend::Cranelift => check_kernel(&engine, &kernel, &format!("{flags:?}")),
                backend => {
                    let error = compile(&engine, SIGNATURE, &kernel).unwrap_err().to_string();
                    assert!(error.contains("the object of kernel `kernel`: section `.text`"), "{backend}: {error}");
                    assert!(
                        error.contains("R_X86_64_32")
                            && error.ends_with("compile as position-independent code (`-fPIC`)"),
                        "{error}"
                    );
                }
            }
        }
    }
}

/// Only the needed members of an archive are linked: a strong definition in a member doesn't replace a weak one that is
/// already defined.
#[test]
fn members_of_archives_come_as_they_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let member = |name: &str, source: &str| ArchiveInput::Object { name: name.to_owned(), bytes: object(source) };
    let members = [
        member("unused.o", "int missing(void); int unused(void) { return missing(); }"),
        member("deep.o", "long deeper(long); long deep(long n) { return deeper(n) + 1; }"),
        member("kernel.o", &format!("{SOURCE}\nlong deep(long); long entry(long n) {{ return deep(n) * 2; }}")),
        member("deeper.o", "long deeper(long n) { return n + 10; }"),
    ];
    let path = folder.path().join("kernels.a");
    write_archive(&Triple::host(), &members, &path).unwrap();
    let archive: Arc<[u8]> = std::fs::read(&path).unwrap().into();
    for engine in engines() {
        check_kernel(&engine, &Kernel::object(Arc::clone(&archive), "kernel"), "archive");
        let entry =
            compile(&engine, "entry(n: int64) -> int64", &Kernel::object(Arc::clone(&archive), "entry")).unwrap();
        assert_eq!(int(&entry, &[5]), 32);
        let unused =
            compile(&engine, "unused() -> int32", &Kernel::object(Arc::clone(&archive), "unused")).unwrap_err();
        let expected = "`missing` (referred to by `unused` of member `unused.o` of the archive of kernel `unused`)";
        assert!(unused.to_string().contains(expected), "{unused}");
    }
}

/// Objects of this library can be kernels' objects too: a packed function in one is the kernel of another wrapper.
#[test]
fn objects_of_this_library_are_linked_too() {
    let inner = sig("inner(n: int64) -> int64");
    let body = Kernel::body(|b| b.ret(b.arg("n") * 3));
    for &backend in Backend::ALL {
        let object = LibraryBuilder::new().backend(backend).function(&inner, &body).emit().unwrap().into_bytes();
        let kernel = Kernel::object(object, "__tvm_ffi_inner").convention(Convention::Packed);
        for engine in engines() {
            let outer = compile(&engine, "outer(n: int64) -> int64", &kernel).unwrap();
            assert_eq!(int(&outer, &[14]), 42);
        }
    }
}

/// The stack that the kernel has captured.
static SEEN: Mutex<String> = Mutex::new(String::new());

extern "C" fn looks_around(n: i64) -> i64 {
    *SEEN.lock().unwrap() = format!("{:#}", Backtrace::force_capture());
    n
}

#[inline(never)]
fn calls_the_kernel(function: &Function) -> i64 {
    // prevents a tail call
    std::hint::black_box(int(function, &[20]))
}

/// The unwinder also passes functions with all kinds of frames.
#[test]
fn an_unwinder_walks_through_kernels() {
    let source = "long looks_around(long);\n\
        __attribute__((noinline)) static long deep(long n) { volatile char room[300]; room[n] = 1; return looks_around(n) + room[n]; }\n\
        long kernel(long n) { return deep(n) * 2; }";
    for &backend in Backend::ALL {
        for flags in [["-O2", "-fPIC"], ["-O0", "-fPIC"], ["-O2", "-fno-omit-frame-pointer"]] {
            // SAFETY: the kernel calls it by its prototype.
            let builder =
                unsafe { Engine::builder().backend(backend).symbol("looks_around", looks_around as *const u8) };
            let engine = builder.debug_info(true).build().unwrap();
            let kernel = Kernel::object(object_by(source, &[flags[0], flags[1], "-fPIC"]), "kernel");
            let function = compile(&engine, "kernel(n: int64) -> int64", &kernel).unwrap();
            assert_eq!(calls_the_kernel(&function), 42);
            let stack = SEEN.lock().unwrap().clone();
            assert!(stack.contains("looks_around"), "{backend}, {flags:?}: {stack}");
            assert!(stack.contains("calls_the_kernel"), "{backend}, {flags:?}: {stack}");
        }
    }
}

extern "C" fn seven_times(n: i64) -> i64 {
    7 * n
}

#[test]
fn an_address_needs_no_code() {
    for engine in engines() {
        let kernel = Kernel::address(seven_times as *const u8).keep_alive(Arc::new("an owner"));
        assert_eq!(int(&compile(&engine, "f(n: int64) -> int64", &kernel).unwrap(), &[6]), 42);
    }
}

#[cfg(feature = "_llvm")]
mod llvm {
    use std::ptr;

    use inkwell::context::{AsContextRef, Context};
    use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
    use inkwell::llvm_sys::ir_reader;
    use inkwell::module::Module;
    use tvm_ffi_codegen::runtime::Tensor;
    use tvm_ffi_codegen::spec::KernelArg;
    use tvm_ffi_codegen::{Backend, Engine, Kernel, OptLevel};

    use super::super::{compile, engines, floats, refusals};

    /// `y[i] = exp(x[i]) * table[i % 4]`
    pub const SOURCE: &str = r#"
@table = private constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0]
declare float @llvm.exp.f32(float)

define void @scale(ptr %x, ptr %y, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %from
  %exp = call float @llvm.exp.f32(float %value)
  %column = and i64 %i, 3
  %factor.at = getelementptr float, ptr @table, i64 %column
  %factor = load float, ptr %factor.at
  %product = fmul float %exp, %factor
  %to = getelementptr float, ptr %y, i64 %i
  store float %product, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"#;

    const SIGNATURE: &str = "scale(x: Tensor([n], float32), y: Tensor([n], float32))";

    fn check(engine: &Engine, kernel: &Kernel) {
        let function = compile(engine, SIGNATURE, kernel).unwrap();
        let x = [0.0f32, 1.0, 2.0, 3.0, -1.0];
        let y = Tensor::from_slice(&[0f32; 5], &[5]).unwrap();
        function.call((&Tensor::from_slice(&x, &[5]).unwrap(), &y)).unwrap();
        let expected = x.iter().zip([1.0, 2.0, 4.0, 8.0, 1.0]).map(|(x, factor)| x.exp() * factor);
        for (got, expected) in floats(&y).iter().zip(expected) {
            assert!((got - expected).abs() <= expected * 1e-5, "got {got}, expected {expected}");
        }
    }

    /// The same module as bitcode. This calls LLVM's parser itself, because inkwell's leaks its input with LLVM 22.
    fn bitcode() -> Vec<u8> {
        let context = &Context::create();
        let (mut module, mut message) = (ptr::null_mut(), ptr::null_mut());
        // LLVM 19 to 21 lack the function that replaces this one
        #[allow(deprecated)]
        // SAFETY: LLVM copies the text, and the parser frees the copy. The context owns the module, and outlives it.
        let module = unsafe {
            let text =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(SOURCE.as_ptr().cast(), SOURCE.len(), c"scale".as_ptr());
            let refused =
                ir_reader::LLVMParseIRInContext(context.as_ctx_ref(), text, &raw mut module, &raw mut message);
            assert_eq!(refused, 0, "LLVM refuses the text");
            Module::new(module)
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scale.bc");
        assert!(module.write_bitcode_to_path(&path));
        std::fs::read(path).unwrap()
    }

    #[test]
    fn llvm_ir_and_bitcode_are_compiled_whatever_the_backend() {
        let bitcode = bitcode();
        for &backend in Backend::ALL {
            for &level in OptLevel::ALL {
                let engine = Engine::builder().backend(backend).opt_level(level).build().unwrap();
                check(&engine, &Kernel::llvm_ir(SOURCE, "scale"));
                check(&engine, &Kernel::bitcode(bitcode.clone(), "scale"));
            }
        }
    }

    /// The parameters as clang writes them for System V.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn structs_by_value_have_the_types_of_the_compiler() {
        let source = "
            define void @k(double %a, double %b, ptr byval({ i64, i64, i64 }) align 8 %large, ptr %y) {
              %last = getelementptr i8, ptr %large, i64 16
              %int = load i64, ptr %last
              %float = sitofp i64 %int to double
              %ab = fsub double %a, %b
              %sum = fadd double %ab, %float
              store double %sum, ptr %y
              ret void
            }";
        let args = "struct(size=16, align=8, 0: float64(1.5), 8: float64(0.25)), \
                    struct(size=24, align=8, 0: int64(1), 8: int64(2), 16: int64(n * 40)), y";
        let kernel = |text: &str| Kernel::llvm_ir(text, "k").args(KernelArg::list(args).unwrap());
        for engine in engines() {
            let f = compile(&engine, "f(y: Tensor([n], float64))", &kernel(source)).unwrap();
            let y = Tensor::from_slice(&[0f64], &[1]).unwrap();
            f.call((&y,)).unwrap();
            assert_eq!(y.to_vec::<f64>().unwrap(), [41.25]);
        }
        let other = source.replace("define void", "define i32").replace("ret void", "ret i32 0");
        for told in refusals("f(y: Tensor([n], float64))", &kernel(&other)) {
            assert!(told.contains("`k`"), "{told}");
        }
    }

    #[test]
    fn a_module_for_this_machine_may_say_so() {
        let triple = inkwell::targets::TargetMachine::get_default_triple();
        let source = format!("target triple = \"{}\"\n{SOURCE}", triple.as_str().to_str().unwrap());
        engines().for_each(|engine| check(&engine, &Kernel::llvm_ir(source.as_str(), "scale")));
    }
}
