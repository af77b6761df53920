//! The stages of a function side by side. Each line knows its lines of the IR.

use std::collections::BTreeSet;

use super::arguments::lines_of_arguments;
use super::error::ExplainError;
use super::stage::Stage;
use crate::backend::{Backend, CodegenError, Listing, OptLevel, TextLine};
use crate::ir::{self, Module};
use crate::lower::{self, Kernel, RuntimeHelpers};
use crate::spec::{DTypePolicy, Signature};

/// The stages of a wrapper side by side. Created by [`side_by_side`](side_by_side()).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SideBySide {
    /// The function's name.
    pub function: String,
    /// The backend whose listings are shown.
    pub backend: Backend,
    /// The optimisation level.
    pub opt_level: OptLevel,
    /// The function's interface, the IR, the backend's IR, and the machine code.
    pub columns: Vec<Column>,
}

/// A column of listings.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Column {
    /// The stage; [`Stage::Header`] for the interface.
    pub stage: Stage,
    /// The listings, from top to bottom.
    pub panels: Vec<Panel>,
}

/// A listing with a heading.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Panel {
    /// The heading.
    pub heading: String,
    /// The lines of the listing.
    pub lines: Vec<Line>,
}

/// A line of a listing. Two lines correspond if they share a line of the IR.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Line {
    /// The line without its line end.
    pub text: String,
    /// The corresponding lines of the IR, counted from 1. An IR instruction corresponds to itself. A line of a
    /// backend's listing corresponds to its origin, as the backend reports it. A parameter corresponds to all lines
    /// that depend on it. Empty for a line without an instruction, or one whose origin the backend doesn't report.
    pub ir_lines: BTreeSet<u32>,
}

impl Line {
    fn plain(text: impl Into<String>) -> Self {
        Line { text: text.into(), ir_lines: BTreeSet::new() }
    }
}

impl From<TextLine> for Line {
    fn from(TextLine { text, ir_line }: TextLine) -> Self {
        Line { text, ir_lines: ir_line.into_iter().collect() }
    }
}

/// The stages of a wrapper side by side, compiled for the host as an [`Engine`](crate::Engine) would.
///
/// The backend reports which lines correspond. For that the module is compiled a second time, with its IR lines as
/// source locations. Backends track these like debug information. The code shown is the version compiled without them.
///
/// ```
/// use tvm_ffi_codegen::explain::side_by_side;
/// use tvm_ffi_codegen::{Backend, Kernel, OptLevel, Signature};
///
/// let signature: Signature = "scale(x: Tensor([n], float32), factor: float64)".parse()?;
/// let stages = side_by_side(&signature, &Kernel::symbol("scale"), Backend::default(), OptLevel::Speed)?;
/// let assembly = &stages.columns[3].panels[0];
/// assert!(assembly.lines.iter().any(|line| !line.ir_lines.is_empty()));
/// std::fs::write(std::env::temp_dir().join("scale.html"), stages.to_html())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The same as for [`Engine::compile`](crate::Engine::compile).
pub fn side_by_side(
    signature: &Signature,
    kernel: &Kernel,
    backend: Backend,
    level: OptLevel,
) -> Result<SideBySide, ExplainError> {
    let module = lower::lower(signature, kernel, RuntimeHelpers::Import)?;
    let (listing, located) = module.located_in_listing();
    let interface = interface(signature, kernel, &located)?;
    let ir = ir_lines(&listing, &located);
    let module = ir::verify(module).map_err(CodegenError::from)?;
    let located = ir::verify(located).map_err(CodegenError::from)?;
    let mut columns = vec![Column { stage: Stage::Header, panels: interface }, Column::of(Stage::Ir, "IR", ir)];
    for (listing, lines) in backend.codegen().lines(&module, &located, level)? {
        let (stage, heading) = match listing {
            Listing::Clif => (Stage::Clif, "CLIF, Cranelift's IR"),
            Listing::Llvm => (Stage::Llvm, "LLVM IR after its passes"),
            Listing::Asm => (Stage::Asm, "Assembly"),
        };
        columns.push(Column::of(stage, heading, lines.into_iter().map(Line::from).collect()));
    }
    Ok(SideBySide { function: signature.name().to_owned(), backend, opt_level: level, columns })
}

impl Column {
    fn of(stage: Stage, heading: &str, mut lines: Vec<Line>) -> Self {
        while lines.last().is_some_and(|line| line.text.is_empty()) {
            lines.pop();
        }
        Column { stage, panels: vec![Panel { heading: heading.to_owned(), lines }] }
    }
}

/// The lines of the IR; each instruction corresponds to itself.
fn ir_lines(listing: &str, located: &Module) -> Vec<Line> {
    let code: BTreeSet<u32> = located.locations.values().map(|location| location.line).collect();
    let line = |(number, text): (u32, &str)| Line {
        text: text.to_owned(),
        ir_lines: code.get(&number).copied().into_iter().collect(),
    };
    (1..).zip(listing.lines()).map(line).collect()
}

/// The signature, and the C prototypes of the wrapper and of the kernel.
fn interface(signature: &Signature, kernel: &Kernel, located: &Module) -> Result<Vec<Panel>, ExplainError> {
    let panel = |heading: &str, text: &str| Panel {
        heading: heading.to_owned(),
        lines: text.lines().map(Line::plain).collect(),
    };
    let symbol = signature.symbol();
    let wrapper = format!(
        "int32_t {symbol}(\n    void* handle,\n    const TVMFFIAny* args,\n    int32_t num_args,\n    TVMFFIAny* \
         result);"
    );
    let mut panels = vec![
        Panel { heading: "Signature".to_owned(), lines: signature_lines(signature, located) },
        panel("Wrapper in C", &wrapper),
    ];
    match lower::launch_sequence(signature, kernel)? {
        Some(sequence) => panels.push(panel("Launch", &sequence)),
        None => panels.push(panel("Native kernel in C", &kernel.c_prototype(signature)?)),
    }
    Ok(panels)
}

/// The signature with a line for each parameter. It corresponds to the IR lines that depend on the argument.
fn signature_lines(signature: &Signature, located: &Module) -> Vec<Line> {
    // a string in it may contain line ends
    let on_one_line = |text: String| text.replace(['\n', '\r'], " ");
    let mut of_arguments = lines_of_arguments(located, &signature.symbol(), signature.passed().count()).into_iter();
    let mut lines = vec![Line::plain(format!("{}(", signature.name()))];
    for param in signature.params() {
        let ir_lines = if param.is_passed() { of_arguments.next() } else { None };
        let text = format!("    {},", on_one_line(param.to_string()));
        lines.push(Line { text, ir_lines: ir_lines.unwrap_or_default() });
    }
    if signature.dtype_policy() != DTypePolicy::EXACT {
        lines.push(Line::plain(format!("    dtype_policy=\"{}\",", signature.dtype_policy())));
    }
    let ret = signature.ret().map(|ret| format!(" -> {ret}")).unwrap_or_default();
    lines.push(Line::plain(format!("){ret}")));
    for (index, constraint) in signature.constraints().iter().enumerate() {
        let start = if index == 0 { "    where " } else { "        , " };
        lines.push(Line::plain(format!("{start}{constraint}")));
    }
    lines
}
