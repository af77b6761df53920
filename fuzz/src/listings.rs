//! The IR as text: a text that parses is printed and read back to the same module. Cranelift compiles each
//! module that the verifier accepts, for each machine. Only the interpreter runs code: modules that access no memory.

use std::sync::LazyLock;

use tvm_ffi_codegen::OptLevel;
use tvm_ffi_codegen::artifact::Triple;
use tvm_ffi_codegen::backend::cranelift::{self, ByLoops, Compiler, IsaOptions, Options};
use tvm_ffi_codegen::ir::interp::{Datum, Host, Interpreter};
use tvm_ffi_codegen::ir::{self, FuncSig, Linkage, Module, Op, ParseError, VerifiedModule};

use super::same::same;

/// The maximum size of an input in bytes. It keeps the check of each text fast.
const LONGEST: usize = 4096;
/// The maximum number of instructions that the interpreter runs for a function.
const FUEL: u64 = 10_000;
/// The maximum size of a module's data or of a function's slots in bytes. More is valid, but is written out.
const MOST_BYTES: u64 = 1 << 20;

/// The machines: all that Cranelift knows, with their names.
static TARGETS: LazyLock<Vec<ByLoops>> = LazyLock::new(|| {
    let targets = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "riscv64gc-unknown-linux-gnu"];
    let targets = targets.into_iter().chain(["x86_64-pc-windows-msvc", "s390x-unknown-linux-gnu"]);
    let options = IsaOptions { pic: true, verifier: true, ..IsaOptions::default() };
    let target = |name: &str| {
        let triple: Triple = name.parse().expect("a target");
        ByLoops::new(OptLevel::Speed, &options, |options| cranelift::isa_for(&triple, options)).expect("its compiler")
    };
    targets.map(target).collect()
});

/// Reads an input as a module.
///
/// # Panics
/// The printed text isn't read back to the same module, or a valid module isn't compiled.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(&input[..input.len().min(LONGEST)]);
    let module: Module = match text.parse() {
        Ok(module) => module,
        Err(error) => return check_place(&error, &text),
    };
    let printed = module.to_string();
    let read: Module = printed.parse().unwrap_or_else(|error| panic!("{error}\n{printed}"));
    same(&module, &read).unwrap_or_else(|error| panic!("what is read back: {error}\n{printed}"));
    assert_eq!(read.to_string(), printed, "what is read back prints otherwise");
    match ir::verify(module) {
        Err(error) => {
            assert!(!error.problems().is_empty() && !error.to_string().is_empty(), "an error without a message");
            assert!(ir::verify(read).is_err(), "what is read back is valid:\n{printed}");
        }
        Ok(module) => {
            if is_small(&module) {
                compile(&module);
            }
            interpret(&module);
        }
    }
}

/// Checks that an error's place is in the text.
fn check_place(error: &ParseError, text: &str) {
    assert!(!error.to_string().is_empty(), "an error without a message");
    let line = text.split('\n').nth(error.line as usize - 1).expect("the line is in the text");
    assert!((1..=line.chars().count() + 1).contains(&(error.column as usize)), "the column of {error:?} in {line:?}");
}

fn is_small(module: &Module) -> bool {
    let bytes = |data: &ir::Data| data.bytes.len() as u64 + u64::from(data.align);
    let frame = |body: &ir::Function| body.slots.values().map(|slot| slot.frame_bytes()).sum::<u64>();
    module.data.values().map(bytes).sum::<u64>() < MOST_BYTES
        && module.functions.values().filter_map(|decl| decl.body.as_ref()).all(|body| frame(body) < MOST_BYTES)
}

/// Compiles a module into an object for each machine of its byte order.
fn compile(module: &VerifiedModule) {
    for target in TARGETS.iter() {
        if target.straight.triple().endianness() != Ok(module.endianness) {
            continue;
        }
        let compiled = Compiler::new().compile_by_loops(module, target, Options::default());
        let compiled = compiled.unwrap_or_else(|error| panic!("a valid module isn't compiled: {error}\n{}", **module));
        if let Err(error) = compiled.into_object(target.straight.clone()) {
            assert!(!error.to_string().is_empty(), "an error without a message");
        }
    }
}

/// Interprets the functions of a module that accesses no memory and calls only itself.
fn interpret(module: &VerifiedModule) {
    if !module.functions.values().all(|decl| decl.linkage != Linkage::Import) {
        return;
    }
    let bodies = || module.functions.values().filter_map(|decl| decl.body.as_ref());
    if !bodies().all(|body| body.insts.values().all(|inst| !accesses_memory(&inst.op))) {
        return;
    }
    let Ok(interpreter) = Interpreter::new(module, NoHost) else { return };
    let mut interpreter = interpreter.with_fuel(FUEL);
    for decl in module.functions.values().filter(|decl| decl.linkage == Linkage::Export) {
        let args: Vec<Datum> = decl.signature.params.iter().map(|param| Datum::from_bits(param.ty, 3)).collect();
        // SAFETY: the functions access no memory, and call only each other.
        let result = unsafe { interpreter.run(&decl.name, &args) };
        if let Ok(result) = result {
            assert_eq!(result.map(Datum::ty), decl.signature.ret.map(|ret| ret.ty), "the type of the result");
        }
    }
}

/// The host of modules that call nothing outside.
struct NoHost;

impl Host for NoHost {
    fn resolve(&self, _: &str) -> Option<u64> {
        None
    }

    unsafe fn call(&self, _: u64, _: &FuncSig, _: &[Datum]) -> Result<Option<Datum>, String> {
        Err("it calls nothing outside".to_owned())
    }
}

fn accesses_memory(op: &Op) -> bool {
    matches!(
        op,
        Op::Load { .. }
            | Op::Store { .. }
            | Op::SameBytes(..)
            | Op::CallIndirect(..)
            | Op::LoadAcquire(_)
            | Op::AtomicAdd(..)
            | Op::CompareExchange(..)
    )
}
