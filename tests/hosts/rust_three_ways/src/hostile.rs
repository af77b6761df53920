//! Calls every global function that safe code gets, with arguments that it may not expect. Each call ends in a result
//! or an error. Tests of the crate `tvm-ffi-runtime` include this file.

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::registry::{get_global, list_global_names};
use tvm_ffi_runtime::{
    Any, AnyView, Array, Bytes, DLDataType, DLDevice, Dict, Error, Function, List, Map, Result, Shape, Tensor,
};

/// Values of every kind.
pub fn values() -> Vec<Any> {
    let list: List = (0..3i64).collect();
    let array: Array = (0..3i64).collect();
    let strings: Array = ["a", "a text of more than seven bytes"].into_iter().collect();
    let function = Function::from_packed(|args| args.first().map_or(Ok(Any::none()), |arg| arg.to_owned()));
    let mut values: Vec<Any> = vec![
        Any::none(),
        true.into(),
        1.5.into(),
        f64::NAN.into(),
        "".into(),
        "a".into(),
        "a text of more than seven bytes".into(),
        Bytes::new(b"bytes").into(),
        Bytes::new(&[0xff; 20]).into(),
        DLDataType::FLOAT32.into(),
        DLDevice::CPU.into(),
        Error::new("ValueError", "an error").into(),
        Shape::new(&[1, -2]).into(),
        list.into(),
        array.into(),
        strings.into(),
        function.into(),
    ];
    values.extend(Map::try_from_entries([("a", 1i64)]).map(Any::from));
    values.extend(Dict::try_from_entries([("a", 1i64)]).map(Any::from));
    values.extend(Tensor::from_slice(&[1f32, 2.0], &[2]).map(Any::from));
    let numbers =
        [0, 1, -1, 2, 64, 71, 75, 128, 1 << 20, i32::MAX.into(), i32::MIN.into(), 1 << 40, i64::MAX, i64::MIN];
    values.extend(numbers.map(Any::from));
    values.extend(structures());
    values
}

/// Objects of the types of structures, and graphs as JSON, some of which contain themselves. None on an external
/// runtime: upstream recurses for ever on such a graph. None under Miri, which takes long to make them.
fn structures() -> Vec<Any> {
    if cfg!(any(feature = "external", miri)) {
        return Vec::new();
    }
    let graphs = [
        r#"{"root_index":0,"nodes":[{"type":"ffi.Array","data":[0]}]}"#,
        r#"{"root_index":1,"nodes":[{"type":"int","data":3},{"type":"ffi.Dict","data":[0,0]}]}"#,
        r#"{"root_index":0,"nodes":[{"type":"ffi.reflection.AccessStep","data":{"kind":1,"key":0}}]}"#,
    ];
    let call = |name: &str, args: &[Any]| {
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        get_global(name)?.call_packed(&views).ok()
    };
    let parsed = graphs.map(|graph| call("ffi.json.Parse", &[graph.into()]));
    let make = |args: &[Any]| call("ffi.MakeObjectFromPackedArgs", args);
    let objects = [
        make(&["ffi.reflection.AccessStep".into(), "kind".into(), 0.into(), "key".into(), "a".into()]),
        make(&["ffi.VisitErrorContext".into()]),
        call("ffi.StructuralKey", &["a".into()]),
        call("ffi.VisitInterrupt", &[1.into()]),
    ];
    graphs.into_iter().map(Any::from).chain(parsed.into_iter().chain(objects).flatten()).collect()
}

/// Views that only C code makes: NULL for every type, too large lengths of small strings, unknown types without a
/// pointer. Empty on an external runtime: upstream trusts pointers, and safe code makes no such views.
pub fn views() -> Vec<AnyView<'static>> {
    if cfg!(feature = "external") {
        return Vec::new();
    }
    let indices = (-3..=TypeIndex::DYN_OBJECT_BEGIN.0 + 2).chain([i32::MIN, i32::MAX]);
    let mut raw: Vec<TVMFFIAny> = indices.map(|index| TVMFFIAny::from_bits(TypeIndex(index), 0)).collect();
    for index in [TypeIndex::SMALL_STR, TypeIndex::SMALL_BYTES] {
        raw.extend(
            [8, 1 << 20, u32::MAX].map(|len| TVMFFIAny { zero_padding: len, ..TVMFFIAny::from_bits(index, 0x6161) }),
        );
    }
    // SAFETY: the pointers are NULL, so they own nothing.
    raw.into_iter().map(|raw| unsafe { AnyView::from_raw(raw) }).collect()
}

/// Numbers of a sequence that is the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Calls a function with up to five arguments.
fn call_with_all(function: &Function, dice: &mut Dice, calls: usize) {
    let (values, null) = (values(), views());
    let args: Vec<AnyView<'_>> = values.iter().map(Any::as_view).chain(null).collect();
    let call = |args: &[AnyView<'_>]| drop(outcome(function.call_packed(args)));
    call(&[]);
    args.iter().for_each(|arg| call(&[*arg]));
    for _ in 0..calls {
        // Choose non-NULL values more often, so many calls pass the first check.
        let mut arg = || args[if dice.below(4) == 0 { dice.below(args.len()) } else { dice.below(values.len()) }];
        let some = [arg(), arg(), arg(), arg(), arg()];
        call(&some[..1 + dice.below(5)]);
    }
    // A list may contain itself by now.
    values.iter().filter_map(|value| value.cast::<List>().ok()).for_each(|list| list.clear());
    values.iter().filter_map(|value| value.cast::<Dict>().ok()).for_each(|dict| dict.clear());
}

/// The outcome of a call. A function that it returns is called as well.
fn outcome(result: Result<Any>) -> Result<Any> {
    let value = result?;
    if let Ok(function) = value.cast::<Function>() {
        for arg in values().iter().map(Any::as_view).chain(views()) {
            let _result = function.call((arg,));
        }
    }
    Ok(value)
}

/// Calls every global function, and returns their number. `begin` gets the name of each, and decides whether to call
/// it.
pub fn walk(calls: usize, begin: impl Fn(&str) -> bool) -> usize {
    let mut dice = Dice(26);
    let names = list_global_names();
    for name in &names {
        // A function may be gone by now, since others remove functions.
        if begin(name)
            && let Some(function) = get_global(name)
        {
            call_with_all(&function, &mut dice, calls);
        }
    }
    names.len()
}
