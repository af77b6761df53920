//! The routine that makes an error's text and raises it, written in IR so that each backend and the interpreter run the same one.
//!
//! `int32_t report(const void* messages, uint32_t row, int64_t first, int64_t second)` reads a row of the table of
//! [`super::messages`], makes a C string of each part on its stack, raises them by `TVMFFIErrorSetRaisedFromCStrParts`, which
//! copies them, and returns -1.

use super::messages::{MAX_PARTS, Tag};
use crate::ir::{
    BinaryOp, Block, ConvertOp, DataRef, FuncRef, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, MemFlags, Module,
    Type, Value,
};
use tvm_ffi_runtime::abi::{DLDeviceType, TVMFFIObject, TVMFFITypeInfo, TypeIndex};

/// The routine's symbol, where wrappers import it.
pub const REPORT_SYMBOL: &str = "__tvm_ffi_codegen_report";

/// What an argument of a static type is called in messages, by type index, in the words of the signature language.
const TYPE_NAMES: [(TypeIndex, &str); 28] = [
    (TypeIndex::NONE, "None"),
    (TypeIndex::INT, "int"),
    (TypeIndex::BOOL, "bool"),
    (TypeIndex::FLOAT, "float"),
    (TypeIndex::OPAQUE_PTR, "handle"),
    (TypeIndex::DATA_TYPE, "dtype"),
    (TypeIndex::DEVICE, "device"),
    (TypeIndex::DL_TENSOR_PTR, "Tensor"),
    (TypeIndex::RAW_STR, "str"),
    (TypeIndex::BYTE_ARRAY_PTR, "bytes"),
    (TypeIndex::OBJECT_RVALUE_REF, "rvalue reference"),
    (TypeIndex::SMALL_STR, "str"),
    (TypeIndex::SMALL_BYTES, "bytes"),
    (TypeIndex::OBJECT, "Object"),
    (TypeIndex::STR, "str"),
    (TypeIndex::BYTES, "bytes"),
    (TypeIndex::ERROR, "Error"),
    (TypeIndex::FUNCTION, "Function"),
    (TypeIndex::SHAPE, "Shape"),
    (TypeIndex::TENSOR, "Tensor"),
    (TypeIndex::ARRAY, "Array"),
    (TypeIndex::MAP, "Map"),
    (TypeIndex::MODULE, "Module"),
    (TypeIndex::OPAQUE_PY_OBJECT, "Python object"),
    (TypeIndex::LIST, "List"),
    (TypeIndex::DICT, "Dict"),
    (TypeIndex::VISIT_INTERRUPT, "VisitInterrupt"),
    (TypeIndex::BIG_INT, "int of more than 64 bits"),
];

/// Names of `DLDataTypeCode`, by code (`dlpack.h`).
const DTYPE_NAMES: [&str; 18] = [
    "int",
    "uint",
    "float",
    "handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
];
/// From this code on the name tells the number of bits.
const FIRST_FIXED_WIDTH_CODE: i64 = 7;
const HANDLE_CODE: i64 = 3;
const BOOL_CODE: i64 = 6;

/// Device types end here (`DLDeviceType` of DLPack 1.3).
const LAST_DEVICE_TYPE: i32 = 18;

/// A part may become this many: an unknown dtype is `code N, N bits, xN`.
const PARTS_PER_VALUE: usize = 8;
/// Room for a 64-bit number in decimal, its sign and a NUL.
const CELL: i64 = 24;
/// Room for a type key; longer ones are cut.
const KEY_ROOM: i64 = 160;
/// No object lies below: a payload under it is a number, not a pointer.
const LEAST_ADDRESS: i64 = 4096;

/// `(messages, row, first, second) -> -1`.
pub(super) fn signature() -> FuncSig {
    FuncSig::new([Type::Ptr, Type::I32, Type::I64, Type::I64], Some(Type::I32))
}

/// A module that exports the routine, for a JIT that shares one copy.
pub fn report_module() -> Module {
    let mut module = Module::new();
    define(&mut module, Linkage::Export);
    module
}

/// Defines the routine in a module.
pub(super) fn define(module: &mut Module, linkage: Linkage) -> FuncRef {
    let names = Names::new(module);
    let decimal = define_decimal(module);
    let set_raised =
        module.import("TVMFFIErrorSetRaisedFromCStrParts", FuncSig::new([Type::Ptr, Type::Ptr, Type::I32], None));
    let type_info = module.import("TVMFFIGetTypeInfo", FuncSig::new([Type::I32], Some(Type::Ptr)));
    let report = module.declare(REPORT_SYMBOL, signature(), linkage);
    module.functions[report].cold = true;
    let mut emitter = Emitter::new(FunctionBuilder::new(module, report), names, decimal, type_info);
    emitter.body(set_raised);
    emitter.b.finish()
}

/// Names that the routine looks up: tables of 16-bit offsets, then the texts.
struct Names {
    data: DataRef,
    types: u32,
    dtypes: u32,
    devices: u32,
    texts: std::collections::HashMap<&'static str, u32>,
}

impl Names {
    fn new(module: &mut Module) -> Self {
        let type_count = TypeIndex::BIG_INT.0 as usize + 1;
        let mut types = vec![None; type_count];
        for (index, name) in TYPE_NAMES {
            types[index.0 as usize] = Some(name);
        }
        let dtypes = DTYPE_NAMES.map(Some);
        let devices: Vec<_> = (0..=LAST_DEVICE_TYPE).map(|code| DLDeviceType(code).name()).collect();
        let table: Vec<Option<&'static str>> = types.iter().chain(&dtypes).chain(&devices).copied().collect();
        let mut names = Names {
            data: DataRef::from_u32(0),
            types: 0,
            dtypes: 2 * type_count as u32,
            devices: 2 * (type_count + DTYPE_NAMES.len()) as u32,
            texts: std::collections::HashMap::new(),
        };
        let mut texts = Vec::new();
        let start = 2 * table.len();
        let mut place = |text: &'static str| {
            *names.texts.entry(text).or_insert_with(|| {
                let offset = start + texts.len();
                texts.extend_from_slice(text.as_bytes());
                texts.push(0);
                offset as u32
            })
        };
        let mut bytes: Vec<u8> = Vec::with_capacity(start + 512);
        for name in table {
            // offset 0 is the table itself, so it can stand for "no name"
            let offset = name.map_or(0, &mut place) as u16;
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        for text in GLUE {
            place(text);
        }
        bytes.extend_from_slice(&texts);
        names.data = module.add_data("names", bytes, 2);
        names
    }
}

/// Texts between values.
const GLUE: [&str; 7] = ["code ", ", ", " bits", "x", ":", "device type ", "type index "];

/// `const char* decimal(char* cell, int64_t value)`: writes the number at the cell's end and gives its start.
fn define_decimal(module: &mut Module) -> FuncRef {
    let decimal = module.declare("decimal", FuncSig::new([Type::Ptr, Type::I64], Some(Type::Ptr)), Linkage::Local);
    module.functions[decimal].cold = true;
    let mut b = FunctionBuilder::new(module, decimal);
    let (cell, value) = (b.param(0), b.param(1));
    let negative = b.icmp_imm(IntCC::SLt, value, 0);
    let zero = b.i64(0);
    // the least value is its own negative, and right as an unsigned number
    let negated = b.binary(BinaryOp::Sub, zero, value);
    let magnitude = b.select(negative, negated, value);
    let end = b.ptr_add_imm(cell, CELL - 1);
    let nul = b.iconst(Type::I8, 0);
    b.store(nul, end, 0, MemFlags::ALIGNED);
    let (digits, sign, minus, done) = (b.block(), b.block(), b.block(), b.block());
    let at = b.block_param(digits, Type::Ptr);
    let rest = b.block_param(digits, Type::I64);
    let start = b.block_param(done, Type::Ptr);
    b.jump(digits, &[end, magnitude]);
    b.switch_to(digits);
    let ten = b.i64(10);
    let quotient = b.binary(BinaryOp::UDiv, rest, ten);
    let whole = b.binary(BinaryOp::Mul, quotient, ten);
    let digit = b.binary(BinaryOp::Sub, rest, whole);
    let ascii_zero = b.i64(i64::from(b'0'));
    let digit = b.binary(BinaryOp::Add, digit, ascii_zero);
    let digit = b.convert(ConvertOp::Truncate, Type::I8, digit);
    let before = b.ptr_add_imm(at, -1);
    b.store(digit, before, 0, MemFlags::ALIGNED);
    let more = b.icmp_imm(IntCC::Ne, quotient, 0);
    b.branch_with(more, (digits, &[before, quotient]), (sign, &[]), Hint::None);
    b.switch_to(sign);
    b.branch_with(negative, (minus, &[]), (done, &[before]), Hint::None);
    b.switch_to(minus);
    let dash = b.iconst(Type::I8, i64::from(b'-'));
    let first = b.ptr_add_imm(before, -1);
    b.store(dash, first, 0, MemFlags::ALIGNED);
    b.jump(done, &[first]);
    b.switch_to(done);
    b.ret(Some(start));
    b.finish()
}

/// How far the routine is: the next word, the number of finished parts, the next free cell.
#[derive(Clone, Copy)]
struct Cursor {
    word: Value,
    count: Value,
    cell: Value,
}

impl Cursor {
    fn values(self) -> [Value; 3] {
        [self.word, self.count, self.cell]
    }
}

struct Emitter<'m> {
    b: FunctionBuilder<'m>,
    names: Names,
    decimal: FuncRef,
    type_info: FuncRef,
    parts: Value,
    names_base: Value,
    first: Value,
    second: Value,
    next: Block,
}

impl<'m> Emitter<'m> {
    fn new(mut b: FunctionBuilder<'m>, names: Names, decimal: FuncRef, type_info: FuncRef) -> Self {
        let parts = b.slot((8 * (MAX_PARTS + PARTS_PER_VALUE)) as u32, 8);
        let parts = b.stack_addr(parts);
        let names_base = b.data_addr(names.data, 0);
        let (first, second) = (b.param(2), b.param(3));
        let next = b.block();
        Emitter { b, names, decimal, type_info, parts, names_base, first, second, next }
    }

    fn body(&mut self, set_raised: FuncRef) {
        let messages = self.b.param(0);
        let row = self.b.param(1);
        let row = self.b.convert(ConvertOp::ZExt, Type::I64, row);
        let row = self.b.ptr_add(messages, row);
        let kind = self.at_offset(messages, row);
        let cells = self.b.slot(CELL as u32 * MAX_PARTS as u32 * 2, 8);
        let cells = self.b.stack_addr(cells);
        let start = self.b.ptr_add_imm(row, 4);
        let zero = self.b.i64(0);
        let next = self.next;
        let cursor = self.cursor_params(next);
        self.b.jump(next, &[start, zero, cells]);

        self.b.switch_to(next);
        let word = self.b.load(Type::I32, cursor.word, 0, MemFlags::READONLY);
        let after = Cursor { word: self.b.ptr_add_imm(cursor.word, 4), ..cursor };
        let shift = self.b.iconst(Type::I32, 24);
        let tag = self.b.binary(BinaryOp::LShr, word, shift);
        let mask = self.b.iconst(Type::I32, (1 << 24) - 1);
        let operand = self.b.binary(BinaryOp::And, word, mask);
        let operand = self.b.convert(ConvertOp::ZExt, Type::I64, operand);

        self.on_tag(tag, Tag::Text, |e| {
            let text = e.b.ptr_add(messages, operand);
            let cursor = e.push(after, text);
            e.go_on(cursor);
        });
        for (which, value) in [(Tag::Number, operand), (Tag::First, self.first), (Tag::Second, self.second)] {
            self.on_tag(tag, which, |e| {
                let cursor = e.push_number(after, value);
                e.go_on(cursor);
            });
        }
        self.on_tag(tag, Tag::FirstDType, |e| e.dtype(after));
        self.on_tag(tag, Tag::FirstDevice, |e| e.device(after));
        self.on_tag(tag, Tag::FirstType, |e| e.type_name(after));

        // the end, a word of 0
        let count = self.b.convert(ConvertOp::Truncate, Type::I32, cursor.count);
        let parts = self.parts;
        self.b.call(set_raised, &[kind, parts, count]);
        let failed = self.b.iconst(Type::I32, -1);
        self.b.ret(Some(failed));
    }

    /// The text whose offset from `base` is the word at `at`.
    fn at_offset(&mut self, base: Value, at: Value) -> Value {
        let offset = self.b.load(Type::I32, at, 0, MemFlags::READONLY);
        let offset = self.b.convert(ConvertOp::ZExt, Type::I64, offset);
        self.b.ptr_add(base, offset)
    }

    fn cursor_params(&mut self, block: Block) -> Cursor {
        Cursor {
            word: self.b.block_param(block, Type::Ptr),
            count: self.b.block_param(block, Type::I64),
            cell: self.b.block_param(block, Type::Ptr),
        }
    }

    fn go_on(&mut self, cursor: Cursor) {
        let next = self.next;
        self.b.jump(next, &cursor.values());
    }

    /// Emits `then` for the tag, and goes on where it is another one.
    fn on_tag(&mut self, tag: Value, which: Tag, then: impl FnOnce(&mut Self)) {
        let is = self.b.icmp_imm(IntCC::Eq, tag, i64::from(which as u8));
        let (yes, no) = (self.b.block(), self.b.block());
        self.b.branch(is, yes, no, Hint::None);
        self.b.switch_to(yes);
        then(self);
        self.b.switch_to(no);
    }

    /// Runs `then` where `cond` holds; `then` gives the cursor with which both ways go on.
    fn when(&mut self, cond: Value, cursor: Cursor, then: impl FnOnce(&mut Self, Cursor) -> Cursor) -> Cursor {
        let (yes, join) = (self.b.block(), self.b.block());
        let joined = self.cursor_params(join);
        self.b.branch_with(cond, (yes, &[]), (join, &cursor.values()), Hint::None);
        self.b.switch_to(yes);
        let after = then(self, cursor);
        self.b.jump(join, &after.values());
        self.b.switch_to(join);
        joined
    }

    fn push(&mut self, cursor: Cursor, text: Value) -> Cursor {
        let parts = self.parts;
        let slot = self.b.element(parts, cursor.count, Type::Ptr);
        self.b.store(text, slot, 0, MemFlags::ALIGNED);
        let one = self.b.i64(1);
        Cursor { count: self.b.binary(BinaryOp::Add, cursor.count, one), ..cursor }
    }

    fn push_glue(&mut self, cursor: Cursor, text: &'static str) -> Cursor {
        let offset = self.names.texts.get(text).copied().unwrap_or_default();
        let text = self.b.data_addr(self.names.data, offset);
        self.push(cursor, text)
    }

    fn push_number(&mut self, cursor: Cursor, value: Value) -> Cursor {
        let decimal = self.decimal;
        let Some(text) = self.b.call(decimal, &[cursor.cell, value]) else { return cursor };
        let cursor = Cursor { cell: self.b.ptr_add_imm(cursor.cell, CELL), ..cursor };
        self.push(cursor, text)
    }

    /// The offset in a table of names, 0 if the index is out of it or has no name.
    fn lookup(&mut self, table: u32, len: i64, index: Value) -> Value {
        let inside = self.b.icmp_imm(IntCC::ULt, index, len);
        let zero = self.b.i64(0);
        let safe = self.b.select(inside, index, zero);
        let table = self.b.data_addr(self.names.data, table);
        let entry = self.b.element(table, safe, Type::I16);
        let offset = self.b.load(Type::I16, entry, 0, MemFlags::READONLY);
        let offset = self.b.convert(ConvertOp::ZExt, Type::I64, offset);
        self.b.select(inside, offset, zero)
    }

    /// Pushes the name at that offset, or what `unknown` pushes where there is none.
    fn push_name_or(
        &mut self,
        cursor: Cursor,
        offset: Value,
        unknown: impl FnOnce(&mut Self, Cursor) -> Cursor,
    ) -> Cursor {
        let (known, other, join) = (self.b.block(), self.b.block(), self.b.block());
        let joined = self.cursor_params(join);
        let has_name = self.b.icmp_imm(IntCC::Ne, offset, 0);
        self.b.branch(has_name, known, other, Hint::None);
        self.b.switch_to(known);
        let base = self.names_base;
        let name = self.b.ptr_add(base, offset);
        let after = self.push(cursor, name);
        self.b.jump(join, &after.values());
        self.b.switch_to(other);
        let after = unknown(self, cursor);
        self.b.jump(join, &after.values());
        self.b.switch_to(join);
        joined
    }

    /// Bits `shift..shift + width` of the first value.
    fn field(&mut self, shift: i64, width: u32) -> Value {
        let amount = self.b.i64(shift);
        let shifted = self.b.binary(BinaryOp::LShr, self.first, amount);
        let mask = self.b.i64((1 << width) - 1);
        self.b.binary(BinaryOp::And, shifted, mask)
    }

    /// As upstream prints a `DLDataType`: `float32`, `bool`, `float8_e4m3fn`, `int8x4`.
    fn dtype(&mut self, cursor: Cursor) {
        let (code, bits, lanes) = (self.field(0, 8), self.field(8, 8), self.field(16, 16));
        let name = self.lookup(self.names.dtypes, DTYPE_NAMES.len() as i64, code);
        let cursor = self.push_name_or(cursor, name, |e, cursor| {
            let cursor = e.push_glue(cursor, "code ");
            let cursor = e.push_number(cursor, code);
            let cursor = e.push_glue(cursor, ", ");
            let cursor = e.push_number(cursor, bits);
            e.push_glue(cursor, " bits")
        });
        let is_bool = self.b.icmp_imm(IntCC::Eq, code, BOOL_CODE);
        let is_byte = self.b.icmp_imm(IntCC::Eq, bits, 8);
        let plain_bool = self.b.binary(BinaryOp::And, is_bool, is_byte);
        let is_handle = self.b.icmp_imm(IntCC::Eq, code, HANDLE_CODE);
        let fixed = self.b.icmp_imm(IntCC::SGe, code, FIRST_FIXED_WIDTH_CODE);
        let silent = self.b.binary(BinaryOp::Or, plain_bool, is_handle);
        let silent = self.b.binary(BinaryOp::Or, silent, fixed);
        let speaking = self.b.unary(crate::ir::UnaryOp::Not, silent);
        let cursor = self.when(speaking, cursor, |e, cursor| e.push_number(cursor, bits));
        let vector = self.b.icmp_imm(IntCC::Ne, lanes, 1);
        let cursor = self.when(vector, cursor, |e, cursor| {
            let cursor = e.push_glue(cursor, "x");
            e.push_number(cursor, lanes)
        });
        self.go_on(cursor);
    }

    /// `cpu`, or `cuda:0`.
    fn device(&mut self, cursor: Cursor) {
        let low = self.b.convert(ConvertOp::Truncate, Type::I32, self.first);
        let device_type = self.b.convert(ConvertOp::SExt, Type::I64, low);
        let amount = self.b.i64(32);
        let id = self.b.binary(BinaryOp::AShr, self.first, amount);
        let name = self.lookup(self.names.devices, i64::from(LAST_DEVICE_TYPE) + 1, device_type);
        let cursor = self.push_name_or(cursor, name, |e, cursor| {
            let cursor = e.push_glue(cursor, "device type ");
            e.push_number(cursor, device_type)
        });
        // there is one CPU
        let not_cpu = self.b.icmp_imm(IntCC::Ne, device_type, i64::from(DLDeviceType::CPU.0));
        let has_id = self.b.icmp_imm(IntCC::Ne, id, 0);
        let numbered = self.b.binary(BinaryOp::Or, not_cpu, has_id);
        let cursor = self.when(numbered, cursor, |e, cursor| {
            let cursor = e.push_glue(cursor, ":");
            e.push_number(cursor, id)
        });
        self.go_on(cursor);
    }

    /// The name of a static type, the key of a registered one, or the bare index.
    fn type_name(&mut self, cursor: Cursor) {
        let index = self.first;
        let name = self.lookup(self.names.types, i64::from(TypeIndex::BIG_INT.0) + 1, index);
        let cursor = self.push_name_or(cursor, name, |e, cursor| e.dynamic_type_name(cursor, index));
        self.go_on(cursor);
    }

    fn dynamic_type_name(&mut self, cursor: Cursor, index: Value) -> Cursor {
        let (unknown, join) = (self.b.block(), self.b.block());
        let joined = self.cursor_params(join);
        let continue_if = |e: &mut Self, cond: Value| {
            let yes = e.b.block();
            e.b.branch(cond, yes, unknown, Hint::None);
            e.b.switch_to(yes);
        };
        // Upstream's TVMFFIGetTypeInfo ends the process on an index that it doesn't know, so ask only where the
        // payload is an object that bears this index: only a registered type has objects.
        let payload = self.second;
        let dynamic = self.b.icmp_imm(IntCC::SGe, index, i64::from(TypeIndex::DYN_OBJECT_BEGIN.0));
        continue_if(self, dynamic);
        let high = self.b.icmp_imm(IntCC::UGe, payload, LEAST_ADDRESS);
        let seven = self.b.i64(7);
        let low_bits = self.b.binary(BinaryOp::And, payload, seven);
        let aligned = self.b.icmp_imm(IntCC::Eq, low_bits, 0);
        let plausible = self.b.binary(BinaryOp::And, high, aligned);
        continue_if(self, plausible);
        let object = self.b.convert(ConvertOp::IntToPtr, Type::Ptr, payload);
        let offset = std::mem::offset_of!(TVMFFIObject, type_index) as i32;
        let own = self.b.load(Type::I32, object, offset, MemFlags::ALIGNED);
        let own_wide = self.b.convert(ConvertOp::SExt, Type::I64, own);
        let same = self.b.icmp(IntCC::Eq, own_wide, index);
        continue_if(self, same);
        let type_info = self.type_info;
        let Some(info) = self.b.call(type_info, &[own]) else { return cursor };
        let found = self.b.icmp_imm(IntCC::Ne, info, 0);
        continue_if(self, found);
        let text = self.copy_key(info);
        let after = self.push(cursor, text);
        self.b.jump(join, &after.values());

        self.b.switch_to(unknown);
        let after = self.push_glue(cursor, "type index ");
        let after = self.push_number(after, index);
        self.b.jump(join, &after.values());
        self.b.switch_to(join);
        joined
    }

    /// The type key of a `TVMFFITypeInfo` as a C string on the stack: a byte array need not end with a NUL.
    fn copy_key(&mut self, info: Value) -> Value {
        let key = std::mem::offset_of!(TVMFFITypeInfo, type_key) as i32;
        let data = self.b.load(Type::Ptr, info, key, MemFlags::ALIGNED);
        let size = self.b.load(Type::I64, info, key + 8, MemFlags::ALIGNED);
        let room = self.b.i64(KEY_ROOM - 1);
        let size = self.b.binary(BinaryOp::UMin, size, room);
        let slot = self.b.slot(KEY_ROOM as u32, 8);
        let copy = self.b.stack_addr(slot);
        let (head, step, done) = (self.b.block(), self.b.block(), self.b.block());
        let index = self.b.block_param(head, Type::I64);
        let zero = self.b.i64(0);
        self.b.jump(head, &[zero]);
        self.b.switch_to(head);
        let more = self.b.icmp(IntCC::ULt, index, size);
        self.b.branch(more, step, done, Hint::None);
        self.b.switch_to(step);
        let from = self.b.ptr_add(data, index);
        let byte = self.b.load(Type::I8, from, 0, MemFlags::ALIGNED);
        let to = self.b.ptr_add(copy, index);
        self.b.store(byte, to, 0, MemFlags::ALIGNED);
        let one = self.b.i64(1);
        let index_after = self.b.binary(BinaryOp::Add, index, one);
        self.b.jump(head, &[index_after]);
        self.b.switch_to(done);
        let end = self.b.ptr_add(copy, size);
        let nul = self.b.iconst(Type::I8, 0);
        self.b.store(nul, end, 0, MemFlags::ALIGNED);
        copy
    }
}
