//! The host's C compiler driver, for environments that specify at most a program. The compiler isn't queried.
//!
//! The crate `cc` runs a compiler to learn its family, since other targets and compilations need different options.
//! For a link on the host, GNU's and LLVM's drivers take the same options, and the query takes as long as a small
//! link.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use target_lexicon::{Architecture, Environment, HOST, OperatingSystem, Triple};

/// The driver's command for a target, if the target is the host and the environment specifies at most a program.
/// Otherwise `None`.
pub(super) fn driver(target: &Triple) -> Option<Command> {
    let is_here =
        *target == HOST && target.operating_system == OperatingSystem::Linux && target.environment == Environment::Gnu;
    let options: &[&str] = match target.architecture {
        // a compiler may support both widths
        Architecture::X86_64 => &["-fPIC", "-m64"],
        Architecture::Aarch64(_) | Architecture::Riscv64(_) => &["-fPIC"],
        _ => return None,
    };
    let mut command = Command::new(program(&target.to_string(), std::env::vars_os()).filter(|_| is_here)?);
    // the crate `cc` sets this too, for the messages
    command.args(options).env("LC_ALL", "C");
    Some(command)
}

/// The program that the environment specifies, or `cc`. `None` if a variable has flags or a wrapper, which the crate
/// `cc` understands.
fn program(triple: &str, variables: impl Iterator<Item = (OsString, OsString)>) -> Option<OsString> {
    // the crate `cc` uses the first of these that is set
    let names = [format!("CC_{triple}"), format!("CC_{}", triple.replace('-', "_")), "HOST_CC".into(), "CC".into()];
    let mut found: Option<(usize, OsString)> = None;
    for (name, value) in variables {
        if let Some(rank) = names.iter().position(|known| name == known.as_str()) {
            if found.as_ref().is_none_or(|(other, _)| rank < *other) {
                found = Some((rank, value));
            }
        } else if is_of_the_crate(&name) {
            return None;
        }
    }
    match found {
        Some((_, value)) => Some(value).filter(|value| is_program(value)),
        None => Some("cc".into()),
    }
}

/// Whether a variable may change how the crate `cc` calls a compiler.
fn is_of_the_crate(name: &OsStr) -> bool {
    const BEGINNINGS: [&str; 6] = ["CC_", "CRATE_CC_", "CFLAGS", "HOST_CFLAGS", "RUSTC_WRAPPER", "CARGO_CFG_"];
    BEGINNINGS.iter().any(|beginning| name.as_encoded_bytes().starts_with(beginning.as_bytes()))
}

/// Whether a value is a program without arguments.
fn is_program(value: &OsStr) -> bool {
    let bytes = value.as_encoded_bytes();
    !bytes.is_empty() && !bytes.iter().any(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_alone_is_taken_as_it_is() {
        let program = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
            program("x86_64-unknown-linux-gnu", variables)
        };
        let some = |name: &str| Some(OsString::from(name));
        assert_eq!(program(&[]), some("cc"));
        assert_eq!(program(&[("PATH", "/bin"), ("CXX", "g++"), ("CCACHE_DIR", "/c")]), some("cc"));
        assert_eq!(program(&[("CC", "clang")]), some("clang"));
        assert_eq!(program(&[("CC", "a"), ("CC_x86_64_unknown_linux_gnu", "b"), ("HOST_CC", "c")]), some("b"));
        assert_eq!(program(&[("CC_x86_64_unknown_linux_gnu", "b"), ("CC_x86_64-unknown-linux-gnu", "d")]), some("d"));
        for asks_for_more in [
            &[("CC", "ccache cc")][..],
            &[("CC", "")],
            &[("CC", "gcc"), ("CFLAGS", "-flto")],
            &[("HOST_CFLAGS", "-flto")],
            &[("CFLAGS_x86_64_unknown_linux_gnu", "-flto")],
            &[("CRATE_CC_NO_DEFAULTS", "1")],
            &[("CC_KNOWN_WRAPPER_CUSTOM", "wrap")],
            &[("RUSTC_WRAPPER", "sccache")],
        ] {
            assert_eq!(program(asks_for_more), None, "{asks_for_more:?}");
        }
    }
}
