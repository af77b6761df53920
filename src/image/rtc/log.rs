//! The compiler's log, as messages with lines.

/// A message of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SourceMessage {
    /// The name of the source's or a header's file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// How severe it is.
    pub severity: Severity,
    /// The text, one line: `identifier "x" is undefined`.
    pub text: String,
}

/// How severe a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Severity {
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// Any other message.
    Remark,
}

/// The messages of a log, without the lines of source that follow them. NVRTC writes `FILE(LINE): error: TEXT` and
/// `FILE(LINE): warning #177-D: TEXT`. hiprtc, which is Clang, writes `FILE:LINE:COLUMN: error: TEXT`.
pub(super) fn messages(log: &str) -> Vec<SourceMessage> {
    log.lines().filter_map(|line| of_nvrtc(line).or_else(|| of_clang(line))).collect()
}

fn of_nvrtc(line: &str) -> Option<SourceMessage> {
    let (place, rest) = line.split_once("): ")?;
    let (file, number) = place.rsplit_once('(')?;
    let (kind, text) = rest.split_once(": ")?;
    message(file, number, kind, text)
}

fn of_clang(line: &str) -> Option<SourceMessage> {
    let kinds = ["fatal error", "error", "warning", "remark", "note"];
    let (kind, at) = kinds.into_iter().find_map(|kind| Some((kind, line.find(&format!(": {kind}: "))?)))?;
    let (place, text) = (&line[..at], &line[at + kind.len() + 4..]);
    let (place, column) = place.rsplit_once(':')?;
    let (file, number) = place.rsplit_once(':')?;
    column.parse::<u32>().ok()?;
    message(file, number, kind, text)
}

fn message(file: &str, line: &str, kind: &str, text: &str) -> Option<SourceMessage> {
    // `catastrophic error`, `warning #177-D`
    let severity = match kind {
        kind if kind.contains("error") => Severity::Error,
        kind if kind.starts_with("warning") => Severity::Warning,
        kind if kind.starts_with("remark") || kind.starts_with("note") => Severity::Remark,
        _ => return None,
    };
    Some(SourceMessage { file: file.to_owned(), line: line.parse().ok()?, severity, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{Severity, SourceMessage, messages};

    #[test]
    fn messages_have_their_lines() {
        let log = "k.cu(3): warning #177-D: variable \"y\" was declared but never referenced\n      int y;\n          ^\n\n\
                   Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n\
                   dir (1)/a.h(12): catastrophic error: cannot open source file \"b.h\"\n  #include \"b.h\"\n\n\
                   k.cu(5): error: expected a \";\"\n\n2 errors detected in the compilation of \"k.cu\".\n";
        let expected = [
            ("k.cu", 3, Severity::Warning, "variable \"y\" was declared but never referenced"),
            ("dir (1)/a.h", 12, Severity::Error, "cannot open source file \"b.h\""),
            ("k.cu", 5, Severity::Error, "expected a \";\""),
        ];
        let expected = expected.map(|(file, line, severity, text)| SourceMessage {
            file: file.to_owned(),
            line,
            severity,
            text: text.to_owned(),
        });
        assert_eq!(messages(log), expected);
        let log = "dir:a/k.hip:3:8: error: use of undeclared identifier 'y'\n  *x = y;\n       ^\n1 error.\n";
        let found = SourceMessage {
            file: "dir:a/k.hip".to_owned(),
            line: 3,
            severity: Severity::Error,
            text: "use of undeclared identifier 'y'".to_owned(),
        };
        assert_eq!(messages(log), [found]);
        assert_eq!(messages("nvrtc: error: invalid value for --gpu-architecture (-arch)\n"), []);
    }
}
