//! The listing of a module: in tests, error messages and bug reports. The reader reads it back.
//!
//! Printing can't fail on a malformed module, since the verifier's errors print one: a missing entity is printed by its
//! number alone.

use std::fmt::{self, Display, Formatter, Write};

use cranelift_entity::packed_option::PackedOption;
use target_lexicon::Endianness;

use super::lex::is_word;
use crate::ir::inst::{Block, BlockCall, FuncRef, Inst, LocationRef, MemFlags, Op, Terminator, Value};
use crate::ir::module::{BlockData, Data, DataKind, FuncDecl, Function, LocationData, Module};
use crate::ir::types::Type;

impl Module {
    /// The listing of one function: its signature and, unless it is imported, its code.
    pub fn display_function(&self, func: FuncRef) -> DisplayFunction<'_> {
        DisplayFunction { module: self, func }
    }
}

/// Prints one function of a module; made by [`Module::display_function`].
#[derive(Clone, Copy, Debug)]
pub struct DisplayFunction<'m> {
    module: &'m Module,
    func: FuncRef,
}

impl Display for DisplayFunction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.module.functions.get(self.func) {
            Some(decl) => write_function(f, self.module, self.func, decl),
            None => write!(f, "{}", self.func),
        }
    }
}

/// A place in a function that has a line in the listing.
#[derive(Clone, Copy)]
pub(in crate::ir) enum ListingItem {
    /// An instruction.
    Inst(Inst),
    /// The terminator of a block.
    End(Block),
}

/// The output of a listing. It is called with the place of each line of code, just before that line.
pub(in crate::ir) trait Listing: Write {
    fn shows(&mut self, _func: FuncRef, _place: ListingItem) {}
}

impl Listing for Formatter<'_> {}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_listing(f)
    }
}

impl Module {
    pub(in crate::ir) fn write_listing(&self, f: &mut dyn Listing) -> fmt::Result {
        // Paragraphs: data, locations, then functions in order, since their order numbers them.
        let mut first = true;
        let mut gap = |f: &mut dyn Listing| if std::mem::take(&mut first) { Ok(()) } else { f.write_char('\n') };
        if self.endianness == Endianness::Big {
            gap(f)?;
            f.write_str("endian big\n")?;
        }
        if !self.data.is_empty() {
            gap(f)?;
            for (data, Data { name, bytes, align, kind, addresses }) in &self.data {
                let shown = match kind {
                    DataKind::Constant => "",
                    DataKind::Variable => " variable",
                    DataKind::State => " state",
                };
                write!(f, "{data}{shown} {name:?} align {align}")?;
                match kind {
                    // all zeros
                    DataKind::State => write!(f, ", {} bytes", bytes.len())?,
                    _ => write!(f, " = \"{}\"", bytes.escape_ascii())?,
                }
                for &(offset, func) in addresses {
                    write!(f, ", {offset}: @{}", Name(self, func))?;
                }
                f.write_char('\n')?;
            }
        }
        for (kind, functions) in [("constructor", &self.constructors), ("destructor", &self.destructors)] {
            if !functions.is_empty() {
                gap(f)?;
            }
            for &func in functions {
                writeln!(f, "{kind} @{}", Name(self, func))?;
            }
        }
        if !self.locations.is_empty() {
            gap(f)?;
            for (location, LocationData { file, line, function }) in &self.locations {
                writeln!(f, "{location} {file:?}:{line} in {function:?}")?;
            }
        }
        let mut after_line = false;
        for (func, decl) in &self.functions {
            let is_line = decl.body.is_none();
            if !(is_line && after_line) {
                gap(f)?;
            }
            after_line = is_line;
            write_function(f, self, func, decl)?;
        }
        Ok(())
    }
}

/// A symbol's name, in quotes unless it consists of characters that C and linkers allow.
struct QuotedSymbol<'a>(&'a str);

impl Display for QuotedSymbol<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() && self.0.chars().all(is_word) { f.write_str(self.0) } else { write!(f, "{:?}", self.0) }
    }
}

/// A function's name, or its number if the function doesn't exist.
struct Name<'a>(&'a Module, FuncRef);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.functions.get(self.1) {
            Some(decl) => write!(f, "{}", QuotedSymbol(&decl.name)),
            None => write!(f, "{}", self.1),
        }
    }
}

fn write_function(f: &mut dyn Listing, module: &Module, func_ref: FuncRef, decl: &FuncDecl) -> fmt::Result {
    let linkage = decl.linkage.word();
    let cold = if decl.cold { " cold" } else { "" };
    write!(f, "{linkage} fn {}{}{cold}", QuotedSymbol(&decl.name), Prototype(decl))?;
    let Some(func) = &decl.body else {
        return f.write_str("\n");
    };
    f.write_str(" {\n")?;
    for (slot, data) in &func.slots {
        writeln!(f, "    {slot}: {} bytes align {}", data.size, data.align)?;
    }
    for (sig, signature) in &func.signatures {
        writeln!(f, "    {sig} = {signature}")?;
    }
    let preamble = !func.slots.is_empty() || !func.signatures.is_empty();
    for (block, data) in &func.blocks {
        if preamble || Some(block) != func.entry() {
            f.write_char('\n')?;
        }
        write_block(f, module, func_ref, func, (block, data))?;
    }
    f.write_str("}\n")
}

/// A signature with the facts of its parameters.
struct Prototype<'a>(&'a FuncDecl);

impl Display for Prototype<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FuncDecl { signature, param_facts, .. } = self.0;
        f.write_char('(')?;
        for (i, param) in signature.params.iter().enumerate() {
            let sep = if i == 0 { "" } else { ", " };
            write!(f, "{sep}{param}{}", param_facts.get(i).copied().unwrap_or_default())?;
        }
        f.write_char(')')?;
        signature.ret.iter().try_for_each(|ret| write!(f, " -> {ret}"))
    }
}

fn write_block(
    f: &mut dyn Listing,
    module: &Module,
    func_ref: FuncRef,
    func: &Function,
    (block, data): (Block, &BlockData),
) -> fmt::Result {
    write!(f, "{block}")?;
    for (i, &param) in data.params.iter().enumerate() {
        let open = if i == 0 { "(" } else { ", " };
        write!(f, "{open}{param}: {}", TypeOf(func, param))?;
    }
    if !data.params.is_empty() {
        f.write_char(')')?;
    }
    f.write_str(if data.cold { " cold:\n" } else { ":\n" })?;
    for &inst in &data.insts {
        f.shows(func_ref, ListingItem::Inst(inst));
        writeln!(f, "    {}", DisplayInst { module, func, inst })?;
    }
    f.shows(func_ref, ListingItem::End(block));
    match &data.terminator {
        Some(terminator) => write!(f, "    {}", DisplayTerminator(terminator))?,
        None => f.write_str("    (no terminator)")?,
    }
    writeln!(f, "{}", At(func.end_locations[block]))
}

/// The type of a value, or `?` if the value doesn't exist.
struct TypeOf<'a>(&'a Function, Value);

impl Display for TypeOf<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.values.get(self.1) {
            Some(value) => write!(f, "{}", value.ty),
            None => f.write_char('?'),
        }
    }
}

/// Values separated by commas.
struct List<'a>(&'a [Value]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, value) in self.0.iter().enumerate() {
            let sep = if i == 0 { "" } else { ", " };
            write!(f, "{sep}{value}")?;
        }
        Ok(())
    }
}

/// Prints one instruction on one line, for listings and errors.
pub(in crate::ir) struct DisplayInst<'a> {
    pub(in crate::ir) module: &'a Module,
    pub(in crate::ir) func: &'a Function,
    pub(in crate::ir) inst: Inst,
}

impl Display for DisplayInst<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(data) = self.func.insts.get(self.inst) else {
            return write!(f, "{}", self.inst);
        };
        if let Some(result) = data.result {
            write!(f, "{result} = ")?;
        }
        self.write_op(f, &data.op)?;
        write!(f, "{}", At(self.func.locations[self.inst]))
    }
}

/// The source location at the end of a line; nothing without one.
struct At(PackedOption<LocationRef>);

impl Display for At {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.expand().map_or(Ok(()), |location| write!(f, "    ; {location}"))
    }
}

impl DisplayInst<'_> {
    fn write_op(&self, f: &mut Formatter<'_>, op: &Op) -> fmt::Result {
        let ty = |value: Value| TypeOf(self.func, value);
        match op {
            Op::IntConst { ty, value } => write!(f, "iconst.{ty} {value}"),
            Op::FloatConst { ty, bits } => write!(f, "fconst.{ty} {}", Float { ty: *ty, bits: *bits }),
            Op::BoolConst(value) => write!(f, "bconst {value}"),
            Op::PtrConst(0) => f.write_str("pconst null"),
            Op::PtrConst(address) => write!(f, "pconst {address:#x}"),
            Op::Unary(op, a) => write!(f, "{}.{} {a}", op.word(), ty(*a)),
            Op::Binary(op, a, b) => write!(f, "{}.{} {a}, {b}", op.word(), ty(*a)),
            Op::ICmp(cc, a, b) => write!(f, "icmp.{} {} {a}, {b}", ty(*a), cc.word()),
            Op::FCmp(cc, a, b) => write!(f, "fcmp.{} {} {a}, {b}", ty(*a), cc.word()),
            Op::Select(cond, a, b) => write!(f, "select.{} {cond}, {a}, {b}", ty(*a)),
            Op::Convert(op, to, a) => write!(f, "{}.{to} {a}", op.word()),
            Op::Load { ty, ptr, offset, flags } => {
                write!(f, "load.{ty} {}{ptr}{}", Flags(*flags), Offset(i64::from(*offset)))
            }
            Op::Store { value, ptr, offset, flags } => {
                write!(f, "store.{} {}{value}, {ptr}{}", ty(*value), Flags(*flags), Offset(i64::from(*offset)))
            }
            Op::PtrAdd(ptr, bytes) => write!(f, "ptr_add {ptr}, {bytes}"),
            Op::Element { base, index, ty } => write!(f, "element.{ty} {base}, {index}"),
            Op::SameBytes(pairs, bytes) => {
                let operands: Vec<Value> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
                write!(f, "same_bytes.{bytes} {}", List(&operands))
            }
            Op::StackAddr(slot, offset) => write!(f, "stack_addr {slot}{}", Offset(i64::from(*offset))),
            Op::DataAddr(data, offset) => write!(f, "data_addr {data}{}", Offset(i64::from(*offset))),
            Op::FuncAddr(func) => write!(f, "func_addr @{}", Name(self.module, *func)),
            Op::LoadAcquire(ptr) => write!(f, "load_acquire.ptr {ptr}"),
            Op::AtomicAdd(ptr, value) => write!(f, "atomic_add.i64 {ptr}, {value}"),
            Op::CompareExchange(ptr, expected, new) => write!(f, "compare_exchange.ptr {ptr}, {expected}, {new}"),
            Op::Call(callee, args) => match self.module.functions.get(*callee) {
                Some(decl) => write!(f, "call @{}({})", QuotedSymbol(&decl.name), List(args)),
                None => write!(f, "call {callee}({})", List(args)),
            },
            Op::CallIndirect(sig, callee, args) => write!(f, "call_indirect {sig} {callee}({})", List(args)),
        }
    }
}

/// Prints a terminator on one line, for listings and errors.
pub(in crate::ir) struct DisplayTerminator<'a>(pub(in crate::ir) &'a Terminator);

impl Display for DisplayTerminator<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Terminator::Jump(to) => write!(f, "jump {}", BlockTarget(to)),
            Terminator::Branch { cond, then, otherwise, hint } => {
                write!(f, "{} {cond}, {}, {}", hint.word(), BlockTarget(then), BlockTarget(otherwise))
            }
            Terminator::Return(Some(value)) => write!(f, "return {value}"),
            Terminator::Return(None) => f.write_str("return"),
        }
    }
}

struct BlockTarget<'a>(&'a BlockCall);

impl Display for BlockTarget<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.block)?;
        if self.0.args.is_empty() { Ok(()) } else { write!(f, "({})", List(&self.0.args)) }
    }
}

/// An offset with its sign; nothing for 0.
struct Offset(i64);

impl Display for Offset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "{:+}", self.0) }
    }
}

struct Flags(MemFlags);

impl Display for Flags {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.aligned { "aligned " } else { "" })?;
        f.write_str(if self.0.readonly { "readonly " } else { "" })
    }
}

/// A float constant: the shortest decimal that parses to the same bits, or a NaN with its bits.
struct Float {
    ty: Type,
    bits: u64,
}

impl Display for Float {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.ty {
            Type::F32 => {
                let bits = self.bits as u32;
                let value = f32::from_bits(bits);
                if value.is_nan() { write!(f, "nan:{bits:#x}") } else { write!(f, "{value:?}") }
            }
            Type::F64 => {
                let value = f64::from_bits(self.bits);
                if value.is_nan() { write!(f, "nan:{:#x}", self.bits) } else { write!(f, "{value:?}") }
            }
            _ => write!(f, "{:#x}", self.bits),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ir::{
        AbiParam, BinaryOp, ConvertOp, FloatCC, FuncSig, FunctionBuilder, Hint, IntCC, Linkage, PointerFacts,
        StackSlot, UnaryOp,
    };

    const GOLDEN: &str = r#"data0 "kind" align 1 = "Type\"Error\"\x00"

import fn TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
import fn "odd name"(i8 zext) -> i32 sext

export fn __tvm_ffi_add_one(ptr, ptr readonly align 8, i32, ptr nonnull noalias dereferenceable 16) -> i32 {
    slot0: 16 bytes align 8
    sig0 = (i32) -> i64

block0(v0: ptr, v1: ptr, v2: i32, v3: ptr):
    v4 = load.i32 aligned readonly v1+8
    v5 = iconst.i32 1
    v6 = icmp.i32 eq v4, v5
    br_likely v6, block2(v4), block1

block1 cold:
    v8 = data_addr data0
    v9 = data_addr data0+4
    call @TVMFFIErrorSetRaisedFromCStr(v8, v9)
    v10 = iconst.i8 -1
    v11 = call @"odd name"(v10)
    return v11

block2(v7: i32):
    v12 = add.i32 v7, v5
    v13 = stack_addr slot0
    store.i32 v12, v13-4
    v14 = call_indirect sig0 v3(v12)
    v15 = element.f32 v0, v14
    v16 = ptr_add v15, v14
    v17 = fconst.f32 0.1
    v18 = fconst.f64 nan:0x7ff8000000000001
    v19 = fconst.f64 -inf
    v20 = fcmp.f64 le v18, v19
    v21 = bconst false
    v22 = select.bool v6, v20, v21
    v23 = zext.i32 v22
    v24 = pconst null
    v25 = pconst 0x1000
    v26 = nearest.f32 v17
    jump block3

block3:
    return v23
}

local fn helper() cold {
block0:
    return
}
"#;

    fn sample() -> (Module, FuncRef) {
        let mut m = Module::new();
        let raise = m.import("TVMFFIErrorSetRaisedFromCStr", FuncSig::new([Type::Ptr, Type::Ptr], None));
        let odd = FuncSig { params: vec![AbiParam::unsigned(Type::I8)], ret: Some(AbiParam::signed(Type::I32)) };
        let odd = m.import("odd name", odd);
        let kind = m.add_data("kind", b"Type\"Error\"\0".to_vec(), 1);
        let sig = FuncSig::new([Type::Ptr, Type::Ptr, Type::I32, Type::Ptr], Some(Type::I32));
        let func = m.declare("__tvm_ffi_add_one", sig, Linkage::Export);
        let facts = PointerFacts { nonnull: true, noalias: true, dereferenceable: 16, ..PointerFacts::NONE };
        let args = PointerFacts { readonly: true, align: 8, ..PointerFacts::NONE };
        m.functions[func].param_facts = vec![PointerFacts::NONE, args, PointerFacts::NONE, facts];
        let helper = m.declare("helper", FuncSig::default(), Linkage::Local);
        m.functions[helper].cold = true;
        let mut b = FunctionBuilder::new(&mut m, helper);
        b.ret(None);
        b.finish();

        let mut b = FunctionBuilder::new(&mut m, func);
        let slot = b.slot(16, 8);
        let sig = b.signature(FuncSig::new([Type::I32], Some(Type::I64)));
        let loaded = b.load(Type::I32, b.param(1), 8, MemFlags::READONLY);
        let one = b.iconst(Type::I32, 1);
        let cond = b.icmp(IntCC::Eq, loaded, one);
        let (bad, good, end) = (b.cold_block(), b.block(), b.block());
        let param = b.block_param(good, Type::I32);
        b.branch_with(cond, (good, &[loaded]), (bad, &[]), Hint::Likely);
        b.switch_to(bad);
        let (start, middle) = (b.data_addr(kind, 0), b.data_addr(kind, 4));
        b.call(raise, &[start, middle]);
        let minus = b.iconst(Type::I8, -1);
        let failed = b.call(odd, &[minus]);
        b.ret(failed);
        b.switch_to(good);
        let sum = b.binary(BinaryOp::Add, param, one);
        let address = b.stack_addr(slot);
        b.store(sum, address, -4, MemFlags::UNALIGNED);
        let index = b.call_indirect(sig, b.param(3), &[sum]).unwrap();
        let element = b.element(b.param(0), index, Type::F32);
        b.ptr_add(element, index);
        let tenth = b.f32(0.1);
        let nan = b.f64(f64::from_bits(0x7ff8_0000_0000_0001));
        let inf = b.f64(f64::NEG_INFINITY);
        let le = b.fcmp(FloatCC::Le, nan, inf);
        let no = b.bconst(false);
        let either = b.select(cond, le, no);
        let result = b.convert(ConvertOp::ZExt, Type::I32, either);
        b.ptr_const(0);
        b.ptr_const(0x1000);
        b.unary(UnaryOp::Nearest, tenth);
        b.jump(end, &[]);
        b.switch_to(end);
        b.ret(Some(result));
        b.finish();
        (m, func)
    }

    #[test]
    fn listing() {
        let (module, func) = sample();
        assert_eq!(module.to_string(), GOLDEN);
        let listing = module.display_function(func).to_string();
        assert!(GOLDEN.contains(&listing) && listing.starts_with("export fn") && listing.ends_with("}\n"));
        crate::ir::verify(module).unwrap();
    }

    #[test]
    fn malformed_functions_are_printed_too() {
        let (mut module, func) = sample();
        let code = module.functions[func].body.as_mut().unwrap();
        let block = Block::from_u32(1);
        code.blocks[block].params.push(Value::from_u32(1000));
        code.blocks[block].insts.push(Inst::from_u32(1001));
        code.blocks[block].terminator = None;
        code.insts[Inst::from_u32(0)].op = Op::Call(FuncRef::from_u32(1002), vec![Value::from_u32(1003)]);
        code.insts[Inst::from_u32(1)].op = Op::Binary(BinaryOp::Add, Value::from_u32(1004), Value::from_u32(0));
        code.insts[Inst::from_u32(2)].op = Op::StackAddr(StackSlot::from_u32(1005), 0);
        let text = module.display_function(func).to_string();
        for part in [
            "block1(v1000: ?) cold:",
            "    inst1001\n    (no terminator)\n",
            "call fn1002(v1003)",
            "add.? v1004, v0",
            "stack_addr slot1005",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(module.display_function(FuncRef::from_u32(1006)).to_string(), "fn1006");
    }

    #[test]
    fn floats_read_back_as_the_same_bits() {
        let float = |ty, bits| Float { ty, bits }.to_string();
        for value in [0.0, -0.0, 1.0, 0.1, f32::MIN_POSITIVE, f32::MAX, 1e-45, f32::INFINITY] {
            let text = float(Type::F32, u64::from(value.to_bits()));
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), value.to_bits(), "{text}");
        }
        assert_eq!(float(Type::F32, 0xffc0_0001), "nan:0xffc00001");
        assert_eq!(float(Type::F64, 0.1f64.to_bits()), "0.1");
        assert_eq!(float(Type::F64, (-0.0f64).to_bits()), "-0.0");
    }
}
