//! Writes an object for another machine, with wrappers of kernels that take structs by value, and a program in C with
//! the kernels, which calls the wrappers and compares what the kernels get.

mod cases;

use std::error::Error;
use std::fmt::Write;
use std::{env, fs};

use cases::{Case, H, P, PARAMS, START, T, V};
use object::{Object, ObjectSymbol};
use target_lexicon::Triple;
use tvm_ffi_codegen::artifact::LibraryBuilder;
use tvm_ffi_codegen::{Backend, Kernel, Signature};

/// `struct_args_object TRIPLE|host BACKEND OBJECT PROGRAM`
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [triple, backend, object, program] = &args[..] else {
        return Err("expected a triple, a backend, two files".into());
    };
    let triple: Triple = match &**triple {
        "host" => Triple::host(),
        other => other.parse().map_err(|e| format!("{other}: {e}"))?,
    };
    let backend: Backend = backend.parse()?;
    let cases = cases::all();
    let mut library = LibraryBuilder::new().target(triple).backend(backend);
    for case in &cases {
        let signature: Signature = format!("{}{PARAMS}", case.name).parse()?;
        library = library.function(&signature, &case.kernel(Kernel::symbol(&case.name)));
    }
    let code = library.emit()?;
    fs::write(program, source(&cases, &undefined(code.as_bytes())?)?)?;
    fs::write(object, code.as_bytes())?;
    Ok(())
}

/// The C API's functions that an object calls. No call of the program comes to one.
fn undefined(code: &[u8]) -> Result<Vec<String>, object::Error> {
    let file = object::File::parse(code)?;
    let names = file.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| symbol.name().ok());
    Ok(names.filter(|name| name.starts_with("TVMFFI")).map(str::to_owned).collect())
}

/// The program: it prints each difference, and how many kernels have got what was passed.
fn source(cases: &[Case], undefined: &[String]) -> Result<String, std::fmt::Error> {
    let mut text = format!("{START}#include <stdio.h>\n\n");
    let mut calls = String::new();
    for case in cases {
        let Case { name, shape, args } = case;
        text.push_str(&case.source());
        let expected: Vec<String> = args.expected.iter().map(|word| format!("{word}u")).collect();
        writeln!(calls, "  static const uint64_t {name}_words[] = {{{}}};", expected.join(", "))?;
        writeln!(calls, "  right += check(\"{name}, {shape}\", __tvm_ffi_{name}, {name}_words, {});", expected.len())?;
    }
    text.push_str("typedef struct {\n  int32_t type_index;\n  uint32_t zero_padding;\n  union { int64_t i; void* p; ");
    text.push_str("DLDataType t; DLDevice v; };\n} Any;\ntypedef int Wrapper(void*, const Any*, int32_t, Any*);\n");
    for Case { name, .. } in cases {
        writeln!(text, "Wrapper __tvm_ffi_{name};")?;
    }
    for name in undefined {
        writeln!(text, "void {name}(void) {{ __builtin_trap(); }}")?;
    }
    let (code, bits, lanes) = (T & 0xff, T >> 8 & 0xff, T >> 16);
    let (kind, id) = (V & 0xffff_ffff, V >> 32);
    write!(
        text,
        "
static int check(const char* name, Wrapper* wrapper, const uint64_t* expected, size_t count) {{
  const Any args[] = {{
    {{.type_index = 1, .i = {P}}},
    {{.type_index = 4, .p = (void*){H}}},
    {{.type_index = 5, .t = {{{code}, {bits}, {lanes}}}}},
    {{.type_index = 6, .v = {{{kind}, {id}}}}},
  }};
  Any result = {{0}};
  noted_count = 0;
  int status = wrapper(NULL, args, 4, &result);
  int same = status == 0 && noted_count == count;
  for (size_t i = 0; i < noted_count && same; ++i) same = noted[i] == expected[i];
  if (!same) printf(\"%s: other arguments than were passed\\n\", name);
  return same;
}}

int main(void) {{
  int right = 0;
{calls}  printf(\"%d of {} kernels\\n\", right);
  return right != {};
}}
",
        cases.len(),
        cases.len()
    )?;
    Ok(text)
}
