//! Listings of generated code for review: `fixtures/listings`, whose README describes them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tvm_ffi_codegen::artifact::Triple;
use tvm_ffi_codegen::backend::cranelift;
use tvm_ffi_codegen::ir::{self, Module, VerifiedModule};
use tvm_ffi_codegen::lower::{RuntimeHelpers, lower};
use tvm_ffi_codegen::{Kernel, OptLevel, Signature};

use crate::fixtures::{parse_kernel, split_line};
use crate::objects::{BLESS, compares_llvm};
use crate::support::parallel;

/// The machine of the assembly: any x86-64 CPU.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const IR: &str = "## IR";
const CRANELIFT: &str = "## Cranelift";
const LLVM: &str = "## LLVM";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/listings");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files
}

/// The signature and the kernel at the start of a file.
fn subject(text: &str) -> (Signature, Kernel) {
    let value = |key| text.lines().filter_map(|line| split_line(1, line)).find(|line| line.key == key).unwrap().value;
    let signature: Signature = value("signature").parse().unwrap();
    let (kernel, _) = parse_kernel(value("kernel"), &signature).unwrap();
    (signature, kernel)
}

/// The functions of a module as IR. The non-cold blocks of the wrapper are marked as its fast path.
fn show_ir(module: &Module) -> String {
    let listing = module.to_string();
    let mut text = String::new();
    let mut on_wrapper = false;
    for line in listing.lines() {
        on_wrapper = line.starts_with("export fn") || (on_wrapper && line != "}");
        let marked = on_wrapper && line.starts_with("block") && !line.contains(" cold");
        let _ = writeln!(text, "{line}{}", if marked { "    ; fast path" } else { "" });
    }
    text
}

/// Cranelift's assembly of a module.
fn show_cranelift(module: &VerifiedModule) -> String {
    let triple: Triple = TARGET.parse().unwrap();
    let options = cranelift::IsaOptions { pic: true, ..cranelift::IsaOptions::default() };
    let isas = cranelift::ByLoops::new(OptLevel::default(), &options, |options| cranelift::isa_for(&triple, options));
    let options = cranelift::Options { disasm: true, ..cranelift::Options::default() };
    let compiled = cranelift::Compiler::new().compile_by_loops(module, &isas.unwrap(), options).unwrap();
    let mut text = String::new();
    for function in compiled.functions().iter().filter(|function| !function.code.is_empty()) {
        // the CLIF precedes it
        let disasm = function.disasm.as_deref().unwrap();
        let (_, assembly) = disasm.split_once("}\n\n").unwrap();
        let _ = writeln!(text, "{}: {} bytes\n{}\n", function.name, function.code.len(), assembly.trim_end());
    }
    text
}

/// LLVM's assembly of a module, without the assembler's directives.
#[cfg(feature = "llvm22-1")]
fn show_llvm(module: &VerifiedModule) -> Option<String> {
    use tvm_ffi_codegen::backend::llvm;

    let target = llvm::LlvmTarget::new(&TARGET.parse().unwrap(), &llvm::TargetOptions::default()).unwrap();
    let options = llvm::Options { asm: true, for_linker: true, ..llvm::Options::default() };
    let assembly = llvm::Compiler::new(target).compile(module, options).unwrap().asm.unwrap();
    let mut in_text = false;
    let lines = assembly.lines().filter(|line| {
        let directive = line.trim_start();
        if directive.starts_with(".text") || directive.starts_with(".section") {
            in_text = directive.contains(".text");
        }
        let is_label = !line.starts_with('\t') && !line.starts_with(".Lfunc");
        in_text && (is_label || !directive.starts_with('.')) && !directive.starts_with('#')
    });
    Some(lines.map(|line| format!("{}\n", line.trim_end().replace('\t', "    "))).collect())
}

#[cfg(not(feature = "llvm22-1"))]
fn show_llvm(_: &VerifiedModule) -> Option<String> {
    None
}

/// The file with new listings. If this build can't make LLVM's listing, the existing one is kept.
fn made(text: &str, with_llvm: bool) -> String {
    let (signature, kernel) = subject(text);
    let module = lower(&signature, &kernel, RuntimeHelpers::Import).unwrap();
    let listing = show_ir(&module);
    let verified = ir::verify(module).unwrap();
    let own = || text.split_once(&format!("{LLVM}\n\n")).map(|(_, llvm)| llvm.to_owned());
    let llvm = with_llvm.then(|| show_llvm(&verified)).flatten().or_else(own).unwrap_or_default();
    let heading: Vec<&str> = text.lines().take(2).collect();
    let cranelift = show_cranelift(&verified);
    format!(
        "{}\n\n{IR}\n\n{}\n\n{CRANELIFT}\n\n{}\n\n{LLVM}\n\n{}\n",
        heading.join("\n"),
        listing.trim(),
        cranelift.trim(),
        llvm.trim()
    )
}

#[test]
fn are_as_in_their_files() {
    let bless = env::var_os(BLESS).is_some_and(|value| value == "1");
    let with_llvm = bless || compares_llvm();
    let files = files();
    assert!(files.len() >= 20, "{} listings", files.len());
    let stale = parallel::map(&files, |path| {
        let found = fs::read_to_string(path).unwrap();
        let made = made(&found, with_llvm);
        if bless {
            fs::write(path, &made).unwrap();
        }
        let differs = found.lines().zip(made.lines()).position(|(found, made)| found != made);
        let line = differs.unwrap_or_else(|| found.lines().count().min(made.lines().count())) + 1;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (found != made && !bless).then(|| format!("{name}:{line}"))
    });
    let stale: Vec<_> = stale.into_iter().flatten().collect();
    let how = "`cargo xtask test --only objects --bless` rewrites them";
    assert!(stale.is_empty(), "listings differ from generated code ({how}): {}", stale.join(", "));
}
