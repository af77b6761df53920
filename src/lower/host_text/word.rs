//! Lowers operations that are words before a `(`.

use tvm_ffi_runtime::abi::{DLDataType, DLDevice};

use super::driver::Driver;
use super::value::Val;
use crate::host::tree::{Expr as Tree, ExprKind, Input, Span};
use crate::host::{Word, WordKind};
use crate::lower::body::{CallArg, DeviceValue, Expr, Operand, TensorRef};
use crate::spec::{Device, DeviceId, ScalarType};

/// The operation of one value.
fn unary<'b>(word: Word, value: Expr<'b>) -> Option<Expr<'b>> {
    Some(match word {
        Word::Abs => value.abs(),
        Word::Acos => value.acos(),
        Word::Acosh => value.acosh(),
        Word::Asin => value.asin(),
        Word::Asinh => value.asinh(),
        Word::Atan => value.atan(),
        Word::Atanh => value.atanh(),
        Word::Cbrt => value.cbrt(),
        Word::Ceil => value.ceil(),
        Word::Cos => value.cos(),
        Word::Cosh => value.cosh(),
        Word::Erf => value.erf(),
        Word::Erfc => value.erfc(),
        Word::Exp => value.exp(),
        Word::Exp2 => value.exp2(),
        Word::Expm1 => value.expm1(),
        Word::Floor => value.floor(),
        Word::Log => value.log(),
        Word::Log10 => value.log10(),
        Word::Log1p => value.log1p(),
        Word::Log2 => value.log2(),
        Word::Round => value.round(),
        Word::RoundTiesEven => value.round_ties_even(),
        Word::Sin => value.sin(),
        Word::Sinh => value.sinh(),
        Word::Sqrt => value.sqrt(),
        Word::Tan => value.tan(),
        Word::Tanh => value.tanh(),
        Word::Trunc => value.trunc(),
        _ => return None,
    })
}

/// The operation of two values.
fn binary<'b>(word: Word, left: Expr<'b>, right: Expr<'b>) -> Option<Expr<'b>> {
    Some(match word {
        Word::Atan2 => left.atan2(right),
        Word::CeilDiv => left.ceil_div(right),
        Word::Hypot => left.hypot(right),
        Word::Max => left.max(right),
        Word::Min => left.min(right),
        Word::MulHi => left.mul_hi(right),
        Word::Pow => left.pow(right),
        Word::Div => left / right,
        Word::Rem => left % right,
        _ => return None,
    })
}

impl<'b, 'a> Driver<'b, 'a, '_> {
    /// The value of an operation. The parser has checked the number of inputs.
    pub(super) fn word(&self, span: &Span, word: Word, inputs: &[Input]) -> Val<'b, 'a> {
        let all: Vec<&Tree> = inputs.iter().filter(|input| input.name.is_none()).map(|input| &input.value).collect();
        let missing = || self.body.missing();
        match (word.kind(), all.as_slice()) {
            (WordKind::Unary, [value]) => {
                let value = self.expr(value);
                self.at(span);
                Val::Expr(unary(word, value).unwrap_or_else(missing))
            }
            (WordKind::Binary, [left, right]) => {
                let [left, right] = self.two(left, right, word.name());
                self.at(span);
                Val::Expr(binary(word, left, right).unwrap_or_else(missing))
            }
            _ => self.other_word(span, word, &all, inputs),
        }
    }

    /// Two values of one type. A literal on the left takes the type of the right one.
    fn two(&self, left: &Tree, right: &Tree, operation: &str) -> [Expr<'b>; 2] {
        let (of_left, of_right) = (self.operand(left), self.operand(right));
        self.at(&left.span);
        let of_left = match (of_left, of_right) {
            (Operand::Expr(value), _) => value,
            (literal, Operand::Expr(other)) => other.left(operation, literal),
            (literal, _) => self.as_expr(&left.span, Val::Literal(literal)),
        };
        self.at(&right.span);
        let of_right = match of_right {
            Operand::Expr(value) => value,
            literal => of_left.left(operation, literal),
        };
        [of_left, of_right]
    }

    fn other_word(&self, span: &Span, word: Word, all: &[&Tree], inputs: &[Input]) -> Val<'b, 'a> {
        match word {
            Word::Fma => {
                let value = self.expr(all[0]);
                let [factor, addend] = [all[1], all[2]].map(|value| self.operand(value));
                self.at(span);
                Val::Expr(value.fma(factor, addend))
            }
            Word::Select => {
                let condition = self.condition(all[0]);
                let [then, otherwise] = self.two(all[1], all[2], "select");
                self.at(span);
                Val::Expr(condition.select(then, otherwise))
            }
            Word::Bitcast => self.bitcast(span, all[0], all[1]),
            Word::Param | Word::Dim | Word::Captured => self.of_signature(span, word, all[0]),
            Word::Move => self.moved(span, all[0]),
            Word::Bytes | Word::Shape | Word::Array => self.made_arg(span, word, all).map_or(Val::Missing, Val::Arg),
            Word::DType => self.dtype(all[0]).map_or(Val::Missing, |dtype| Val::DType(dtype.into())),
            Word::Device => self.device(all[0]).map_or(Val::Missing, |device| Val::Device(device.into())),
            Word::IsContiguous | Word::IsAligned | Word::IsObject => Val::Expr(self.question(span, word, all)),
            Word::Assume => Val::Tensor(self.assume(span, all[0], inputs)),
            Word::Alloc => Val::Tensor(self.alloc(span, all, inputs)),
            Word::Slice | Word::Transpose | Word::Reshape => Val::Tensor(self.view(span, word, all)),
            _ => self.memory(span, word, all, inputs),
        }
    }

    /// A value with the bits of another one. The bits of a float may be a literal.
    fn bitcast(&self, span: &Span, value: &Tree, ty: &Tree) -> Val<'b, 'a> {
        let (of, ty) = (self.value(value), self.scalar_type(ty));
        if let Val::Literal(Operand::Int(bits)) = of {
            self.at(span);
            match ty {
                ScalarType::Float32 if let Ok(bits) = u32::try_from(bits) => {
                    return Val::Expr(self.body.f32(f32::from_bits(bits)));
                }
                ScalarType::Float64 if let Ok(bits) = u64::try_from(bits) => {
                    return Val::Expr(self.body.f64(f64::from_bits(bits)));
                }
                _ => {}
            }
        }
        let of = self.as_expr(&value.span, of);
        self.at(span);
        Val::Expr(of.bitcast(ty))
    }

    fn memory(&self, span: &Span, word: Word, all: &[&Tree], inputs: &[Input]) -> Val<'b, 'a> {
        Val::Expr(match word {
            Word::Scratch => {
                let bytes = self.small(all[0]);
                let align = keyword(inputs, "align").map_or(16, |align| self.small(align));
                self.at(span);
                self.body.scratch(bytes, align)
            }
            Word::Load => {
                let (ty, pointer) = (self.scalar_type(all[0]), self.expr(all[1]));
                self.at(span);
                self.body.load(ty, pointer)
            }
            Word::Offset => {
                let (pointer, ty, count) = (self.expr(all[0]), self.scalar_type(all[1]), self.operand(all[2]));
                self.at(span);
                self.body.offset(pointer, ty, count)
            }
            Word::Address => {
                let ExprKind::Index(tensor, indices) = &*all[0].kind else {
                    self.error(span, "address", "expected an element, such as `x[i, j]`");
                    return Val::Missing;
                };
                let (tensor, indices) = (self.tensor(tensor), self.operands(indices));
                self.at(span);
                tensor.element_ptr(indices)
            }
            Word::EnvState => {
                let name = self.text(all[0]);
                self.at(span);
                self.body.env_state(&name)
            }
            _ => {
                self.error(span, word.name(), "has no value");
                return Val::Missing;
            }
        })
    }

    /// An operation without a value.
    pub(super) fn do_word(&self, span: &Span, word: Word, inputs: &[Input]) {
        let all: Vec<&Tree> = inputs.iter().filter(|input| input.name.is_none()).map(|input| &input.value).collect();
        match word {
            Word::Store => {
                let pointer = self.expr(all[0]);
                match keyword(inputs, "dtype") {
                    Some(ty) => {
                        let (value, ty) = (self.operand(all[1]), self.scalar_type(ty));
                        self.at(span);
                        self.body.store_as(ty, pointer, value);
                    }
                    None => {
                        let value = self.expr(all[1]);
                        self.at(span);
                        self.body.store(pointer, value);
                    }
                }
            }
            Word::CheckSignalsEvery => {
                let turns = self.small(all[0]);
                self.at(span);
                self.body.check_signals_every(turns);
            }
            Word::LimitRecursion => {
                let max = self.small(all[0]);
                self.at(span);
                self.body.limit_recursion(max);
            }
            _ => self.error(span, word.name(), "its value isn't used"),
        }
    }

    fn of_signature(&self, span: &Span, word: Word, input: &Tree) -> Val<'b, 'a> {
        self.at(span);
        match (word, &*input.kind) {
            (Word::Captured, _) => {
                let index = self.small(input);
                self.at(span);
                Val::Param(self.body.captured(index as usize))
            }
            (Word::Dim, ExprKind::Name(name)) => Val::Expr(self.body.dim(name)),
            (Word::Param, _) => match self.value(input) {
                Val::Param(param) => Val::Whole(param),
                Val::Result(result) => Val::Arg(result.into()),
                Val::Missing => Val::Missing,
                _ => {
                    self.error(&input.span, "param", "expected a parameter, a result or an item of one");
                    Val::Missing
                }
            },
            _ => {
                self.error(&input.span, word.name(), "expected a name");
                Val::Missing
            }
        }
    }

    fn moved(&self, span: &Span, input: &Tree) -> Val<'b, 'a> {
        let value = self.value(input);
        self.at(span);
        Val::Arg(match value {
            Val::Owned(owned) => owned.by_move(),
            Val::Result(result) => result.by_move(),
            Val::Variable(variable) => variable.get().by_move(),
            Val::Tensor(tensor) => tensor.owned().by_move(),
            Val::Caught(caught) => caught.error().by_move(),
            Val::Missing => return Val::Missing,
            _ => {
                self.error(span, "move", "expected a value that the body owns");
                return Val::Missing;
            }
        })
    }

    fn made_arg(&self, span: &Span, word: Word, all: &[&Tree]) -> Option<CallArg<'b>> {
        Some(match (word, all) {
            (Word::Bytes, [text]) => match &*text.kind {
                ExprKind::Text(bytes) => CallArg::bytes(bytes.clone()),
                _ => {
                    self.error(&text.span, "bytes", "expected a text in quotes");
                    return None;
                }
            },
            (Word::Shape, [sizes]) => CallArg::shape(self.operands(self.list(sizes)?)),
            (Word::Array, all) => {
                let items: Vec<CallArg<'b>> = all.iter().map(|item| self.arg(item)).collect();
                CallArg::array(items)
            }
            _ => {
                self.error(span, word.name(), "has other inputs");
                return None;
            }
        })
    }

    fn alloc(&self, span: &Span, all: &[&Tree], inputs: &[Input]) -> TensorRef<'b> {
        let missing = || TensorRef::missing_in(self.body);
        let (Some(sizes), Some(dtype)) = (self.list(all[0]), self.dtype_value(all[1])) else { return missing() };
        let sizes = self.operands(sizes);
        let strides = match keyword(inputs, "strides").map(|strides| self.list(strides)) {
            Some(Some(strides)) => Some(self.operands(strides)),
            Some(None) => return missing(),
            None => None,
        };
        let on = match (keyword(inputs, "like"), keyword(inputs, "device")) {
            (Some(like), None) => DeviceValue::Of(self.tensor(like)),
            (None, Some(device)) => match self.device_value(device) {
                Some(device) => device,
                None => return missing(),
            },
            _ => {
                self.error(span, "alloc", "expected `like=` and a tensor, or `device=` and a device; one of the two");
                return missing();
            }
        };
        self.at(span);
        match strides {
            None => self.body.alloc_tensor(sizes, dtype, on),
            Some(strides) => self.body.alloc_strided(sizes, strides, dtype, on),
        }
    }

    fn view(&self, span: &Span, word: Word, all: &[&Tree]) -> TensorRef<'b> {
        let tensor = self.tensor(all[0]);
        match word {
            Word::Slice => {
                let d = self.small(all[1]);
                let [start, len] = [all[2], all[3]].map(|value| self.operand(value));
                self.at(span);
                tensor.slice(d as usize, start, len)
            }
            Word::Transpose => {
                let Some(order) = self.list(all[1]) else { return TensorRef::missing_in(self.body) };
                let order: Vec<usize> = order.iter().map(|d| self.small(d) as usize).collect();
                self.at(span);
                tensor.transpose(order)
            }
            _ => {
                let Some(sizes) = self.list(all[1]) else { return TensorRef::missing_in(self.body) };
                let sizes = self.operands(sizes);
                self.at(span);
                tensor.reshape(sizes)
            }
        }
    }

    fn list<'t>(&self, tree: &'t Tree) -> Option<&'t [Tree]> {
        match &*tree.kind {
            ExprKind::List(items) => Some(items),
            _ => {
                self.error(&tree.span, "list", "expected a list, such as `[n, 4]`");
                None
            }
        }
    }

    /// A number that the text states.
    pub(super) fn small(&self, tree: &Tree) -> u32 {
        let number = match &*tree.kind {
            ExprKind::Int(value) => u32::try_from(*value).ok(),
            _ => None,
        };
        number.unwrap_or_else(|| {
            self.error(&tree.span, "number", "expected a whole number below 2^32 that is stated here");
            1
        })
    }

    pub(super) fn text(&self, tree: &Tree) -> String {
        let text = match &*tree.kind {
            ExprKind::Text(bytes) => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        };
        text.unwrap_or_else(|| {
            self.error(&tree.span, "text", "expected a text in quotes");
            "?".to_owned()
        })
    }

    fn scalar_type(&self, tree: &Tree) -> ScalarType {
        let ty = match &*tree.kind {
            ExprKind::Name(name) => name.parse().ok(),
            _ => None,
        };
        ty.unwrap_or_else(|| {
            self.error(&tree.span, "type", "expected a scalar type, such as `float32`");
            ScalarType::Int64
        })
    }

    pub(super) fn dtype(&self, tree: &Tree) -> Option<DLDataType> {
        let dtype = match &*tree.kind {
            ExprKind::Name(name) => crate::spec::named_dtype(name).ok(),
            _ => None,
        };
        if dtype.is_none() {
            self.error(&tree.span, "dtype", "expected a dtype, such as `float32`");
        }
        dtype
    }

    pub(super) fn device(&self, tree: &Tree) -> Option<DLDevice> {
        let device = match &*tree.kind {
            ExprKind::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse::<Device>().ok()),
            _ => None,
        };
        match device {
            Some(Device::Kind(kind, DeviceId::Shared)) => Some(DLDevice::new(kind, 0)),
            Some(Device::Kind(kind, DeviceId::Fixed(id))) => Some(DLDevice::new(kind, id)),
            _ => {
                self.error(&tree.span, "device", "expected a device in quotes, such as `\"cuda:1\"`");
                None
            }
        }
    }
}

/// The named input of an operation.
fn keyword<'t>(inputs: &'t [Input], name: &str) -> Option<&'t Tree> {
    let is_it = |input: &&Input| input.name.as_ref().is_some_and(|known| known.value == name);
    inputs.iter().find(is_it).map(|input| &input.value)
}
