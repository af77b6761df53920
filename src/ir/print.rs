//! The text form of a module, for people: listings in tests, error messages and bug reports.
//!
//! Nothing reads it back. It never fails on a malformed module, because the verifier's errors show one:
//! an entity that isn't there is printed by its number alone.

use std::fmt::{self, Display, Formatter, Write};

use super::inst::{
    BinaryOp, Block, BlockCall, ConvertOp, FloatCC, FuncRef, Hint, Inst, IntCC, MemFlags, Op, Terminator, UnaryOp,
    Value,
};
use super::module::{BlockData, Data, FuncDecl, Function, Linkage, Module};
use super::types::Type;

impl Module {
    /// The listing of one function: its signature and, unless it is imported, its code.
    pub fn display_function(&self, func: FuncRef) -> DisplayFunction<'_> {
        DisplayFunction { module: self, func }
    }
}

/// Prints one function of a module; made by [`Module::display_function`].
#[derive(Clone, Copy)]
pub struct DisplayFunction<'m> {
    module: &'m Module,
    func: FuncRef,
}

impl Display for DisplayFunction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.module.functions.get(self.func) {
            Some(decl) => write_function(f, self.module, decl),
            None => write!(f, "{}", self.func),
        }
    }
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Paragraphs: imports, data, then each function with code.
        let mut first = true;
        let mut gap = |f: &mut Formatter<'_>| if std::mem::take(&mut first) { Ok(()) } else { f.write_char('\n') };
        let plain = |decl: &FuncDecl| decl.linkage == Linkage::Import && decl.body.is_none();
        if self.functions.values().any(plain) {
            gap(f)?;
            for decl in self.functions.values().filter(|decl| plain(decl)) {
                write_function(f, self, decl)?;
            }
        }
        if !self.data.is_empty() {
            gap(f)?;
            for (data, Data { name, bytes, align }) in &self.data {
                writeln!(f, "{data} {name:?} align {align} = \"{}\"", bytes.escape_ascii())?;
            }
        }
        for decl in self.functions.values().filter(|decl| !plain(decl)) {
            gap(f)?;
            write_function(f, self, decl)?;
        }
        Ok(())
    }
}

/// A symbol's name, in quotes unless it is made of what C and linkers allow.
struct Symbol<'a>(&'a str);

impl Display for Symbol<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        if !self.0.is_empty() && self.0.chars().all(plain) { f.write_str(self.0) } else { write!(f, "{:?}", self.0) }
    }
}

fn write_function(f: &mut Formatter<'_>, module: &Module, decl: &FuncDecl) -> fmt::Result {
    let linkage = match decl.linkage {
        Linkage::Import => "import",
        Linkage::Local => "local",
        Linkage::Export => "export",
    };
    let cold = if decl.cold { " cold" } else { "" };
    write!(f, "{linkage} fn {}{}{cold}", Symbol(&decl.name), decl.signature)?;
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
        write_block(f, module, func, block, data)?;
    }
    f.write_str("}\n")
}

fn write_block(f: &mut Formatter<'_>, module: &Module, func: &Function, block: Block, data: &BlockData) -> fmt::Result {
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
        writeln!(f, "    {}", DisplayInst { module, func, inst })?;
    }
    match &data.terminator {
        Some(terminator) => writeln!(f, "    {}", DisplayTerminator(terminator)),
        None => f.write_str("    (no terminator)\n"),
    }
}

/// The type of a value, or `?` if there is no such value.
struct TypeOf<'a>(&'a Function, Value);

impl Display for TypeOf<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.values.get(self.1) {
            Some(value) => write!(f, "{}", value.ty),
            None => f.write_char('?'),
        }
    }
}

/// Values between commas.
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

/// Prints one instruction on one line; errors show it.
pub(super) struct DisplayInst<'a> {
    pub(super) module: &'a Module,
    pub(super) func: &'a Function,
    pub(super) inst: Inst,
}

impl Display for DisplayInst<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(data) = self.func.insts.get(self.inst) else {
            return write!(f, "{}", self.inst);
        };
        if let Some(result) = data.result {
            write!(f, "{result} = ")?;
        }
        self.write_op(f, &data.op)
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
            Op::Unary(op, a) => write!(f, "{}.{} {a}", unary_name(*op), ty(*a)),
            Op::Binary(op, a, b) => write!(f, "{}.{} {a}, {b}", binary_name(*op), ty(*a)),
            Op::ICmp(cc, a, b) => write!(f, "icmp.{} {} {a}, {b}", ty(*a), int_cc_name(*cc)),
            Op::FCmp(cc, a, b) => write!(f, "fcmp.{} {} {a}, {b}", ty(*a), float_cc_name(*cc)),
            Op::Select(cond, a, b) => write!(f, "select.{} {cond}, {a}, {b}", ty(*a)),
            Op::Convert(op, to, a) => write!(f, "{}.{to} {a}", convert_name(*op)),
            Op::Load { ty, ptr, offset, flags } => {
                write!(f, "load.{ty} {}{ptr}{}", Flags(*flags), Offset(i64::from(*offset)))
            }
            Op::Store { value, ptr, offset, flags } => {
                write!(f, "store.{} {}{value}, {ptr}{}", ty(*value), Flags(*flags), Offset(i64::from(*offset)))
            }
            Op::PtrAdd(ptr, bytes) => write!(f, "ptr_add {ptr}, {bytes}"),
            Op::Element { base, index, ty } => write!(f, "element.{ty} {base}, {index}"),
            Op::StackAddr(slot) => write!(f, "stack_addr {slot}"),
            Op::DataAddr(data, offset) => write!(f, "data_addr {data}{}", Offset(i64::from(*offset))),
            Op::Call(callee, args) => match self.module.functions.get(*callee) {
                Some(decl) => write!(f, "call @{}({})", Symbol(&decl.name), List(args)),
                None => write!(f, "call {callee}({})", List(args)),
            },
            Op::CallIndirect(sig, callee, args) => write!(f, "call_indirect {sig} {callee}({})", List(args)),
        }
    }
}

/// Prints a block's end on one line; errors show it.
pub(super) struct DisplayTerminator<'a>(pub(super) &'a Terminator);

impl Display for DisplayTerminator<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Terminator::Jump(to) => write!(f, "jump {}", Target(to)),
            Terminator::Branch { cond, then, otherwise, hint } => {
                let name = match hint {
                    Hint::None => "br",
                    Hint::Likely => "br_likely",
                    Hint::Unlikely => "br_unlikely",
                };
                write!(f, "{name} {cond}, {}, {}", Target(then), Target(otherwise))
            }
            Terminator::Return(Some(value)) => write!(f, "return {value}"),
            Terminator::Return(None) => f.write_str("return"),
        }
    }
}

struct Target<'a>(&'a BlockCall);

impl Display for Target<'_> {
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

/// A float constant: the shortest decimal that reads back as the same bits, or a NaN with its bits.
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

fn unary_name(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Neg => "neg",
        UnaryOp::Not => "not",
        UnaryOp::FNeg => "fneg",
        UnaryOp::FAbs => "fabs",
        UnaryOp::Sqrt => "sqrt",
        UnaryOp::Floor => "floor",
        UnaryOp::Ceil => "ceil",
        UnaryOp::Trunc => "trunc",
        UnaryOp::Nearest => "nearest",
    }
}

fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::SMulHi => "smulhi",
        BinaryOp::UMulHi => "umulhi",
        BinaryOp::SDiv => "sdiv",
        BinaryOp::UDiv => "udiv",
        BinaryOp::SRem => "srem",
        BinaryOp::URem => "urem",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::Shl => "shl",
        BinaryOp::LShr => "lshr",
        BinaryOp::AShr => "ashr",
        BinaryOp::SMin => "smin",
        BinaryOp::SMax => "smax",
        BinaryOp::UMin => "umin",
        BinaryOp::UMax => "umax",
        BinaryOp::FAdd => "fadd",
        BinaryOp::FSub => "fsub",
        BinaryOp::FMul => "fmul",
        BinaryOp::FDiv => "fdiv",
        BinaryOp::FMin => "fmin",
        BinaryOp::FMax => "fmax",
    }
}

fn int_cc_name(cc: IntCC) -> &'static str {
    match cc {
        IntCC::Eq => "eq",
        IntCC::Ne => "ne",
        IntCC::SLt => "slt",
        IntCC::SLe => "sle",
        IntCC::SGt => "sgt",
        IntCC::SGe => "sge",
        IntCC::ULt => "ult",
        IntCC::ULe => "ule",
        IntCC::UGt => "ugt",
        IntCC::UGe => "uge",
    }
}

fn float_cc_name(cc: FloatCC) -> &'static str {
    match cc {
        FloatCC::Eq => "eq",
        FloatCC::Ne => "ne",
        FloatCC::Lt => "lt",
        FloatCC::Le => "le",
        FloatCC::Gt => "gt",
        FloatCC::Ge => "ge",
    }
}

fn convert_name(op: ConvertOp) -> &'static str {
    match op {
        ConvertOp::SExt => "sext",
        ConvertOp::ZExt => "zext",
        ConvertOp::Truncate => "truncate",
        ConvertOp::SIntToFloat => "sint_to_float",
        ConvertOp::UIntToFloat => "uint_to_float",
        ConvertOp::FloatToSInt => "float_to_sint",
        ConvertOp::FloatToUInt => "float_to_uint",
        ConvertOp::FPromote => "fpromote",
        ConvertOp::FDemote => "fdemote",
        ConvertOp::Bitcast => "bitcast",
        ConvertOp::PtrToInt => "ptr_to_int",
        ConvertOp::IntToPtr => "int_to_ptr",
    }
}
