//! Libraries of upstream's tools on the bundled runtime: `foreign EXPORTED COMPILED`. EXPORTED is an export of
//! apache-tvm, COMPILED is compiled C++.

use std::process::ExitCode;

use tvm_ffi_runtime::module::{ModuleImpl, register_module_loader};
use tvm_ffi_runtime::{Array, Bytes, Error, Function, Module, Result, Tensor};

/// A kind with bytes that only apache-tvm's runtime understands. It has no functions here.
struct Opaque {
    kind: &'static str,
    bytes: Bytes,
}

impl ModuleImpl for Opaque {
    fn kind(&self) -> &str {
        self.kind
    }

    fn get_function(&self, _: &str) -> Result<Option<Function>> {
        Ok(None)
    }

    fn save_to_bytes(&self) -> Result<Option<Bytes>> {
        Ok(Some(self.bytes.clone()))
    }
}

fn tree(module: &Module, depth: usize) {
    println!("{:1$}{2}", "", 2 * depth, module.kind());
    module.imports().iter().for_each(|import| tree(import, depth + 1));
}

fn function(module: &Module, name: &str) -> Result<Function> {
    let none = || Error::new("RuntimeError", &format!("there is no function {name}"));
    module.get_function_from(name, true)?.ok_or_else(none)
}

fn exported(path: &str) -> Result<()> {
    let kind = "relax.VMExecutable";
    register_module_loader(kind, move |bytes| Ok(Module::from_impl(Opaque { kind, bytes })))?;
    // SAFETY: the library is an export of apache-tvm.
    let module = unsafe { Module::load_from_file(path) }?;
    tree(&module, 0);
    let bytes = module.save_to_bytes()?.unwrap_or_else(|| Bytes::new(b""));
    // apache-tvm's executables begin with these bytes, little-endian
    println!("bytes begin with {:02x?}", &bytes.as_bytes()[..8.min(bytes.as_bytes().len())]);
    let x = Tensor::from_slice(&[1f32, 2., 3., 4.], &[4])?;
    let y = Tensor::from_slice(&[10f32, 20., 30., 40.], &[4])?;
    let sum = Tensor::from_slice(&[0f32; 4], &[4])?;
    let add = function(&module, "add")?;
    add.call((&x, &y, &sum))?;
    println!("add: {:?}", sum.to_vec::<f32>()?);
    println!("add of two: {}", show(add.call((&x, &y))));
    Ok(())
}

fn compiled(path: &str) -> Result<()> {
    // SAFETY: the library belongs to this test.
    let module = unsafe { Module::load_from_file(path) }?;
    let x = Tensor::from_slice(&[1f32, 2.], &[2])?;
    let y = Tensor::from_slice(&[0f32; 2], &[2])?;
    let add_one = function(&module, "add_one")?;
    add_one.call((&x, &y))?;
    println!("add_one: {:?}", y.to_vec::<f32>()?);
    println!("add_one of others: {}", show(add_one.call((&x, &Tensor::from_slice(&[0f32], &[1])?))));
    println!("add_one of one: {}", show(add_one.call((&x,))));
    let parts = Array::from(vec!["one, ".into(), "and another".into()]);
    println!("join: {}", show(function(&module, "join")?.call((&parts,))));
    println!("doc of join: {:?}", module.function_doc("join", false)?);
    Ok(())
}

fn show(result: Result<tvm_ffi_runtime::Any>) -> String {
    match result {
        Ok(value) => value.as_str().unwrap_or("no str").to_owned(),
        Err(error) => error.to_string(),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, first, second] = &args[..] else {
        eprintln!("usage: foreign EXPORTED COMPILED");
        return ExitCode::from(2);
    };
    match exported(first).and_then(|()| compiled(second)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
