//! Optimisation levels.

use crate::ir::{FuncDecl, Function, Module};
use crate::names::{self, UnknownName};

/// The amount of optimisation. Every backend gives these the same meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum OptLevel {
    /// The shortest compile time.
    None,
    /// Optimise where it is worth the compile time. A function without loops, such as a wrapper, gets only the passes
    /// that such code gains from. A function with a loop, such as most bodies, is optimised as with
    /// [`Full`](Self::Full).
    #[default]
    Speed,
    /// The fastest code that the backend can generate, for every module. With LLVM this inlines and vectorises.
    Full,
}

impl std::fmt::Display for OptLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for OptLevel {
    type Err = UnknownName;

    /// Parses an [`OptLevel::name`].
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        names::find(text, Self::ALL, Self::name)
    }
}

impl OptLevel {
    /// All levels, in increasing order of optimisation.
    pub const ALL: &'static [OptLevel] = &[OptLevel::None, OptLevel::Speed, OptLevel::Full];

    /// The level's name on command lines: `none`, `speed` or `full`.
    pub const fn name(self) -> &'static str {
        match self {
            OptLevel::None => "none",
            OptLevel::Speed => "speed",
            OptLevel::Full => "full",
        }
    }

    /// The level for a module: with [`Speed`](Self::Speed), code with loops is fully optimised.
    #[must_use]
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn for_module(self, module: &Module) -> OptLevel {
        let loops = || module.functions.values().any(Self::gains);
        if self == OptLevel::Speed && loops() { OptLevel::Full } else { self }
    }

    /// Whether optimisation pays off for a function: it has a loop and isn't cold.
    pub(crate) fn gains(function: &FuncDecl) -> bool {
        !function.cold && function.body.as_ref().is_some_and(Function::has_loop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for &level in OptLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        let error = "3".parse::<OptLevel>().map_err(|error| error.to_string());
        assert_eq!(error, Err("expected none, speed or full, got `3`".to_owned()));
    }
}
