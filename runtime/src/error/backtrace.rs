//! The text of backtraces, in upstream's form: most recent call first, one call a line. By default it is one line, the
//! place that raises. With `TVM_FFI_BACKTRACE=1` it is the whole stack, with at most `TVM_TRACEBACK_LIMIT` lines.
//! Rules: upstream's `backtrace.cc` and `backtrace_utils.h`.

use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::panic::Location;
use std::sync::OnceLock;

use cpp_demangle::{DemangleOptions, Symbol};

use super::memory::formatted;
use crate::code_map;

/// Approximate maximum of bytes for capturing a stack and writing it out.
const STACK_MEMORY: usize = 1 << 20;

/// True if whole stacks are captured. The environment is read once. Std captures a stack under a lock that its handler
/// of failed allocations takes too. Without memory the process would hang, so no stack is captured then.
fn captures_stacks() -> bool {
    chosen() && Vec::<u8>::new().try_reserve_exact(STACK_MEMORY).is_ok()
}

fn chosen() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| {
        let set = |name: &str| std::env::var(name).ok().map(|value| value != "0");
        set("TVM_FFI_BACKTRACE").or_else(|| set("RUST_BACKTRACE")).unwrap_or(false)
    })
}

/// Maximum number of lines of a backtrace: `TVM_TRACEBACK_LIMIT`, if it is a non-negative number.
fn limit() -> usize {
    let set = std::env::var("TVM_TRACEBACK_LIMIT").ok().and_then(|value| value.trim_start().parse::<i32>().ok());
    set.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(512)
}

/// The backtrace of an error made at `place`, by the policy of [`Error`](super::Error).
pub(super) fn capture(place: &Location<'_>) -> String {
    let line = frame_line(place.file(), place.line(), "<rust>");
    if !captures_stacks() {
        return line;
    }
    let stack = captured();
    let frames = frames(&stack);
    let frames = &frames[behind_own(&frames)..];
    // With debug information the first frame is the place.
    let is_place = |frame: &Frame<'_>| {
        let here = place.file().trim_start_matches("./");
        frame.place.as_ref().is_some_and(|(file, line)| file.ends_with(here) && *line == place.line())
    };
    let start = if frames.first().is_some_and(is_place) { String::new() } else { line };
    text(start, frames, true)
}

/// The backtrace of an error that C code raises, from the caller of the C function on. It is the whole stack if stacks
/// are captured, and otherwise empty. Unless `crosses_boundary`, it ends where one language calls the other.
pub(crate) fn c_backtrace(crosses_boundary: bool) -> String {
    if !captures_stacks() {
        return String::new();
    }
    let stack = captured();
    let frames = frames(&stack);
    text(String::new(), &frames[behind_own(&frames)..], !crosses_boundary)
}

/// The backtrace at a place that C code names: the place, then the stack as in [`c_backtrace`].
pub(crate) fn c_backtrace_at(file: &str, line: u32, function: &str, crosses_boundary: bool) -> String {
    let start = if is_left_out(Some(file), function) { String::new() } else { frame_line(file, line, function) };
    if !captures_stacks() {
        return start;
    }
    let stack = captured();
    let frames = frames(&stack);
    // The first frame is the place.
    let behind = (behind_own(&frames) + 1).min(frames.len());
    text(start, &frames[behind..], !crosses_boundary)
}

/// One line of a backtrace; empty if there is no memory for it.
fn frame_line(file: &str, line: u32, function: &str) -> String {
    formatted(format_args!("  File \"{file}\", line {line}, in {function}\n")).unwrap_or_default()
}

/// A call on the stack.
struct Frame<'a> {
    function: Cow<'a, str>,
    /// File and line, if there is debug information.
    place: Option<(Cow<'a, str>, u32)>,
}

impl<'a> Frame<'a> {
    /// A frame as std shows it. For code made at run time, std shows the address alone.
    fn new(address: Option<&str>, function: &'a str) -> Self {
        let unknown = function.starts_with("<unknown>");
        let address = address.and_then(|text| usize::from_str_radix(text.strip_prefix("0x")?, 16).ok());
        match address.filter(|_| unknown).and_then(code_map::name_of) {
            Some((function, place)) => {
                Frame { function: function.into(), place: place.map(|(file, line)| (file.into(), line)) }
            }
            None => Frame { function: function.into(), place: None },
        }
    }
}

/// The calling thread's stack, as std prints it in full.
fn captured() -> String {
    format!("{:#}", Backtrace::force_capture())
}

/// The calls in std's text: "  12:  0x55d0 - function", and a line "at file:line:column" below if std knows the place.
fn frames(stack: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for line in stack.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            let mut parts = place.rsplitn(3, ':');
            let (_column, row, file) = (parts.next(), parts.next(), parts.next());
            if let (Some(frame), Some(row), Some(file)) =
                (frames.last_mut(), row.and_then(|row| row.parse().ok()), file)
            {
                frame.place = Some((file.into(), row));
            }
            continue;
        }
        let numbered = line.split_once(": ").filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        let name = numbered.map_or(line, |(_, rest)| rest.trim_start());
        frames.push(match name.split_once(" - ") {
            Some((address, function)) if address.starts_with("0x") => Frame::new(Some(address), function),
            _ => Frame::new(None, name),
        });
    }
    frames
}

/// The index of the first frame after those in which this crate makes the backtrace.
fn behind_own(frames: &[Frame<'_>]) -> usize {
    const C_FUNCTIONS: [&str; 2] = ["TVMFFIBacktrace", "TVMFFIErrorSetRaisedFromCStr"];
    let is_c_function = |frame: &Frame<'_>| C_FUNCTIONS.iter().any(|name| last_name(&frame.function).starts_with(name));
    if let Some(place) = frames.iter().take(40).rposition(is_c_function) {
        return place + 1;
    }
    const OWN: [&str; 5] = ["std::backtrace", "<std::backtrace", "alloc::fmt", "core::fmt", "tvm_ffi_runtime::error::"];
    let is_own = |frame: &Frame<'_>| OWN.iter().any(|name| frame.function.starts_with(name));
    frames.iter().take(40).rposition(is_own).map_or(0, |place| place + 1)
}

/// The last part of a Rust path.
fn last_name(function: &str) -> &str {
    function.rsplit("::").next().unwrap_or(function)
}

/// The lines of a backtrace, from `start` on.
fn text(start: String, frames: &[Frame<'_>], stops_at_boundary: bool) -> String {
    let limit = limit();
    let (mut text, mut lines) = (start, 0);
    lines += usize::from(!text.is_empty());
    for frame in frames {
        let function = demangled(&frame.function);
        if lines >= limit || (stops_at_boundary && is_boundary(&function)) {
            break;
        }
        let (file, line) = match &frame.place {
            Some((file, line)) => (&**file, *line),
            // A call without any information adds nothing.
            None if function.starts_with("0x") || function.starts_with("<unknown>") => continue,
            None => ("<unknown>", 0),
        };
        if is_left_out(frame.place.as_ref().map(|(file, _)| &**file), &function) {
            continue;
        }
        text.push_str(&frame_line(file, line, &function));
        lines += 1;
    }
    text
}

/// The name of a C++ function as in its source.
fn demangled(function: &str) -> String {
    let symbol = function.starts_with("_Z").then(|| Symbol::new(function).ok()).flatten();
    symbol.and_then(|symbol| symbol.demangle(&DemangleOptions::default()).ok()).unwrap_or_else(|| function.to_owned())
}

/// True if one language calls another in this function. The other language reports the frames after it.
fn is_boundary(function: &str) -> bool {
    ["TVMFFIFunctionCall", "slot_tp_call", "object_is_not_callable", "_Py", "PyObject"]
        .iter()
        .any(|name| function.starts_with(name))
}

/// True if a call is left out because it belongs to the mechanics of calling.
fn is_left_out(file: Option<&str>, function: &str) -> bool {
    const FUNCTIONS: [&str; 6] = [
        "tvm::ffi::Function",
        "tvm::ffi::detail::",
        "TVMFFIBacktrace",
        "TVMFFIErrorSetRaisedFromCStr",
        "__libc_",
        "ffi_call_",
    ];
    const FILES: [&str; 5] = [
        "include/tvm/ffi/error.h",
        "include/tvm/ffi/function_detail.h",
        "include/tvm/ffi/function.h",
        "include/tvm/ffi/any.h",
        "include/c++/",
    ];
    FUNCTIONS.iter().any(|name| function.starts_with(name))
        || is_part_of_wrapper(function)
        || file.is_some_and(|file| FILES.iter().any(|part| file.contains(part)))
}

/// True if a function is a generated part of a wrapper that `tvm-ffi-codegen` has made, and not the wrapper itself.
fn is_part_of_wrapper(function: &str) -> bool {
    let is_local = |rest: &str| ["-slow-path", "-body", "-records"].iter().any(|part| rest.contains(part));
    let is_anonymous = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    function.starts_with("__tvm_ffi_codegen_")
        || function.strip_prefix("__tvm_ffi_").is_some_and(is_local)
        // Cranelift's name for a function without one in an object.
        || function.strip_prefix(".Lfn").is_some_and(is_anonymous)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Backtraces name code that std doesn't know, while it is registered.
    #[test]
    fn code_made_at_run_time_is_named() {
        let stack = "   0:     0x7f0000000110 - <unknown>\n   1:     0x7f0000000111 - <unknown>\n   2:     \
            0x7f0000000120 - <unknown>\n\
                     \x20  3:     0x7f0000000121 - <unknown>\n   4:     0x7f0000000100 - <unknown>\n";
        let line =
            code_map::CodeLine { start: 8, end: 16, file: "model.dsl".into(), line: 7, function: "inner".into() };
        let (name, lines) = ("compiled".to_owned(), vec![line]);
        let known = code_map::name_code([code_map::CodeFunction { name, start: 0x7f00_0000_0100, size: 32, lines }]);
        let shown = || text(String::new(), &frames(stack), true);
        let compiled = frame_line("<unknown>", 0, "compiled");
        assert_eq!(shown(), format!("{}{compiled}{compiled}", frame_line("model.dsl", 7, "inner")));
        drop(known);
        assert_eq!(shown(), "");
    }

    /// A wrapper is one line, whatever parts it has. A source line stays.
    #[test]
    fn parts_of_wrappers_are_left_out() {
        let stack = "   0:     0x55d0c0 - __tvm_ffi_codegen_report\n\
                     \x20  1:     0x55d0c1 - __tvm_ffi_codegen_bind.1\n\
                     \x20  2:     0x55d0c2 - __tvm_ffi_ns.f-slow-path\n\
                     \x20  3:     0x55d0c3 - .Lfn31\n\
                     \x20  4:     0x55d0c4 - ffi_call___tvm_ffi_codegen_bind\n\
                     \x20  5:     0x55d0c5 - __tvm_ffi_ns.f-body\n\
                     \x20  6:     0x55d0c6 - forward\n\
                     \x20                    at model.py:7:1\n\
                     \x20  7:     0x55d0c7 - __tvm_ffi_ns.f-closure-0\n\
                     \x20  8:     0x55d0c8 - __tvm_ffi_ns.f\n";
        let lines = [
            ("model.py", 7, "forward"),
            ("<unknown>", 0, "__tvm_ffi_ns.f-closure-0"),
            ("<unknown>", 0, "__tvm_ffi_ns.f"),
        ];
        let expected = lines.map(|(file, line, function)| frame_line(file, line, function)).concat();
        assert_eq!(text(String::new(), &frames(stack), true), expected);
    }

    const STACK: &str = "   0:     0x55d0c0 - std::backtrace::Backtrace::force_capture\n\
                         \x20                              at /rustc/1/library/std/src/backtrace.rs:313:9\n\
                         \x20  1:     0x55d0c1 - TVMFFIBacktrace\n\
                         \x20                    here::inlined\n\
                         \x20                              at /here/a file.rs:12:5\n\
                         \x20  2:     0x55d0c2 - _ZN3tvm3ffi8Function4callEv\n\
                         \x20  3:     0x55d0c3 - _ZN4mine4workEi\n\
                         \x20  4:     0x55d0c4 - <unknown>\n\
                         \x20  5:     0x55d0c5 - TVMFFIFunctionCall\n\
                         \x20  6:     0x55d0c6 - main\n";

    #[test]
    fn frames_are_read_and_chosen_as_upstream_does() {
        let frames = frames(STACK);
        assert_eq!(frames.len(), 8);
        let behind = &frames[behind_own(&frames)..];
        let (inlined, mine) =
            (frame_line("/here/a file.rs", 12, "here::inlined"), frame_line("<unknown>", 0, "mine::work(int)"));
        assert_eq!(text(String::new(), behind, true), format!("{inlined}{mine}"));
        let across = format!(
            "{inlined}{mine}{}{}",
            frame_line("<unknown>", 0, "TVMFFIFunctionCall"),
            frame_line("<unknown>", 0, "main")
        );
        assert_eq!(text(String::new(), behind, false), across);
    }
}
