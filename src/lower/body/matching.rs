//! `match`: runs the first row whose patterns hold for the keys, or raises an error that lists the rows.

use std::collections::HashMap;
use std::ops::Range;

use super::builder::Body;
use super::calls::{ArgKind, CallArg};
use super::control::unreachable;
use super::dtype_device::DTypeBits;
use super::expr::{Expr, Operand, Ops, int_range};
use super::function::Failure;
use super::handler::is_text;
use super::match_key::{MatchKey, MatchPattern, MatchRow, MatchValue};
use super::param::ParamRef;
use super::raise::{Shown, show};
use super::rows::{self, Mistake, Values, are_covered};
use crate::ir::{BinaryOp, Block, ConvertOp, Hint, IntCC, Type, Value};
use crate::lower::abi::fields;
use crate::lower::encode::{Subject, shown};
use crate::lower::protocol::{Directive, Piece};
use crate::spec::{Device, DeviceId, ParamType, ScalarType};
use tvm_ffi_runtime::abi::DLDevice;

const OPERATION: &str = "match";
/// The most keys: a message prints each, and why no row holds.
const MAX_KEYS: usize = Body::MAX_MESSAGE_VALUES - 1;
const MAX_ROWS: usize = 1024;
/// The maximum number of rows that a message lists.
const LISTED: usize = 8;
/// The values of keys that aren't numbers: the stated constants, in the order of the rows, and all others.
const CONSTANTS: Range<i128> = 0..1 << 32;

/// The part of a `match` that an error is about.
#[derive(Clone, Copy)]
pub(in crate::lower) enum MatchPart {
    Whole,
    Key(usize),
    Row(usize),
    Pattern(usize, usize),
    Otherwise,
}

/// A key whose value is computed.
struct Key<'b> {
    name: String,
    value: MatchValue<'b>,
    code: Code<'b>,
    /// The values that it may have.
    domain: Range<i128>,
    /// The constants of the patterns that aren't numbers; their positions are their values.
    constants: Vec<MatchPattern>,
}

/// The value of a key, in the form that the code compares.
#[derive(Clone, Copy)]
enum Code<'b> {
    Number(Expr<'b>),
    /// A value that the types state, which is the only constant.
    Known,
    /// A dtype, an `I32`, or a device, an `I64`, as loaded from memory.
    Bits(Value),
    /// The kind of a device, an `I32`.
    Kind(Value),
    /// The characters of a string, and their number.
    Text(Value, Value),
}

impl Body<'_> {
    /// Runs the first row whose patterns all hold for the keys. If no row does, raises a `ValueError` that states the
    /// keys and the rows. [`match_else`](Self::match_else) runs something else then.
    ///
    /// A row that can never run is an error of the body. So are two rows that overlap partly, unless a row before both
    /// has the values that they share.
    ///
    /// ```
    /// use tvm_ffi_codegen::{DLDataType, Kernel, MatchKey, MatchRow, Signature};
    ///
    /// let signature: Signature = "scale(x: Tensor([n], any), BLOCK: int32) -> Any".parse()?;
    /// let kernel = Kernel::body(|b| {
    ///     let x = b.tensor("x");
    ///     let keys = [
    ///         MatchKey::new("x.dtype", x),
    ///         MatchKey::new("n % 16 == 0", b.dim("n").floor_rem(16).eq(0)),
    ///         MatchKey::new("BLOCK", b.arg("BLOCK")),
    ///     ];
    ///     let half = DLDataType::FLOAT16;
    ///     b.match_(keys, [
    ///         MatchRow::new([half.into(), true.into(), 128.into()], || b.call_symbol("scale_f16_128", ()).forward()),
    ///         MatchRow::new([half.into(), (..).into(), (..).into()], || b.call_symbol("scale_f16", ()).forward()),
    ///         MatchRow::new([DLDataType::FLOAT32.into(), (..).into(), (64..1025).into()], || {
    ///             b.call_symbol("scale_f32", ()).forward();
    ///         }),
    ///     ]);
    ///     b.ret_value(());
    /// });
    /// # tvm_ffi_codegen::lower::lower(&signature, &kernel, Default::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn match_<'b, 'r>(
        &'b self,
        keys: impl IntoIterator<Item = MatchKey<'b>>,
        rows: impl IntoIterator<Item = MatchRow<'r>>,
    ) {
        self.match_of(keys.into_iter().collect(), rows.into_iter().collect(), None, &|_| {});
    }

    /// Runs the first row whose patterns all hold for the keys, or `otherwise` if no row does. An `otherwise` that can
    /// never run is an error of the body.
    pub fn match_else<'b, 'r>(
        &'b self,
        keys: impl IntoIterator<Item = MatchKey<'b>>,
        rows: impl IntoIterator<Item = MatchRow<'r>>,
        otherwise: impl FnOnce() + 'r,
    ) {
        self.match_of(keys.into_iter().collect(), rows.into_iter().collect(), Some(Box::new(otherwise)), &|_| {});
    }

    /// `at` states the place of a part in the text.
    pub(in crate::lower) fn match_of<'b, 'r>(
        &'b self,
        keys: Vec<MatchKey<'b>>,
        rows: Vec<MatchRow<'r>>,
        otherwise: Option<Box<dyn FnOnce() + 'r>>,
        at: &dyn Fn(MatchPart),
    ) {
        let recorded = self.recorder().map(|recorder| recorder.match_header(&keys, &rows));
        let (patterns, blocks): (Vec<_>, Vec<_>) = rows.into_iter().map(|row| (row.patterns, row.then)).unzip();
        let known = self.quietly(|| self.known_rows(keys, &patterns, otherwise.is_some(), at));
        let has_else = otherwise.is_some();
        at(MatchPart::Whole);
        match known {
            Some(known) => self.write_match(known, &patterns, blocks, otherwise),
            None => self.write_wrong_match(blocks, otherwise),
        }
        if let Some((recorder, header)) = self.recorder().zip(recorded) {
            recorder.statement(recorder.match_(header, has_else));
        }
    }

    /// Runs operations that aren't recorded.
    fn quietly<R>(&self, run: impl FnOnce() -> R) -> R {
        match self.recorder() {
            Some(recorder) => recorder.pause(run),
            None => run(),
        }
    }

    /// Computes the keys and checks the rows; `None` after an error.
    fn known_rows<'b>(
        &'b self,
        keys: Vec<MatchKey<'b>>,
        patterns: &[Vec<MatchPattern>],
        has_else: bool,
        at: &dyn Fn(MatchPart),
    ) -> Option<Known<'b>> {
        let wrong = |part: MatchPart, problem: String| {
            at(part);
            self.error(OPERATION, problem);
        };
        if keys.is_empty() || keys.len() > MAX_KEYS {
            wrong(MatchPart::Whole, format!("expected 1 to {MAX_KEYS} keys, got {}", keys.len()));
            return None;
        }
        if patterns.is_empty() || patterns.len() > MAX_ROWS {
            wrong(MatchPart::Whole, format!("expected 1 to {MAX_ROWS} rows, got {}", patterns.len()));
            return None;
        }
        let count = keys.len();
        let keys = keys.into_iter().enumerate().map(|(number, key)| {
            at(MatchPart::Key(number));
            self.key(key)
        });
        let keys: Vec<Option<Key<'b>>> = keys.collect();
        let mut keys = keys.into_iter().collect::<Option<Vec<_>>>()?;
        let mut values = Vec::with_capacity(patterns.len());
        let mut is_fine = true;
        for (row, patterns) in patterns.iter().enumerate() {
            if patterns.len() != count {
                let problem = format!("expected {count} patterns, one for each key, got {}", patterns.len());
                wrong(MatchPart::Row(row), problem);
                is_fine = false;
                continue;
            }
            let mut of_row = Values::with_capacity(count);
            for (number, (key, pattern)) in keys.iter_mut().zip(patterns).enumerate() {
                match key.values(pattern) {
                    Ok(range) => of_row.push(range),
                    Err(problem) => wrong(MatchPart::Pattern(row, number), problem),
                }
            }
            is_fine &= of_row.len() == count;
            values.push(of_row);
        }
        if !is_fine {
            return None;
        }
        for mistake in rows::mistakes(&values) {
            is_fine = false;
            match mistake {
                Mistake::Hidden { row } => {
                    let problem = format!("row {} never runs: rows before it hold for all its values", row + 1);
                    wrong(MatchPart::Row(row), problem);
                }
                Mistake::Overlap { earlier, row, common } => {
                    let common = keys.iter().zip(&common).map(|(key, range)| key.pattern(range));
                    let common = listed(&common.collect::<Vec<_>>());
                    let (earlier, row_number) = (earlier + 1, row + 1);
                    let problem = format!(
                        "rows {earlier} and {row_number} both hold for {common}; state a row for that before both"
                    );
                    wrong(MatchPart::Row(row), problem);
                }
            }
        }
        let domain: Values = keys.iter().map(|key| key.domain.clone()).collect();
        let covers_all = are_covered(&domain, values.iter());
        if covers_all && has_else {
            wrong(MatchPart::Otherwise, "`else` never runs: the rows hold for all values".to_owned());
            is_fine = false;
        }
        is_fine.then_some(Known { keys, values, covers_all })
    }

    /// Computes the value of a key; `None` after an error.
    fn key<'b>(&'b self, key: MatchKey<'b>) -> Option<Key<'b>> {
        let MatchKey { name, value } = key;
        if name.is_empty() || name.contains('\0') {
            self.error(OPERATION, "the name of a key is empty or holds a NUL byte");
            return None;
        }
        let ops: &'b dyn Ops = self;
        let mut constants = Vec::new();
        let (code, domain) = match value {
            MatchValue::Number(number) => {
                let number = number.used(OPERATION);
                if number.is_missing() {
                    return None;
                }
                let domain = match number.ty() {
                    ScalarType::Bool => 0..2,
                    ty if ty.is_int() => {
                        let (min, max) = int_range(ty);
                        min..max + 1
                    }
                    ty => {
                        self.error(OPERATION, format!("`{name}` is a {ty}; {KEYS}"));
                        return None;
                    }
                };
                (Code::Number(number), domain)
            }
            MatchValue::DType(dtype) => match dtype.bits(ops, OPERATION)? {
                DTypeBits::Stated(dtype) => known(&mut constants, MatchPattern::DType(dtype)),
                DTypeBits::Computed(word) => (Code::Bits(word), CONSTANTS),
            },
            MatchValue::Device(device) => match device.stated() {
                Device::Kind(kind, DeviceId::Fixed(id)) => {
                    known(&mut constants, MatchPattern::Device(DLDevice::new(kind, id)))
                }
                _ => (Code::Bits(device.bits(ops, OPERATION)?), CONSTANTS),
            },
            MatchValue::DeviceKind(device) => match device.stated().kind() {
                Some(kind) => known(&mut constants, MatchPattern::DeviceKind(kind)),
                None => {
                    let bits = device.bits(ops, OPERATION)?;
                    (Code::Kind(self.value(|l| fields::first(&mut l.b, bits))), CONSTANTS)
                }
            },
            MatchValue::Str(param) => (self.text_key(&name, param)?, CONSTANTS),
        };
        Some(Key { name, value, code, domain, constants })
    }

    fn text_key<'b>(&'b self, name: &str, param: ParamRef<'b>) -> Option<Code<'b>> {
        let ty = match param.ty()? {
            ParamType::Optional(inner) => inner,
            ty => ty,
        };
        if *ty != ParamType::Str {
            self.error(OPERATION, format!("`{name}` is a {ty}; {KEYS}"));
            return None;
        }
        let (text, size) = (param.value().used(OPERATION), param.size().used(OPERATION));
        Some(Code::Text(text.value, size.value))
    }

    fn write_match<'b, 'r>(
        &'b self,
        known: Known<'b>,
        patterns: &[Vec<MatchPattern>],
        blocks: Vec<Box<dyn FnOnce() + 'r>>,
        otherwise: Option<Box<dyn FnOnce() + 'r>>,
    ) {
        let Known { keys, values, covers_all } = &known;
        let mut texts = HashMap::new();
        let Some(done) = self.emit(|l| Some(l.b.block())) else { return };
        let last = values.len() - 1;
        for (number, (row, write)) in values.iter().zip(blocks).enumerate() {
            if *covers_all && number == last {
                self.inside(write);
                break;
            }
            let holds = self.quietly(|| self.holds(keys, row, &mut texts));
            let Some(next) = self.branch_to_next(holds) else { return };
            self.inside(write);
            self.go_to(done, next);
        }
        if !covers_all {
            match otherwise {
                Some(write) => self.inside(write),
                None => self.quietly(|| self.no_row(&known, patterns, &mut texts)),
            }
        }
        self.go_to(done, done);
    }

    /// Writes the rows after an error, whose own errors are to be found as well.
    pub(in crate::lower) fn wrong_match<'r>(&self, rows: Vec<MatchRow<'r>>, otherwise: Option<Box<dyn FnOnce() + 'r>>) {
        self.write_wrong_match(rows.into_iter().map(|row| row.then).collect(), otherwise);
    }

    fn write_wrong_match<'r>(&self, blocks: Vec<Box<dyn FnOnce() + 'r>>, otherwise: Option<Box<dyn FnOnce() + 'r>>) {
        let ends = otherwise.is_none();
        let Some(done) = self.emit(|l| Some(l.b.block())) else { return };
        for write in blocks.into_iter().chain(otherwise) {
            let holds = self.value(|l| l.b.bconst(false));
            let Some(next) = self.branch_to_next(holds) else { return };
            self.inside(write);
            self.go_to(done, next);
        }
        if ends {
            self.end();
        }
        self.go_to(done, done);
    }

    /// Continues where a condition holds. Returns the block where it doesn't.
    fn branch_to_next(&self, holds: Value) -> Option<Block> {
        self.emit(|l| {
            let (yes, no) = (l.b.block(), l.b.block());
            l.b.branch(holds, yes, no, Hint::None);
            l.b.switch_to(yes);
            Some(no)
        })
    }

    /// Ends the current block, and continues in another one.
    fn go_to(&self, to: Block, next: Block) {
        self.emit(|l| {
            l.b.jump(to, &[]);
            l.b.switch_to(next);
        });
    }

    /// Whether a row holds.
    fn holds<'b>(&'b self, keys: &[Key<'b>], row: &Values, texts: &mut Texts) -> Value {
        let mut all = None;
        for (number, (key, range)) in keys.iter().zip(row).enumerate() {
            let Some(one) = self.is_in(number, key, range, texts) else { continue };
            all = Some(match all {
                None => one,
                Some(before) => self.value(|l| l.b.binary(BinaryOp::And, before, one)),
            });
        }
        all.unwrap_or_else(|| self.value(|l| l.b.bconst(true)))
    }

    /// Whether a key's value is in a range; `None` if it always is.
    fn is_in<'b>(&'b self, number: usize, key: &Key<'b>, range: &Range<i128>, texts: &mut Texts) -> Option<Value> {
        if *range == key.domain {
            return None;
        }
        if let Code::Number(value) = key.code {
            return Some(self.is_number_in(value, key, range));
        }
        // other keys have single constants, and unions of them where no row holds
        let constants = range.clone().filter_map(|at| key.constants.get(usize::try_from(at).ok()?));
        let constants: Vec<&MatchPattern> = constants.collect();
        let mut any = None;
        for constant in constants {
            let one = match (key.code, constant) {
                (Code::Text(data, size), MatchPattern::Str(text)) => {
                    *texts.entry((number, text.clone())).or_insert_with(|| self.is_the_text(data, size, text))
                }
                (code, constant) => self.is_constant(code, constant),
            };
            any = Some(match any {
                None => one,
                Some(before) => self.value(|l| l.b.binary(BinaryOp::Or, before, one)),
            });
        }
        any
    }

    fn is_number_in<'b>(&'b self, value: Expr<'b>, key: &Key<'b>, range: &Range<i128>) -> Value {
        if value.ty() == ScalarType::Bool {
            return if range.start == 1 { value } else { !value }.value;
        }
        if range.end - range.start == 1 {
            return value.eq(Operand::Int(range.start)).value;
        }
        let from = (range.start > key.domain.start).then(|| value.ge(Operand::Int(range.start)).value);
        let to = (range.end < key.domain.end).then(|| value.lt(Operand::Int(range.end)).value);
        match (from, to) {
            (Some(from), Some(to)) => self.value(|l| l.b.binary(BinaryOp::And, from, to)),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.value(|l| l.b.bconst(true)),
        }
    }

    fn is_constant(&self, code: Code<'_>, constant: &MatchPattern) -> Value {
        self.value(|l| {
            let order = l.b.module().endianness;
            match (code, constant) {
                (Code::Bits(bits), MatchPattern::DType(dtype)) => {
                    let word = fields::dtype_word(order, *dtype) as i32;
                    l.b.icmp_imm(IntCC::Eq, bits, i64::from(word))
                }
                (Code::Bits(bits), MatchPattern::Device(device)) => {
                    let device = fields::pair(order, device.device_type.0 as u32, device.device_id as u32);
                    l.b.icmp_imm(IntCC::Eq, bits, device)
                }
                (Code::Kind(found), MatchPattern::DeviceKind(kind)) => {
                    l.b.icmp_imm(IntCC::Eq, found, i64::from(kind.0))
                }
                // `values` has refused all others
                _ => l.b.bconst(false),
            }
        })
    }

    fn is_the_text(&self, data: Value, size: Value, text: &str) -> Value {
        self.value(|l| is_text(l, (data, size), text))
    }

    /// Ends the current path with the error for keys that no row holds for.
    fn no_row<'b>(&'b self, known: &Known<'b>, patterns: &[Vec<MatchPattern>], texts: &mut Texts) {
        let Known { keys, values, .. } = known;
        let depth = self.emit(|l| l.exits.depth());
        let mut parts = Vec::new();
        let of = self.emit(|l| l.caller(|signature| shown(signature, Subject::Call)));
        let mut text = format!("no row of `{of}` holds for ");
        for (number, key) in keys.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            text.push_str(&format!("{separator}`{}` = ", key.name));
            match self.show_key(key) {
                None => return self.end(),
                Some(Shown::Text(known)) => text.push_str(&known),
                Some(Shown::Value(directive, value)) => parts.push((std::mem::take(&mut text), directive, value)),
            }
        }
        let rows: Vec<String> = patterns.iter().take(LISTED).map(|row| listed(row)).collect();
        text.push_str(&format!("; the rows are {}", rows.join(", ")));
        if patterns.len() > LISTED {
            text.push_str(&format!(" and {} more", patterns.len() - LISTED));
        }
        let reason = |name: &str| format!("; no row takes this `{name}`");
        let mut why = None;
        let open: Vec<(usize, Vec<Range<i128>>)> = open_keys(keys, values);
        if let ([(only, _)], 1) = (&open[..], keys.len()) {
            text.push_str(&reason(&keys[*only].name));
        } else {
            // the first key that fits no row, from the last one on
            let mut address = self.text_address("; each key fits a row, but all together fit none");
            for (number, taken) in open.iter().rev() {
                let fits = self.is_in_any(*number, &keys[*number], taken, texts);
                let told = self.text_address(&reason(&keys[*number].name));
                address = self.value(|l| l.b.select(fits, address, told));
            }
            why = Some(address);
        }
        self.emit(|l| {
            let (mut pieces, mut fields) = (Vec::new(), Vec::new());
            for (text, directive, value) in &parts {
                pieces.extend([Piece::Text(text), Piece::Value(*directive, fields.len() as u32)]);
                fields.push(*value);
            }
            pieces.push(Piece::Text(&text));
            if let Some(why) = why {
                pieces.push(Piece::Value(Directive::String, fields.len() as u32));
                fields.push(why);
            }
            let template = l.pool.constants.template("ValueError", &pieces);
            l.raise(Failure { template, values: fields });
            l.exits.cut(depth);
            unreachable(l);
        });
    }

    /// Whether a key's value is in one of some ranges.
    fn is_in_any<'b>(&'b self, number: usize, key: &Key<'b>, ranges: &[Range<i128>], texts: &mut Texts) -> Value {
        let found: Vec<Value> = ranges.iter().filter_map(|range| self.is_in(number, key, range, texts)).collect();
        let joined = found.into_iter().reduce(|any, one| self.value(|l| l.b.binary(BinaryOp::Or, any, one)));
        joined.unwrap_or_else(|| self.value(|l| l.b.bconst(true)))
    }

    /// The address of a constant text, an `I64`.
    fn text_address(&self, text: &str) -> Value {
        self.value(|l| {
            let offset = l.pool.constants.text(text);
            let address = l.b.data_addr(l.pool.data, offset);
            l.b.convert(ConvertOp::PtrToInt, Type::I64, address)
        })
    }

    /// A key's value for the message.
    fn show_key<'b>(&'b self, key: &Key<'b>) -> Option<Shown> {
        if let (Code::Known, [constant]) = (key.code, &key.constants[..]) {
            return Some(Shown::Text(constant.to_string()));
        }
        let arg = match key.value {
            MatchValue::Number(number) if number.ty() == ScalarType::Bool => {
                let [yes, no] = ["True", "False"].map(|text| self.text_address(text));
                return Some(Shown::Value(Directive::String, self.value(|l| l.b.select(number.value, yes, no))));
            }
            MatchValue::Number(number) => number.into(),
            MatchValue::DType(dtype) => CallArg(ArgKind::DType(dtype)),
            MatchValue::Device(device) | MatchValue::DeviceKind(device) => CallArg(ArgKind::Device(device)),
            MatchValue::Str(param) => param.into(),
        };
        show(self, OPERATION, &arg)
    }
}

/// The results of comparing keys with strings, by the number of the key. Each is compared once.
type Texts = HashMap<(usize, String), Value>;

/// A `match` without errors.
struct Known<'b> {
    keys: Vec<Key<'b>>,
    /// Those of each row.
    values: Vec<Values>,
    /// Whether the rows hold for all values.
    covers_all: bool,
}

const KEYS: &str = "keys are integers, truth values, dtypes, devices, kinds of devices and parameters of type str";

/// A key whose value the types state.
fn known<'b>(constants: &mut Vec<MatchPattern>, constant: MatchPattern) -> (Code<'b>, Range<i128>) {
    constants.push(constant);
    (Code::Known, 0..1)
}

/// The keys that may fit none of the rows, with the values that rows take.
fn open_keys(keys: &[Key<'_>], values: &[Values]) -> Vec<(usize, Vec<Range<i128>>)> {
    let taken = keys.iter().enumerate().map(|(number, key)| {
        let taken = rows::union(values.iter().map(|row| row[number].clone()).collect());
        (taken != [key.domain.clone()]).then_some((number, taken))
    });
    taken.flatten().collect()
}

/// The patterns of a row, in parentheses unless there is one.
fn listed(patterns: &[MatchPattern]) -> String {
    let all: Vec<String> = patterns.iter().map(MatchPattern::to_string).collect();
    match &all[..] {
        [one] => one.clone(),
        all => format!("({})", all.join(", ")),
    }
}

impl Key<'_> {
    /// The patterns that the key takes, in words.
    fn kind(&self) -> &'static str {
        match self.value {
            MatchValue::Number(number) if number.ty() == ScalarType::Bool => "`True`, `False`",
            MatchValue::Number(_) => "an integer, a range",
            MatchValue::DType(_) => "a dtype",
            MatchValue::Device(_) => "a device",
            MatchValue::DeviceKind(_) => "a kind of device",
            MatchValue::Str(_) => "a text",
        }
    }

    /// The values of a pattern, or why it can't stand for this key.
    fn values(&mut self, pattern: &MatchPattern) -> Result<Range<i128>, String> {
        let is_bool = matches!(self.value, MatchValue::Number(number) if number.ty() == ScalarType::Bool);
        match (&self.value, pattern) {
            (_, MatchPattern::Any) => Ok(self.domain.clone()),
            (MatchValue::Number(_), MatchPattern::Bool(value)) if is_bool => {
                Ok(i128::from(*value)..i128::from(*value) + 1)
            }
            (MatchValue::Number(_), MatchPattern::Int(value)) if !is_bool => {
                if self.domain.contains(value) {
                    Ok(*value..value + 1)
                } else {
                    Err(self.out_of_range(value))
                }
            }
            (MatchValue::Number(_), MatchPattern::Range(range)) if !is_bool => {
                if range.is_empty() {
                    return Err(format!("{pattern} holds for no value"));
                }
                let outside = [range.start, range.end - 1].into_iter().find(|value| !self.domain.contains(value));
                outside.map_or_else(|| Ok(range.clone()), |value| Err(self.out_of_range(&value)))
            }
            (MatchValue::DType(_), MatchPattern::DType(_))
            | (MatchValue::Device(_), MatchPattern::Device(_))
            | (MatchValue::DeviceKind(_), MatchPattern::DeviceKind(_))
            | (MatchValue::Str(_), MatchPattern::Str(_)) => self.numbered(pattern),
            _ => Err(format!("expected {} or `_` for `{}`, got {pattern}", self.kind(), self.name)),
        }
    }

    fn out_of_range(&self, value: &i128) -> String {
        let (min, max) = (self.domain.start, self.domain.end - 1);
        format!("{value} is out of the range of `{}`, which is {min} to {max}", self.name)
    }

    /// The values of a constant that isn't a number.
    fn numbered(&mut self, constant: &MatchPattern) -> Result<Range<i128>, String> {
        let known = self.constants.iter().position(|known| known == constant);
        let at = match (known, self.code) {
            (Some(at), _) => at,
            (None, Code::Known) => {
                return Err(format!("`{}` is always {}, so {constant} never holds", self.name, self.constants[0]));
            }
            (None, _) => {
                self.constants.push(constant.clone());
                self.constants.len() - 1
            }
        };
        Ok(at as i128..at as i128 + 1)
    }

    /// The pattern that holds for these values.
    fn pattern(&self, values: &Range<i128>) -> MatchPattern {
        match self.value {
            _ if *values == self.domain => MatchPattern::Any,
            MatchValue::Number(number) if number.ty() == ScalarType::Bool => MatchPattern::Bool(values.start == 1),
            MatchValue::Number(_) if values.end - values.start == 1 => MatchPattern::Int(values.start),
            MatchValue::Number(_) => MatchPattern::Range(values.clone()),
            _ => {
                let constant = usize::try_from(values.start).ok().and_then(|at| self.constants.get(at));
                constant.cloned().unwrap_or(MatchPattern::Any)
            }
        }
    }
}
