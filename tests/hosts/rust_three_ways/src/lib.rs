//! One program on each of the three runtimes that `tvm-ffi-runtime` has behind its API. All of them print the same.

use std::fmt::Write as _;

use tvm_ffi_runtime as tvm_ffi;

use tvm_ffi::registry::{get_global, list_global_names, remove_global, set_global};
use tvm_ffi::{Any, Array, Error, Function, List, Module, Result, Shape, Str, Tensor};

/// What the program has done, as text.
#[derive(Default)]
struct Report(String);

impl Report {
    fn line(&mut self, name: &str, value: impl std::fmt::Debug) {
        // A string takes any text.
        let _written = writeln!(self.0, "{name}: {value:?}");
    }
}

/// Does all that the program is for.
///
/// # Errors
/// Where the runtime refuses something that it should do.
pub fn run(library: &str) -> Result<String> {
    let mut report = Report::default();
    tvm_ffi::check_runtime()?;
    functions(&mut report)?;
    errors(&mut report)?;
    containers(&mut report)?;
    tensors(&mut report)?;
    modules(&mut report, library)?;
    Ok(report.0)
}

fn functions(report: &mut Report) -> Result<()> {
    let add = Function::from_packed(|args| {
        let sum: Result<i64> = args.iter().map(|arg| arg.cast::<i64>()).sum();
        sum.map(Any::from)
    });
    report.line("sum", add.call((1, 2, 3))?.cast::<i64>()?);
    set_global("three_ways.add", add.clone(), false)?;
    let again = set_global("three_ways.add", add, false).err();
    report.line("registered twice", again.map(|error| error.message().to_owned()));
    let found = get_global("three_ways.add").ok_or_else(|| Error::new("RuntimeError", "not registered"))?;
    report.line("through the table", found.call((4, 5))?.cast::<i64>()?);
    report.line("is listed", list_global_names().iter().any(|name| name == "three_ways.add"));
    report.line("is removed", (remove_global("three_ways.add"), get_global("three_ways.add").is_none()));
    let text: String = get_global("ffi.String")
        .ok_or_else(|| Error::new("RuntimeError", "no ffi.String"))?
        .call((Str::new("a text of more than seven bytes"),))?
        .cast()?;
    report.line("the runtime's own function", text);
    Ok(())
}

fn errors(report: &mut Report) -> Result<()> {
    let fails =
        Function::from_packed(|_| Err(Error::new("ValueError", "no").with_cause(Error::new("KeyError", "why"))));
    let error = fails.call(()).err();
    report.line("error", error.as_ref().map(ToString::to_string));
    report.line("its cause", error.and_then(|error| error.cause()).map(|cause| cause.to_string()));
    #[expect(clippy::panic, reason = "what a panic becomes is shown")]
    let panics = Function::from_packed(|args| match args {
        [] => Ok(Any::none()),
        _ => panic!("too many arguments"),
    });
    report.line("panic", panics.call((1,)).err().map(|error| error.to_string()));
    let size = get_global("ffi.ArraySize").ok_or_else(|| Error::new("RuntimeError", "no ffi.ArraySize"))?;
    report.line("an error of the runtime's function", size.call((1,)).err().map(|error| error.kind().to_owned()));
    Ok(())
}

fn containers(report: &mut Report) -> Result<()> {
    let call = |name: &str, args: &[&Any]| -> Result<Any> {
        let function = get_global(name).ok_or_else(|| Error::new("RuntimeError", name))?;
        function.call(args.iter().map(|arg| arg.as_view()).collect::<Vec<_>>())
    };
    let array: Any = [1, 2, 3].into_iter().collect::<Array>().into();
    report.line("size of an array", call("ffi.ArraySize", &[&array])?.cast::<i64>()?);
    report.line("its item", call("ffi.ArrayGetItem", &[&array, &1.into()])?.cast::<i64>()?);
    let theirs: Array = call("ffi.Array", &[&"x".into(), &2.5.into()])?.cast()?;
    report.line("an array of the runtime's", (theirs.len(), theirs[0].cast::<String>()?, theirs[1].cast::<f64>()?));
    let list: List = ["a", "b"].into_iter().collect();
    let value = Any::from(list.clone());
    for _ in 0..20 {
        call("ffi.ListAppend", &[&value, &"c".into()])?;
    }
    report.line("a list that the runtime makes grow", (list.len(), list.get(21)));
    let shape: Shape = call("ffi.Shape", &[&2.into(), &3.into()])?.cast()?;
    report.line("shape", &shape[..]);
    Ok(())
}

fn tensors(report: &mut Report) -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let identity = Function::from_packed(|args| args[0].to_owned());
    let y: Tensor = identity.call((&x,))?.cast()?;
    report.line("tensor", (y.shape(), y.strides(), y.to_vec::<f32>()?));
    Ok(())
}

fn modules(report: &mut Report, library: &str) -> Result<()> {
    let missing = unsafe_load("no_such_library.so").err();
    report.line("a missing library is refused", missing.is_some());
    let module = unsafe_load(library)?;
    report.line("module", (module.kind(), module.implements_function("add", false)?, module.imports().len()));
    report.line("no function", module.get_function("sub")?.is_none());
    let add = module.get_function("add")?.ok_or_else(|| Error::new("RuntimeError", "no function `add`"))?;
    report.line("its function", add.call((20, 22))?.cast::<i64>()?);
    drop(module);
    report.line("after the module", add.call((1, 1))?.cast::<i64>()?);
    Ok(())
}

fn unsafe_load(library: &str) -> Result<Module> {
    // SAFETY: `kernel.c` is a library as upstream's documents say.
    unsafe { Module::load_from_file(library) }
}
