//! Graphs of objects as JSON: whatever text is read gives a value or an error. A value that was read is written to a
//! text that reads back to an equal value, with the same text and the same hash.

use tvm_ffi_codegen::runtime::object::live_objects_of_thread;
use tvm_ffi_codegen::runtime::registry::get_global;
use tvm_ffi_codegen::runtime::{Any, Array, CallArgs, Map, Result};

/// Reads an input as a graph.
///
/// # Panics
/// A value that was read isn't read back from its own text, or objects are left.
pub fn run(input: &[u8]) {
    let before = live_objects_of_thread();
    check(&String::from_utf8_lossy(input));
    assert_eq!(live_objects_of_thread(), before, "objects are left");
}

/// Calls a global function of the runtime.
pub(crate) fn call(name: &str, args: impl CallArgs) -> Result<Any> {
    get_global(name).unwrap_or_else(|| panic!("no function `{name}`")).call(args)
}

fn check(text: &str) {
    let Ok(value) = call("ffi.FromJSONGraphString", (text,)) else { return };
    written_and_read(&value);
    let _ = call("ffi.ReprPrint", (&value,));
    let _ = call("ffi.StructuralKey", (&value,));
}

/// Writes a value, if it can be written, and reads it back.
///
/// # Panics
/// The copy that is read back differs.
pub(crate) fn written_and_read(value: &Any) {
    let Ok(text) = call("ffi.ToJSONGraphString", (value, ())) else { return };
    let read = call("ffi.FromJSONGraphString", (&text,)).unwrap_or_else(|error| panic!("{error}: {:?}", text.as_str()));
    let again = call("ffi.ToJSONGraphString", (&read, ())).expect("a value that was written before");
    assert_eq!(again.as_str(), text.as_str(), "the copy is written differently");
    copied(value, &read);
}

/// Checks that a value and its copy are structurally equal, if they can be compared. The copy of an object that is a
/// map's key is another key.
///
/// # Panics
/// They differ, or their hashes do.
pub(crate) fn copied(value: &Any, copy: &Any) {
    if let Some(is_equal) = compared(value, copy) {
        let text = || call("ffi.ReprPrint", (value,)).map(|text| text.as_str().unwrap_or_default().to_owned());
        assert!(is_equal || !keys_are_plain(value), "a value differs from its copy: {:?}", text());
    }
}

/// Compares two values, and checks that equal ones have one hash and no mismatch, and others a mismatch.
///
/// # Panics
/// The functions disagree.
pub(crate) fn compared(one: &Any, other: &Any) -> Option<bool> {
    let equal = call("ffi.StructuralEqual", (one, other, true, false)).ok()?.cast::<bool>().expect("a verdict");
    // A search for a mismatch also compares values that maps of different sizes share, which may be an error.
    if let Ok(mismatch) = call("ffi.GetFirstStructuralMismatch", (one, other, true, false)) {
        assert_eq!(mismatch.is_none(), equal, "a mismatch of equal values, or none of others");
    }
    if equal {
        let hash = |value| call("ffi.StructuralHash", (value, true, false)).and_then(|hash| hash.cast::<i64>());
        // An object equals itself whatever it contains, but a hash looks inside.
        if let (Ok(hash), Ok(other_hash)) = (hash(one), hash(other)) {
            assert_eq!(hash, other_hash, "equal values have two hashes");
        }
    }
    Some(equal)
}

/// True if no map in a value has a float or an object as a key, which a copy may not find. False for a value that isn't
/// a graph.
fn keys_are_plain(value: &Any) -> bool {
    const PLAIN: [&str; 7] = ["None", "bool", "int", "ffi.String", "ffi.Bytes", "DataType", "Device"];
    let Ok(graph) = call("ffi.ToJSONGraph", (value, ())).and_then(|graph| graph.cast::<Map>()) else { return false };
    let part = |map: &Map, name: &str| map.get(name).ok().flatten().cloned().unwrap_or_default();
    let nodes: Array = part(&graph, "nodes").cast().expect("the nodes");
    let nodes: Vec<Map> = nodes.iter().map(|node| node.cast().expect("a node")).collect();
    let type_of = |node: &Map| part(node, "type").as_str().unwrap_or_default().to_owned();
    nodes.iter().filter(|node| matches!(type_of(node).as_str(), "ffi.Map" | "ffi.Dict")).all(|node| {
        let numbers: Array = part(node, "data").cast().expect("numbers of nodes");
        numbers.iter().step_by(2).all(|number| {
            let number: usize = number.cast().expect("the number of a node");
            PLAIN.contains(&type_of(&nodes[number]).as_str())
        })
    })
}
