//! The operand and result types of each operation: rules 14, 16, 18, 19 and 20.

use crate::ir::inst::{BinaryOp, ConvertOp, IntCC, MAX_SAME_BYTES, Op, UnaryOp, Value};
use crate::ir::module::{Function, Module};
use crate::ir::types::{FuncSig, Type};

use super::problem::Rule;

/// A broken rule, with the details.
pub(super) type Broken = (Rule, String);

fn operand<T>(detail: String) -> Result<T, Broken> {
    Err((Rule::OperandTypes, detail))
}

/// The type of an operation's result, or `None` if it has none. Everything that it names must exist.
pub(super) fn result_type(module: &Module, func: &Function, op: &Op) -> Result<Option<Type>, Broken> {
    let ty = |value: Value| func.type_of(value);
    let expect = |value: Value, want: Type| match ty(value) {
        found if found == want => Ok(()),
        found => operand(format!("{value} is {found}, not {want}")),
    };
    let same = |a: Value, b: Value| match (ty(a), ty(b)) {
        (a, b) if a == b => Ok(a),
        (at, bt) => operand(format!("{a} is {at}, but {b} is {bt}")),
    };
    let result = match op {
        Op::IntConst { ty, .. } if ty.is_int() => *ty,
        Op::IntConst { ty, .. } => return operand(format!("an integer constant can't be {ty}")),
        Op::FloatConst { ty, .. } if ty.is_float() => *ty,
        Op::FloatConst { ty, .. } => return operand(format!("a float constant can't be {ty}")),
        Op::BoolConst(_) => Type::Bool,
        Op::PtrConst(_) => Type::Ptr,
        Op::Unary(op, a) => match ty(*a) {
            found if unary_takes(*op, found) => found,
            found => return operand(format!("{a} is {found}")),
        },
        Op::Binary(op, a, b) => match same(*a, *b)? {
            found if binary_takes(*op, found) => found,
            found => return operand(format!("{a} is {found}")),
        },
        Op::ICmp(cc, a, b) => match same(*a, *b)? {
            found if compares(*cc, found) => Type::Bool,
            found => return operand(format!("{a} is {found}")),
        },
        Op::FCmp(_, a, b) => match same(*a, *b)? {
            found if found.is_float() => Type::Bool,
            found => return operand(format!("{a} is {found}")),
        },
        Op::Select(cond, a, b) => {
            check_condition(func, *cond)?;
            same(*a, *b)?
        }
        Op::Convert(op, to, a) => match ty(*a) {
            from if converts(*op, from, *to) => *to,
            from => return operand(format!("{a} is {from}, the result {to}")),
        },
        Op::SameBytes(pairs, bytes) => {
            for (a, b) in pairs {
                expect(*a, Type::Ptr)?;
                expect(*b, Type::Ptr)?;
            }
            let all = pairs.len() as u64 * u64::from(*bytes);
            if all == 0 || all > u64::from(MAX_SAME_BYTES) || !bytes.is_multiple_of(8) {
                return Err((Rule::Memory, format!("{} times {bytes} bytes are compared", pairs.len())));
            }
            Type::Bool
        }
        Op::Load { ty, ptr, .. } => {
            expect(*ptr, Type::Ptr)?;
            if *ty == Type::Bool {
                return Err((Rule::Memory, "a bool is loaded".into()));
            }
            *ty
        }
        Op::Store { value, ptr, flags, .. } => {
            expect(*ptr, Type::Ptr)?;
            if ty(*value) == Type::Bool {
                return Err((Rule::Memory, format!("{value} is a bool")));
            }
            if flags.readonly {
                return Err((Rule::Memory, "the store claims that nothing writes there".into()));
            }
            return Ok(None);
        }
        Op::PtrAdd(ptr, bytes) => {
            expect(*ptr, Type::Ptr)?;
            expect(*bytes, Type::I64)?;
            Type::Ptr
        }
        Op::Element { base, index, .. } => {
            expect(*base, Type::Ptr)?;
            expect(*index, Type::I64)?;
            Type::Ptr
        }
        Op::StackAddr(..) => Type::Ptr,
        Op::DataAddr(data, offset) => {
            let len = module.data[*data].bytes.len();
            // In 64 bits, since data could be longer than any 32-bit offset.
            if u64::from(*offset) > len as u64 {
                return Err((Rule::DataOffsets, format!("{data} has {len} bytes")));
            }
            Type::Ptr
        }
        Op::FuncAddr(_) => Type::Ptr,
        Op::LoadAcquire(ptr) => {
            expect(*ptr, Type::Ptr)?;
            Type::Ptr
        }
        Op::AtomicAdd(ptr, value) => {
            expect(*ptr, Type::Ptr)?;
            expect(*value, Type::I64)?;
            Type::I64
        }
        Op::CompareExchange(ptr, expected, new) => {
            for value in [ptr, expected, new] {
                expect(*value, Type::Ptr)?;
            }
            Type::Ptr
        }
        Op::Call(callee, args) => return call(func, &module.functions[*callee].signature, args),
        Op::CallIndirect(sig, callee, args) => {
            expect(*callee, Type::Ptr)?;
            return call(func, &func.signatures[*sig], args);
        }
    };
    Ok(Some(result))
}

/// Rule 14.
pub(super) fn check_condition(func: &Function, cond: Value) -> Result<(), Broken> {
    match func.type_of(cond) {
        Type::Bool => Ok(()),
        found => Err((Rule::Conditions, format!("{cond} is {found}"))),
    }
}

/// Compares arguments with parameters; returns the difference, if any.
pub(super) fn mismatch(func: &Function, args: &[Value], params: impl ExactSizeIterator<Item = Type>) -> Option<String> {
    if args.len() != params.len() {
        return Some(format!("{} arguments for {} parameters", args.len(), params.len()));
    }
    let wrong = args.iter().zip(params).find(|(arg, param)| func.type_of(**arg) != *param);
    wrong.map(|(arg, param)| format!("{arg} is {}, the parameter {param}", func.type_of(*arg)))
}

fn call(func: &Function, sig: &FuncSig, args: &[Value]) -> Result<Option<Type>, Broken> {
    match mismatch(func, args, sig.params.iter().map(|p| p.ty)) {
        Some(detail) => Err((Rule::Calls, detail)),
        None => Ok(sig.ret.map(|ret| ret.ty)),
    }
}

fn unary_takes(op: UnaryOp, ty: Type) -> bool {
    match op {
        UnaryOp::Neg => ty.is_int(),
        UnaryOp::Not => ty.is_int() || ty == Type::Bool,
        UnaryOp::FNeg
        | UnaryOp::FAbs
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Nearest => ty.is_float(),
    }
}

fn binary_takes(op: BinaryOp, ty: Type) -> bool {
    match op {
        BinaryOp::SMulHi | BinaryOp::UMulHi => ty == Type::I64,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => ty.is_int() || ty == Type::Bool,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::SDiv
        | BinaryOp::UDiv
        | BinaryOp::SRem
        | BinaryOp::URem
        | BinaryOp::Shl
        | BinaryOp::LShr
        | BinaryOp::AShr
        | BinaryOp::SMin
        | BinaryOp::SMax
        | BinaryOp::UMin
        | BinaryOp::UMax => ty.is_int(),
        BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FMin | BinaryOp::FMax => {
            ty.is_float()
        }
    }
}

fn compares(cc: IntCC, ty: Type) -> bool {
    match cc {
        IntCC::Eq | IntCC::Ne => ty.is_int() || matches!(ty, Type::Ptr | Type::Bool),
        IntCC::ULt | IntCC::ULe | IntCC::UGt | IntCC::UGe => ty.is_int() || ty == Type::Ptr,
        IntCC::SLt | IntCC::SLe | IntCC::SGt | IntCC::SGe => ty.is_int(),
    }
}

fn converts(op: ConvertOp, from: Type, to: Type) -> bool {
    let word = |ty| matches!(ty, Type::I32 | Type::I64);
    let widens = from.is_int() && to.is_int() && to.bits() > from.bits();
    match op {
        ConvertOp::SExt => widens,
        ConvertOp::ZExt => widens || (from == Type::Bool && to.is_int()),
        ConvertOp::Truncate => from.is_int() && to.is_int() && to.bits() < from.bits(),
        ConvertOp::SIntToFloat | ConvertOp::UIntToFloat => word(from) && to.is_float(),
        ConvertOp::FloatToSInt | ConvertOp::FloatToUInt => from.is_float() && word(to),
        ConvertOp::FPromote => (from, to) == (Type::F32, Type::F64),
        ConvertOp::FDemote => (from, to) == (Type::F64, Type::F32),
        ConvertOp::Bitcast => matches!(
            (from, to),
            (Type::I32, Type::F32) | (Type::F32, Type::I32) | (Type::I64, Type::F64) | (Type::F64, Type::I64)
        ),
        ConvertOp::PtrToInt => (from, to) == (Type::Ptr, Type::I64),
        ConvertOp::IntToPtr => (from, to) == (Type::I64, Type::Ptr),
    }
}
