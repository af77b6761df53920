//! The C API: an input is a sequence of calls, with right arguments and wrong ones, from a pool of results. An error is
//! raised with each -1 and with no 0, and no object is left at the end.

mod functions;

use arbitrary::{Result as Read, Unstructured};
use tvm_ffi_codegen::runtime::abi::TVMFFIAny;
use tvm_ffi_codegen::runtime::error::take_raised;
use tvm_ffi_codegen::runtime::{Any, Array, Bytes, Function, Map};

use crate::targets::live::leaves_none;
use functions::{ALL, Entry, Takes};

/// The maximum number of calls of an input.
const LONGEST: usize = 40;
/// The maximum number of values in the pool.
const POOL: usize = 32;

/// A function without a kernel's work, which the kernels of inputs are. It is never called.
#[unsafe(no_mangle)]
extern "C" fn tfc_fuzz_nothing() {}

/// Makes the calls of an input.
///
/// # Panics
/// A result and the raised error contradict each other, or objects are left.
pub fn run(input: &[u8]) {
    leaves_none(|| calls(input));
}

fn calls(input: &[u8]) {
    let mut pool = Pool::default();
    let mut input = Unstructured::new(input);
    for _ in 0..LONGEST {
        if input.is_empty() || pool.step(&mut input).is_err() {
            break;
        }
    }
}

/// The results of calls.
#[derive(Default)]
struct Pool(Vec<Any>);

impl Pool {
    fn add(&mut self, value: Any) {
        if self.0.len() < POOL {
            self.0.push(value);
        }
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> Read<()> {
        match input.int_in_range(0..=15)? {
            0 => {
                if !self.0.is_empty() {
                    let place = input.choose_index(self.0.len())?;
                    drop(self.0.remove(place));
                }
            }
            1 => {
                let value = self.any(input)?;
                self.part(&value, input)?;
            }
            _ => {
                let entry = input.choose(ALL)?;
                let args = entry.takes.iter().map(|takes| self.argument(*takes, input)).collect::<Read<Vec<_>>>()?;
                self.call(entry, args, input)?;
            }
        }
        Ok(())
    }

    /// Takes a part out of a result: an item, or a function of a table.
    fn part(&mut self, value: &Any, input: &mut Unstructured<'_>) -> Read<()> {
        if let Ok(items) = value.cast::<Array>()
            && let Some(item) = items.iter().next()
        {
            self.add(item.clone());
        }
        if let Ok(functions) = value.cast::<Map<String, Function>>() {
            let name = *input.choose(&["call", "insert", "remove", "clear", "stats", "entries", "prewarm"])?;
            let function = functions.get(name).ok().flatten().clone();
            function.into_iter().for_each(|function| self.add(function.into()));
        }
        Ok(())
    }

    fn call(&mut self, entry: &Entry, mut args: Vec<Any>, input: &mut Unstructured<'_>) -> Read<()> {
        let mut is_null = false;
        match input.int_in_range(0..=23)? {
            0 => drop(args.pop()),
            1 => args.push(self.any(input)?),
            2 => is_null = true,
            _ => {}
        }
        let mut raw: Vec<TVMFFIAny> = args.iter().map(|arg| *arg.as_raw()).collect();
        // a NULL of an object's type, as a caller passes who hasn't looked at a call's code
        if !raw.is_empty() && input.ratio(1, 24)? {
            let place = input.choose_index(raw.len())?;
            if raw[place].type_index >= tvm_ffi_codegen::runtime::abi::TypeIndex::STATIC_OBJECT_BEGIN.0 {
                raw[place].v.v_uint64 = 0;
            }
        }
        let (array, count) = if is_null { (std::ptr::null(), 0) } else { (raw.as_ptr(), raw.len() as i32) };
        drop(take_raised());
        let mut result = TVMFFIAny::none();
        // SAFETY: the arguments live for the call.
        let code = unsafe { (entry.code)(std::ptr::null_mut(), array, count, &raw mut result) };
        let error = take_raised();
        // SAFETY: the caller owns the result.
        let result = unsafe { Any::from_raw(result) };
        match (code, error) {
            (0, None) => self.add(result),
            (-1, Some(error)) => {
                assert!(
                    !error.kind().is_empty() && !error.message().is_empty(),
                    "{}: an error without words",
                    entry.name
                );
                assert!(result.is_none(), "{}: an error and a result", entry.name);
            }
            (code, error) => panic!("{}: code {code} and {error:?} for {args:?}", entry.name),
        }
        Ok(())
    }

    /// Any value: one of the pool, or a plain one.
    fn any(&self, input: &mut Unstructured<'_>) -> Read<Any> {
        Ok(match input.int_in_range(0..=7)? {
            0..=3 if !self.0.is_empty() => input.choose(&self.0)?.clone(),
            0 => Any::none(),
            1 => input.arbitrary::<bool>()?.into(),
            2 => input.arbitrary::<i64>()?.into(),
            3 => input.arbitrary::<f64>()?.into(),
            4 => Any::from(input.arbitrary::<&str>()?),
            5 => Bytes::new(input.arbitrary::<&[u8]>()?).into(),
            6 => Array::from(vec![Any::none()]).into(),
            _ => Function::from_packed(|args| Ok(args.first().map_or(Any::none(), |_| 5.into()))).into(),
        })
    }

    /// An argument, which most often is of the right type.
    fn argument(&self, takes: Takes, input: &mut Unstructured<'_>) -> Read<Any> {
        if takes == Takes::Folder {
            // any other text would be the name of a new folder
            let folder = std::env::temp_dir().join("tvm-ffi-codegen-fuzz");
            return Ok(Any::from(*input.choose(&["/proc/none", "/dev/null", &folder.to_string_lossy()])?));
        }
        if input.ratio(1, 16)? {
            return self.any(input);
        }
        let text = |texts: &[&str], input: &mut Unstructured<'_>| -> Read<Any> {
            Ok(Any::from(if input.ratio(1, 16)? { input.arbitrary::<&str>()? } else { *input.choose(texts)? }))
        };
        let several = |one: &dyn Fn(&mut Unstructured<'_>) -> Read<Any>, input: &mut Unstructured<'_>| -> Read<Any> {
            let count = input.int_in_range(0..=3)?;
            Ok(Array::from((0..count).map(|_| one(input)).collect::<Read<Vec<Any>>>()?).into())
        };
        Ok(match takes {
            Takes::Signature => self.of_type("tvm_ffi_codegen.Signature", input)?,
            Takes::Kernel => self.of_type("tvm_ffi_codegen.Kernel", input)?,
            Takes::Program => self.of_type("tvm_ffi_codegen.Program", input)?,
            Takes::Cache => self.of_type("tvm_ffi_codegen.Cache", input)?,
            Takes::Function => self.of_type("ffi.Function", input)?,
            Takes::Bytes => self.of_type("ffi.Bytes", input)?,
            Takes::Any | Takes::Folder => self.any(input)?,
            Takes::Int => match input.arbitrary::<bool>()? {
                true => i64::from(input.arbitrary::<u8>()?).into(),
                false => input.arbitrary::<i64>()?.into(),
            },
            Takes::Bool => input.arbitrary::<bool>()?.into(),
            Takes::Text(texts) => text(texts, input)?,
            Takes::Maybe(_) if input.ratio(2, 3)? => Any::none(),
            Takes::Maybe(texts) => text(texts, input)?,
            Takes::Texts(texts) => several(&|input| text(texts, input), input)?,
            Takes::Numbers => several(&|input| Ok(input.arbitrary::<i64>()?.into()), input)?,
            Takes::Objects if input.ratio(2, 3)? => <Array>::default().into(),
            Takes::Objects => several(&|input| self.of_type("ffi.Bytes", input), input)?,
            Takes::Kernels => several(&|input| self.of_type("tvm_ffi_codegen.Kernel", input), input)?,
            Takes::Functions => several(
                &|input| {
                    if input.ratio(1, 3)? {
                        return Ok(Array::from(vec![self.of_type("tvm_ffi_codegen.Program", input)?]).into());
                    }
                    let signature = self.of_type("tvm_ffi_codegen.Signature", input)?;
                    let kernel = self.of_type("tvm_ffi_codegen.Kernel", input)?;
                    Ok(Array::from(vec![signature, kernel, Any::none()]).into())
                },
                input,
            )?,
        })
    }

    /// A value of the pool with this type, or else any.
    fn of_type(&self, key: &str, input: &mut Unstructured<'_>) -> Read<Any> {
        let all: Vec<&Any> = self.0.iter().filter(|value| value.type_key() == key).collect();
        if all.is_empty() { self.any(input) } else { Ok((*input.choose(&all)?).clone()) }
    }
}
