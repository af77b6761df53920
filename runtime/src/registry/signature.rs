//! The signatures of built-in functions, as upstream declares them, for error messages and metadata.
//! A signature's string is parsed only when a call fails or code requests the metadata.
//! No header section: upstream makes these strings in `function_detail.h`.

use std::fmt::{self, Write};

use crate::abi::{TVMFFISeqCell, TypeIndex};
use crate::any::AnyView;
use crate::error::{Error, type_error};
use crate::type_info;

/// A declared type: its name in messages, and the types in angle brackets after it.
struct Type<'a> {
    name: &'a str,
    args: Vec<Type<'a>>,
}

/// The types with different names in messages and in metadata, in this order.
const SCHEMA_NAMES: &[(&str, &str)] = &[
    ("str", "ffi.String"),
    ("bytes", "ffi.Bytes"),
    ("void", "None"),
    ("AnyView", "Any"),
    ("Array", "ffi.Array"),
    ("List", "ffi.List"),
    ("Map", "ffi.Map"),
    ("Dict", "ffi.Dict"),
];

impl<'a> Type<'a> {
    /// Parses a type, and returns it with the rest of the string.
    fn parse(text: &'a str) -> (Self, &'a str) {
        let end = text.find(['<', '>', ',', ')']).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(end);
        let mut args = Vec::new();
        if let Some(inside) = rest.strip_prefix('<') {
            (args, rest) = Self::parse_list(inside);
            rest = rest.strip_prefix('>').unwrap_or(rest);
        }
        (Self { name, args }, rest)
    }

    /// Parses types separated by commas. Returns them with the rest of the string, from the closing bracket on.
    fn parse_list(mut text: &'a str) -> (Vec<Self>, &'a str) {
        let mut types = Vec::new();
        while !text.is_empty() && !text.starts_with([')', '>']) {
            let (ty, rest) = Self::parse(text);
            types.push(ty);
            text = rest.strip_prefix(", ").unwrap_or(rest);
        }
        (types, text)
    }

    /// True if upstream converts the value to this type.
    fn accepts(&self, view: &AnyView<'_>) -> bool {
        use TypeIndex as T;
        let index = view.inner_type_index();
        match self.name {
            "Any" | "AnyView" => true,
            "int" | "bool" => matches!(index, T::INT | T::BOOL),
            "str" => matches!(index, T::SMALL_STR | T::STR | T::RAW_STR),
            "bytes" => matches!(index, T::SMALL_BYTES | T::BYTES | T::BYTE_ARRAY_PTR),
            "Tuple" => index == T::ARRAY,
            "void*" => matches!(index, T::OPAQUE_PTR | T::NONE),
            "Optional" => index == T::NONE || self.args.iter().all(|arg| arg.accepts(view)),
            "Array" | "List" => matches!(index, T::ARRAY | T::LIST),
            "Map" | "Dict" => matches!(index, T::MAP | T::DICT),
            "ffi.Object" => index.is_object(),
            key => type_info::key_of(index) == key,
        }
    }

    /// The type of a value that upstream doesn't convert to this type, as its messages name it; `None` if it does.
    fn mismatch(&self, view: &AnyView<'_>) -> Option<String> {
        let elements = match self.name {
            "Array" | "Tuple" if !self.args.is_empty() => elements_of(view),
            _ => None,
        };
        match elements {
            None => (!self.accepts(view)).then(|| view.type_key()),
            Some(elements) if self.name == "Tuple" && elements.len() != self.args.len() => {
                Some(format!("Array[size={}]", elements.len()))
            }
            Some(elements) => elements
                .iter()
                .zip(self.args.iter().cycle())
                .enumerate()
                .find_map(|(i, (value, ty))| Some(format!("Array[index {i}: {}]", ty.mismatch(value)?))),
        }
    }

    /// Writes the type as JSON, escaped to be part of a JSON string.
    fn write_schema(&self, out: &mut String) {
        let schema_name = SCHEMA_NAMES.iter().find(|(name, _)| *name == self.name).map_or(self.name, |found| found.1);
        out.push_str(r#"{\"type\":\""#);
        out.push_str(schema_name);
        out.push_str(r#"\""#);
        if !self.args.is_empty() {
            out.push_str(r#",\"args\":"#);
            write_schemas(&self.args, out);
        }
        out.push('}');
    }
}

/// The elements of an array.
fn elements_of<'a>(view: &'a AnyView<'_>) -> Option<&'a [AnyView<'a>]> {
    let array = view.borrowed_object().filter(|object| object.type_index() == TypeIndex::ARRAY)?;
    // SAFETY: the cell follows an array's header. The elements live as long as the array, and don't change.
    unsafe {
        let cell = array.as_ptr().add(1).cast::<TVMFFISeqCell>();
        Some(AnyView::elements_from_raw((*cell).data.cast(), usize::try_from((*cell).size).unwrap_or(0)))
    }
}

fn write_schemas(types: &[Type<'_>], out: &mut String) {
    out.push('[');
    for (i, ty) in types.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        ty.write_schema(out);
    }
    out.push(']');
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for (i, arg) in self.args.iter().enumerate() {
            write!(f, "{}{arg}", if i == 0 { "<" } else { ", " })?;
        }
        if self.args.is_empty() { Ok(()) } else { f.write_char('>') }
    }
}

/// The name, parameters and result of a function.
struct Signature<'a> {
    name: &'a str,
    params: Vec<Type<'a>>,
    result: Type<'a>,
}

impl<'a> Signature<'a> {
    /// Parses `name(type, type) -> type`. The name may be empty.
    fn parse(text: &'a str) -> Self {
        let (name, rest) = text.split_once('(').unwrap_or((text, ") -> Any"));
        let (params, rest) = Type::parse_list(rest);
        let result = rest.strip_prefix(") -> ").unwrap_or("Any");
        Self { name, params, result: Type::parse(result).0 }
    }

    fn metadata(&self) -> String {
        let mut out = r#"{"type_schema":"{\"type\":\"ffi.Function\",\"named_args\":{\"return\":["#.to_owned();
        self.result.write_schema(&mut out);
        out.push_str(r#"],\"params\":"#);
        write_schemas(&self.params, &mut out);
        out.push_str(r#"}}"}"#);
        out
    }
}

impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (i, param) in self.params.iter().enumerate() {
            write!(f, "{}{i}: {param}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, ") -> {}", self.result)
    }
}

/// The error for a call of a function with this signature and the wrong number of arguments.
#[cold]
#[inline(never)]
pub(super) fn wrong_number(signature: &str, got: usize) -> Error {
    let signature = Signature::parse(signature);
    let wanted = signature.params.len();
    type_error(&format!(
        "Mismatched number of arguments when calling: `{signature}`. Expected {wanted} but got {got} arguments"
    ))
}

/// The error of a failed call, as upstream words it. If an argument doesn't have its declared type, the result is a
/// `TypeError` for that argument; otherwise it is `error`.
#[cold]
#[inline(never)]
pub(super) fn explain(signature: &str, args: &[AnyView<'_>], error: Error) -> Error {
    let signature = Signature::parse(signature);
    // Start with the last argument, since upstream converts them in that order.
    for (i, (param, arg)) in signature.params.iter().zip(args).enumerate().rev() {
        if let Some(got) = param.mismatch(arg) {
            return type_error(&format!(
                "Mismatched type on argument #{i} when calling: `{signature}`. Expected `{param}` but got `{got}`"
            ));
        }
    }
    error
}

/// The metadata of a function with this signature. The type table keeps it for the life of the process.
pub(crate) fn metadata_of(signature: &'static str) -> &'static str {
    Signature::parse(signature).metadata().leak()
}

/// The metadata of the built-in function of that name. A function without a signature takes any arguments.
pub(super) fn metadata(name: &str) -> String {
    match of(name) {
        Some(signature) => Signature::parse(signature).metadata(),
        None => r#"{"type_schema":"{\"type\":\"ffi.Function\"}"}"#.to_owned(),
    }
}

/// The signature of the built-in function of that name, as a string.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let behind_name = |text: &'static str| text.strip_prefix(name).is_some_and(|rest| rest.starts_with('('));
    SIGNATURES.iter().copied().find(|text| behind_name(text))
}

/// The signatures of built-in functions that take a fixed number of arguments.
const SIGNATURES: &[&str] = &[
    "ffi.ArrayContains(ffi.Array, Any) -> bool",
    "ffi.ArrayGetItem(ffi.Array, int) -> Any",
    "ffi.ArraySize(ffi.Array) -> int",
    "ffi.Bytes(bytes) -> bytes",
    "ffi.ContainerFindFirstNonCPUDevice(Any) -> Device",
    "ffi.DeepCopy(Any) -> Any",
    "ffi.DictClear(Dict<Any, Any>) -> void",
    "ffi.DictCount(ffi.Dict, Any) -> int",
    "ffi.DictErase(Dict<Any, Any>, Any) -> void",
    "ffi.DictForwardIterFunctor(ffi.Dict) -> ffi.Function",
    "ffi.DictGetItem(ffi.Dict, Any) -> Any",
    "ffi.DictGetItemOrMissing(ffi.Dict, Any) -> Any",
    "ffi.DictSetItem(Dict<Any, Any>, Any, Any) -> void",
    "ffi.DictSize(ffi.Dict) -> int",
    "ffi.FromJSONGraph(Any) -> Any",
    "ffi.FromJSONGraphString(str) -> Any",
    "ffi.FunctionFromExternC(void*, void*, void*) -> ffi.Function",
    "ffi.FunctionListGlobalNamesFunctor() -> ffi.Function",
    "ffi.FunctionRemoveGlobal(str) -> bool",
    "ffi.GetFirstStructuralMismatch(Any, Any, bool, bool) -> \
     Optional<Tuple<ffi.reflection.AccessPath, ffi.reflection.AccessPath>>",
    "ffi.GetGlobalFuncMetadata(str) -> str",
    "ffi.GetInvalidObject() -> ffi.Object",
    "ffi.GetKwargsObject() -> ffi.Object",
    "ffi.GetRegisteredTypeKeys() -> Array<str>",
    "ffi.ListAppend(List<Any>, Any) -> void",
    "ffi.ListClear(List<Any>) -> void",
    "ffi.ListContains(ffi.List, Any) -> bool",
    "ffi.ListErase(List<Any>, int) -> void",
    "ffi.ListEraseRange(List<Any>, int, int) -> void",
    "ffi.ListGetItem(ffi.List, int) -> Any",
    "ffi.ListInsert(List<Any>, int, Any) -> void",
    "ffi.ListPop(List<Any>, int) -> Any",
    "ffi.ListReplaceSlice(List<Any>, int, int, List<Any>) -> void",
    "ffi.ListReserve(List<Any>, int) -> void",
    "ffi.ListReverse(List<Any>) -> void",
    "ffi.ListSetItem(List<Any>, int, Any) -> void",
    "ffi.ListSize(ffi.List) -> int",
    "ffi.MakeFieldGetter(int) -> int",
    "ffi.MakeFieldSetter(int, int, int) -> ffi.Function",
    "ffi.MapCount(ffi.Map, Any) -> int",
    "ffi.MapForwardIterFunctor(ffi.Map) -> ffi.Function",
    "ffi.MapGetItem(ffi.Map, Any) -> Any",
    "ffi.MapGetItemOrMissing(ffi.Map, Any) -> Any",
    "ffi.MapSize(ffi.Map) -> int",
    "ffi.Module.load_from_file.so(str, str) -> ffi.Module",
    "ffi.ModuleClearImports(ffi.Module) -> void",
    "ffi.ModuleGetFunction(ffi.Module, str, bool) -> Optional<ffi.Function>",
    "ffi.ModuleGetFunctionDoc(ffi.Module, str, bool) -> Optional<str>",
    "ffi.ModuleGetFunctionMetadata(ffi.Module, str, bool) -> Optional<str>",
    "ffi.ModuleGetKind(ffi.Module) -> str",
    "ffi.ModuleGetPropertyMask(ffi.Module) -> int",
    "ffi.ModuleGetWriteFormats(ffi.Module) -> Array<str>",
    "ffi.ModuleGlobalsAdd(ffi.Module) -> void",
    "ffi.ModuleGlobalsRemove(ffi.Module) -> void",
    "ffi.ModuleImplementsFunction(ffi.Module, str, bool) -> bool",
    "ffi.ModuleImportModule(ffi.Module, ffi.Module) -> void",
    "ffi.ModuleInspectSource(ffi.Module, str) -> str",
    "ffi.ModuleLoadFromFile(str) -> ffi.Module",
    "ffi.ModuleWriteToFile(ffi.Module, str, str) -> void",
    "ffi.RecursiveEq(Any, Any) -> bool",
    "ffi.RecursiveGe(Any, Any) -> bool",
    "ffi.RecursiveGt(Any, Any) -> bool",
    "ffi.RecursiveHash(Any) -> int",
    "ffi.RecursiveLe(Any, Any) -> bool",
    "ffi.RecursiveLt(Any, Any) -> bool",
    "ffi.ReprPrint(Any) -> str",
    "ffi.String(str) -> str",
    "ffi.StructuralEqual(Any, Any, bool, bool) -> bool",
    "ffi.StructuralHash(Any, bool, bool) -> int",
    "ffi.StructuralKey(Any) -> ffi.StructuralKey",
    "ffi.StructuralKeyEqual(Any, Any) -> bool",
    "ffi.StructuralMap(Any, Array<Tuple<int, ffi.Function>>, Array<Tuple<int, ffi.Function>>, int) -> Any",
    "ffi.StructuralMutate(Any, Array<Tuple<int, ffi.Function, bool>>) -> Any",
    "ffi.StructuralMutatorDefRegionKind(ffi.StructuralMutator) -> int",
    "ffi.StructuralMutatorDefaultMutate(ffi.StructuralMutator, AnyView) -> Any",
    "ffi.StructuralMutatorMutate(ffi.StructuralMutator, AnyView) -> Any",
    "ffi.StructuralMutatorVarRemapGet(ffi.StructuralMutator, AnyView) -> Any",
    "ffi.StructuralMutatorVarRemapSet(ffi.StructuralMutator, AnyView, AnyView) -> void",
    "ffi.StructuralMutatorWithDefRegionKind(ffi.StructuralMutator, int, ffi.Function) -> Any",
    "ffi.StructuralVisit(AnyView, Array<Tuple<int, ffi.Function>>) -> Optional<ffi.VisitInterrupt>",
    "ffi.StructuralVisitorDefRegionKind(ffi.StructuralVisitor) -> int",
    "ffi.StructuralVisitorDefaultVisit(ffi.StructuralVisitor, AnyView) -> Optional<ffi.VisitInterrupt>",
    "ffi.StructuralVisitorVisit(ffi.StructuralVisitor, AnyView) -> Optional<ffi.VisitInterrupt>",
    "ffi.StructuralVisitorWithDefRegionKind(ffi.StructuralVisitor, int, ffi.Function) -> Any",
    "ffi.StructuralWalk(AnyView, Array<Tuple<int, ffi.Function>>, Array<Tuple<int, ffi.Function>>, int) -> \
     Optional<ffi.VisitInterrupt>",
    "ffi.ToJSONGraph(Any, Any) -> Any",
    "ffi.ToJSONGraphString(Any, Any) -> str",
    "ffi.VisitErrorContext.FindAccessPaths(ffi.Object, ffi.VisitErrorContext, bool) -> \
     Array<ffi.reflection.AccessPath>",
    "ffi.VisitInterrupt(Any) -> ffi.VisitInterrupt",
    "ffi._PyClassRegisterTypeAttrColumns(int, int) -> void",
    "ffi._RegisterFFIInit(int) -> void",
    "ffi.json.Parse(str) -> Any",
    "ffi.json.Stringify(Any, Optional<int>) -> str",
];
