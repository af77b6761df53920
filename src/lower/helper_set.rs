//! The sets of runtime helpers that are compiled together.

use super::device_api::APIS;
use super::protocol::Capabilities;
use super::protocol::helpers::{BIND_SYMBOL, REPORT_SYMBOL, TAKE_RESULT_SYMBOL};

/// Helpers that are compiled together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HelperSet {
    /// `bind` and `report`.
    Bind,
    /// `take_result`. A wrapper that imports it calls it on every call.
    TakeResult,
    /// The launch helpers of an API, given by its index in [`APIS`]: all driver work other than the launch itself.
    Launches(usize),
}

impl HelperSet {
    pub(crate) const ALL: [HelperSet; 2 + APIS.len()] = {
        let mut all = [HelperSet::Bind; 2 + APIS.len()];
        all[1] = HelperSet::TakeResult;
        let mut number = 0;
        while number < APIS.len() {
            all[2 + number] = HelperSet::Launches(number);
            number += 1;
        }
        all
    };

    /// The symbols that wrappers import the set with.
    pub(crate) fn symbols(self) -> &'static [&'static str] {
        match self {
            HelperSet::Bind => &[BIND_SYMBOL, REPORT_SYMBOL],
            HelperSet::TakeResult => &[TAKE_RESULT_SYMBOL],
            HelperSet::Launches(api) => &APIS[api].helpers,
        }
    }

    /// The name of one of the set's functions if it is local to a module with wrappers. It encodes the set's
    /// capabilities.
    pub(crate) fn local_name(self, symbol: &str, capabilities: Capabilities) -> String {
        format!("{symbol}.{}{:x}", self.mark(), capabilities.bits())
    }

    /// The capabilities that the [name](Self::local_name) of a set's first function encodes; `None` for any other name.
    pub(crate) fn of_local_name(self, name: &str) -> Option<Capabilities> {
        let bits = name.strip_prefix(self.symbols()[0])?.strip_prefix('.')?.strip_prefix(self.mark())?;
        u128::from_str_radix(bits, 16).ok().map(Capabilities::from_bits)
    }

    /// Whether the set varies with the capabilities that wrappers require.
    pub(crate) fn has_capabilities(self) -> bool {
        matches!(self, HelperSet::Bind | HelperSet::TakeResult)
    }

    /// The part of the name that distinguishes the sets; each set has its own `report`.
    fn mark(self) -> &'static str {
        match self {
            HelperSet::Bind => "",
            HelperSet::TakeResult => "r",
            HelperSet::Launches(api) => &APIS[api].name[..1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_sets_apart() {
        for (number, set) in HelperSet::ALL.into_iter().enumerate() {
            assert!(HelperSet::ALL[..number].iter().all(|before| before.mark() != set.mark()), "{set:?}");
            assert_eq!(
                set.of_local_name(&set.local_name(set.symbols()[0], Capabilities::ALL)),
                Some(Capabilities::ALL)
            );
        }
    }
}
