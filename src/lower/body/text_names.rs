//! The names of operations as the text of host functions has them.

/// The operations whose methods are called otherwise than in the text.
const NAMES: [(&str, &str); 36] = [
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("and", "&"),
    ("or", "|"),
    ("xor", "^"),
    ("shl", "<<"),
    ("shr", ">>"),
    ("neg", "-"),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("floor_div", "//"),
    ("floor_rem", "%"),
    ("ret", "return"),
    ("ret_value", "return"),
    ("ret_none", "return"),
    ("break_", "break"),
    ("continue_", "continue"),
    ("continue_with", "continue"),
    ("fold: the next value", "continue"),
    ("while: the next value", "continue"),
    ("raise_again", "raise"),
    ("raise_from", "raise"),
    ("alloc_tensor", "alloc"),
    ("alloc_strided", "alloc"),
    ("set", "="),
    ("same_dtype", "=="),
    ("same_device", "=="),
    ("is_device_kind", "kind"),
    ("device_id", "id"),
    ("is_kind", "is"),
    ("cast_any", "as"),
];

/// The name of an operation in the text.
pub(super) fn text_name(operation: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == operation).map_or(operation, |(_, name)| name)
}
