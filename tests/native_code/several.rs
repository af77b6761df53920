//! Several kernels in one compilation.

use tvm_ffi_codegen::runtime::{Function, Module};
use tvm_ffi_codegen::{Engine, EngineError, Kernel, Signature};

use super::{compile, engines, int, object};
use crate::support::sig;

/// A counter, and another function that reads it.
const COUNTER: &str = "static long count; long bump(void) { return ++count; } long peek(void) { return count; }";

fn module(engine: &Engine, functions: &[(&str, Kernel)]) -> Result<Module, EngineError> {
    let functions: Vec<(Signature, &Kernel)> = functions.iter().map(|(text, kernel)| (sig(text), kernel)).collect();
    // SAFETY: the kernels have the prototypes of their signatures.
    unsafe { engine.compile_module(functions.iter().map(|(signature, kernel)| (signature, *kernel))) }
}

fn function(module: &Module, name: &str) -> Function {
    module.get_function(name).unwrap().unwrap()
}

#[test]
fn equal_objects_of_a_compilation_are_one() {
    for engine in engines() {
        // equal contents in separate memory
        let kernel = |symbol: &str| Kernel::object(object(COUNTER), symbol);
        let functions = [("bump() -> int64", kernel("bump")), ("peek() -> int64", kernel("peek"))];
        let both = module(&engine, &functions).unwrap();
        let [bump, peek] = ["bump", "peek"].map(|name| function(&both, name));
        assert_eq!([int(&bump, &[]), int(&bump, &[]), int(&peek, &[])], [1, 2, 2]);
        // another compilation has its own copy
        let other = compile(&engine, "peek() -> int64", &functions[1].1).unwrap();
        assert_eq!(int(&other, &[]), 0);
    }
}

#[test]
fn objects_refer_to_each_other_and_keep_local_names_apart() {
    let one = "static long local(long n) { return n + 1; } long (*volatile one_local)(long) = local;\n\
               long two(long); long shared = 40; long one(long n) { return n == 0 ? one_local(1) : two(n - 1); }";
    let two = "static long local(long n) { return n + 2; } long (*volatile two_local)(long) = local;\n\
               long one(long); extern long shared; long two(long n) { return n == 0 ? two_local(shared) : one(n - 1); }";
    for engine in engines() {
        let functions = [
            ("one(n: int64) -> int64", Kernel::object(object(one), "one")),
            ("two(n: int64) -> int64", Kernel::object(object(two), "two")),
        ];
        let both = module(&engine, &functions).unwrap();
        let [one, two] = ["one", "two"].map(|name| function(&both, name));
        assert_eq!([int(&one, &[0]), int(&one, &[1]), int(&two, &[4]), int(&two, &[5])], [2, 42, 42, 2]);
    }
}

#[test]
fn a_symbol_of_two_objects_is_named_with_both() {
    let kernels = ["a", "b"].map(|name| {
        let source = format!("long helper(long n) {{ return n; }} long {name}(long n) {{ return helper(n); }}");
        Kernel::object(object(&source), name)
    });
    for engine in engines() {
        let functions = [("a(n: int64) -> int64", kernels[0].clone()), ("b(n: int64) -> int64", kernels[1].clone())];
        let error = module(&engine, &functions).unwrap_err();
        assert!(matches!(&error, EngineError::DuplicateSymbol { symbol, .. } if symbol == "helper"), "{error}");
        let expected = "`helper` is defined twice: by the object of kernel `a`, and by the object of kernel `b`;";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// Weak definitions, as for C++ inline functions, which are in each object that calls them.
#[test]
fn weak_definitions_of_two_objects_are_one() {
    let kernels = ["a", "b"].map(|name| {
        let weak =
            "__attribute__((weak)) long count; __attribute__((weak, noinline)) long next(void) { return ++count; }";
        Kernel::object(object(&format!("{weak} long {name}(void) {{ return next(); }}")), name)
    });
    for engine in engines() {
        let functions = [("a() -> int64", kernels[0].clone()), ("b() -> int64", kernels[1].clone())];
        let both = module(&engine, &functions).unwrap();
        let [a, b] = ["a", "b"].map(|name| function(&both, name));
        assert_eq!([int(&a, &[]), int(&b, &[]), int(&a, &[])], [1, 2, 3]);
    }
}

/// A kernel calls a function that the engine has compiled before by its symbol, and keeps it alive.
#[test]
fn kernels_call_functions_of_the_engine() {
    let source = r#"
        #include <stdint.h>
        typedef struct { int32_t type_index; uint32_t padding; int64_t value; } Any;
        int32_t __tvm_ffi_triple(void* handle, const Any* args, int32_t count, Any* result);
        int64_t kernel(int64_t n) {
            Any arg = {1, 0, n}, result = {0, 0, 0};
            return __tvm_ffi_triple(0, &arg, 1, &result) ? -1 : result.value;
        }"#;
    for engine in engines() {
        let triple = compile(&engine, "triple(n: int64) -> int64", &Kernel::body(|b| b.ret(b.arg("n") * 3))).unwrap();
        let kernel = compile(&engine, "kernel(n: int64) -> int64", &Kernel::object(object(source), "kernel")).unwrap();
        drop(triple);
        assert_eq!(int(&kernel, &[14]), 42);
    }
}

#[test]
fn threads_compile_and_call_at_once() {
    let counter = object(COUNTER);
    for engine in engines() {
        std::thread::scope(|scope| {
            for thread in 0..4i64 {
                let (engine, counter) = (engine.clone(), counter.clone());
                scope.spawn(move || {
                    for round in 0..6i64 {
                        let bump =
                            compile(&engine, "bump() -> int64", &Kernel::object(counter.clone(), "bump")).unwrap();
                        let source = format!("long add(long n) {{ return n + {thread} * 100 + {round}; }}");
                        let add = compile(&engine, "add(n: int64) -> int64", &Kernel::object(object(&source), "add"));
                        assert_eq!(int(&add.unwrap(), &[1]), thread * 100 + round + 1);
                        assert_eq!([int(&bump, &[]), int(&bump, &[])], [1, 2]);
                    }
                });
            }
        });
    }
}
