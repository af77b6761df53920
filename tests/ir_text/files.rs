//! Runs the fixtures of `fixtures/ir`: modules as text with calls, or with the messages of the reader and the verifier.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tvm_ffi_codegen::engine::{Code, Jit, NativeHost};
use tvm_ffi_codegen::ir::interp::{Datum, Interpreter};
use tvm_ffi_codegen::ir::{FuncDecl, FuncSig, Linkage, Module, Type, VerifiedModule, verify};
use tvm_ffi_codegen::{Backend, OptLevel};

/// The limit of each call in the interpreter, in steps.
const FUEL: u64 = 1_000_000;

/// A function of C that texts may import.
extern "C" fn ext(a: u64, b: u64) -> u64 {
    1000 * a + b
}

fn jits() -> Vec<(String, Jit)> {
    let levels = [OptLevel::None, OptLevel::Speed, OptLevel::Full];
    let all = Backend::ALL.iter().flat_map(|backend| levels.map(|level| (*backend, level)));
    let jit = |(backend, level)| {
        let jit = Jit::builder().backend(backend).opt_level(level).symbol("ext", ext as *const u8);
        (format!("{backend:?}, {level:?}"), jit.build().unwrap())
    };
    all.map(jit).collect()
}

/// The name of the function that calls another with words from memory.
fn caller(name: &str) -> String {
    format!("call-{name}")
}

/// The text of a function that calls `decl`. It takes the addresses of the arguments and of the result, each a word.
fn text_of_caller(decl: &FuncDecl) -> String {
    let (mut code, mut args) = (String::new(), Vec::new());
    for (index, param) in decl.signature.params.iter().enumerate() {
        let _ = writeln!(code, "    a{index} = load.{} args+{}", param.ty, 8 * index);
        args.push(format!("a{index}"));
    }
    let call = format!("call @{:?}({})", decl.name, args.join(", "));
    let _ = match decl.signature.ret {
        Some(ret) => writeln!(code, "    got = {call}\n    store.{} got, result", ret.ty),
        None => writeln!(code, "    {call}"),
    };
    format!("export fn {:?}(ptr, ptr) {{\nentry(args: ptr, result: ptr):\n{code}    return\n}}\n", caller(&decl.name))
}

/// The bits of a value as it is written in a call.
fn bits(ty: Type, text: &str) -> Option<u64> {
    let negative = text.strip_prefix('-');
    let digits = negative.unwrap_or(text);
    let int = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    match ty {
        Type::F32 => text.parse().ok().map(|value: f32| value.to_bits().into()),
        Type::F64 => text.parse().ok().map(f64::to_bits),
        _ if negative.is_some() => int.map(u64::wrapping_neg),
        _ => int,
    }
}

/// A result as it is shown.
fn shown(ty: Type, bits: u64) -> String {
    match Datum::from_bits(ty, bits) {
        Datum::I8(value) => (value as i8).to_string(),
        Datum::I16(value) => (value as i16).to_string(),
        Datum::I32(value) => (value as i32).to_string(),
        Datum::I64(value) => (value as i64).to_string(),
        Datum::F32(value) => format!("{value:?}"),
        Datum::F64(value) => format!("{value:?}"),
        Datum::Ptr(value) => format!("{value:#x}"),
        Datum::Bool(value) => value.to_string(),
    }
}

/// A call, ready for every executor.
struct Call<'t> {
    text: &'t str,
    function: &'t str,
    words: Vec<u64>,
    sig: FuncSig,
}

fn call<'t>(module: &Module, text: &'t str) -> Call<'t> {
    let (function, args) = text.strip_suffix(')').and_then(|text| text.split_once('(')).expect(text);
    let (_, decl) = module.function_named(function).expect(text);
    let args: Vec<&str> = args.split(',').map(str::trim).filter(|arg| !arg.is_empty()).collect();
    let sig = decl.signature.clone();
    assert_eq!(args.len(), sig.params.len(), "{text}");
    let words = sig.params.iter().zip(&args).map(|(param, arg)| bits(param.ty, arg).expect(text)).collect();
    Call { text, function, words, sig }
}

impl Call<'_> {
    fn outcome(&self, run: impl FnOnce(*const u64, *mut u64) -> Result<(), String>) -> String {
        let mut result = 0u64;
        match run(self.words.as_ptr(), &raw mut result) {
            Err(error) => error,
            Ok(()) => self.sig.ret.map_or("nothing".to_owned(), |ret| shown(ret.ty, result)),
        }
    }

    fn interpreted(&self, interpreter: &mut Interpreter<'_, NativeHost>) -> (String, bool) {
        let mut failed = false;
        let outcome = self.outcome(|args, result| {
            let args = [args.expose_provenance() as u64, result.expose_provenance() as u64].map(Datum::Ptr);
            // SAFETY: the fixtures' functions access only their own memory.
            let result = unsafe { interpreter.run(&caller(self.function), &args) };
            failed = result.is_err();
            result.map(|_| ()).map_err(|error| format!("error: {error}"))
        });
        (outcome, failed)
    }

    fn compiled(&self, code: &Code) -> String {
        let address = code.function(&caller(self.function)).expect(self.text);
        // SAFETY: the caller has this signature.
        let function: extern "C" fn(*const u64, *mut u64) = unsafe { std::mem::transmute(address) };
        self.outcome(|args, result| {
            function(args, result);
            Ok(())
        })
    }
}

/// The outcomes of a module's calls. A call that fails in the interpreter is not made in compiled code.
fn outcomes(module: &VerifiedModule, calls: &[&str], jits: &[(String, Jit)]) -> Vec<String> {
    let host = NativeHost::new(jits[0].1.clone());
    let mut interpreter = Interpreter::new(module, host).unwrap().with_fuel(FUEL);
    let calls: Vec<Call<'_>> = calls.iter().map(|text| call(module, text)).collect();
    let expected: Vec<_> = calls.iter().map(|call| call.interpreted(&mut interpreter)).collect();
    for (how, jit) in jits {
        let code = jit.load(module).unwrap();
        let mut local = module.functions.values().filter(|decl| decl.linkage == Linkage::Local);
        assert!(local.all(|decl| code.function(&decl.name).is_none()), "{how}: a local function has a symbol");
        for (call, (expected, _)) in calls.iter().zip(&expected).filter(|(_, (_, failed))| !failed) {
            assert_eq!(call.compiled(&code), *expected, "{} ({how})", call.text);
        }
    }
    expected.into_iter().map(|(expected, _)| expected).collect()
}

/// The lines of a module without calls: the reader's error, or those of the verifier.
fn messages(text: &str) -> Vec<String> {
    match text.parse::<Module>().map(verify) {
        Err(error) => vec![error.to_string()],
        Ok(Ok(_)) => vec!["valid".to_owned()],
        Ok(Err(error)) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

/// A section with new `expect:` lines.
fn blessed(section: &str, jits: &[(String, Jit)]) -> String {
    let is_line = |line: &&str| line.starts_with("call: ") || line.starts_with("expect: ");
    let text: String = section.split_inclusive('\n').take_while(|line| !is_line(line)).collect();
    let calls: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("call: ")).collect();
    let mut out = text.clone();
    if calls.is_empty() {
        messages(&text).iter().for_each(|line| out += &format!("expect: {line}\n"));
        return out;
    }
    let mut module: Module = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut called: Vec<&str> = calls.iter().filter_map(|call| call.split_once('(')).map(|(name, _)| name).collect();
    called.sort_unstable();
    called.dedup();
    let with_callers: String =
        called.iter().map(|name| text_of_caller(module.function_named(name).expect(name).1)).collect();
    module = format!("{text}{with_callers}").parse().unwrap();
    let outcomes = outcomes(&verify(module).unwrap(), &calls, jits);
    for (call, outcome) in calls.iter().zip(outcomes) {
        out += &format!("call: {call}\nexpect: {outcome}\n");
    }
    out
}

#[test]
fn are_as_in_their_files() {
    let bless = env::var_os("TVM_FFI_CODEGEN_BLESS").is_some_and(|value| value == "1");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ir");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(!files.is_empty());
    let jits = jits();
    let mut stale = Vec::new();
    for path in files {
        let found = fs::read_to_string(&path).unwrap();
        let sections: Vec<String> = found.split("---\n").map(|section| blessed(section, &jits)).collect();
        let made = sections.join("---\n");
        if bless {
            fs::write(&path, &made).unwrap();
        }
        let differs = found.lines().zip(made.lines()).position(|(found, made)| found != made);
        let line = differs.unwrap_or_else(|| found.lines().count().min(made.lines().count()));
        if found != made && !bless {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            stale.push(format!("{name}:{}: {:?}", line + 1, made.lines().nth(line)));
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}
