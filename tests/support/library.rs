//! Libraries of several functions, on every executor, with recorded calls of the runtime.
//!
//! [`stated_executors`] may select some executors.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, LazyLock};

use tvm_ffi_codegen::engine::{Code, NativeHost};
use tvm_ffi_codegen::ir::interp::{Datum, Interpreter};
use tvm_ffi_codegen::ir::{self, Linkage, VerifiedModule};
use tvm_ffi_codegen::lower::RuntimeHelpers;
use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TVMFFISafeCallType};
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::{Any, Error, Function, Module};
use tvm_ffi_codegen::{Backend, Body, Engine, Kernel, OptLevel, Signature};

use super::exec::{is_stated, stated_executors};
use super::text::{lowered, reads_back};
use super::{allocator, modules, recording, show, sig};
use crate::calls::callees::{self, SYMBOLS};

/// The name of the variable that contains a module's context.
const CONTEXT: &str = "__tvm_ffi__library_ctx";

/// Functions that are compiled together.
pub struct Library {
    /// The module with the runtime helpers, because the interpreter has none of its own.
    whole: VerifiedModule,
    module: VerifiedModule,
    /// The module's destructors, by name.
    destructors: Vec<String>,
}

impl Library {
    /// # Errors
    /// Lowering rejects a function, or the module as a whole.
    pub fn new(functions: Vec<(Signature, Kernel)>) -> Result<Self, String> {
        let lowered = |helpers| lowered(&functions, helpers);
        let mut module = lowered(RuntimeHelpers::Import)?;
        // exported, so tests can call them and reset the module's state
        let destructors = std::mem::take(&mut module.destructors);
        destructors.iter().for_each(|&func| module.functions[func].linkage = Linkage::Export);
        let destructors = destructors.iter().map(|&func| module.functions[func].name.clone()).collect();
        let verified = |module| ir::verify(module).map_err(|e| e.to_string());
        reads_back(&functions);
        Ok(Library { whole: verified(lowered(RuntimeHelpers::Define)?)?, module: verified(module)?, destructors })
    }

    /// The symbols that the code imports.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.whole.imports().map(|(_, import)| import.name.as_str())
    }

    /// A library of one body.
    pub fn of(signature: &str, body: impl Fn(&Body<'_>) + Send + Sync + 'static) -> Self {
        Self::new(vec![(sig(signature), Kernel::body(body))]).unwrap_or_else(|e| panic!("{signature}\n{e}"))
    }
}

/// An executor for libraries.
pub struct Executor {
    pub name: &'static str,
    /// The engine; the interpreter uses it only for calls of native code.
    engine: fn() -> &'static Engine,
    interprets: bool,
}

/// Every executor. The first one is the reference.
pub const EXECUTORS: &[Executor] = &[
    Executor { name: "interpreter", engine: || &UNOPTIMISED, interprets: true },
    Executor { name: "cranelift", engine: || &UNOPTIMISED, interprets: false },
    Executor { name: "cranelift, optimised", engine: || &OPTIMISED, interprets: false },
    #[cfg(feature = "_llvm")]
    Executor { name: "llvm", engine: || &LLVM_UNOPTIMISED, interprets: false },
    #[cfg(feature = "_llvm")]
    Executor { name: "llvm, optimised", engine: || &LLVM_OPTIMISED, interprets: false },
];

fn build(backend: Backend, level: OptLevel) -> Engine {
    // slow runs don't verify the code, because the other runs do
    let verifies = cfg!(debug_assertions) && stated_executors().is_none();
    let mut builder = Engine::builder().backend(backend).opt_level(level).verifier(verifies);
    for (name, address) in SYMBOLS {
        // SAFETY: the functions belong to the tests of calls, and follow the convention.
        builder = unsafe { builder.symbol(*name, address()) };
    }
    // SAFETY: the functions are those of the runtime, with the same prototypes.
    unsafe { builder.external_runtime(recording::symbols()) }.build().unwrap()
}

static UNOPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Cranelift, OptLevel::None));
static OPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Cranelift, OptLevel::Speed));
#[cfg(feature = "_llvm")]
static LLVM_UNOPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Llvm, OptLevel::None));
#[cfg(feature = "_llvm")]
static LLVM_OPTIMISED: LazyLock<Engine> = LazyLock::new(|| build(Backend::Llvm, OptLevel::Speed));

thread_local! {
    /// The trampolines, which are shared by all interpreters of a thread.
    static HOST: NativeHost = NativeHost::new(UNOPTIMISED.jit().clone());
}

/// A library loaded on one executor, with its own state.
pub struct Loaded<'a> {
    how: How<'a>,
    destructors: &'a [String],
    context: Option<Module>,
}

enum How<'a> {
    Interpreted(Interpreter<'a, NativeHost>),
    Native(Arc<Code>),
}

/// All observable effects of a call.
pub struct Reply {
    /// The return code; `Err` if the executor trapped.
    pub code: Result<i32, String>,
    pub value: Any,
    pub error: Option<Error>,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Ok(0) => write!(f, "{}", show::value(&self.value))?,
            Ok(code) => write!(f, "code {code}")?,
            Err(trap) => write!(f, "{trap}")?,
        }
        let errors = std::iter::successors(self.error.clone(), Error::cause);
        errors.into_iter().try_for_each(|error| write!(f, "; {error}"))
    }
}

impl Executor {
    fn load<'a>(&self, library: &'a Library) -> Result<Loaded<'a>, String> {
        let how = if self.interprets {
            let host = HOST.with(NativeHost::clone);
            let interpreter = Interpreter::new(&library.whole, host).map_err(|e| e.to_string())?;
            How::Interpreted(interpreter.with_fuel(100_000_000))
        } else {
            How::Native((self.engine)().load(&library.module).map_err(|e| e.to_string())?)
        };
        Ok(Loaded { how, destructors: &library.destructors, context: None })
    }
}

impl Loaded<'_> {
    /// Calls a function by its name.
    pub fn call(&mut self, name: &str, args: &[Any]) -> Reply {
        let args: Vec<TVMFFIAny> = args.iter().map(|arg| arg.as_view().as_raw()).collect();
        drop(take_raised());
        let mut result = TVMFFIAny::none();
        let code = match &mut self.how {
            How::Interpreted(interpreter) => {
                let args = [
                    Datum::Ptr(0),
                    Datum::Ptr(args.as_ptr().expose_provenance() as u64),
                    Datum::I32(args.len() as u32),
                    Datum::Ptr((&raw mut result).expose_provenance() as u64),
                ];
                // SAFETY: these are the arguments of a packed call.
                match unsafe { interpreter.run(&format!("__tvm_ffi_{name}"), &args) } {
                    Ok(Some(Datum::I32(code))) => Ok(code as i32),
                    other => Err(format!("{other:?}")),
                }
            }
            // SAFETY: as above.
            How::Native(_) => Ok(unsafe {
                self.safe_call(name)(std::ptr::null_mut(), args.as_ptr(), args.len() as i32, &raw mut result)
            }),
        };
        // SAFETY: the caller owns a result.
        Reply { code, value: unsafe { Any::from_raw(result) }, error: take_raised() }
    }

    fn safe_call(&self, name: &str) -> TVMFFISafeCallType {
        let symbol = format!("__tvm_ffi_{name}");
        let address = match &self.how {
            How::Interpreted(interpreter) => interpreter.function(&symbol).unwrap_or_else(|e| panic!("{e}")) as usize,
            How::Native(code) => code.function(&symbol).unwrap_or_else(|| panic!("no {symbol}")).expose_provenance(),
        };
        let address: *const c_void = std::ptr::with_exposed_provenance(address);
        // SAFETY: every function of a library has this type.
        unsafe { std::mem::transmute::<*const c_void, TVMFFISafeCallType>(address) }
    }

    /// Runs the destructors, as at unloading. Afterwards the state is that of a newly loaded library.
    pub fn unload(&mut self) {
        for name in self.destructors.iter().rev() {
            match &mut self.how {
                How::Interpreted(interpreter) => {
                    // SAFETY: a destructor may be called when no other code is running.
                    let run = unsafe { interpreter.run(name, &[]) };
                    assert_eq!(run, Ok(None), "{name}");
                }
                How::Native(code) => {
                    let address = code.function(name).unwrap_or_else(|| panic!("no {name}"));
                    // SAFETY: a destructor has no parameters and no result; the rest as above.
                    unsafe { std::mem::transmute::<*const u8, extern "C" fn()>(address)() }
                }
            }
        }
        self.context = None;
    }

    /// A function as an object, which must be released before the library.
    pub fn function(&self, name: &str) -> Function {
        // SAFETY: the test keeps the library for that long.
        unsafe { Function::from_extern_c(std::ptr::null_mut(), self.safe_call(name), None) }
    }

    /// Lets the library look up functions that a module imports.
    pub fn set_context(&mut self, module: Module) {
        let variable = match &self.how {
            How::Interpreted(interpreter) => interpreter.variable(CONTEXT).map(|address| address as usize),
            How::Native(code) => code.variable(CONTEXT).map(<*mut u8>::expose_provenance),
        };
        let variable: *mut *mut c_void =
            std::ptr::with_exposed_provenance_mut(variable.unwrap_or_else(|| panic!("no {CONTEXT}")));
        // SAFETY: the variable is a pointer, and no other thread uses it.
        unsafe { variable.write(modules::context(&module)) };
        self.context = Some(module);
    }
}

/// A library loaded on every executor.
pub struct Prepared<'a>(Vec<(&'static str, Loaded<'a>)>);

impl<'a> Prepared<'a> {
    /// # Errors
    /// An executor rejects the library.
    pub fn new(library: &'a Library) -> Result<Self, String> {
        let load = |executor: &Executor| match executor.load(library) {
            Ok(loaded) => Ok((executor.name, loaded)),
            Err(problem) => Err(format!("{}: {problem}", executor.name)),
        };
        Ok(Prepared(EXECUTORS.iter().filter(|executor| is_stated(executor.name)).map(load).collect::<Result<_, _>>()?))
    }

    /// Runs a closure on the library with each executor, followed by [`Loaded::unload`]. All executors must produce the
    /// same value, which is the result. No object may be left alive, and no reference to the global functions of these
    /// tests.
    ///
    /// # Errors
    /// The executors differ, objects are left, or references to functions are left. The error describes which.
    pub fn run<T: PartialEq + fmt::Debug>(&mut self, mut run: impl FnMut(&mut Loaded<'_>) -> T) -> Result<T, String> {
        let callees = callees::alone();
        let mut agreed: Option<(&str, T)> = None;
        for (name, loaded) in &mut self.0 {
            let (live, references) = (allocator::live(), callees.references());
            let result = run(loaded);
            let (live_after, references_after) = (allocator::live(), callees.references());
            if live_after != live {
                return Err(format!("{name}: {live} live objects before, {live_after} after: {result:#?}"));
            }
            if references_after != references {
                let changed: Vec<_> =
                    references.iter().zip(&references_after).filter(|(then, now)| then != now).collect();
                return Err(format!("{name}: references to functions, before and after: {changed:?}: {result:#?}"));
            }
            match &agreed {
                None => agreed = Some((name, result)),
                Some((_, agreed)) if *agreed == result => {}
                Some((first, agreed)) => {
                    return Err(format!("executors differ\n{first}: {agreed:#?}\n{name}: {result:#?}"));
                }
            }
        }
        agreed.map(|(_, result)| result).ok_or_else(|| "no executor".to_owned())
    }
}
