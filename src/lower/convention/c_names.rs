//! C identifiers, and names that have another meaning in C.

/// Whether a parameter can have this name in C.
pub(in crate::lower) fn is_free_for_parameter(name: &str) -> bool {
    !has_meaning(name) && !name.starts_with("__")
}

/// Whether a symbol can be declared under its own name.
pub(in crate::lower) fn is_free_for_function(symbol: &str) -> bool {
    let plain = symbol.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !symbol.starts_with(|c: char| c.is_ascii_digit());
    plain && !has_meaning(symbol)
}

fn has_meaning(name: &str) -> bool {
    // `_Bool`, `_Generic`, ...
    let reserved = name.strip_prefix('_').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    reserved || KEYWORDS.contains(&name) || TYPES.contains(&name) || is_macro(name)
}

/// Macros of the headers that prototypes include, of headers that are likely to precede them, and of compilers.
fn is_macro(name: &str) -> bool {
    let starts = ["DLPACK_", "TVM_"].iter().any(|prefix| name.starts_with(prefix));
    let ends = ["_MAX", "_MIN", "_WIDTH"].iter().any(|suffix| name.ends_with(suffix));
    starts || ends || ["NULL", "errno", "linux", "unix"].contains(&name)
}

/// Types in prototypes. A parameter with such a name would hide the type from later parameters.
const TYPES: [&str; 14] = [
    "DLDataType",
    "DLDevice",
    "DLTensor",
    "TVMFFIAny",
    "TVMFFIObjectHandle",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "size_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
];

/// Words that can't be names in C or in C++.
const KEYWORDS: [&str; 95] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];
