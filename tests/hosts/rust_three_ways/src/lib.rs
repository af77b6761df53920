//! One program on each of the three runtimes that `tvm-ffi-runtime` supports with one API. All of them print the same.

mod hostile;

use std::fmt::Write as _;

use tvm_ffi_runtime as tvm_ffi;

use tvm_ffi::registry::{get_global, get_global_unchecked, list_global_names, remove_global, set_global};
use tvm_ffi::{
    Any, Array, DLDevice, DLDeviceType, Error, Function, List, Map, Module, Mutable, Obj, Object, Result, Shape, Str,
    Tensor,
};

/// The program's report, as text.
#[derive(Default)]
struct Report(String);

impl Report {
    fn line(&mut self, name: &str, value: impl std::fmt::Debug) {
        // A string takes any text.
        let _written = writeln!(self.0, "{name}: {value:?}");
    }
}

/// A thing in the plane.
#[derive(Object, Debug, Default)]
#[object(key = "three_ways.Thing", default)]
pub struct Thing {
    /// Its name.
    pub label: Mutable<Str>,
    /// Its weight.
    #[object(default = 1.5)]
    pub weight: Mutable<f64>,
}

/// A circle.
#[derive(Object, Debug)]
#[repr(C)]
#[object(key = "three_ways.Circle")]
pub struct Circle {
    /// The fields that every thing has.
    #[object(parent)]
    pub thing: Thing,
    /// From its middle.
    pub radius: i64,
}

#[tvm_ffi::methods]
impl Circle {
    /// A circle that is called so.
    #[init]
    pub fn new(label: &str, radius: i64) -> Result<Self> {
        tvm_ffi::ensure!(radius >= 0, ValueError, "{radius} is negative");
        Ok(Self { thing: Thing { label: Str::new(label).into(), weight: 2.0.into() }, radius })
    }

    /// Four times its square's.
    pub fn area(&self, pi: f64) -> f64 {
        pi * (self.radius * self.radius) as f64
    }

    /// The larger of two.
    pub fn larger(&self, other: &Obj<Circle>) -> i64 {
        self.radius.max(other.radius)
    }

    /// How many sides it has.
    pub fn sides() -> i64 {
        1
    }
}

/// Doubles a number.
#[tvm_ffi::export]
fn double(x: i64) -> i64 {
    2 * x
}

/// Runs all of the program, and returns its report.
#[tvm_ffi::export(name = "three_ways")]
fn exported(library: &str) -> Result<String> {
    run(library)
}

#[tvm_ffi::export]
fn make_circle(label: &str, radius: i64) -> Result<Obj<Circle>> {
    Obj::new(Circle::new(label, radius)?)
}

#[tvm_ffi::export(packed)]
fn count(args: &[tvm_ffi::AnyView<'_>]) -> Result<Any> {
    Ok(args.len().into())
}

/// Runs all parts of the program.
///
/// # Errors
/// The runtime refuses something that it should do.
pub fn run(library: &str) -> Result<String> {
    let mut report = Report::default();
    tvm_ffi::check_runtime()?;
    functions(&mut report)?;
    errors(&mut report)?;
    containers(&mut report)?;
    tensors(&mut report)?;
    objects(&mut report)?;
    streams(&mut report)?;
    modules(&mut report, library)?;
    safe_functions(&mut report);
    Ok(report.0)
}

/// The functions that safe code gets in place of those that don't stand every call. Also calls of all others with
/// hostile arguments.
fn safe_functions(report: &mut Report) {
    let refused = |name| {
        let error = get_global(name).and_then(|function| function.call(()).err());
        error.is_some_and(|error| error.message().contains("only unsafe code can answer"))
    };
    report.line("loads code", refused("ffi.ModuleLoadFromFile"));
    report.line("trusts numbers", refused("ffi.MakeFieldSetter"));
    report.line("changes a list", refused("ffi.ListAppend") == cfg!(feature = "external"));
    report.line("reads what never changes", !refused("ffi.ArraySize"));
    // The modules of system libraries live until the process ends.
    let is_called = |name: &str| name != "ffi.SystemLib";
    report.line("hostile arguments", hostile::walk(500, is_called) > 70);
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
    let typed = Function::from_typed(|x: i64, text: Option<String>| format!("{x} {text:?}"));
    report.line("typed", (typed.call_as::<String>((1, ()))?, typed.call_as::<String>((2, "two"))?));
    report.line("wrong number", typed.call((1,)).err().map(|error| error.to_string()));
    report.line("wrong type", typed.call(("x", 2)).err().map(|error| error.to_string()));
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
    // Bypasses the panic hook, which would print to the standard error.
    let panics = Function::from_packed(|_| std::panic::resume_unwind(Box::new("too many arguments")));
    report.line("panic", panics.call((1,)).err().map(|error| error.to_string()));
    let size = get_global("ffi.ArraySize").ok_or_else(|| Error::new("RuntimeError", "no ffi.ArraySize"))?;
    report.line("an error of the runtime's function", size.call((1,)).err().map(|error| error.kind().to_owned()));
    Ok(())
}

fn containers(report: &mut Report) -> Result<()> {
    let call = |name: &str, args: &[&Any]| -> Result<Any> {
        // SAFETY: the functions get valid arguments, and only this thread uses the list.
        let function = unsafe { get_global_unchecked(name) }.ok_or_else(|| Error::new("RuntimeError", name))?;
        function.call(args.iter().map(|arg| arg.as_view()).collect::<Vec<_>>())
    };
    let array: Any = [1, 2, 3].into_iter().collect::<Array>().into();
    report.line("size of an array", call("ffi.ArraySize", &[&array])?.cast::<i64>()?);
    report.line("its item", call("ffi.ArrayGetItem", &[&array, &1.into()])?.cast::<i64>()?);
    let theirs: Array = call("ffi.Array", &[&"x".into(), &2.5.into()])?.cast()?;
    report.line("an array of the runtime's", (theirs.len(), theirs[0].cast::<String>()?, theirs[1].cast::<f64>()?));
    let numbers: Array<i64> = array.cast()?;
    let floats: List<f64> = call("ffi.Array", &[&1.into(), &2.5.into()])?.cast()?;
    floats.push(4.0);
    report.line("typed sequences", (numbers.iter().rev().collect::<Vec<_>>(), floats.to_vec()?));
    let typed = Function::from_typed_named("three.typed", |map: Map<Str, Array<i64>>| {
        map.values().flat_map(|array| array.to_vec()).sum::<i64>()
    });
    let map: Map<Str, Array<i64>> = [(Str::new("a key of many letters"), numbers)].into_iter().collect();
    report.line("a typed map", typed.call_as::<i64>((&map,))?);
    let mixed = call("ffi.Map", &[&"key".into(), &theirs.into()])?;
    report.line("a map of another type", typed.call((&mixed,)).err().map(|error| error.to_string()));
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
    let mut own = Tensor::from_vec(vec![1i16, 2, 3], &[3])?;
    own.as_mut_slice::<i16>()?[2] = 9;
    report.line("tensor of a vector", own.to_vec::<i16>()?);
    report.line("tensor", (y.shape(), y.strides(), y.to_vec::<f32>()?));
    Ok(())
}

fn objects(report: &mut Report) -> Result<()> {
    let circle = Obj::new(Circle::new("round", 3)?)?;
    let value = Any::from(circle.clone());
    report.line("type key", value.type_key());
    let array: Array = [circle.clone()].into_iter().collect();
    let again: Obj<Circle> = array[0].cast()?;
    report.line("out of an array", (again.radius, again.ptr_eq(&circle)));
    drop((array, again, value));
    let thing: Obj<Thing> = circle.clone().upcast();
    thing.weight.set(7.5);
    report.line("through the parent", (thing.label.get(), circle.thing.weight.get()));
    let plain = Obj::new(Thing::default())?;
    report.line("no circle", plain.downcast::<Circle>().is_err());
    report.line("a circle", thing.downcast::<Circle>().map(|circle| circle.radius).ok());
    report.line("another type", Any::from(1).cast::<Obj<Circle>>().err().map(|error| error.kind().to_owned()));
    report.line("negative", Circle::new("", -1).err().map(|error| error.to_string()));

    // The type as other languages see it.
    let index = <Circle as tvm_ffi::define::Ancestor>::type_index()?;
    let info =
        tvm_ffi::unstable::type_table::type_info(index.0).ok_or_else(|| Error::new("RuntimeError", "no info"))?;
    // SAFETY: infos are never freed, their arrays have the stated lengths, and names are texts.
    unsafe {
        let text = |bytes: &tvm_ffi::abi::TVMFFIByteArray| String::from_utf8_lossy(bytes.as_slice()).into_owned();
        for field in std::slice::from_raw_parts((*info).fields, (*info).num_fields as usize) {
            report.line("field", (text(&field.name), text(&field.doc), text(&field.metadata), field.flags));
        }
        for method in std::slice::from_raw_parts((*info).methods, (*info).num_methods as usize) {
            report.line("method", (text(&method.name), text(&method.doc), text(&method.metadata), method.flags));
        }
    }
    report.line("live references", circle.as_object().strong_count());
    Ok(())
}

fn streams(report: &mut Report) -> Result<()> {
    let device = DLDevice::new(DLDeviceType::CUDA, 1);
    let stream = std::ptr::without_provenance_mut(64);
    // SAFETY: no kernel is called that would use the stream.
    let inside = unsafe { tvm_ffi::with_stream(device, stream, || tvm_ffi::current_stream(device))? };
    report.line("stream", (inside == stream, tvm_ffi::current_stream(device).is_null()));
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
    // SAFETY: `kernel.c` is a library as in upstream's documents.
    unsafe { Module::load_from_file(library) }
}
