//! Bodies: decodes a program from the input's bytes, lowers it, interprets it, prints it as text, and compiles what is
//! read back with each backend. All executors must give the same result and the same calls, and leak no object.

mod callees;
mod program;

use tvm_ffi_codegen::engine::NativeHost;
use tvm_ffi_codegen::ir::interp::{Datum, InterpError, Interpreter};
use tvm_ffi_codegen::ir::{self, Linkage, VerifiedModule};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::object::live_objects_of_thread;
use tvm_ffi_codegen::runtime::{Any, Array, Function};
use tvm_ffi_codegen::{Backend, Engine, HostProgram, Kernel, OptLevel, Signature};

/// The signature of every program's function.
const SIGNATURE: &str = "f(n: int64, x: Any) -> int64";
/// The optimisation levels of the engines.
const LEVELS: [OptLevel; 2] = [OptLevel::None, OptLevel::Speed];
/// The values of `n`.
const NUMBERS: [i64; 4] = [0, 1, -4, i64::MIN];
/// The maximum number of instructions that the interpreter runs for one call. A program that loops for longer is
/// abandoned.
const FUEL: u64 = 2_000_000;

thread_local! {
    /// Each thread has its own engines, so their code is freed when the thread ends.
    static ENGINES: Vec<Engine> = Backend::ALL.iter().flat_map(|backend| LEVELS.map(|level| (*backend, level)))
        .map(|(backend, level)| Engine::builder().backend(backend).opt_level(level).build().expect("an engine"))
        .collect();
}

/// The outcome of a call.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    result: String,
    calls: Vec<String>,
}

/// True if an input's program obeys the rules.
pub fn keeps_rules(input: &[u8]) -> bool {
    input.first().is_none_or(|first| first % 4 != 0)
}

/// The function of an input's program. Programs that keep the rules have no errors.
pub fn function(input: &[u8], keeps_rules: bool) -> (Signature, Kernel) {
    let program = input.to_vec();
    let kernel = Kernel::body(move |b| program::write(b, &program, keeps_rules));
    (SIGNATURE.parse().expect("the signature"), kernel)
}

/// The kernel that is read back from a function's text, and the text.
///
/// # Panics
/// The function isn't printed, or the text isn't read back to the same code.
pub fn read_back(signature: &Signature, kernel: &Kernel) -> (Kernel, String) {
    let text = HostProgram::of([(signature, kernel)]).expect("the function is printed").to_string();
    let read = HostProgram::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (_, after) = read.functions().next().expect("a function");
    let code = |kernel: &Kernel| lower(signature, kernel, RuntimeHelpers::Import).map(|module| module.to_string());
    let [written, read] = [kernel, after].map(|kernel| code(kernel).unwrap_or_else(|error| panic!("{error}\n{text}")));
    assert!(
        written == read,
        "the code of what is read back differs, first in {:?}:\n{text}",
        written.lines().zip(read.lines()).find(|(written, read)| written != read)
    );
    (after.clone(), text)
}

/// Runs the program of an input.
///
/// # Panics
/// Executors disagree, an object leaks, or a program that keeps the rules is refused.
pub fn run(input: &[u8]) {
    callees::register();
    let keeps_rules = keeps_rules(input);
    let (signature, kernel) = function(input, keeps_rules);
    let mut module = match lower(&signature, &kernel, RuntimeHelpers::Define) {
        Ok(module) => module,
        Err(error) => {
            assert!(!keeps_rules, "a program that keeps the rules is refused: {error}");
            return;
        }
    };
    // the interpreter calls them at the end
    let destructors = std::mem::take(&mut module.destructors);
    destructors.iter().for_each(|&function| module.functions[function].linkage = Linkage::Export);
    let destructors: Vec<String> =
        destructors.iter().map(|&function| module.functions[function].name.clone()).collect();
    super::accesses::prove(&module).unwrap_or_else(|error| panic!("an access isn't allowed: {error}\n{module}"));
    super::owners::prove(&module).unwrap_or_else(|error| panic!("a reference isn't released once: {error}\n{module}"));
    let module = ir::verify(module).unwrap_or_else(|error| panic!("lowering made invalid IR: {error}"));
    let (kernel, _) = read_back(&signature, &kernel);
    // SAFETY: the program reads and writes no memory but its own.
    let compile = |engine: &Engine| unsafe { engine.compile(&signature, &kernel) }.expect("what is lowered compiles");
    let functions: Vec<Function> = ENGINES.with(|engines| engines.iter().map(compile).collect());
    for n in NUMBERS {
        let Some(expected) = counted(|| interpret(&module, &signature.symbol(), &destructors, n)) else { return };
        for function in &functions {
            let outcome = counted(|| call(function, n));
            assert_eq!(Some(&expected), outcome.as_ref(), "the interpreter, and compiled code, called with {n}");
        }
    }
}

/// Runs a call that leaks no object, if it finishes.
fn counted(run: impl FnOnce() -> Option<Outcome>) -> Option<Outcome> {
    callees::forget();
    let before = live_objects_of_thread();
    let outcome = run()?;
    assert_eq!(before, live_objects_of_thread(), "live objects before and after a call");
    Some(outcome)
}

/// The value of `x` for a value of `n`.
fn beside(n: i64) -> Any {
    match n {
        0 => Any::from("a text of many bytes"),
        1 => Any::from([Any::from(1)].into_iter().collect::<Array>()),
        _ => Any::from(n),
    }
}

/// The outcome on the interpreter; `None` if it runs out of fuel.
fn interpret(module: &VerifiedModule, symbol: &str, destructors: &[String], n: i64) -> Option<Outcome> {
    let x = beside(n);
    let host = NativeHost::new(ENGINES.with(|engines| engines[0].jit().clone()));
    let mut interpreter = Interpreter::new(module, host).expect("an interpreter").with_fuel(FUEL);
    let args = [Any::from(n).into_raw(), *x.as_raw()];
    let mut result = TVMFFIAny::none();
    let arguments =
        [Datum::Ptr(0), Datum::Ptr(args.as_ptr() as u64), Datum::I32(2), Datum::Ptr(&raw mut result as u64)];
    // SAFETY: the arguments are those of `TVMFFISafeCallType`, and alive.
    let code = unsafe { interpreter.run(symbol, &arguments) };
    if let Err(InterpError::OutOfFuel { .. }) = code {
        return None;
    }
    for destructor in destructors {
        // SAFETY: a destructor takes no arguments, and releases the values of the module's variables.
        unsafe { interpreter.run(destructor, &[]) }.expect("a destructor");
    }
    // SAFETY: the callee has written an owned value, or left None.
    let result = unsafe { Any::from_raw(result) };
    let result = match code {
        Ok(Some(Datum::I32(0))) => format!("{result:?}"),
        Ok(_) => format!("error: {}", take_raised().map_or_else(|| "none".to_owned(), |error| error.to_string())),
        Err(error) => panic!("the interpreter: {error}"),
    };
    Some(Outcome { result, calls: callees::calls() })
}

fn call(function: &Function, n: i64) -> Option<Outcome> {
    let result = match function.call((n, &beside(n))) {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    };
    Some(Outcome { result, calls: callees::calls() })
}
