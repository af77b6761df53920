//! The words of operations, and the reserved words.

/// The words that a body can't use as names.
pub(crate) const RESERVED: [&str; 28] = [
    "let", "var", "if", "else", "match", "for", "while", "break", "continue", "return", "forward", "try", "catch",
    "raise", "ensure", "call", "closure", "launch", "and", "or", "not", "is", "as", "True", "False", "None", "inf",
    "nan",
];

macro_rules! words {
    ($($variant:ident $name:literal $min:literal..=$max:literal $keywords:expr;)*) => {
        /// An operation that is a word before a `(`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Word {
            $($variant,)*
        }

        impl Word {
            /// The names of all words.
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),*];

            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Word::$variant),)*
                    _ => None,
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Word::$variant => $name,)*
                }
            }

            /// The smallest and the greatest number of inputs without a name.
            pub(crate) fn inputs(self) -> (usize, usize) {
                match self {
                    $(Word::$variant => ($min, $max),)*
                }
            }

            /// The inputs that have a name.
            pub(crate) fn keywords(self) -> &'static [&'static str] {
                match self {
                    $(Word::$variant => &$keywords,)*
                }
            }
        }
    };
}

words! {
    Abs "abs" 1..=1 []; Acos "acos" 1..=1 []; Acosh "acosh" 1..=1 []; Asin "asin" 1..=1 []; Asinh "asinh" 1..=1 [];
    Atan "atan" 1..=1 []; Atan2 "atan2" 2..=2 []; Atanh "atanh" 1..=1 []; Cbrt "cbrt" 1..=1 []; Ceil "ceil" 1..=1 [];
    Cos "cos" 1..=1 []; Cosh "cosh" 1..=1 []; Erf "erf" 1..=1 []; Erfc "erfc" 1..=1 []; Exp "exp" 1..=1 [];
    Exp2 "exp2" 1..=1 []; Expm1 "expm1" 1..=1 []; Floor "floor" 1..=1 []; Fma "fma" 3..=3 []; Hypot "hypot" 2..=2 [];
    Log "log" 1..=1 []; Log10 "log10" 1..=1 []; Log1p "log1p" 1..=1 []; Log2 "log2" 1..=1 []; Max "max" 2..=2 [];
    Min "min" 2..=2 []; MulHi "mul_hi" 2..=2 []; Pow "pow" 2..=2 []; Round "round" 1..=1 [];
    RoundTiesEven "round_ties_even" 1..=1 []; Sin "sin" 1..=1 []; Sinh "sinh" 1..=1 []; Sqrt "sqrt" 1..=1 [];
    Tan "tan" 1..=1 []; Tanh "tanh" 1..=1 []; Trunc "trunc" 1..=1 [];
    Div "div" 2..=2 []; Rem "rem" 2..=2 []; CeilDiv "ceil_div" 2..=2 [];
    Select "select" 3..=3 []; Bitcast "bitcast" 2..=2 [];
    Param "param" 1..=1 []; Dim "dim" 1..=1 []; Captured "captured" 1..=1 []; Move "move" 1..=1 [];
    Bytes "bytes" 1..=1 []; Shape "shape" 1..=1 []; Array "array" 0..=65536 []; DType "dtype" 1..=1 [];
    Device "device" 1..=1 [];
    Alloc "alloc" 2..=2 ["like", "device", "strides"]; Scratch "scratch" 1..=1 ["align"];
    Load "load" 2..=2 []; Store "store" 2..=2 ["dtype"]; Offset "offset" 3..=3 []; Address "address" 1..=1 [];
    Slice "slice" 4..=4 []; Transpose "transpose" 2..=2 []; Reshape "reshape" 2..=2 [];
    IsContiguous "is_contiguous" 1..=1 []; IsAligned "is_aligned" 2..=2 []; IsObject "is_object" 2..=2 [];
    Assume "assume" 1..=1 ["dtype", "ndim", "contiguous", "align", "device"];
    EnvState "env_state" 1..=1 []; CheckSignalsEvery "check_signals_every" 1..=1 [];
    LimitRecursion "limit_recursion" 1..=1 [];
}

impl Word {
    /// Whether the operation is a statement, because it has no value.
    pub(crate) fn is_statement(self) -> bool {
        matches!(self, Word::Store | Word::CheckSignalsEvery | Word::LimitRecursion)
    }

    /// Whether the operation computes a number from one number or from two.
    pub(crate) fn kind(self) -> WordKind {
        // the table has these first, in this order
        match self {
            _ if (self as usize) > Word::CeilDiv as usize => WordKind::Other,
            _ if self == Word::Fma => WordKind::Other,
            _ if self.inputs() == (1, 1) => WordKind::Unary,
            _ => WordKind::Binary,
        }
    }
}

/// The kind of an operation, by the numbers that it computes its value from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WordKind {
    /// One number.
    Unary,
    /// Two numbers.
    Binary,
    Other,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// The words of the patterns that one part of the grammar for editors has.
    fn words_of<'g>(grammar: &'g Value, part: &str) -> BTreeSet<&'g str> {
        let patterns = grammar["repository"][part]["patterns"].as_array().unwrap();
        let words = patterns.iter().flat_map(|pattern| {
            let text = pattern["match"].as_str().unwrap();
            let words = text.strip_prefix(r"\b(?:").and_then(|rest| rest.split_once(")\\b")).unwrap().0;
            words.split('|')
        });
        words.collect()
    }

    #[test]
    fn editors_know_all_words() {
        let text = include_str!("../../docs/editors/tfh.tmLanguage.json");
        let grammar: Value = serde_json::from_str(text).unwrap();
        assert_eq!(grammar["scopeName"], "source.tfh");
        assert_eq!(words_of(&grammar, "reserved"), BTreeSet::from(RESERVED));
        assert_eq!(words_of(&grammar, "words"), Word::NAMES.iter().copied().collect());
    }
}
