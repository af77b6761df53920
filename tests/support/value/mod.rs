//! Values passed in calls, valid or invalid. Fixtures contain their [text form](parse).

pub mod parse;

use tvm_ffi_codegen::DLDataType;
use tvm_ffi_codegen::runtime::abi::DLDevice;

use super::args::Form;

/// A call: labelled arguments, and defects of the argument array itself.
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
    /// A type index and a payload, valid or not.
    Raw(i32, u64),
    Float(f64),
    DType(DLDataType),
    Device(DLDevice),
    /// An `ffi.String`: small or on the heap, depending on its length.
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
    /// An object whose type is registered at runtime.
    Object(Thing),
    /// An object with these fields; its type is registered at runtime.
    Fields(Vec<(String, Value)>),
    Tensor(TensorSpec),
    /// An `ffi.Array` of these values.
    Array(Vec<Value>),
    /// An `ffi.List` of these values.
    List(Vec<Value>),
    /// An `ffi.Map` with these distinct keys, and values.
    Map(Vec<(Value, Value)>),
    /// An `ffi.Dict` with these distinct keys, and values.
    Dict(Vec<(Value, Value)>),
    /// `kTVMFFIObjectRValueRef` to this object, or to a NULL pointer.
    Reference(Option<Box<Value>>),
}

/// The object types that are registered only by the tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    Base,
    /// Derived from `Base`.
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

    /// The values inside: elements, or keys and values alternately, or the referenced object.
    pub fn inner(&self) -> Vec<&Value> {
        match self {
            Value::Array(items) | Value::List(items) => items.iter().collect(),
            Value::Map(entries) | Value::Dict(entries) => entries.iter().flat_map(|(k, v)| [k, v]).collect(),
            Value::Fields(fields) => fields.iter().map(|(_, value)| value).collect(),
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
    /// NULL in a `DLTensor`, contiguous strides in an object.
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
    /// `None` for both forms, one after the other.
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

    /// The same tensor with other elements.
    pub fn with(mut self, values: impl IntoIterator<Item = Number>) -> Self {
        self.data = Data::Values(values.into_iter().collect());
        self
    }
}
