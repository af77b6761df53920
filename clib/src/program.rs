//! Files of host functions.

use codegen::runtime as tvm_ffi;
use codegen::runtime::{Any, Array, Bytes, Obj, Object, Result};
use codegen::{HostProgram, Kernel, Signature};
use serde_json::json;

use crate::compile::{advised, backend_of, engine, level_of};
use crate::error::{failure, raised};
use crate::kernel::{named_images, together};
use crate::signature::SignatureObject;

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

/// The functions of a program in order, without its C functions. Each is an array of its signature, and its
/// documentation or None.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_program_functions(program: &Obj<ProgramObject>) -> Result<Array> {
    let function = |(signature, _): (&Signature, &Kernel)| {
        let doc = Any::from(signature.doc().map(str::to_owned));
        let signature = Obj::new(SignatureObject { signature: signature.clone() })?;
        Ok(Any::from(Array::from(vec![Any::from(signature), doc])))
    };
    program.program.functions().map(function).collect::<Result<Vec<Any>>>().map(Array::from)
}

/// What a program has besides its functions, as JSON: `c_functions`, the signatures of its C functions, and `globals`,
/// the functions that a library registers, as pairs of the function and its global name.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_program_json(program: &Obj<ProgramObject>) -> String {
    let c_functions = program.program.c_functions().map(|(signature, _)| signature.to_string());
    let globals = program.program.globals();
    json!({ "c_functions": c_functions.collect::<Vec<_>>(), "globals": globals.collect::<Vec<_>>() }).to_string()
}

/// Compiles the functions of a program together in this process, and returns them in order. The symbols of kernels and
/// callees are looked up in the program, then in `objects` (objects and archives for this machine), then in the process.
/// `backend` and `opt_level` are names, or None. C functions aren't compiled, and no global function is registered.
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
