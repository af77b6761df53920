//! `tvm-ffi-codegen inspect`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tvm_ffi_codegen::artifact::{Binary, inspect};
use tvm_ffi_codegen::artifact::{ImageDescription, LaunchDescription};

use crate::error::{CliError, failure};
use crate::io::print;

/// Shows the contents of an object or library of any target: functions with signatures and docs, import tree, needed
/// symbols. It runs no code of the file
#[derive(Args)]
pub struct Inspect {
    /// The object or library
    file: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub fn run(&self) -> Result<(), CliError> {
        let binary = inspect(&self.file).map_err(failure)?;
        match self.json {
            true => {
                let json: Value = serde_json::from_str(&binary.to_json()).map_err(failure)?;
                print(&format!("{json:#}\n"))
            }
            false => print(&as_text(&binary)),
        }
    }
}

fn as_text(binary: &Binary) -> String {
    let mut text = String::new();
    let kind = if binary.linked { "library" } else { "object" };
    line(&mut text, 0, &format!("{} {kind} for {}", binary.format, binary.architecture));
    heading(&mut text, "functions", binary.functions.len());
    for function in &binary.functions {
        line(&mut text, 1, function.signature.as_deref().unwrap_or(&function.name));
        if function.signature.as_deref().is_some_and(|signature| !signature.starts_with(&function.name)) {
            line(&mut text, 2, &format!("as {}", function.name));
        }
        if function.has_metadata && function.metadata.is_none() {
            line(&mut text, 2, "has metadata");
        }
        match &function.doc {
            Some(doc) => doc.lines().for_each(|doc| line(&mut text, 2, doc)),
            None if function.has_doc => line(&mut text, 2, "has a doc"),
            None => {}
        }
        function.launches.iter().for_each(|launch| launch_lines(&mut text, launch));
    }
    if let Some(modules) = &binary.modules {
        heading(&mut text, "modules", modules.len());
        for (index, module) in modules.iter().enumerate() {
            let size = if module.kind == "_lib" { String::new() } else { format!(", {} bytes", module.size) };
            let imports: Vec<_> = module.imports.iter().map(|import| format!("#{import}")).collect();
            let imports = if imports.is_empty() { String::new() } else { format!(", imports {}", imports.join(", ")) };
            line(&mut text, 1, &format!("#{index} {}{size}{imports}", module.kind));
        }
    }
    let count = binary.needed_symbols.len();
    match binary.needed_tvm_ffi {
        Some(version) => line(&mut text, 0, &format!("needed symbols: {count} (TVM FFI {version} or newer)")),
        None => heading(&mut text, "needed symbols", count),
    }
    binary.needed_symbols.iter().for_each(|symbol| line(&mut text, 1, symbol));
    if binary.linked {
        heading(&mut text, "needed libraries", binary.needed_libraries.len());
        binary.needed_libraries.iter().for_each(|library| line(&mut text, 1, library));
    }
    text
}

fn launch_lines(text: &mut String, launch: &LaunchDescription) {
    line(text, 2, &format!("{}, by {}", launch.launch, launch.api));
    for image in &launch.images {
        let ImageDescription { kind, size, targets, entry, .. } = image;
        let targets = if targets.is_empty() { String::new() } else { format!(" of {}", targets.join(", ")) };
        line(text, 3, &format!("{kind}{targets}, {size} bytes"));
        let Some(entry) = entry else { continue };
        let mut facts = Vec::new();
        if let Some(params) = &entry.params {
            let sizes: Vec<_> = params.iter().map(|param| param.size.to_string()).collect();
            let sizes = if sizes.is_empty() { "none".to_owned() } else { format!("of {} bytes", sizes.join(", ")) };
            facts.push(format!("parameters {sizes}"));
        }
        facts.extend(entry.registers.map(|count| format!("{count} registers")));
        facts.push(format!("{} bytes of static shared memory", entry.static_shared));
        facts.extend(entry.is_tile.then(|| "a tile kernel".to_owned()));
        facts.extend(entry.required_block.map(|block| format!("blocks of {block:?} threads")));
        facts.extend(entry.max_threads.map(|max| format!("at most {max} threads a block")));
        facts.extend(entry.cluster.map(|cluster| format!("clusters of {cluster:?} blocks")));
        line(text, 4, &format!("{}: {}", entry.name, facts.join(", ")));
    }
}

fn heading(text: &mut String, what: &str, count: usize) {
    line(text, 0, &format!("{what}: {}", if count == 0 { "none".to_owned() } else { count.to_string() }));
}

/// Writes a line whose text may come from the file. Escapes control characters, so the file can't control the terminal.
fn line(text: &mut String, depth: usize, content: &str) {
    let shown: String = content.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    // writing to a String doesn't fail
    let _ = writeln!(text, "{:indent$}{shown}", "", indent = 2 * depth);
}
