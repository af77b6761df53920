//! Checks for functions that don't use plain C passing, which wrappers need to call kernels.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::FunctionValue;

use crate::ir::Extension;

/// Attributes that change how a value is passed, compared with a plain C value.
const NOT_PLAIN: [&str; 10] =
    ["byval", "byref", "sret", "inalloca", "preallocated", "inreg", "nest", "swiftself", "swifterror", "swiftasync"];

/// The number of C's calling convention.
const C: u32 = 0;

/// Why wrappers can't call a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotPlain {
    /// It takes a variable number of arguments.
    VarArgs,
    /// It has the LLVM calling convention of this number.
    Convention(u32),
    /// Its result has this attribute.
    Result(&'static str),
    /// The parameter at this index has this attribute.
    Param(usize, &'static str),
}

impl NotPlain {
    pub(crate) fn of(function: FunctionValue<'_>) -> Option<Self> {
        let attribute = |at| NOT_PLAIN.into_iter().find(|name| has(function, at, name));
        if function.get_type().is_var_arg() {
            return Some(NotPlain::VarArgs);
        }
        if function.get_call_conventions() != C {
            return Some(NotPlain::Convention(function.get_call_conventions()));
        }
        if let Some(name) = attribute(AttributeLoc::Return) {
            return Some(NotPlain::Result(name));
        }
        let param = |index| Some(NotPlain::Param(index as usize, attribute(AttributeLoc::Param(index))?));
        (0..function.count_params()).find_map(param)
    }

    /// The reason in words, to follow the function's name. `param` names a parameter by its index.
    pub(crate) fn in_words(self, param: impl Fn(usize) -> String) -> String {
        match self {
            NotPlain::VarArgs => "takes a variable number of arguments, which wrappers don't pass".to_owned(),
            NotPlain::Convention(number) => {
                format!("has LLVM's calling convention {number}, and wrappers call by C's, which is {C}")
            }
            NotPlain::Result(name) => {
                format!("has the attribute `{name}` on its result, which C's results don't have")
            }
            NotPlain::Param(index, name) => format!(
                "has the attribute `{name}` on {}, by which it isn't passed as C passes a plain value: leave the \
                 attribute out",
                param(index)
            ),
        }
    }
}

/// How the parameter at `index` extends a narrow integer; `None` if the function doesn't say.
pub(crate) fn extension(function: FunctionValue<'_>, index: usize) -> Option<Extension> {
    let at = AttributeLoc::Param(index as u32);
    match (has(function, at, "signext"), has(function, at, "zeroext")) {
        (true, _) => Some(Extension::Signed),
        (_, true) => Some(Extension::Unsigned),
        _ => None,
    }
}

fn has(function: FunctionValue<'_>, at: AttributeLoc, name: &str) -> bool {
    // 0 means that this LLVM doesn't know the attribute
    let kind = Attribute::get_named_enum_kind_id(name);
    kind != 0 && function.get_enum_attribute(at, kind).is_some()
}
