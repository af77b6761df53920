//! Libraries of this version and of earlier ones, in `fixtures/artifacts`: they load, and their functions do what the
//! texts beside them state.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tvm_ffi_codegen::Signature;
use tvm_ffi_codegen::artifact::inspect;
use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::module::register_module_loader;
use tvm_ffi_codegen::runtime::{Any, Array, Bytes, Error, Function, Module, error::kind, registry};

use crate::fixtures::{show, split_line};
use crate::support::args::Form;
use crate::support::exec::{Runnable, run};
use crate::support::value::parse::parse_call;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/artifacts")
}

/// The files with this extension, sorted.
fn files(extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension() == Some(OsStr::new(extension)));
    files.sort();
    files
}

/// Defines what the libraries expect of their host.
fn define_host() {
    let set = |name: &str, function| registry::set_global(name, function, false).unwrap();
    set("artifacts.add", Function::from_packed(|args| Ok((args[0].cast::<i64>()? + args[1].cast::<i64>()?).into())));
    set("artifacts.refuse", Function::from_packed(|_| Err(Error::new(kind::VALUE_ERROR, "not this one"))));
    // the values of the keys come before the arguments
    set(
        "artifacts.more",
        Function::from_packed(|args| {
            let key: bool = args[0].cast()?;
            Ok(Array::from(vec![Any::from(args.len() as i64), Any::from(key)]).into())
        }),
    );
    let load = |name: Bytes| load(&folder().join(std::str::from_utf8(name.as_bytes()).unwrap()));
    register_module_loader("artifacts.library", load).unwrap();
}

fn load(path: &Path) -> Result<Module, Error> {
    // SAFETY: the libraries are this project's, and their functions check their arguments. The tests keep each library
    // for as long as what it returns.
    unsafe {
        let module = Module::load_from_file(path)?;
        module.unload_when_unused()?;
        Ok(module)
    }
}

/// A function of a loaded library.
struct Loaded(Function);

impl Runnable for Loaded {
    fn call(&mut self, args: *const TVMFFIAny, num_args: i32, result: *mut TVMFFIAny) -> Result<i32, String> {
        // SAFETY: the handle is that of the function, which is alive. The arguments are those of a packed call.
        Ok(unsafe { self.0.as_safe_call()(self.0.as_raw_handle(), args, num_args, result) })
    }
}

/// A library, and the functions that the text has stated so far.
struct Library {
    name: String,
    path: PathBuf,
    module: Module,
    stated: BTreeSet<String>,
}

impl Library {
    fn load(name: &str, version: &str) -> Self {
        let path = folder().join(format!("{name}-{version}.so"));
        let module = load(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        Library { name: name.to_owned(), path, module, stated: BTreeSet::new() }
    }

    fn function(&self, name: &str) -> Function {
        self.module.get_function(name).unwrap().unwrap_or_else(|| panic!("{}: no function `{name}`", self.name))
    }
}

/// Runs a version's text. Returns the libraries' file names, and the number of calls.
fn run_text(text: &str, version: &str, problems: &mut Vec<String>) -> (Vec<PathBuf>, usize) {
    let mut all: BTreeMap<String, Library> = BTreeMap::new();
    let (mut current, mut signature, mut call): (Vec<String>, Option<Signature>, _) = (Vec::new(), None, None);
    let mut calls = 0;
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        let Some(line) = split_line(number, raw) else {
            assert!(raw.is_empty() || raw.starts_with('#'), "line {number}: `{raw}`");
            continue;
        };
        match (line.key, &signature) {
            ("libraries", _) => {
                current = line.value.split(", ").map(str::to_owned).collect();
                all.extend(current.iter().map(|name| (name.clone(), Library::load(name, version))));
            }
            ("needs", _) => {
                for name in &current {
                    let needed = inspect(&all[name].path).unwrap().needed_tvm_ffi.unwrap().to_string();
                    assert_eq!(needed, line.value, "{name}");
                }
            }
            ("signature", _) => {
                let stated: Signature = line.value.parse().unwrap();
                for name in &current {
                    let library = all.get_mut(name).unwrap();
                    let metadata = library.module.function_metadata(stated.name(), false).unwrap().unwrap();
                    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
                    assert_eq!(metadata["signature"], line.value, "{name}");
                    library.stated.insert(stated.name().to_owned());
                }
                signature = Some(stated);
            }
            ("doc", Some(signature)) => {
                for name in &current {
                    let doc = all[name].module.function_doc(signature.name(), false).unwrap();
                    assert_eq!(doc.as_deref(), Some(line.value), "{name}: {}", signature.name());
                }
            }
            ("call", Some(_)) => call = Some(parse_call(line.value).unwrap()),
            // what the call does with an older version of upstream's package
            ("before", Some(_)) => {}
            ("expect", Some(signature)) => {
                let call = call.take().unwrap_or_else(|| panic!("line {number}: no call"));
                for name in &current {
                    let mut function = Loaded(all[name].function(signature.name()));
                    for form in [Form::DlTensor, Form::Object] {
                        let outcome = run(&mut function, &call, form);
                        let actual = show(&outcome, &call, signature);
                        if actual != line.value || !outcome.counts_kept {
                            let counts = if outcome.counts_kept { "" } else { "; a reference count changed" };
                            problems.push(format!("{version}.txt:{number}: {name}\nexpect: {actual}{counts}"));
                        }
                        calls += 1;
                    }
                }
            }
            (key, _) => panic!("line {number}: `{key}`"),
        }
    }
    for library in all.values() {
        let functions: BTreeSet<String> =
            inspect(&library.path).unwrap().functions.into_iter().map(|function| function.name).collect();
        assert_eq!(library.stated, functions, "{}", library.name);
    }
    (all.into_values().map(|library| library.path).collect(), calls)
}

#[test]
#[cfg_attr(all(target_env = "musl", target_feature = "crt-static"), ignore = "a static executable loads no library")]
fn libraries_of_every_version_load_and_do_what_they_did() {
    define_host();
    let (mut problems, mut loaded, mut calls) = (Vec::new(), Vec::new(), 0);
    for path in files("txt") {
        let version = path.file_stem().unwrap().to_str().unwrap();
        let (libraries, count) = run_text(&fs::read_to_string(&path).unwrap(), version, &mut problems);
        loaded.extend(libraries);
        calls += count;
    }
    loaded.sort();
    assert!(problems.is_empty(), "{} of {calls} calls differ\n{}", problems.len(), problems.join("\n"));
    assert!(!loaded.is_empty() && calls > 0);
    assert_eq!(loaded, files("so"), "a library without calls, or a text without its library");
    println!("{} libraries, {calls} calls", loaded.len());
}
