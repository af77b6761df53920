//! Structural walks, visits, maps and mutations through the global functions. The C++ program `visits.cc` and the
//! Python program `structural_walks.py` compare their outcomes with upstream's library.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tvm_ffi_runtime::abi::*;
use tvm_ffi_runtime::registry::get_global;
use tvm_ffi_runtime::{
    Any, AnyView, Array, CallArgs, Dict, Error, Function, List, Map, Obj, Object, ObjectRef, Result,
};

use crate::hostile;
use crate::support::{DEEP, on_a_small_stack, rounds};

const PRE: i64 = 0;
const POST: i64 = 1;
/// The type index of callbacks for all values.
const ALL: i32 = TypeIndex::ANY.0;
const INT: i32 = TypeIndex::INT.0;

fn call<A: CallArgs>(name: &str, args: A) -> Result<Any> {
    get_global(name).unwrap().call(args)
}

fn text(value: &Any) -> String {
    call("ffi.ReprPrint", (value,)).unwrap().as_str().unwrap().to_owned()
}

/// A list of one callback.
fn callback(index: i32, body: impl Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static) -> Array {
    let entry: Array = [Any::from(index), Function::from_packed(body).into()].into_iter().collect();
    [entry].into_iter().collect()
}

/// As [`callback`], for `ffi.StructuralMutate`.
fn mutation(index: i32, body: impl Fn(&[AnyView<'_>]) -> Result<Any> + Send + Sync + 'static) -> Array {
    let entry: Array = [Any::from(index), Function::from_packed(body).into(), true.into()].into_iter().collect();
    [entry].into_iter().collect()
}

fn nothing() -> Array {
    Array::default()
}

/// Calls a function with a first argument that it may take over.
fn call_with_owned(name: &str, root: impl Into<ObjectRef>, args: &[Any]) -> Result<Any> {
    let mut place = root.into().into_raw();
    let root = TVMFFIAny::from_ptr(TypeIndex::OBJECT_RVALUE_REF, (&raw mut place).cast());
    // SAFETY: the place holds an owned reference.
    let root = unsafe { AnyView::from_raw(root) };
    let views: Vec<AnyView<'_>> = std::iter::once(root).chain(args.iter().map(Any::as_view)).collect();
    let result = get_global(name).unwrap().call_packed(&views);
    // SAFETY: the function has left an owned reference or NULL in the place.
    drop(unsafe { ObjectRef::from_raw(place) });
    result
}

/// Lists and arrays nested to this depth around a number.
fn nested(depth: usize) -> Any {
    (0..depth).fold(Any::from(1), |inside, level| match level % 4 {
        0 => Array::from(vec![inside]).into(),
        1 => List::from(vec![inside]).into(),
        2 => [("k", inside)].into_iter().collect::<Map>().into(),
        _ => [("k", inside)].into_iter().collect::<Dict>().into(),
    })
}

/// The number inside [`nested`].
fn innermost(mut value: Any) -> i64 {
    loop {
        value = match value.type_index() {
            TypeIndex::ARRAY => value.cast::<Array>().unwrap()[0].clone(),
            TypeIndex::LIST => value.cast::<List>().unwrap().get(0).unwrap(),
            TypeIndex::MAP => value.cast::<Map>().unwrap().get("k").unwrap().unwrap().clone(),
            TypeIndex::DICT => value.cast::<Dict>().unwrap().get("k").unwrap().unwrap(),
            _ => return value.cast().unwrap(),
        };
    }
}

fn count(counter: &Arc<AtomicUsize>) -> Array {
    let counter = Arc::clone(counter);
    callback(ALL, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Any::none())
    })
}

fn plus_one(args: &[AnyView<'_>]) -> Result<Any> {
    Ok((args[0].cast::<i64>()? + 1).into())
}

#[test]
fn depth_takes_no_stack() {
    on_a_small_stack(|| {
        let deep = nested(DEEP);
        for order in [PRE, POST] {
            let counter = Arc::default();
            assert!(call("ffi.StructuralWalk", (&deep, count(&counter), nothing(), order)).unwrap().is_none());
            assert_eq!(counter.load(Ordering::Relaxed), DEEP + 1);
            let mapped = call("ffi.StructuralMap", (&deep, callback(INT, plus_one), nothing(), order)).unwrap();
            assert_eq!((innermost(mapped), innermost(deep.clone())), (2, 1));
        }
        let fails = || callback(INT, |_| Err(Error::new("ValueError", "deep")));
        for (name, order) in [("ffi.StructuralWalk", PRE), ("ffi.StructuralMap", POST)] {
            let error = call(name, (&deep, fails(), nothing(), order)).unwrap_err();
            assert_eq!(error.message(), "deep");
            // The context has every container, from the innermost one on.
            let context = Any::from(error.extra_context().unwrap());
            let paths = call("ffi.VisitErrorContext.FindAccessPaths", (&deep, &context, false)).unwrap();
            assert_eq!(paths.cast::<Array>().unwrap().len(), 0, "containers aren't found");
        }
        assert!(call("ffi.StructuralVisit", (&deep, nothing())).unwrap().is_none());
        let root = ObjectRef::try_from(deep).unwrap();
        let mapped = call_with_owned("ffi.StructuralMutate", root, &[mutation(INT, plus_one).into()]).unwrap();
        assert_eq!(innermost(mapped), 2);
    });
}

#[test]
#[cfg_attr(miri, ignore = "a million levels")]
fn a_cycle_is_an_error() {
    let list = <List>::default();
    let dict = Dict::try_from_entries([("k", list.clone())]).unwrap();
    list.push(dict);
    for name in ["ffi.StructuralWalk", "ffi.StructuralMap"] {
        let error = call(name, (&list, nothing(), nothing(), POST)).unwrap_err();
        assert!(error.message().ends_with("maximum stack depth (1048576) exceeded"), "{error}");
    }
    list.clear();
}

#[test]
fn a_callback_that_keeps_a_value_keeps_it_unchanged() {
    let kept: Arc<Mutex<Vec<Any>>> = Arc::default();
    let keep = {
        let kept = Arc::clone(&kept);
        callback(TypeIndex::OBJECT.0, move |args| {
            kept.lock().unwrap().push(args[0].to_owned()?);
            args[0].to_owned()
        })
    };
    let grow = callback(INT, plus_one);
    let both: Array = grow.iter().chain(keep.iter()).cloned().collect();
    let map: Map = [("k", 1)].into_iter().collect();
    let list = List::from(vec![Array::from(vec![1.into()]).into()]);
    let root: Array = [Any::from(list), map.into()].into_iter().collect();
    let result = call_with_owned("ffi.StructuralMap", root, &[both.into(), nothing().into(), PRE.into()]).unwrap();
    assert_eq!(text(&result), r#"([(2,)], {"k": 2})"#);
    let kept: Vec<String> = kept.lock().unwrap().iter().map(text).collect();
    assert_eq!(kept, [r#"([(1,)], {"k": 1})"#, "[(1,)]", "(1,)", r#"{"k": 1}"#]);
}

/// Values that nothing else refers to keep their identity, as with upstream's library.
#[test]
fn owned_values_change_in_place() {
    let inner = Array::from(vec![1.into()]);
    let address = |value: &Any| value.as_raw().bits();
    let inner_before = address(&Any::from(inner.clone()));
    let root: List = [inner].into_iter().collect();
    let before = address(&Any::from(root.clone()));
    let args = [callback(INT, plus_one).into(), nothing().into(), POST.into()];
    let result = call_with_owned("ffi.StructuralMap", root, &args).unwrap();
    assert_eq!(text(&result), "[(2,)]");
    assert_eq!(address(&result), before);
    assert_eq!(address(&result.cast::<List>().unwrap().get(0).unwrap()), inner_before);
    // A weak reference may become one to a changing array.
    let root = Array::from(vec![1.into()]);
    let weak = ObjectRef::from(root.clone()).downgrade();
    let result = call_with_owned("ffi.StructuralMap", root, &args).unwrap();
    assert_eq!(text(&result), "(2,)");
    assert!(weak.upgrade().is_none());
}

#[test]
fn callbacks_may_change_lists_and_dicts() {
    let list: List = (0..9i64).collect();
    let dict = Dict::try_from_entries((0..9i64).map(|key| (key, key))).unwrap();
    let (changed_list, changed_dict) = (list.clone(), dict.clone());
    let change = move |args: &[AnyView<'_>]| {
        let value: i64 = args[0].cast()?;
        changed_list.pop();
        changed_dict.remove(&value)?;
        changed_dict.insert(value + 100, value + 100)?;
        if changed_dict.len() > 20 || value == 104 {
            changed_dict.clear();
        }
        Ok(Any::from(value + 1000))
    };
    let map = |root: &ObjectRef| {
        let callbacks = callback(INT, change.clone());
        text(&call("ffi.StructuralMap", (root, callbacks, nothing(), PRE)).unwrap())
    };
    // The copy was made at the first change, before which the callback had changed the list.
    assert_eq!(map(&list.clone().into()), "[1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]");
    assert_eq!(list.len(), 1);
    assert!(map(&dict.clone().into()).len() > 40);
    let walk = |root: &ObjectRef| {
        let change = change.clone();
        let callbacks = callback(INT, move |args| change(args).map(|_| Any::none()));
        assert!(call("ffi.StructuralWalk", (root, callbacks, nothing(), POST)).unwrap().is_none());
    };
    (0..9i64).for_each(|value| list.push(value));
    walk(&list.clone().into());
    assert_eq!(list.len(), 4);
    walk(&dict.into());
}

/// A type whose objects are laid out by Rust code, and can't be copied.
#[derive(Object)]
#[object(key = "structural_walk.Rust")]
struct Rust {
    name: String,
    items: Array,
}

#[test]
fn objects_of_rust_are_walked_and_not_copied() -> Result<()> {
    let object = Obj::new(Rust { name: "a name".to_owned(), items: Array::from(vec![1.into()]) })?;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let walked = Arc::clone(&seen);
    let note = callback(ALL, move |args| {
        let value = args[0].to_owned()?;
        walked.lock().unwrap().push(value.type_key());
        Ok(Any::none())
    });
    call("ffi.StructuralWalk", (&object, &note, nothing(), POST))?;
    assert_eq!(*seen.lock().unwrap(), ["ffi.SmallStr", "int", "ffi.Array", "structural_walk.Rust"]);
    let error = call("ffi.StructuralMap", (&object, callback(INT, plus_one), nothing(), POST)).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: __ffi_shallow_copy__ must be an ffi.Function");
    assert_eq!((object.name.as_str(), object.items.len()), ("a name", 1));
    Ok(())
}

/// A visitor and a mutator that outlive their walks.
fn kept() -> [Any; 2] {
    let kept = Arc::new(Mutex::new(Some(Vec::new())));
    let keep = |kept: &Arc<Mutex<Option<Vec<Any>>>>| {
        let kept = Arc::clone(kept);
        move |args: &[AnyView<'_>]| {
            if let Some(kept) = &mut *kept.lock().unwrap() {
                kept.push(args[1].to_owned()?);
            }
            Ok(Any::none())
        }
    };
    call("ffi.StructuralVisit", (1, callback(INT, keep(&kept)))).unwrap();
    call("ffi.StructuralMutate", (1, mutation(INT, keep(&kept)))).unwrap();
    // They must not stay where their own callbacks keep them alive.
    let kept = kept.lock().unwrap().take();
    kept.unwrap().try_into().unwrap()
}

const VISITORS: [&str; 4] = [
    "ffi.StructuralVisitorVisit",
    "ffi.StructuralVisitorDefaultVisit",
    "ffi.StructuralVisitorDefRegionKind",
    "ffi.StructuralVisitorWithDefRegionKind",
];
const MUTATORS: [&str; 6] = [
    "ffi.StructuralMutatorMutate",
    "ffi.StructuralMutatorDefaultMutate",
    "ffi.StructuralMutatorDefRegionKind",
    "ffi.StructuralMutatorWithDefRegionKind",
    "ffi.StructuralMutatorVarRemapGet",
    "ffi.StructuralMutatorVarRemapSet",
];

/// Calls functions of visitors and mutators with one of either, and with any further arguments.
#[test]
#[cfg_attr(miri, ignore = "thousands of calls")]
fn visitors_and_mutators_stand_any_arguments() {
    let [visitor, mutator] = kept();
    let values = hostile::values();
    // Not the mutator, which as its own replacement would keep itself alive.
    for (active, other, names) in [(&visitor, &mutator, &VISITORS[..]), (&mutator, &visitor, &MUTATORS[..])] {
        let values = values.iter().chain([other]).map(Any::as_view);
        let views: Vec<AnyView<'_>> = values.chain(hostile::views()).collect();
        for name in names {
            let function = get_global(name).unwrap();
            let _alone = function.call_packed(&[active.as_view()]);
            for (i, view) in views.iter().enumerate() {
                let _one = function.call_packed(&[active.as_view(), *view]);
                let _two = function.call_packed(&[active.as_view(), *view, views[(7 * i + 3) % views.len()]]);
                let _other = function.call_packed(&[*view, active.as_view()]);
            }
        }
    }
    // Reflection makes no such objects.
    for key in ["ffi.StructuralVisitor", "ffi.StructuralMutator"] {
        assert_eq!(call("ffi.MakeObjectFromPackedArgs", (key,)).unwrap_err().kind(), "RuntimeError");
    }
    assert!(call("ffi.DeepCopy", (&visitor,)).is_err());
}

#[test]
fn threads_share_a_visitor_and_a_mutator() {
    let [visitor, mutator] = kept();
    let keys: Array = (0..4).map(|_| Array::from(vec![1.into()])).collect();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (visitor, mutator, keys) = (&visitor, &mutator, &keys);
            scope.spawn(move || {
                for round in 0..rounds(3000).max(20) {
                    let key = &keys[(thread + round) % keys.len()];
                    call("ffi.StructuralMutatorVarRemapSet", (mutator, key, round)).unwrap();
                    call("ffi.StructuralMutatorVarRemapGet", (mutator, key)).unwrap().cast::<i64>().unwrap();
                    assert_eq!(text(&call("ffi.StructuralMutatorMutate", (mutator, key)).unwrap()), "(None,)");
                    let region = Function::from_packed(|_| Ok(Any::none()));
                    call("ffi.StructuralVisitorWithDefRegionKind", (visitor, round % 3, &region)).unwrap();
                    call("ffi.StructuralVisitorDefRegionKind", (visitor,)).unwrap().cast::<i64>().unwrap();
                }
            });
        }
    });
}

#[test]
fn other_callbacks_are_refused() {
    let function = Function::from_packed(|_| Ok(Any::none()));
    let entry = |values: Vec<Any>| -> Any { [Array::from(values)].into_iter().collect::<Array>().into() };
    let message = |callbacks: &Any| call("ffi.StructuralWalk", (1, callbacks, nothing(), PRE)).unwrap_err();
    let expected = "Expected `Array<Tuple<int, ffi.Function>>` but got ";
    for (callbacks, got) in [
        (entry(vec![1.into(), 2.into()]), "`Array[index 0: Array[index 1: int]]`"),
        (entry(vec![1.into()]), "`Array[index 0: Array[size=1]]`"),
        (entry(vec!["one".into(), function.clone().into()]), "`Array[index 0: Array[index 0: ffi.SmallStr]]`"),
        (Array::from(vec![5.into()]).into(), "`Array[index 0: int]`"),
        (5.into(), "`int`"),
    ] {
        let error = message(&callbacks);
        assert!(error.message().ends_with(&format!("{expected}{got}")), "{error}");
    }
    // A type that isn't registered has no values.
    let unknown = entry(vec![i32::MAX.into(), function.into()]);
    assert!(call("ffi.StructuralWalk", (1, &unknown, nothing(), PRE)).unwrap().is_none());
}

#[test]
fn a_shared_error_keeps_its_context() {
    let error = Error::new("ValueError", "shared");
    let shared = error.clone();
    let fails = callback(INT, move |_| Err(shared.clone()));
    let root = Array::from(vec![Array::from(vec![1.into()]).into()]);
    let raised = call("ffi.StructuralWalk", (&root, &fails, nothing(), PRE)).unwrap_err();
    assert!(error.extra_context().is_none());
    assert!(raised.extra_context().is_some());
    // Each object is in the context once.
    assert_eq!(text(&raised.extra_context().unwrap().into()).matches("1").count(), 2);
}
