//! Programs of a given size.

use std::fmt::Write;

use tvm_ffi_codegen::artifact::{LibraryBuilder, Linker, Triple};
use tvm_ffi_codegen::runtime::{Any, AnyView, Function, Module};
use tvm_ffi_codegen::{Engine, HostProgram, Kernel, Signature};

use crate::{Result, measured};

/// `f(n, x) -> n + number`, with a tensor to check.
pub fn function(number: usize) -> Result<(Signature, Kernel)> {
    let signature = format!("f{number}(n: int64, x: Optional[Tensor([k, 2 * k], float32)]) -> int64").parse()?;
    Ok((signature, Kernel::body(move |b| b.ret(b.arg("n") + number))))
}

pub fn compile(engine: &Engine, number: usize) -> Result<Function> {
    let (signature, kernel) = function(number)?;
    // SAFETY: the body accesses no memory.
    Ok(unsafe { engine.compile(&signature, &kernel)? })
}

pub fn check(function: &Function, number: usize) -> Result {
    let result: i64 = function.call_as((1000i64, ()))?;
    if result as usize == 1000 + number { Ok(()) } else { Err(format!("f{number} returns {result}").into()) }
}

pub fn wrappers(count: usize) -> Result {
    let engine = Engine::new()?;
    check(&compile(&engine, 0)?, 0)?;
    let functions = measured("compile", count, || (0..count).map(|n| compile(&engine, n)).collect::<Result<Vec<_>>>())?;
    measured("call", count, || functions.iter().enumerate().try_for_each(|(n, function)| check(function, n)))?;
    measured("drop", count, || {
        drop(functions);
        Ok(())
    })?;
    // what was freed is used again
    let functions = measured("again", count, || (0..count).map(|n| compile(&engine, n)).collect::<Result<Vec<_>>>())?;
    measured("drop-again", count, || {
        drop(functions);
        Ok(())
    })
}

pub fn library(count: usize) -> Result {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("library.so");
    let builder = measured("describe", count, || {
        (0..count).try_fold(LibraryBuilder::new(), |builder, n| {
            let (signature, kernel) = function(n)?;
            Ok(builder.function(&signature, &kernel))
        })
    })?;
    let object = measured("emit", count, || Ok(builder.emit()?))?;
    println!("bytes {count} {} 0", object.as_bytes().len());
    measured("write", count, || Ok(object.write(folder.path().join("library.o"))?))?;
    measured("inspect", count, || {
        let found = tvm_ffi_codegen::artifact::inspect(folder.path().join("library.o"))?.functions.len();
        if found == count { Ok(()) } else { Err(format!("{found} functions").into()) }
    })?;
    let linker = Linker::new(Triple::host()).object(object.into_bytes());
    measured("link-cc", count, || Ok(linker.link(&path)?))?;
    #[cfg(feature = "libwild")]
    measured("link-wild", count, || Ok(linker.link_in_process(&path)?))?;
    // SAFETY: the library was just made, and stays loaded.
    let module = measured("load", count, || Ok(unsafe { Module::load_from_file(&path)? }))?;
    measured("call", count, || {
        (0..count).try_for_each(|n| check(&module.get_function(&format!("f{n}"))?.ok_or("no such function")?, n))
    })
}

pub fn params(count: usize) -> Result {
    const CALLS: usize = 1000;
    let mut signature = String::from("f(");
    for n in 0..count {
        match n % 5 {
            0 => write!(signature, "x{n}: Tensor([n{n}, 2], float32), ")?,
            1 => write!(signature, "s{n}: str, ")?,
            2 => write!(signature, "o{n}: Optional[float64], ")?,
            _ => write!(signature, "i{n}: int64, ")?,
        }
    }
    let signature =
        measured("parse", count, || Ok((signature.trim_end_matches(", ").to_owned() + ")").parse::<Signature>()?))?;
    let engine = Engine::new()?;
    let kernel = Kernel::check_only();
    // SAFETY: no kernel is called.
    let function = measured("compile", count, || Ok(unsafe { engine.compile(&signature, &kernel)? }))?;
    let tensor = tvm_ffi_codegen::runtime::Tensor::from_slice(&[0f32; 6], &[3, 2])?;
    let value = |n: usize| match n % 5 {
        0 => Any::from(tensor.clone()),
        1 => Any::from("text"),
        2 => Any::from(1.5),
        _ => Any::from(n as i64),
    };
    let values: Vec<Any> = (0..count).map(value).collect();
    let views: Vec<AnyView<'_>> = values.iter().map(Any::as_view).collect();
    measured("call", count * CALLS, || {
        (0..CALLS).try_for_each(|_| function.call(&views).map(drop).map_err(Into::into))
    })?;
    measured("emit", count, || Ok(LibraryBuilder::new().function(&signature, &kernel).emit()?))?;
    Ok(())
}

/// A program of so many lines, with a function for each `lines` of them.
pub fn program(count: usize, lines: usize) -> Result {
    let mut text = String::new();
    for number in 0..count / lines {
        writeln!(text, "f{number}(n: int64, m: int64) -> int64 {{")?;
        for line in 0..lines - 2 {
            match line % 4 {
                0 => writeln!(text, "let a{line} = n + {line} * (m // 2);")?,
                1 => writeln!(text, "ensure a{} > n - 1, ValueError(\"{{}} {line}\", a{});", line - 1, line - 1)?,
                2 => writeln!(text, "if n > {line} {{ let b = m; ensure b < n, ValueError(\"b\"); }}")?,
                _ => writeln!(text, "# a comment {line}")?,
            }
        }
        writeln!(text, "return n; }}")?;
    }
    let program = measured("parse", count, || Ok(HostProgram::parse(&text)?))?;
    measured("print", count, || Ok(program.to_string().len()))?;
    measured("check", count, || Ok(LibraryBuilder::new().program(&program).check()?))?;
    measured("emit", count, || Ok(LibraryBuilder::new().program(&program).emit()?))?;
    Ok(())
}

pub fn engines(count: usize) -> Result {
    let one = || check(&compile(&Engine::new()?, 7)?, 7);
    (0..count / 10).try_for_each(|_| one())?;
    measured("engines", count, || (0..count).try_for_each(|_| one()))
}
