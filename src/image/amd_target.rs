//! Architectures of AMD devices (LLVM, User Guide for AMDGPU Backend: processors, and target ID).

use std::fmt;
use std::str::FromStr;

/// The AMD architecture that code in an image is for, called target ID by LLVM: `gfx90a:sramecc+:xnack-`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct AmdTarget {
    /// The processor.
    pub processor: AmdProcessor,
    /// Whether the code is for devices with memory error correction enabled; `None` for code that runs either way.
    pub sramecc: Option<bool>,
    /// Whether the code is for devices that retry page faults; `None` for code that runs either way.
    pub xnack: Option<bool>,
}

/// An AMD processor or a group of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AmdProcessor {
    /// One processor: `gfx90a` is 9, 0 and 10.
    One {
        /// The major number, `gfx11` of `gfx1100`.
        major: u32,
        /// The minor number, a digit.
        minor: u32,
        /// The stepping, a hexadecimal digit.
        stepping: u32,
    },
    /// All processors of a group; the code runs on each of them: `gfx9-4-generic`.
    Generic {
        /// The major number.
        major: u32,
        /// The minor number, if the group's name has one.
        minor: Option<u32>,
    },
}

impl AmdTarget {
    /// The maximum shared memory (LDS) of a block in bytes, static and dynamic together (LLVM, AMDGPU.td, addressable
    /// local memory). For a group it is the maximum of its processors. `None` for an unknown architecture.
    pub fn max_shared_memory(self) -> Option<u32> {
        let kib = match self.processor {
            // gfx950 belongs to the group gfx9-4-generic
            AmdProcessor::One { major: 9, minor: 5, .. } | AmdProcessor::Generic { major: 9, minor: Some(4) } => 160,
            AmdProcessor::One { major: 12, minor: 5, .. } | AmdProcessor::Generic { major: 12, minor: Some(5) } => 320,
            AmdProcessor::One { major: 7..=11, .. } | AmdProcessor::Generic { major: 9..=11, .. } => 64,
            AmdProcessor::One { major: 12, minor: 0, .. } | AmdProcessor::Generic { major: 12, minor: None } => 64,
            _ => return None,
        };
        Some(kib << 10)
    }

    /// The target at the end of a string that begins with a target triple, such as
    /// `amdgcn-amd-amdhsa--gfx90a:xnack-`.
    pub(super) fn behind_triple(text: &str) -> Option<Self> {
        // the format of the triple differs between LLVM releases: `amdgpu9.0a-amd-amdhsa-unknown-gfx90a`
        let at = text.find("-gfx")?;
        text[at + 1..].parse().ok()
    }
}

impl fmt::Display for AmdTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.processor)?;
        for (name, feature) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match feature {
                Some(true) => write!(f, ":{name}+")?,
                Some(false) => write!(f, ":{name}-")?,
                None => {}
            }
        }
        Ok(())
    }
}

impl FromStr for AmdTarget {
    type Err = ();

    /// Parses `gfx90a:sramecc+:xnack-`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split(':');
        let processor = parts.next().ok_or(())?.parse()?;
        let mut target = AmdTarget { processor, sramecc: None, xnack: None };
        for part in parts {
            match part {
                "sramecc+" => target.sramecc = Some(true),
                "sramecc-" => target.sramecc = Some(false),
                "xnack+" => target.xnack = Some(true),
                "xnack-" => target.xnack = Some(false),
                _ => return Err(()),
            }
        }
        Ok(target)
    }
}

impl fmt::Display for AmdProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AmdProcessor::One { major, minor, stepping } => write!(f, "gfx{major}{minor:x}{stepping:x}"),
            AmdProcessor::Generic { major, minor: Some(minor) } => write!(f, "gfx{major}-{minor}-generic"),
            AmdProcessor::Generic { major, minor: None } => write!(f, "gfx{major}-generic"),
        }
    }
}

impl FromStr for AmdProcessor {
    type Err = ();

    /// Parses `gfx90a` or `gfx9-4-generic`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_prefix("gfx").ok_or(())?;
        if let Some(group) = rest.strip_suffix("-generic") {
            return match group.split_once('-') {
                Some((major, minor)) => {
                    Ok(AmdProcessor::Generic { major: number(major)?, minor: Some(number(minor)?) })
                }
                None => Ok(AmdProcessor::Generic { major: number(group)?, minor: None }),
            };
        }
        let digits: Vec<char> = rest.chars().collect();
        let [major @ .., minor, stepping] = &digits[..] else { return Err(()) };
        let hex = |digit: &char| digit.to_digit(16).filter(|_| !digit.is_ascii_uppercase()).ok_or(());
        let major = number(&major.iter().collect::<String>())?;
        Ok(AmdProcessor::One { major, minor: hex(minor)?, stepping: hex(stepping)? })
    }
}

/// A number of at most three digits without a leading 0.
fn number(text: &str) -> Result<u32, ()> {
    let is_number =
        (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if is_number { text.parse().map_err(|_| ()) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for name in [
            "gfx90a",
            "gfx803",
            "gfx1100",
            "gfx90a:sramecc+:xnack-",
            "gfx942:xnack+",
            "gfx9-4-generic",
            "gfx11-generic",
        ] {
            assert_eq!(name.parse::<AmdTarget>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "gfx",
            "gfx9",
            "gfx90",
            "gfx90A",
            "gfx90g",
            "gfx+900",
            "gfx0900",
            "gfx90a:",
            "gfx90a:fast+",
            "gfx-generic",
        ] {
            assert_eq!(name.parse::<AmdTarget>(), Err(()), "{name}");
        }
        let at_end = |text: &str| AmdTarget::behind_triple(text).map(|target| target.to_string());
        assert_eq!(at_end("amdgcn-amd-amdhsa--gfx90a:sramecc+"), Some("gfx90a:sramecc+".to_owned()));
        assert_eq!(at_end("amdgpu9.42-amd-amdhsa-unknown-gfx942"), Some("gfx942".to_owned()));
        assert_eq!(at_end("hip-amdgcn-amd-amdhsa-gfx906"), Some("gfx906".to_owned()));
        assert_eq!(at_end("amdgcn-amd-amdhsa--gfx9-4-generic:xnack-"), Some("gfx9-4-generic:xnack-".to_owned()));
        assert_eq!(at_end("hip-spirv64-amd-amdhsa--amdgcnspirv"), None);
    }

    /// Compared with LLVM 22: the largest array in LDS that `llc -mcpu=...` compiles.
    #[test]
    fn shared_memory_is_that_of_the_processor() {
        for (name, kib) in [
            ("gfx700", Some(64)),
            ("gfx90a", Some(64)),
            ("gfx942", Some(64)),
            ("gfx950", Some(160)),
            ("gfx1030", Some(64)),
            ("gfx1100", Some(64)),
            ("gfx1200", Some(64)),
            ("gfx1250", Some(320)),
            ("gfx9-generic", Some(64)),
            ("gfx1300", None),
        ] {
            assert_eq!(name.parse::<AmdTarget>().unwrap().max_shared_memory(), kib.map(|kib: u32| kib << 10), "{name}");
        }
    }
}
