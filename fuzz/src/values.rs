//! Values of the runtime: runs an input as a program over a pool of values, by the global functions that Python calls.
//! A plain model has the content of each list and dict. All operations on whole values must agree with each other.

use std::collections::BTreeMap;

use arbitrary::{Result as Read, Unstructured};
use tvm_ffi_codegen::runtime::object::live_objects_of_thread;
use tvm_ffi_codegen::runtime::{Any, Array, Bytes, DLDataType, DLDevice, Dict, Function, List, Map, Shape};

use super::graphs::{call, compared, copied, written_and_read};

/// The maximum number of operations of a program.
const LONGEST: usize = 64;
/// The maximum number of values in the pool.
const POOL: usize = 24;

/// Runs an input as a program.
///
/// # Panics
/// A container differs from its model, operations disagree, or objects are left.
pub fn run(input: &[u8]) {
    let before = live_objects_of_thread();
    let mut program = Program::default();
    let mut input = Unstructured::new(input);
    for _ in 0..LONGEST {
        if input.is_empty() || program.step(&mut input).is_err() {
            break;
        }
    }
    program.agree();
    program.untangle();
    drop(program);
    assert_eq!(live_objects_of_thread(), before, "objects are left");
}

/// The expected contents of a value.
enum Model {
    List(Vec<Any>),
    Dict(BTreeMap<i64, Any>),
    /// A value that doesn't change.
    Other,
}

#[derive(Default)]
struct Program {
    values: Vec<Any>,
    models: Vec<Model>,
}

impl Program {
    fn add(&mut self, value: Any, model: Model) {
        if self.values.len() < POOL {
            self.values.push(value);
            self.models.push(model);
        }
    }

    fn pick(&self, input: &mut Unstructured<'_>) -> Read<usize> {
        if self.values.is_empty() { Ok(0) } else { Ok(usize::from(input.arbitrary::<u8>()?) % self.values.len()) }
    }

    fn value(&self, input: &mut Unstructured<'_>) -> Read<Any> {
        let place = self.pick(input)?;
        Ok(self.values.get(place).cloned().unwrap_or_default())
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> Read<()> {
        match input.arbitrary::<u8>()? % 16 {
            0 | 1 => {
                let leaf = leaf(input)?;
                self.add(leaf, Model::Other);
            }
            2 => self.add(<List>::default().into(), Model::List(Vec::new())),
            3 => self.add(<Dict>::default().into(), Model::Dict(BTreeMap::new())),
            4 => {
                let some = [self.value(input)?, self.value(input)?, self.value(input)?];
                self.add(some.into_iter().collect::<Array>().into(), Model::Other);
            }
            5 => {
                let entries = [(self.value(input)?, self.value(input)?), (self.value(input)?, self.value(input)?)];
                if let Ok(map) = Map::try_from_entries(entries) {
                    self.add(map.into(), Model::Other);
                }
            }
            6 => {
                let key = self.value(input)?;
                let kind = i64::from(input.arbitrary::<u8>()? % 6);
                let step = call("ffi.MakeObjectFromPackedArgs", (STEP, "kind", kind, "key", &key));
                self.add(step.expect("a step of any key"), Model::Other);
            }
            7 => {
                let value = self.value(input)?;
                if !is_tangled(&value)
                    && let Ok(key) = call("ffi.StructuralKey", (&value,))
                {
                    self.add(key, Model::Other);
                }
            }
            8..=12 => self.change(input)?,
            13 => {
                let value = self.value(input)?;
                // The copy of a value that contains itself has lists that the pool doesn't have.
                if !is_tangled(&value)
                    && let Ok(copy) = call("ffi.DeepCopy", (&value,))
                {
                    copied(&value, &copy);
                    self.add(copy, Model::Other);
                }
            }
            14 => {
                let value = self.value(input)?;
                written_and_read(&value);
            }
            _ => {
                let (one, other) = (self.value(input)?, self.value(input)?);
                agreed(&one, &other);
                mapped(&one);
            }
        }
        Ok(())
    }

    /// Changes a list or dict, and its model.
    fn change(&mut self, input: &mut Unstructured<'_>) -> Read<()> {
        let (place, value) = (self.pick(input)?, self.value(input)?);
        let index = i64::from(input.arbitrary::<i8>()?) % 8;
        let operation = input.arbitrary::<u8>()? % 6;
        let Some(target) = self.values.get(place).cloned() else { return Ok(()) };
        match &mut self.models[place] {
            Model::Other => {}
            Model::List(model) => {
                let at = usize::try_from(index).ok().filter(|&at| at < model.len());
                let outcome = match operation {
                    0 | 1 => call("ffi.ListAppend", (&target, &value)),
                    2 => call("ffi.ListInsert", (&target, index.max(0).min(model.len() as i64), &value)),
                    3 => call("ffi.ListSetItem", (&target, index, &value)),
                    4 => call("ffi.ListErase", (&target, index)),
                    _ => call("ffi.ListReverse", (&target,)),
                };
                match (operation, at) {
                    (0 | 1, _) => model.push(value),
                    (2, _) => model.insert(index.max(0).min(model.len() as i64) as usize, value),
                    (3, Some(at)) => model[at] = value,
                    (4, Some(at)) => drop(model.remove(at)),
                    (5, _) => model.reverse(),
                    _ => {
                        assert!(outcome.is_err(), "an index that isn't there");
                        return Ok(());
                    }
                }
                outcome.expect("an operation on a list");
                let content: Vec<Any> = target.cast::<List>().expect("a list").to_vec();
                assert!(content.iter().map(identity).eq(model.iter().map(identity)), "a list differs from its model");
            }
            Model::Dict(model) => {
                let outcome = match operation {
                    0..=3 => call("ffi.DictSetItem", (&target, index, &value)),
                    4 => call("ffi.DictErase", (&target, index)),
                    _ => call("ffi.DictClear", (&target,)),
                };
                match operation {
                    0..=3 => drop(model.insert(index, value)),
                    4 => drop(model.remove(&index)),
                    _ => model.clear(),
                }
                drop(outcome);
                let dict: Dict = target.cast().expect("a dict");
                assert_eq!(dict.len(), model.len(), "a dict differs from its model");
                for (key, value) in model {
                    let found = dict.get(key).expect("a plain key").expect("a key of the model");
                    assert_eq!(identity(&found), identity(value), "a dict differs from its model");
                }
            }
        }
        Ok(())
    }

    /// Checks all values of the pool.
    fn agree(&self) {
        for value in &self.values {
            written_and_read(value);
            mapped(value);
            let _ = call("ffi.ReprPrint", (value,));
            let _ = call("ffi.json.Stringify", (value, ()));
        }
    }

    /// Empties lists and dicts, which may contain themselves.
    fn untangle(&self) {
        self.values.iter().filter_map(|value| value.cast::<List>().ok()).for_each(|list| list.clear());
        self.values.iter().filter_map(|value| value.cast::<Dict>().ok()).for_each(|dict| dict.clear());
    }
}

/// A type of objects whose keys are any values.
const STEP: &str = "ffi.reflection.AccessStep";

/// A value by its type and its bits: objects by their addresses.
fn identity(value: &Any) -> (i32, u32, u64) {
    let raw = value.as_raw();
    // SAFETY: all fields of the union are plain bits of this size.
    (raw.type_index, raw.zero_padding, unsafe { raw.v.v_uint64 })
}

fn leaf(input: &mut Unstructured<'_>) -> Read<Any> {
    Ok(match input.arbitrary::<u8>()? % 10 {
        0 => Any::none(),
        1 => input.arbitrary::<bool>()?.into(),
        2 => input.arbitrary::<i8>()?.into(),
        3 => input.arbitrary::<i64>()?.into(),
        4 => input.arbitrary::<f64>()?.into(),
        5 => Any::from(input.arbitrary::<&str>()?),
        6 => Bytes::new(input.arbitrary::<&[u8]>()?).into(),
        7 => Shape::new(&input.arbitrary::<[i64; 2]>()?).into(),
        8 => ["int8", "float32x4", "bool", "float8_e4m3fn"][usize::from(input.arbitrary::<u8>()? % 4)]
            .parse::<DLDataType>()
            .expect("a name")
            .into(),
        _ => DLDevice::cuda(input.arbitrary()?).into(),
    })
}

/// True for a value that contains itself. Walks through it end only at a depth of a million.
fn is_tangled(value: &Any) -> bool {
    call("ffi.ToJSONGraph", (value, ())).is_err_and(|error| error.message().contains("contains itself"))
}

/// Checks that the comparisons of two values agree with each other.
fn agreed(one: &Any, other: &Any) {
    if is_tangled(one) || is_tangled(other) {
        return;
    }
    if let (Some(there), Some(back)) = (compared(one, other), compared(other, one)) {
        assert_eq!(there, back, "structural equality has a direction");
    }
    let (Ok(alike), Ok(hash), Ok(other_hash)) = (
        call("ffi.RecursiveEq", (one, other)).and_then(|is| is.cast::<bool>()),
        call("ffi.RecursiveHash", (one,)).and_then(|hash| hash.cast::<i64>()),
        call("ffi.RecursiveHash", (other,)).and_then(|hash| hash.cast::<i64>()),
    ) else {
        return;
    };
    assert!(!alike || hash == other_hash, "equal values have two hashes");
}

/// Walks a value, and maps it to itself.
fn mapped(value: &Any) {
    if is_tangled(value) {
        return;
    }
    let int = 1i64;
    let unchanged = Function::from_packed(|args| args[0].to_owned());
    let nothing = Function::from_packed(|_| Ok(Any::none()));
    let callbacks = |function: &Function| Array::from(vec![Any::from((int, function.clone()))]);
    let none = <Array>::default();
    let walked = call("ffi.StructuralWalk", (value, callbacks(&nothing), &none, 0));
    let mapped = call("ffi.StructuralMap", (value, callbacks(&unchanged), &none, 1));
    if let (Ok(_), Ok(mapped)) = (walked, mapped) {
        copied(value, &mapped);
    }
}
