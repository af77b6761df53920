//! The text of backtraces.
//! By default one line with the raising place, with `TVM_FFI_BACKTRACE=1` the whole stack.

use std::backtrace::Backtrace;
use std::panic::Location;
use std::sync::OnceLock;

/// The choice whether whole stacks are captured; read from the environment once.
fn captures_stacks() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| {
        let set = |name: &str| std::env::var(name).ok().map(|value| value != "0");
        set("TVM_FFI_BACKTRACE").or_else(|| set("RUST_BACKTRACE")).unwrap_or(false)
    })
}

/// The backtrace of an error that is made at `place`, by the policy of [`Error`](super::Error).
pub(super) fn capture(place: &Location<'_>) -> String {
    if captures_stacks() {
        return stack_text();
    }
    frame_line(place.file(), place.line(), "<rust>")
}

/// The backtrace of an error that C code raises: the whole stack where enabled, else nothing.
pub(crate) fn c_backtrace() -> String {
    if captures_stacks() {
        return stack_text();
    }
    String::new()
}

/// One line of a backtrace, as upstream writes it.
pub(crate) fn frame_line(file: &str, line: u32, function: &str) -> String {
    format!("  File \"{file}\", line {line}, in {function}\n")
}

/// The calling thread's stack, most recent call first, one call a line.
fn stack_text() -> String {
    let rendered = Backtrace::force_capture().to_string();
    let mut text = String::new();
    let mut function = "";
    // std writes "  12: function" and below it "at file:line:column".
    for line in rendered.lines() {
        let line = line.trim();
        if let Some(place) = line.strip_prefix("at ") {
            let mut parts = place.rsplitn(3, ':');
            let (_column, row, file) = (parts.next(), parts.next(), parts.next());
            if let (Some(row), Some(file)) = (row.and_then(|r| r.parse().ok()), file) {
                text.push_str(&frame_line(file, row, function));
            }
        } else if let Some((_number, name)) = line.split_once(": ") {
            function = name;
        }
    }
    text
}
