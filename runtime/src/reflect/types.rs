//! The built-in types with fields, laid out as in C++, and the conversions to other built-in types.
//! Header sections: upstream's `enum.h`, `extra/structural_visit.h`.

use super::accessors::Text;
use super::builtin::{ANY, Builtin, INT, create, define, stored};
use super::convert::{conversions, instances_of};
use super::field;
use crate::abi::*;
use crate::any::Any;
use crate::container::{Dict, List};
use crate::error::Result;
use crate::function::Function;
use crate::heap::ObjectRef;
use crate::string::Str;
use crate::type_table::{Definition, FieldDef, is_instance, key_to_index};

struct VisitInterrupt;

impl Builtin for VisitInterrupt {
    const KEY: &'static str = "ffi.VisitInterrupt";
    const SIZE: usize = 40;
}

/// `ffi.VisitInterrupt`: an object with a value.
pub(crate) fn visit_interrupt(value: Any) -> Result<ObjectRef> {
    create::<VisitInterrupt>(vec![("value", value)])
}

struct EnumState;

impl Builtin for EnumState {
    const KEY: &'static str = "ffi.EnumState";
    const SIZE: usize = 48;

    fn initial() -> Vec<(&'static str, Any)> {
        vec![
            ("entries", <List>::default().into()),
            ("indexes", <Dict>::default().into()),
            ("attrs", <Dict>::default().into()),
        ]
    }
}

macro_rules! enums {
    ($($name:ident: $key:literal;)*) => {$(
        struct $name;

        impl Builtin for $name {
            const KEY: &'static str = $key;
            const SIZE: usize = 48;

            fn initial() -> Vec<(&'static str, Any)> {
                vec![("_str_index", Str::new("").into())]
            }
        }
    )*};
}
enums! {
    Enum: "ffi.Enum";
    IntEnum: "ffi.IntEnum";
    StrEnum: "ffi.StrEnum";
}

const STR: &str = r#"{"type_schema":"{\"type\":\"ffi.String\"}"}"#;

/// The built-in reflection of types other than modules.
pub(crate) fn types() -> Vec<Definition> {
    let mut types = conversions();
    // Upstream registers only metadata for this type.
    let mut object = Definition::object("ffi.Object", "", size_of::<TVMFFIObject>(), false);
    object.attributes.clear();
    types.push(object);
    let value =
        FieldDef { flags: kTVMFFIFieldFlagBitMaskHasDefault, ..stored::<Any>("value", "", ANY, 24, TypeIndex::ANY) };
    types.push(define::<VisitInterrupt>("ffi.Object", true).field(value.info()));
    types.extend(enum_types());
    types
}

fn enum_types() -> Vec<Definition> {
    let hidden = |field: FieldDef| FieldDef { flags: kTVMFFIFieldFlagBitMaskInitOff, ..field }.info();
    let ignored =
        |field: FieldDef, flags| FieldDef { flags: flags | kTVMFFIFieldFlagBitMaskSEqHashIgnore, ..field }.info();
    let unique = kTVMFFISEqHashKindUniqueInstance;
    let (int_doc, str_doc) = ("Canonical integer index.", "Canonical string index.");
    let int = |name| stored::<i64>(name, int_doc, INT, 24, TypeIndex::INT);
    let str = |name| stored::<Text>(name, str_doc, STR, 32, TypeIndex::ANY);
    // Use the same function for the attribute and the method.
    let make_state: Any = Function::built_in(|_| create::<EnumState>(EnumState::initial()).map(Any::from)).into();
    vec![
        define::<EnumState>("ffi.Object", true)
            .field(hidden(stored::<Option<List>>(
                "entries",
                "Enum singletons in registration order.",
                r#"{"type_schema":"{\"type\":\"ffi.List\",\"args\":[{\"type\":\"ffi.Object\"}]}"}"#,
                24,
                TypeIndex::LIST,
            )))
            .field(hidden(stored::<Option<Dict>>(
                "indexes",
                "Canonical integer and string indices to enum singletons.",
                r#"{"type_schema":"{\"type\":\"ffi.Dict\",\"args\":[{\"type\":\"Any\"},{\"type\":\"ffi.Object\"}]}"}"#,
                32,
                TypeIndex::OBJECT,
            )))
            .field(hidden(stored::<Option<Dict>>(
                "attrs",
                "Extensible-attribute columns keyed by enum singleton.",
                concat!(
                    r#"{"type_schema":"{\"type\":\"ffi.Dict\",\"args\":[{\"type\":\"ffi.String\"},"#,
                    r#"{\"type\":\"ffi.Dict\",\"args\":[{\"type\":\"ffi.Object\"},{\"type\":\"Any\"}]}]}"}"#,
                ),
                40,
                TypeIndex::OBJECT,
            )))
            .method(
                "__ffi_init__",
                "",
                concat!(
                    r#"{"type_schema":"{\"type\":\"ffi.Function\",\"named_args\":"#,
                    r#"{\"return\":[{\"type\":\"ffi.Object\"}],\"params\":[]}}"}"#,
                ),
                kTVMFFIFieldFlagBitMaskIsStaticMethod,
                make_state.clone(),
            )
            .attribute("__ffi_init__", make_state),
        define::<Enum>("ffi.Object", false)
            .kind(unique)
            .field(ignored(int("_int_index"), 0))
            .field(str("_str_index").info()),
        define::<IntEnum>("ffi.Enum", false)
            .kind(unique)
            .field(ignored(int("value"), kTVMFFIFieldFlagBitMaskInitOff))
            .attribute("__ffi_convert__", instances_of("ffi.IntEnum")),
        define::<StrEnum>("ffi.Enum", false)
            .kind(unique)
            .field(ignored(str("value"), kTVMFFIFieldFlagBitMaskInitOff))
            .attribute("__ffi_convert__", instances_of("ffi.StrEnum")),
    ]
}

/// True if an object is an enum member. An enum has one object for each value.
pub(crate) fn is_enum(object: &ObjectRef) -> bool {
    key_to_index(Enum::KEY).is_some_and(|index| is_instance(object.type_index(), TypeIndex(index)))
}

/// The name of an enum member.
pub(crate) fn enum_name(object: &ObjectRef) -> Option<Str> {
    if !is_enum(object) {
        return None;
    }
    field::named(object, b"_str_index").ok()??.cast().ok()
}
