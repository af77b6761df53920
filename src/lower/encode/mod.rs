//! The encoder: a signature becomes data in the constant pool, which the binder reads.

mod expr;
mod result;

pub(super) use result::encode_result;

use std::collections::HashMap;

use crate::lower::abi::fields::{self, dtype_word};
use crate::lower::constants::Messages;
use crate::lower::devices::{Devices, SharedId};
use crate::lower::protocol::{
    self, Aspect, Entry, Kind, Rpn, TARGET, constant, flag, header, note, object, place_size, record, rest, scalar,
    shape, waiting,
};
use crate::spec::{DType, DTypePolicy, Device, Dim, Layout, MAX_RANK, ParamType, ScalarType, Signature, TensorType};
use tvm_ffi_runtime::abi::{
    DLTensor, TVMFFIAny, TVMFFIByteArray, TVMFFIObject, TVMFFISeqCell, TVMFFIShapeCell, TypeIndex,
};

/// How the kernel's convention changes what `bind` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) struct Options {
    /// Every tensor is passed on as a `DLTensor`.
    pub fold_all: bool,
    /// The caller's own arguments are passed on.
    pub verbatim: bool,
}

/// The memory in the wrapper's frame that `bind` writes to: arguments that the good path accepts, then its own state and notes.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Scratch {
    pub bytes: u32,
    /// The bytes of each [use](USES).
    parts: [i64; USES.len()],
}

/// What the scratch memory is for, in the words of messages.
const USES: [&str; 7] = [
    "tensors, their sizes and strides",
    "shapes",
    "strs and bytes",
    "tuples and containers",
    "arguments",
    "symbols and device ids, with where each is from",
    "dimensions that are expressions, with where each is",
];
const TENSORS: usize = 0;
const SHAPES: usize = 1;
const STRINGS: usize = 2;
const CONTAINERS: usize = 3;

impl Scratch {
    /// The uses that take most, with their bytes: the largest first, without those that take less than a tenth.
    pub(in crate::lower) fn largest(&self) -> Vec<(&'static str, u32)> {
        let mut parts: Vec<_> =
            USES.into_iter().zip(self.parts.map(|part| u32::try_from(part).unwrap_or(u32::MAX))).collect();
        parts.retain(|(_, bytes)| *bytes > self.bytes / 10);
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        parts.truncate(3);
        parts
    }
}

/// A program in the table.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Encoded {
    /// Its offset.
    pub offset: u32,
    pub scratch: Scratch,
    /// Bytes of a symbol's note.
    pub note_size: i64,
}

/// Writes a signature's program into the table.
pub(in crate::lower) fn encode(
    texts: &mut Messages,
    signature: &Signature,
    devices: &Devices,
    options: Options,
) -> Encoded {
    if options.verbatim {
        texts.features.add(Aspect::Verbatim);
    }
    let symbols: HashMap<&str, u32> = signature.names_in_dims().into_iter().zip(0..).collect();
    let mut e = Encoder {
        texts,
        devices,
        options,
        policy: signature.dtype_policy(),
        symbols,
        words: Vec::new(),
        memory: [0; 4],
        waiting: 0,
        deepest: 0,
        containers: 0,
    };
    let passed = signature.passed().count();
    let mut params = Vec::with_capacity(passed * protocol::named::SIZE as usize);
    for param in signature.passed() {
        params.extend(e.named(&param.name, &param.ty, &expected(&param.ty), Some(&param.name)));
    }
    let constraints = e.constraints(signature.constraints());
    let (result_dims, first_result_dim) = e.result(signature);
    let defaults = e.defaults(signature);
    let (least, most) = signature.arity();
    let arity = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let note_size = i64::from(note::PLACE) + place_size(e.deepest);
    let has_rest = defaults != 0 || !signature.constraints().is_empty() || result_dims != 0;
    let mut words = Vec::with_capacity((rest::SIZE + header::SIZE) as usize + params.len());
    if has_rest {
        let constraint_count = signature.constraints().len() as u32;
        words.extend([defaults, constraint_count, constraints, result_dims, first_result_dim]);
        debug_assert_eq!(words.len() as i32, rest::SIZE);
    }
    let start = words.len();
    let counts = [passed, least, e.symbols.len(), e.waiting];
    // what has more has no room for it, and is refused
    let counts = counts.map(|count| u16::try_from(count).unwrap_or(u16::MAX));
    let bytes = [devices.slots() as u8, note_size as u8, u8::from(options.verbatim), u8::from(has_rest)];
    let order = e.texts.endianness();
    words.extend(fields::halves(order, counts));
    words.push(fields::bytes(order, bytes));
    words.extend([e.texts.text(&calling(signature)), e.texts.text(&arity)]);
    debug_assert_eq!((words.len() - start) as i32, header::SIZE);
    words.extend(params);
    let waiting = e.waiting as i64 * (i64::from(waiting::PLACE) + place_size(e.deepest));
    let notes = (e.symbols.len() + devices.slots()) as i64 * note_size;
    let [tensors, shapes, strings, containers] = e.memory.map(|bytes| bytes as i64);
    let parts = [tensors, shapes, strings, containers, protocol::notes_offset(passed), notes, waiting];
    let bytes: i64 = parts.iter().sum();
    let scratch = Scratch { bytes: u32::try_from(bytes).unwrap_or(u32::MAX), parts };
    let offset = e.texts.words(&words) + 4 * start as u32;
    Encoded { offset, scratch, note_size }
}

pub(super) fn calling(signature: &Signature) -> String {
    format!(" when calling: `{signature}`, expected ")
}

/// What a type is called where something else came.
pub(super) fn expected(ty: &ParamType) -> String {
    match ty {
        ParamType::Tensor(_) => "Tensor".to_owned(),
        ParamType::Shape(_) => "Shape".to_owned(),
        ParamType::Tuple(_) => "Tuple".to_owned(),
        ParamType::Array(_) => "Array".to_owned(),
        ParamType::List(_) => "List".to_owned(),
        ParamType::Map(..) => "Map".to_owned(),
        ParamType::Dict(..) => "Dict".to_owned(),
        ParamType::Optional(inner) => format!("{} or None", expected(inner)),
        _ => ty.to_string(),
    }
}

pub(super) struct Encoder<'a, 't> {
    pub texts: &'t mut Messages,
    pub devices: &'a Devices,
    options: Options,
    policy: DTypePolicy,
    /// Numbers of symbols.
    symbols: HashMap<&'a str, u32>,
    words: Vec<u32>,
    /// Bytes that `bind` needs for what it makes of arguments: tensors, shapes, strings, containers.
    pub memory: [usize; 4],
    /// Dimensions that may have to wait.
    waiting: usize,
    /// How many containers there are around the present record, and the most there are around any.
    containers: usize,
    deepest: usize,
}

impl<'a> Encoder<'a, '_> {
    /// A name, and where the record of its type is. `symbol` is the parameter's name where it may be one.
    fn named(
        &mut self,
        name: &str,
        ty: &'a ParamType,
        text: &str,
        symbol: Option<&str>,
    ) -> [u32; protocol::named::SIZE as usize] {
        self.texts.features.add(kind(ty));
        let outer = std::mem::take(&mut self.words);
        let text_offset = self.texts.text(text);
        self.words.extend([0, text_offset]);
        let [first, second, third] = self.own(name, ty, text, symbol);
        let mut words = std::mem::replace(&mut self.words, outer);
        words[record::KIND.offset as usize / 4] =
            fields::bytes(self.texts.endianness(), [kind(ty) as u8, first, second, third]);
        [self.texts.text(name), self.texts.words(&words)]
    }

    /// Writes a type's own words; gives its own numbers.
    fn own(&mut self, name: &str, ty: &'a ParamType, text: &str, symbol: Option<&str>) -> [u8; 3] {
        const HEADER: usize = size_of::<TVMFFIObject>();
        match ty {
            ParamType::Scalar(ty) => return self.scalar(*ty, symbol),
            ParamType::Tensor(tensor) => return self.tensor(tensor),
            ParamType::Str | ParamType::Bytes => self.memory[STRINGS] += HEADER + size_of::<TVMFFIByteArray>(),
            ParamType::Int(value) => {
                self.words.extend([*value as u32, (*value >> 32) as u32]);
                debug_assert_eq!(constant::SIZE, record::OWN + 2);
            }
            ParamType::Shape(dims) => {
                let rank = dims.as_ref().map(Vec::len);
                if rank.is_some() {
                    self.uses(Aspect::ShapeRank);
                }
                debug_assert_eq!(shape::SIZE, record::OWN);
                self.memory[SHAPES] += HEADER + size_of::<TVMFFIShapeCell>() + 8 * rank.unwrap_or(MAX_RANK);
                dims.iter().flatten().for_each(|dim| self.entry(dim));
                return [small(rank), 0, 0];
            }
            ParamType::Function => return self.object(TypeIndex::FUNCTION),
            ParamType::Module => return self.object(TypeIndex::MODULE),
            ParamType::Object(key) => {
                self.uses(Aspect::ObjectKey);
                let text = self.texts.text(key);
                self.words.extend([text, key.len() as u32]);
                debug_assert_eq!(object::KEY_LEN, record::OWN + 1);
                return [small(None), 0, 0];
            }
            ParamType::Optional(inner) => {
                let inner = self.named(name, inner, text, None);
                self.words.extend(inner);
            }
            ParamType::Tuple(items) => {
                self.words.push(items.len() as u32);
                self.memory[CONTAINERS] += HEADER + size_of::<TVMFFISeqCell>() + items.len() * size_of::<TVMFFIAny>();
                for (i, item) in items.iter().enumerate() {
                    let item = self.named(&format!("{name}[{i}]"), item, &expected(item), None);
                    self.words.extend(item);
                }
            }
            ParamType::Array(element) => return self.sequence(TypeIndex::ARRAY, true, element),
            ParamType::List(element) => return self.sequence(TypeIndex::LIST, false, element),
            ParamType::Map(key, value) => return self.map(TypeIndex::MAP, "Map", key, value),
            ParamType::Dict(key, value) => return self.map(TypeIndex::DICT, "Dict", key, value),
            ParamType::DType
            | ParamType::Device
            | ParamType::Any
            | ParamType::None
            | ParamType::Bool(_)
            | ParamType::EnvStream => {}
        }
        [0; 3]
    }

    fn scalar(&mut self, ty: ScalarType, symbol: Option<&str>) -> [u8; 3] {
        if !ty.is_int() && !ty.is_float() {
            return [0; 3];
        }
        let range =
            ty.narrow_range().map(|(least, greatest)| self.texts.text(&format!("{ty} ({least} to {greatest})")));
        let symbol = symbol.filter(|name| ty.is_int() && self.symbols.contains_key(name));
        if ty.bits() < 64 {
            self.uses(if ty.is_int() { Aspect::Narrow } else { Aspect::Float32 });
        }
        if range.is_some() || symbol.is_some() {
            self.words.push(range.unwrap_or(0));
            debug_assert_eq!(scalar::SYMBOL, scalar::RANGE + 1);
        }
        if let Some(name) = symbol {
            self.uses(Aspect::IntSymbol);
            let number = self.symbols.get(name).copied().unwrap_or(0);
            let name = self.texts.text(name);
            self.words.extend([Entry::Symbol as u32, number, name]);
        }
        [64 - ty.bits() as u8, u8::from(symbol.is_some()), 0]
    }

    fn object(&mut self, index: TypeIndex) -> [u8; 3] {
        self.uses(Aspect::ObjectIndex);
        [index.0 as u8, 0, 0]
    }

    pub(super) fn uses(&mut self, aspect: Aspect) {
        self.texts.features.add(aspect);
    }

    /// Elements of a container: their names begin after the element's place.
    fn inside(&mut self, element: &'a ParamType) {
        self.uses(Aspect::Elements);
        self.containers += 1;
        self.deepest = self.deepest.max(self.containers);
        let waiting = self.waiting;
        let inside = self.named("", element, &expected(element), None);
        self.words.extend(inside);
        // in a container no dimension waits
        self.waiting = waiting;
        self.containers -= 1;
    }

    fn sequence(&mut self, index: TypeIndex, or_list: bool, element: &'a ParamType) -> [u8; 3] {
        self.memory[CONTAINERS] += size_of::<TVMFFIObject>() + size_of::<TVMFFISeqCell>();
        self.inside(element);
        [u8::from(or_list), index.0 as u8, 0]
    }

    fn map(&mut self, index: TypeIndex, what: &str, key: &'a ParamType, value: &'a ParamType) -> [u8; 3] {
        for suffix in ["Size", "ForwardIterFunctor"] {
            let name = format!("ffi.{what}{suffix}");
            let text = self.texts.text(&name);
            self.words.extend([text, name.len() as u32]);
        }
        self.inside(key);
        self.inside(value);
        [index.0 as u8, 0, 0]
    }

    fn tensor(&mut self, tensor: &'a TensorType) -> [u8; 3] {
        let (slot, id) = self.devices.place(&tensor.device);
        let (dtype, codes, dtype_flags) = self.dtype(&tensor.dtype);
        let layout_flags = match &tensor.layout {
            Layout::Contiguous => 0,
            Layout::Strides(_) => flag::STRIDED,
            Layout::Any => flag::ANY_STRIDES,
        };
        let opaque = if tensor.is_opaque() { flag::OPAQUE } else { 0 };
        let fold = if self.options.fold_all || tensor.is_open() { flag::FOLD } else { 0 };
        let device_text = match (&tensor.device, id) {
            (Device::Kind(kind, _), SharedId::Fixed(id)) => Device::numbered(*kind, id).to_string(),
            (device, _) => device.to_string(),
        };
        let rank = tensor.shape.rank();
        self.uses(if rank.is_some() { Aspect::Ranked } else { Aspect::AnyRank });
        self.uses(match &tensor.layout {
            Layout::Contiguous => Aspect::Compact,
            Layout::Strides(_) => Aspect::Strided,
            Layout::Any => Aspect::AnyStrides,
        });
        self.uses(if tensor.device.kind().is_some() { Aspect::DeviceType } else { Aspect::AnyDevice });
        self.uses(match id {
            SharedId::Fixed(_) => Aspect::DeviceId,
            SharedId::OfSlot => Aspect::SameDevice,
            SharedId::Any => Aspect::AnyDeviceId,
        });
        for (bits, aspect) in [(opaque, Aspect::Opaque), (fold, Aspect::Fold)] {
            if bits != 0 {
                self.uses(aspect);
            }
        }
        let words = [
            dtype,
            self.texts.text(&tensor.dtype.to_string()),
            codes,
            match id {
                SharedId::Fixed(id) => id as u32,
                SharedId::Any => protocol::tensor::ANY_ID as u32,
                SharedId::OfSlot => (protocol::tensor::ANY_ID - 1 - slot as i32) as u32,
            },
            self.texts.text(&device_text),
            tensor.alignment(),
        ];
        debug_assert_eq!(words.len() as i32, protocol::tensor::SIZE - record::OWN);
        self.words.extend(words);
        self.memory[TENSORS] += size_of::<DLTensor>() + 8 * rank.unwrap_or(MAX_RANK);
        tensor.for_each_dim(&mut |dim| self.entry(dim));
        let kind = tensor.device.kind().map(|kind| kind.0 as usize);
        [opaque | dtype_flags | layout_flags | fold, small(rank), small(kind)]
    }

    /// The word, the other codes that will do, and flags.
    fn dtype(&mut self, dtype: &DType) -> (u32, u32, u8) {
        let DType::Exact(dtype) = dtype else {
            self.uses(Aspect::AnyDType);
            return (0, 0, flag::ANY_DTYPE);
        };
        self.uses(Aspect::DType);
        let word = dtype_word(self.texts.endianness(), *dtype);
        match self.policy.codes(*dtype) {
            // codes of DLPack 1.x are less than 32
            Some(codes) => {
                if !codes.is_empty() {
                    self.uses(Aspect::DTypeCodes);
                }
                (word, codes.iter().fold(0, |mask, code| mask | 1u32 << (code & 31)), 0)
            }
            None => {
                self.uses(Aspect::SameStorage);
                (word, 0, flag::SAME_STORAGE)
            }
        }
    }

    fn entry(&mut self, dim: &Dim) {
        self.uses(match dim {
            Dim::Const(_) => Aspect::Const,
            Dim::Symbol(_) => Aspect::Symbol,
            Dim::Binary(..) => Aspect::Expr,
        });
        let words = match dim {
            Dim::Const(value) => [Entry::Const as u32, *value as u32, (*value >> 32) as u32],
            Dim::Symbol(name) => {
                // every symbol of the signature has a number
                let number = self.symbols.get(name.as_str()).copied().unwrap_or(0);
                [Entry::Symbol as u32, number, self.texts.text(name)]
            }
            Dim::Binary(..) => {
                self.waiting += 1;
                [Entry::Expr as u32, self.expr(&dim.to_string(), dim, &[dim], true), 0]
            }
        };
        self.words.extend(words);
    }

    /// Writes an expression; gives its offset. `dims` are what has its symbols, for which it is solved if need be.
    pub(super) fn expr(&mut self, text: &str, dim: &Dim, dims: &[&Dim], solve: bool) -> u32 {
        let mut names: Vec<&str> = Vec::new();
        for part in dims {
            part.for_each_symbol(&mut |name| {
                if !names.contains(&name) {
                    names.push(name);
                }
            });
        }
        let mut words = vec![self.texts.text(text), self.code(dim), names.len() as u32];
        for name in names {
            let number = self.symbols.get(name).copied().unwrap_or(0);
            let solved = dim.solved_for(name, Dim::Symbol(TARGET.to_owned())).filter(|_| solve);
            let solve = solved.map_or(0, |solved| self.code(&solved));
            words.extend([number, self.texts.text(name), solve]);
        }
        self.texts.words(&words)
    }

    pub(super) fn code(&mut self, dim: &Dim) -> u32 {
        let mut words = Vec::new();
        expr::code(dim, &self.symbols, &mut words);
        words.push(Rpn::End as u32);
        self.texts.words(&words)
    }
}

/// A number as a record has it: ranks and kinds of devices are small ones, -1 stands for none.
fn small(number: Option<usize>) -> u8 {
    const _: () = assert!(MAX_RANK <= i8::MAX as usize);
    number.map_or(-1, |number| i8::try_from(number).unwrap_or(i8::MAX)) as u8
}

fn kind(ty: &ParamType) -> Kind {
    match ty {
        ParamType::Scalar(ScalarType::Bool) => Kind::Bool,
        ParamType::Scalar(ScalarType::Handle) => Kind::Handle,
        ParamType::Scalar(ty) if ty.is_float() => Kind::Float,
        ParamType::Scalar(ty) if ty.is_signed_int() => Kind::Signed,
        ParamType::Scalar(_) => Kind::Unsigned,
        ParamType::Tensor(_) => Kind::Tensor,
        ParamType::Str => Kind::Str,
        ParamType::Bytes => Kind::Bytes,
        ParamType::DType => Kind::DType,
        ParamType::Device => Kind::Device,
        ParamType::Shape(_) => Kind::Shape,
        // a stream is never passed, and so has no record
        ParamType::Any | ParamType::EnvStream => Kind::Any,
        ParamType::None => Kind::None,
        ParamType::Int(_) => Kind::Int,
        ParamType::Bool(true) => Kind::True,
        ParamType::Bool(false) => Kind::False,
        ParamType::Function | ParamType::Module | ParamType::Object(_) => Kind::Object,
        ParamType::Optional(_) => Kind::Optional,
        ParamType::Tuple(_) => Kind::Tuple,
        ParamType::Array(_) | ParamType::List(_) => Kind::Sequence,
        ParamType::Map(..) | ParamType::Dict(..) => Kind::Map,
    }
}
