//! What is passed in calls, good or evil. Fixtures have a [text](parse) of it.

pub mod parse;

use tvm_ffi_codegen::DLDataType;
use tvm_ffi_codegen::runtime::abi::DLDevice;

use super::args::Form;

/// A call: its arguments, with labels, and what is wrong with the array itself.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub args: Vec<(Option<String>, Value)>,
    pub null_array: bool,
    pub num_args: Option<i32>,
}

impl Call {
    /// A call with unlabelled arguments.
    pub fn new(args: impl IntoIterator<Item = Value>) -> Self {
        Call { args: args.into_iter().map(|value| (None, value)).collect(), ..Call::default() }
    }
}

impl From<TensorSpec> for Value {
    fn from(tensor: TensorSpec) -> Self {
        Value::Tensor(tensor)
    }
}

#[derive(Clone, Debug)]
pub enum Value {
    /// A type index and a payload, whatever they mean.
    Raw(i32, u64),
    Float(f64),
    DType(DLDataType),
    Device(DLDevice),
    /// An `ffi.String`: small or on the heap, by its length.
    Str(String),
    /// `const char*`
    RawStr(String),
    /// `ffi.Bytes`
    Bytes(String),
    /// `TVMFFIByteArray*`
    ByteArray(String),
    Function,
    Module,
    Shape(Vec<i64>),
    Error,
    /// An object of a type that is registered at run time.
    Object(Thing),
    Tensor(TensorSpec),
    /// An `ffi.Array` of these.
    Array(Vec<Value>),
    /// An `ffi.List` of these.
    List(Vec<Value>),
    /// An `ffi.Map` of these keys and values, which differ from each other.
    Map(Vec<(Value, Value)>),
    /// An `ffi.Dict`, as the map.
    Dict(Vec<(Value, Value)>),
    /// `kTVMFFIObjectRValueRef` to this object; without one, to a NULL pointer.
    Reference(Option<Box<Value>>),
}

/// The types that only the tests know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    Base,
    /// Derived from the other.
    Sub,
}

impl Thing {
    pub const fn key(self) -> &'static str {
        match self {
            Thing::Base => "test.Thing",
            Thing::Sub => "test.Thing.Sub",
        }
    }
}

impl Value {
    pub const NONE: Value = Value::Raw(0, 0);

    pub fn int(value: i64) -> Self {
        Value::Raw(1, value as u64)
    }

    pub fn bool(value: bool) -> Self {
        Value::Raw(2, value.into())
    }

    /// What it holds: elements, or keys and values in turn, or the object that it refers to.
    pub fn inner(&self) -> Vec<&Value> {
        match self {
            Value::Array(items) | Value::List(items) => items.iter().collect(),
            Value::Map(entries) | Value::Dict(entries) => entries.iter().flat_map(|(k, v)| [k, v]).collect(),
            Value::Reference(object) => object.iter().map(|object| &**object).collect(),
            _ => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i128),
    Float(f64),
}

#[derive(Clone, Debug)]
pub enum Data {
    Zeros,
    Values(Vec<Number>),
    Address(u64),
}

#[derive(Clone, Debug)]
pub enum Strides {
    /// NULL in a `DLTensor`, compact ones in an object.
    Default,
    Null,
    Given(Vec<i64>),
}

#[derive(Clone, Debug)]
pub struct TensorSpec {
    pub dtype: DLDataType,
    pub shape: Vec<i64>,
    pub ndim: Option<i32>,
    pub null_shape: bool,
    pub strides: Strides,
    pub data: Data,
    /// Moves the data away from its alignment.
    pub shift: usize,
    pub byte_offset: u64,
    pub device: DLDevice,
    /// `None` for both, one after the other.
    pub form: Option<Form>,
    pub null: bool,
}

impl TensorSpec {
    pub fn new(dtype: DLDataType, shape: Vec<i64>) -> Self {
        TensorSpec {
            dtype,
            shape,
            ndim: None,
            null_shape: false,
            strides: Strides::Default,
            data: Data::Zeros,
            shift: 0,
            byte_offset: 0,
            device: DLDevice::CPU,
            form: None,
            null: false,
        }
    }

    /// The same with elements.
    pub fn with(mut self, values: impl IntoIterator<Item = Number>) -> Self {
        self.data = Data::Values(values.into_iter().collect());
        self
    }
}
