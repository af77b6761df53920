//! Files of host functions.

use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Obj, Object, Result};
use codegen::{HostProgram, Kernel, Signature};
use serde_json::json;

use crate::compile::{advised, backend_of, engine, level_of};
use crate::error::{failure, raised};
use crate::kernel::{named_images, together};
use crate::signature::locations;

/// The functions of a host text.
#[derive(Object)]
#[object(key = "tvm_ffi_codegen.Program", crate = tvm_ffi)]
pub struct ProgramObject {
    #[object(skip)]
    pub program: HostProgram,
}

/// Parses a host text with several functions. `images` are those that its launches may use, each with the name at its
/// place in `image_names`. A library takes the program in place of a function: see `tfc_object`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_program(text: &str, image_names: Array<String>, images: Array<Bytes>) -> Result<Obj<ProgramObject>> {
    let program = HostProgram::parse_with(text, named_images(&image_names, &images)?).map_err(failure)?;
    Obj::new(ProgramObject { program })
}

/// The text of a program in its canonical form, with its comments.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_program_text(program: &Obj<ProgramObject>) -> String {
    program.program.to_string()
}

/// The parts of a program as JSON. `functions` and `c_functions` are lists of `text` (the signature), `doc` (which may
/// be null) and `locations`, as `tfc_signature` takes them. `globals` are the functions that a library registers, as
/// pairs of the function and its global name.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_program_json(program: &Obj<ProgramObject>) -> String {
    let program = &program.program;
    let function = |(signature, _): (&Signature, &Kernel)| {
        let text = signature.to_string();
        json!({ "text": text, "doc": signature.doc(), "locations": locations(signature) })
    };
    let json = json!({
        "functions": program.functions().map(function).collect::<Vec<_>>(),
        "c_functions": program.c_functions().map(function).collect::<Vec<_>>(),
        "globals": program.globals().collect::<Vec<_>>(),
    });
    json.to_string()
}

/// Compiles the functions of a program together in this process, and returns them in order. The symbols of kernels and
/// callees are looked up in the program, then in `objects` (objects and archives for this machine), then in the
/// process. `backend` and `opt_level` are names, or None. C functions aren't compiled, and no global function is
/// registered.
///
/// The caller guarantees that the kernels are sound, as for `tfc_compile`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_program_compile(
    program: &Obj<ProgramObject>,
    objects: Array<Bytes>,
    backend: Option<String>,
    opt_level: Option<String>,
) -> Result<Array> {
    let engine = engine(backend_of(backend.as_deref())?, level_of(opt_level.as_deref())?)?;
    let objects = together(&objects)?;
    let kernel = |kernel: &Kernel| match &objects {
        Some(objects) => kernel.clone().beside(objects.clone()),
        None => kernel.clone(),
    };
    let functions: Vec<(&Signature, Kernel)> =
        program.program.functions().map(|(signature, of)| (signature, kernel(of))).collect();
    // SAFETY: the caller guarantees this, as the function's documentation says.
    let compiled =
        unsafe { engine.compile_functions(functions.iter().map(|(signature, kernel)| (*signature, kernel))) };
    let compiled = compiled.map_err(|error| raised(&advised(&error)))?;
    Ok(Array::from(compiled.into_iter().map(Any::from).collect::<Vec<_>>()))
}
