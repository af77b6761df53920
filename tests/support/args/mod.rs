//! The arguments of a call in memory, and their state after the call.

mod fields;
mod tensor;
mod things;

use std::ffi::CString;
use std::sync::atomic::Ordering;

use tvm_ffi_codegen::runtime::abi::{TVMFFIAny, TVMFFIByteArray, TVMFFIObject, TypeIndex};
use tvm_ffi_codegen::runtime::{Any, Array, Bytes, Dict, Error, Function, List, Map, ObjectRef, Shape, Str};

use super::modules;
use super::recording::real;
use super::value::{Call, TensorSpec, Value};
pub use fields::{new_fields, type_of_fields};
use tensor::{Built, TensorObject, build, pointer};
pub use things::{new_object, register_types, type_index};

/// How a tensor is passed if the call doesn't specify it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    DlTensor,
    Object,
}

/// The location of a tensor: the number of its argument, and the path from there, such as `[0]["key"]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub argument: usize,
    pub path: String,
}

impl Place {
    fn inside(&self, step: &str) -> Place {
        Place { argument: self.argument, path: format!("{}{step}", self.path) }
    }
}

/// The arguments of one call, kept alive.
pub struct Arguments {
    array: Box<[TVMFFIAny]>,
    null_array: bool,
    num_args: i32,
    // Dropped in this order: containers have references to what comes after them.
    owned: Vec<Any>,
    tensors: Vec<(Place, Built)>,
    /// Boxed, because arguments point to them.
    #[allow(clippy::vec_box)]
    objects: Vec<Box<TensorObject>>,
    /// Pointers that rvalue references lead to, and their initial values. They keep these unless a callee takes the
    /// object.
    #[allow(clippy::vec_box)]
    rvalues: Vec<(Box<*mut TVMFFIObject>, *mut TVMFFIObject)>,
    _strings: Vec<CString>,
    _byte_arrays: Vec<(Box<TVMFFIByteArray>, Box<[u8]>)>,
    /// The reference counts of all objects before the call.
    counts: Vec<u64>,
}

impl Arguments {
    pub fn new(call: &Call, form: Form) -> Self {
        register_types();
        let num_args = call.num_args.unwrap_or(call.args.len() as i32);
        let mut all = Arguments {
            array: Box::default(),
            null_array: call.null_array,
            num_args,
            owned: Vec::new(),
            tensors: Vec::new(),
            objects: Vec::new(),
            rvalues: Vec::new(),
            _strings: Vec::new(),
            _byte_arrays: Vec::new(),
            counts: Vec::new(),
        };
        let place = |argument| Place { argument, path: String::new() };
        let values = call.args.iter().enumerate();
        all.array = values.map(|(argument, (_, value))| all.add(value, &place(argument), form)).collect();
        all.counts = all.count();
        all
    }

    fn add(&mut self, value: &Value, place: &Place, form: Form) -> TVMFFIAny {
        let raw = |index: i32, bits: u64| TVMFFIAny::from_bits(TypeIndex(index), bits);
        match value {
            Value::Raw(index, payload) => raw(*index, *payload),
            Value::Float(v) => raw(TypeIndex::FLOAT.0, v.to_bits()),
            Value::DType(v) => {
                raw(TypeIndex::DATA_TYPE.0, u64::from(v.code) | u64::from(v.bits) << 8 | u64::from(v.lanes) << 16)
            }
            Value::Device(v) => {
                let (kind, id) = (v.device_type.0 as u32, v.device_id as u32);
                raw(TypeIndex::DEVICE.0, u64::from(kind) | u64::from(id) << 32)
            }
            Value::Str(text) => self.own(Str::new(text)),
            Value::Bytes(text) => self.own(Bytes::new(text.as_bytes())),
            Value::RawStr(text) => {
                let text = CString::new(text.as_str()).unwrap();
                let any = raw(TypeIndex::RAW_STR.0, pointer(text.as_ptr()));
                self._strings.push(text);
                any
            }
            Value::ByteArray(text) => {
                let bytes: Box<[u8]> = text.as_bytes().into();
                let array = Box::new(TVMFFIByteArray::from_slice(&bytes));
                let any = raw(TypeIndex::BYTE_ARRAY_PTR.0, pointer(&raw const *array));
                self._byte_arrays.push((array, bytes));
                any
            }
            Value::Function => self.own(Function::from_packed(|_| Ok(().into()))),
            Value::Module => self.own(modules::empty("test")),
            Value::Shape(extents) => self.own(Shape::new(extents)),
            Value::Error => self.own(Error::new("ValueError", "an argument")),
            Value::Object(thing) => {
                let index = type_index(*thing);
                // the tensor after the header is never accessed
                let mut object = build(&TensorSpec::new(super::kernels::F32, Vec::new()), form).object;
                object.header.type_index = index.0;
                let any = raw(index.0, pointer(&raw const *object));
                self.objects.push(object);
                any
            }
            Value::Fields(fields) => {
                let field = |(name, value): &(String, Value)| {
                    (name.clone(), self.inside(value, &place.inside(&format!(".{name}"))))
                };
                let fields = fields.iter().map(field).collect();
                self.own(new_fields(fields))
            }
            Value::Tensor(spec) => self.tensor(spec, place, spec.form.unwrap_or(form)),
            Value::Array(items) => {
                let items = self.items(items, place);
                self.own(Array::from(items))
            }
            Value::List(items) => {
                let items = self.items(items, place);
                self.own(items.into_iter().collect::<List>())
            }
            Value::Map(entries) => {
                let entries = self.entries(entries, place);
                self.own(Map::try_from_entries(entries).unwrap())
            }
            Value::Dict(entries) => {
                let entries = self.entries(entries, place);
                self.own(Dict::try_from_entries(entries).unwrap())
            }
            Value::Reference(object) => {
                let object = object.as_ref().map(|object| self.add(object, place, Form::Object));
                assert!(
                    object.is_none_or(|o| o.type_index >= TypeIndex::STATIC_OBJECT_BEGIN.0),
                    "{value:?}: no object"
                );
                let object = object.map_or(std::ptr::null_mut(), |object| object.ptr().cast());
                let pointer_to = Box::new(object);
                let any = raw(TypeIndex::OBJECT_RVALUE_REF.0, pointer(&raw const *pointer_to));
                self.rvalues.push((pointer_to, object));
                any
            }
        }
    }

    /// Stores a value in these arguments, and returns an argument that borrows it.
    fn own(&mut self, value: impl Into<Any>) -> TVMFFIAny {
        let value = value.into();
        let raw = *value.as_raw();
        self.owned.push(value);
        raw
    }

    /// The elements of a container, which will own them.
    fn items(&mut self, items: &[Value], place: &Place) -> Vec<Any> {
        items.iter().enumerate().map(|(i, item)| self.inside(item, &place.inside(&format!("[{i}]")))).collect()
    }

    fn entries(&mut self, entries: &[(Value, Value)], place: &Place) -> Vec<(Any, Any)> {
        let entry = |(i, (key, value)): (usize, &(Value, Value))| {
            let step = match key {
                Value::Str(text) => format!("[\"{text}\"]"),
                Value::Raw(1, number) => format!("[{}]", *number as i64),
                _ => "[...]".to_owned(),
            };
            let key = self.inside(key, &place.inside(&format!(".keys()[{i}]")));
            (key, self.inside(value, &place.inside(&step)))
        };
        entries.iter().enumerate().map(entry).collect()
    }

    fn inside(&mut self, value: &Value, place: &Place) -> Any {
        let wild = matches!(value, Value::Raw(8.., payload) if *payload != 0);
        assert!(!wild && !matches!(value, Value::Reference(_)), "{value:?}: no container can own it");
        let raw = self.add(value, place, Form::Object);
        let mut owned = TVMFFIAny::none();
        // C code copies borrowed values in the same way, and may keep a `DLTensor*`.
        // SAFETY: a value that a container can own is alive or NULL; the copy has no other owner.
        unsafe {
            assert_eq!(real::TVMFFIAnyViewToOwnedAny(&raw, &mut owned), 0);
            Any::from_raw(owned)
        }
    }

    fn tensor(&mut self, spec: &TensorSpec, place: &Place, form: Form) -> TVMFFIAny {
        let built = build(spec, form);
        let (index, address) = match form {
            Form::DlTensor => (TypeIndex::DL_TENSOR_PTR, pointer(&raw const built.object.tensor)),
            Form::Object => (TypeIndex::TENSOR, pointer(&raw const *built.object)),
        };
        self.tensors.push((place.clone(), built));
        TVMFFIAny::from_bits(index, if spec.null { 0 } else { address })
    }

    pub fn array(&self) -> *const TVMFFIAny {
        if self.null_array { std::ptr::null() } else { self.array.as_ptr() }
    }

    pub fn num_args(&self) -> i32 {
        self.num_args
    }

    /// The elements of each tensor that has memory, in printed form.
    pub fn elements(&self) -> Vec<(Place, String)> {
        self.tensors.iter().filter_map(|(place, built)| Some((place.clone(), built.elements()?))).collect()
    }

    /// The memory of each tensor.
    pub fn memory(&self) -> Vec<Vec<u8>> {
        self.tensors.iter().filter_map(|(_, built)| built.memory()).collect()
    }

    /// Replaces an address that a kernel has received by its offset from the data of the tensor that it points into.
    pub fn relative(&self, word: u64) -> u64 {
        self.tensors.iter().find_map(|(_, built)| built.distance(word)).unwrap_or(word)
    }

    /// Whether the reference counts of all objects are unchanged, and rvalue references still have their objects.
    pub fn counts_kept(&self) -> bool {
        let read = |place: &*mut TVMFFIObject| {
            // SAFETY: the pointer is in a box of ours, which generated code may have written to.
            unsafe { (&raw const *place).read_volatile() }
        };
        self.rvalues.iter().all(|(place, before)| read(place) == *before) && self.count() == self.counts
    }

    fn count(&self) -> Vec<u64> {
        let by_hand = self.tensors.iter().map(|(_, built)| &built.object).chain(&self.objects);
        let by_hand = by_hand.map(|object| object.header.combined_ref_count.load(Ordering::Relaxed));
        by_hand.chain(self.owned.iter().map(|any| u64::from(strong_count(any)))).collect()
    }
}

/// The number of references to the object in a value; 0 for a value without an object.
pub fn strong_count(any: &Any) -> u32 {
    // don't count the reference taken here
    any.cast::<ObjectRef>().map_or(0, |object| object.strong_count() - 1)
}
