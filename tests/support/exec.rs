//! Executors. Each runs the same wrapper, and all must have the same observable effects.
//!
//! `TVM_FFI_CODEGEN_EXECUTOR` selects some executors, separated by `;`, for slow runs. Such runs are in an emulator or
//! under a tool that checks each memory access.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, LazyLock};

use tvm_ffi_codegen::engine::{Code, NativeHost};
use tvm_ffi_codegen::ir::interp::{Datum, Interpreter};
use tvm_ffi_codegen::ir::{self, VerifiedModule};
use tvm_ffi_codegen::lower::{Convention, RuntimeHelpers, lower};
use tvm_ffi_codegen::runtime::Any;
use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TVMFFISafeCallType, TypeIndex};
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::{Backend, Engine, Kernel, OptLevel, ParamType, Signature};

use super::accesses::prove;
use super::args::{Arguments, Form, Place, strong_count};
use super::kernels::{self, Noted};
use super::model::{self, Prediction};
use super::value::Call;
use super::{fence, owners, show, states, streams, written};

/// A wrapper to run. Its module includes the runtime helpers, because the interpreter has none of its own.
pub struct Program {
    pub signature: Signature,
    pub kernel: Kernel,
    pub module: VerifiedModule,
}

impl Program {
    pub fn new(signature: Signature, kernel: Kernel) -> Result<Self, String> {
        let module = lower(&signature, &kernel, RuntimeHelpers::Define).map_err(|e| e.to_string())?;
        prove(&module)?;
        owners::prove(&module)?;
        let module = ir::verify(module).map_err(|e| e.to_string())?;
        if format!("{kernel:?}") == "Kernel::Body" {
            super::text::reads_back(&[(signature.clone(), kernel.clone())]);
        }
        Ok(Program { signature, kernel, module })
    }
}

/// A wrapper prepared for one executor.
pub trait Runnable {
    /// The return code, or the reason that there is none.
    fn call(&mut self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> Result<i32, String>;
}

/// A row of the table below.
pub struct Executor {
    pub name: &'static str,
    pub prepare: for<'a> fn(&'a Program) -> Result<Box<dyn Runnable + 'a>, String>,
}

/// Every executor. A new backend needs only one more row. The first executor is the reference.
const EXECUTORS: &[Executor] = &[
    Executor { name: "interpreter", prepare: interpreter },
    Executor { name: "cranelift", prepare: |p| compile(&UNOPTIMISED, p) },
    Executor { name: "cranelift, optimised", prepare: |p| compile(&OPTIMISED, p) },
    #[cfg(feature = "_llvm")]
    Executor { name: "llvm", prepare: |p| compile(&LLVM_UNOPTIMISED, p) },
    #[cfg(feature = "_llvm")]
    Executor { name: "llvm, optimised", prepare: |p| compile(&LLVM_OPTIMISED, p) },
];

/// The names of the executors selected for this run, if any.
pub fn stated_executors() -> Option<String> {
    std::env::var("TVM_FFI_CODEGEN_EXECUTOR").ok()
}

/// Returns whether an executor is one of this run.
pub fn is_stated(executor: &str) -> bool {
    stated_executors().is_none_or(|names| names.split(';').any(|name| name == executor))
}

/// The executors of this run.
pub fn executors() -> impl Iterator<Item = &'static Executor> {
    EXECUTORS.iter().filter(|executor| is_stated(executor.name))
}

fn build(backend: Backend, level: OptLevel) -> Engine {
    let mut builder = Engine::builder().backend(backend).opt_level(level);
    for (name, address) in kernels::NATIVE {
        // SAFETY: the functions belong to this test; fixtures specify each with its actual signature.
        builder = unsafe { builder.symbol(*name, address()) };
    }
    builder.build().unwrap()
}

pub static UNOPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Cranelift, OptLevel::None));
pub static OPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Cranelift, OptLevel::Speed));
#[cfg(feature = "_llvm")]
static LLVM_UNOPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Llvm, OptLevel::None));
#[cfg(feature = "_llvm")]
static LLVM_OPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Llvm, OptLevel::Speed));

thread_local! {
    /// The trampolines, which are shared by all interpreters of a thread.
    static HOST: NativeHost = NativeHost::new(UNOPTIMISED.jit().clone());
}

struct Interpreted<'a>(Interpreter<'a, NativeHost>, String);

impl Runnable for Interpreted<'_> {
    fn call(&mut self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> Result<i32, String> {
        let args = [
            Datum::Ptr(0),
            Datum::Ptr(args.expose_provenance() as u64),
            Datum::I32(num_args as u32),
            Datum::Ptr(result.expose_provenance() as u64),
        ];
        // SAFETY: the arguments are those of a packed call, and the kernel fits the signature.
        match unsafe { self.0.run(&self.1, &args) } {
            Ok(Some(Datum::I32(code))) => Ok(code as i32),
            other => Err(format!("{other:?}")),
        }
    }
}

/// A wrapper on the interpreter.
pub fn interpreter(program: &Program) -> Result<Box<dyn Runnable + '_>, String> {
    let interpreter = Interpreter::new(&program.module, HOST.with(NativeHost::clone)).map_err(|e| e.to_string())?;
    Ok(Box::new(Interpreted(interpreter.with_fuel(100_000_000), program.signature.symbol())))
}

struct Native {
    function: TVMFFISafeCallType,
    _code: Arc<Code>,
}

impl Runnable for Native {
    fn call(&mut self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> Result<i32, String> {
        // SAFETY: the code is that of a wrapper and alive; arguments as above.
        Ok(unsafe { (self.function)(std::ptr::null_mut::<c_void>(), args, num_args, result) })
    }
}

fn native(code: Arc<Code>, program: &Program) -> Result<Box<dyn Runnable>, String> {
    let address = code.function(&program.signature.symbol()).ok_or("the wrapper was not defined")?;
    // SAFETY: every wrapper has this type.
    let function = unsafe { std::mem::transmute::<*const u8, TVMFFISafeCallType>(address) };
    Ok(Box::new(Native { function, _code: code }))
}

/// Compiles with the engine's own runtime helpers.
fn compile(engine: &Engine, program: &Program) -> Result<Box<dyn Runnable>, String> {
    let code = engine.compile_code([(&program.signature, &program.kernel)]);
    native(code.map_err(|e| e.to_string())?, program)
}

/// The content of the result after a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Returned {
    /// The content from before the call.
    Untouched,
    /// A value that owns nothing: type index, padding, payload.
    Plain(i32, u32, u64),
    /// An owned value: its printed form, and the number of references to it; 0 for a value without an object.
    Owned(String, u32),
}

impl Returned {
    /// Takes ownership of a result, and describes it.
    fn take(result: TVMFFIAny) -> Self {
        let bits = (result.type_index, result.zero_padding, result.bits());
        let strings = TypeIndex::SMALL_STR.0..=TypeIndex::SMALL_BYTES.0;
        match bits {
            BEFORE => Returned::Untouched,
            (index, ..) if strings.contains(&index) || TypeIndex(index).is_object() => {
                // SAFETY: the caller owns what a wrapper returns.
                let any = unsafe { Any::from_raw(result) };
                Returned::Owned(show::value(&any), strong_count(&any))
            }
            (index, padding, payload) => Returned::Plain(index, padding, payload),
        }
    }

    /// The value in printed form, if there is one; an error if the value is malformed.
    pub fn text(&self) -> Result<Option<String>, String> {
        match self {
            Returned::Untouched => Ok(None),
            Returned::Plain(_, padding @ 1.., _) => Err(format!("padding of the result is {padding:#x}")),
            Returned::Plain(index @ 0..=6, _, payload) => Ok(show::plain(*index, *payload)),
            Returned::Plain(index, _, payload) => Err(format!("type index {index}, payload {payload:#x}")),
            Returned::Owned(text, 0 | 1) => Ok(Some(text.clone())),
            Returned::Owned(text, count) => Err(format!("{count} references to the result, {text}")),
        }
    }
}

/// The memory of a tensor.
#[derive(Clone, PartialEq)]
pub struct Memory(Vec<u8>);

/// Prints only bytes other than 0, with their offsets, because most bytes are 0.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().enumerate().filter(|(_, byte)| **byte != 0)).finish()
    }
}

/// All observable effects of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The return code; `Err` if an executor trapped.
    pub code: Result<i32, String>,
    pub result: Returned,
    /// The kind and message of the raised error.
    pub error: Option<(String, String)>,
    /// The lines of the error's backtrace that refer to the signature's source, the file `model.dsl`.
    pub places: Vec<String>,
    /// The arguments that native kernels received.
    pub received: Vec<Noted>,
    /// The memory of all tensors.
    pub memory: Vec<Memory>,
    /// The elements of each tensor, in printed form.
    pub elements: Vec<(Place, String)>,
    /// The tensors that the call has changed.
    pub changed: Vec<(Place, String)>,
    /// Whether reference counts are unchanged, and everything that a kernel created has been released.
    pub counts_kept: bool,
}

impl Outcome {
    /// Compares the call with `docs/reference/contract.md`: whether it is accepted, the full error message, and the
    /// arguments of a native kernel with the convention `flat`. The kernel's later work isn't compared.
    pub fn follows_contract(&self, signature: &Signature, call: &Call, convention: Convention) -> Result<(), String> {
        let predicted = model::predict(signature, call, convention);
        let follows = match &predicted {
            Some(Prediction::Refused(error)) => self.code == Ok(-1) && self.error.as_ref() == Some(error),
            Some(Prediction::Accepted(accepted)) => {
                // a mismatch of the result is the kernel's fault
                let of_a_check = |text: &str| {
                    let of_argument = text.starts_with("Mismatched ") && text.contains(" when calling: ");
                    of_argument && !text.starts_with("Mismatched type of result ")
                };
                let refused = self.error.as_ref().is_some_and(|(_, text)| of_a_check(text));
                let same = |(want, got): (&Option<Noted>, &Noted)| want.as_ref().is_none_or(|want| want == got);
                let words =
                    self.received.len() == accepted.words.len() && accepted.words.iter().zip(&self.received).all(same);
                let untold =
                    self.received.is_empty() || signature.params().is_empty() || convention != Convention::Flat;
                !refused && (untold || words)
            }
            None => false,
        };
        if !follows {
            let Outcome { code, error, received, .. } = self;
            let outcome = format!("code {code:?}, {error:?}, a kernel that received {received:x?}");
            return Err(format!("the contract says {predicted:x?}, and there is {outcome}"));
        }
        Ok(())
    }
}

/// The content of the result before a call: None according to the type index, garbage otherwise.
pub const BEFORE: (i32, u32, u64) = (0, 0xa5a5_a5a5, 0x5a5a_5a5a_5a5a_5a5a);

/// Calls a prepared wrapper with fresh arguments.
pub fn run(runnable: &mut dyn Runnable, call: &Call, form: Form) -> Outcome {
    let args = fence::at_page_ends(|| Arguments::new(call, form));
    let (index, padding, payload) = BEFORE;
    let mut result = TVMFFIAny::none();
    result.type_index = index;
    result.zero_padding = padding;
    result.v.v_uint64 = payload;
    let before = args.elements();
    streams::set_all();
    states::register_all();
    drop(take_raised());
    drop(kernels::take_received());
    let code = runnable.call(args.array(), args.num_args(), &raw mut result);
    let error = take_raised();
    let backtrace = error.as_ref().map(|e| e.backtrace().to_owned()).unwrap_or_default();
    let places = backtrace.lines().map(str::trim).filter(|line| line.starts_with("File \"model.dsl\""));
    let places = places.map(str::to_owned).collect();
    let error = error.map(|e| (e.kind().to_owned(), e.message().to_owned()));
    let received = kernels::take_received();
    let received = received.into_iter().map(|noted| match noted {
        Noted::Word(word) => Noted::Word(args.relative(word)),
        text => text,
    });
    let after = args.elements();
    let changed = after.iter().zip(before).filter(|(after, before)| *after != before);
    let changed = changed.map(|(after, _)| after.clone()).collect();
    let result = Returned::take(result);
    Outcome {
        code,
        result,
        error,
        places,
        received: received.collect(),
        memory: args.memory().into_iter().map(Memory).collect(),
        elements: after,
        changed,
        counts_kept: args.counts_kept() && written::all_released(),
    }
}

/// A program, prepared for every executor.
pub struct Prepared<'a> {
    executors: Vec<(&'static str, Box<dyn Runnable + 'a>)>,
    /// The forms for tensors whose form isn't specified.
    forms: &'static [Form],
}

fn mentions_object(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Object(_)) || ty.inner().into_iter().any(mentions_object)
}

/// The forms of tensors for which the model predicts the same.
pub fn forms(signature: &Signature) -> &'static [Form] {
    // a `DLTensor*` is never an object
    let objects = signature.params().iter().any(|param| mentions_object(&param.ty));
    if objects { &[Form::Object] } else { &[Form::DlTensor, Form::Object] }
}

impl<'a> Prepared<'a> {
    pub fn new(program: &'a Program) -> Result<Self, String> {
        let prepare = |e: &Executor| match (e.prepare)(program) {
            Ok(runnable) => Ok((e.name, runnable)),
            Err(problem) => Err(format!("{}: {problem}", e.name)),
        };
        let executors = executors().map(prepare).collect::<Result<_, _>>()?;
        Ok(Prepared { executors, forms: forms(&program.signature) })
    }

    /// The number of calls of executors for one [`run`](Self::run).
    pub fn executions(&self) -> usize {
        self.executors.len() * self.forms.len()
    }

    /// The outcome, which must be the same for all executors and both forms of tensors; otherwise the differences.
    pub fn run(&mut self, call: &Call) -> Result<Outcome, String> {
        let mut agreed: Option<(String, Outcome)> = None;
        for &form in self.forms {
            for (name, runnable) in &mut self.executors {
                let name = format!("{name}, tensors as {form:?}");
                let outcome = run(&mut **runnable, call, form);
                if !outcome.counts_kept {
                    return Err(format!("{name}: a reference count changed"));
                }
                match &agreed {
                    None => agreed = Some((name, outcome)),
                    Some((_, first)) if *first == outcome => {}
                    Some((first_name, first)) => {
                        return Err(format!("executors differ\n  {first_name}: {first:?}\n  {name}: {outcome:?}"));
                    }
                }
            }
        }
        agreed.map(|(_, outcome)| outcome).ok_or_else(|| "there is no executor".to_owned())
    }

    /// The elements of all tensors after a successful call.
    pub fn elements(&mut self, call: &Call) -> Vec<String> {
        let outcome = self.run(call).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((&outcome.code, &outcome.error), (&Ok(0), &None), "{call:?}");
        outcome.elements.into_iter().map(|(_, elements)| elements).collect()
    }
}
