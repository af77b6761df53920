//! Reads the code of a function.

use cranelift_entity::EntityRef;

use super::head::{signature, type_of};
use super::lex::{Parsed, Token, Tokens};
use super::names::{Names, Provisional};
use super::scope::{Scope, function};
use crate::ir::inst::{
    BinaryOp, Block, BlockCall, ConvertOp, FloatCC, Hint, Inst, IntCC, LocationRef, MemFlags, Op, SigRef, StackSlot,
    Terminator, UnaryOp, Value,
};
use crate::ir::module::{BlockData, Function, InstData, Module, SlotData, ValueData, ValueDef};
use crate::ir::types::Type;

/// Reads code from after its `{` on.
pub(super) fn read_body<'a>(tokens: &mut Tokens<'a>, module: &Module, scope: &Scope<'a>) -> Parsed<Function> {
    let mut body = Body {
        tokens,
        module,
        scope,
        func: Function::default(),
        values: Names::new("a value"),
        blocks: Names::new("a block"),
        slots: Names::new("a stack slot"),
        signatures: Names::new("a signature"),
        defined: Vec::new(),
        stated: Vec::new(),
    };
    body.tokens.line_end()?;
    body.preamble()?;
    while !body.tokens.takes_sign("}") {
        body.block()?;
    }
    body.finish()
}

/// A function that is being read. Until [`finish`](Self::finish), values and blocks have provisional numbers.
struct Body<'t, 'a, 'm> {
    tokens: &'t mut Tokens<'a>,
    module: &'m Module,
    scope: &'m Scope<'a>,
    func: Function,
    values: Names<'a>,
    blocks: Names<'a>,
    slots: Names<'a>,
    signatures: Names<'a>,
    defined: Vec<(Provisional, ValueData)>,
    /// Operands whose types are stated, with their places.
    stated: Vec<(usize, Provisional, Type)>,
}

impl Body<'_, '_, '_> {
    /// The slots and signatures.
    fn preamble(&mut self) -> Parsed<()> {
        loop {
            match (self.tokens.peek_behind(1), self.tokens.peek_behind(2)) {
                (Token::Sign(":"), Token::Word(_)) => {
                    self.slots.defined(self.tokens)?;
                    self.tokens.sign(":")?;
                    let size = self.tokens.integer("a number of bytes")?;
                    self.tokens.this_word("bytes")?;
                    self.tokens.this_word("align")?;
                    let align = self.tokens.integer("an alignment in bytes")?;
                    self.func.slots.push(SlotData { size, align });
                }
                (Token::Sign("="), Token::Sign("(")) => {
                    self.signatures.defined(self.tokens)?;
                    self.tokens.sign("=")?;
                    self.func.signatures.push(signature(self.tokens)?);
                }
                _ => return Ok(()),
            }
            self.tokens.line_end()?;
        }
    }

    /// A block with its head, `name(value: type) cold:`.
    fn block(&mut self) -> Parsed<()> {
        self.blocks.defined(self.tokens)?;
        let block = self.func.blocks.push(BlockData::default());
        if self.tokens.peek() == Token::Sign("(") {
            let values = &mut self.values;
            let params = self.tokens.list(|tokens| {
                let value = values.defined(tokens)?;
                tokens.sign(":")?;
                Ok((value, type_of(tokens)?))
            })?;
            for (index, (value, ty)) in (0..).zip(params) {
                self.defined.push((value, ValueData { ty, def: ValueDef::Param(block, index) }));
                self.func.blocks[block].params.push(Value::from_u32(value));
            }
        }
        self.func.blocks[block].cold = self.tokens.takes_word("cold");
        self.tokens.sign(":")?;
        self.tokens.line_end()?;
        loop {
            if let Some(terminator) = self.end()? {
                self.func.blocks[block].terminator = terminator;
                if let Some(location) = self.location()? {
                    self.func.end_locations[block] = Some(location).into();
                }
                return self.tokens.line_end();
            }
            let inst = self.instruction()?;
            self.func.blocks[block].insts.push(inst);
        }
    }

    /// The end of a block, if it comes next: a terminator, or `(no terminator)`.
    fn end(&mut self) -> Parsed<Option<Option<Terminator>>> {
        if self.tokens.takes_sign("(") {
            self.tokens.this_word("no")?;
            self.tokens.this_word("terminator")?;
            self.tokens.sign(")")?;
            return Ok(Some(None));
        }
        let (Token::Word(word), false) = (self.tokens.peek(), self.tokens.peek_behind(1) == Token::Sign("=")) else {
            return Ok(None);
        };
        let hint = Hint::from_word(word);
        if hint.is_none() && !matches!(word, "jump" | "return") {
            return Ok(None);
        }
        self.tokens.take();
        let terminator = match hint {
            Some(hint) => {
                let cond = self.operand()?;
                self.tokens.sign(",")?;
                let then = self.target()?;
                self.tokens.sign(",")?;
                Terminator::Branch { cond, then, otherwise: self.target()?, hint }
            }
            None if word == "jump" => Terminator::Jump(self.target()?),
            None => match self.tokens.peek() {
                Token::Word(_) => Terminator::Return(Some(self.operand()?)),
                _ => Terminator::Return(None),
            },
        };
        Ok(Some(Some(terminator)))
    }

    fn target(&mut self) -> Parsed<BlockCall> {
        let block = Block::from_u32(self.blocks.used(self.tokens)?);
        let args = if self.tokens.peek() == Token::Sign("(") { self.arguments()? } else { Vec::new() };
        Ok(BlockCall { block, args })
    }

    /// `; loc0`
    fn location(&mut self) -> Parsed<Option<LocationRef>> {
        if !self.tokens.takes_sign(";") {
            return Ok(None);
        }
        self.tokens.known("a location", |name| self.scope.locations.get(name).copied()).map(Some)
    }

    /// A line with an instruction.
    fn instruction(&mut self) -> Parsed<Inst> {
        let inst = self.func.insts.next_key();
        let result = match self.tokens.peek_behind(1) {
            Token::Sign("=") => {
                let value = self.values.defined(self.tokens)?;
                self.tokens.take();
                Some(value)
            }
            _ => None,
        };
        let at = self.tokens.at();
        let (op, ty) = self.operation()?;
        match (result, ty) {
            (Some(value), Some(ty)) => self.defined.push((value, ValueData { ty, def: ValueDef::Result(inst) })),
            (Some(_), None) => return Err(self.tokens.error_at(at, "an operation with a result", "one without")),
            (None, _) => {}
        }
        self.func.insts.push(InstData { op, result: result.map(Value::from_u32) });
        if let Some(location) = self.location()? {
            self.func.locations[inst] = Some(location).into();
        }
        self.tokens.line_end()?;
        Ok(inst)
    }

    /// An operation with the type of its result.
    fn operation(&mut self) -> Parsed<(Op, Option<Type>)> {
        const EXPECTED: &str = "an operation";
        let start = self.tokens.mark();
        let word = self.tokens.word(EXPECTED)?;
        let (name, suffix) = word.split_once('.').unwrap_or((word, ""));
        let stated = Type::from_word(suffix);
        if let Some(ty) = stated {
            if let Some(parsed) = self.with_type(name, ty)? {
                return Ok(parsed);
            }
        } else if name == "same_bytes" {
            if let Ok(bytes) = suffix.parse() {
                return Ok((self.same_bytes(bytes)?, Some(Type::Bool)));
            }
        } else if suffix.is_empty()
            && let Some(parsed) = self.without_type(name)?
        {
            return Ok(parsed);
        }
        self.tokens.go_to(start);
        Err(self.tokens.error(EXPECTED))
    }

    /// The rest of an operation such as `add.i64`; `None` if there is none of that name.
    fn with_type(&mut self, name: &str, ty: Type) -> Parsed<Option<(Op, Option<Type>)>> {
        let truth = Some(Type::Bool);
        Ok(Some(match (name, ty) {
            ("iconst", _) => (Op::IntConst { ty, value: self.tokens.integer("an integer of 64 bits")? }, Some(ty)),
            ("fconst", _) => (Op::FloatConst { ty, bits: self.float_bits(ty)? }, Some(ty)),
            ("icmp", _) => {
                let cc = self.tokens.known("a condition, such as `eq` or `slt`", IntCC::from_word)?;
                let [a, b] = self.operands_of(ty)?;
                (Op::ICmp(cc, a, b), truth)
            }
            ("fcmp", _) => {
                let cc = self.tokens.known("a condition, such as `eq` or `lt`", FloatCC::from_word)?;
                let [a, b] = self.operands_of(ty)?;
                (Op::FCmp(cc, a, b), truth)
            }
            ("select", _) => {
                let cond = self.operand()?;
                self.tokens.sign(",")?;
                let [a, b] = self.operands_of(ty)?;
                (Op::Select(cond, a, b), Some(ty))
            }
            ("load", _) => {
                let (flags, ptr) = (self.flags(), self.operand()?);
                (Op::Load { ty, ptr, offset: self.tokens.offset()?, flags }, Some(ty))
            }
            ("store", _) => {
                let flags = self.flags();
                let [value, ptr] = self.operands_of(ty)?;
                (Op::Store { value, ptr, offset: self.tokens.offset()?, flags }, None)
            }
            ("element", _) => {
                let [base, index] = self.operands()?;
                (Op::Element { base, index, ty }, Some(Type::Ptr))
            }
            ("load_acquire", Type::Ptr) => (Op::LoadAcquire(self.operand()?), Some(ty)),
            ("atomic_add", Type::I64) => {
                let [ptr, value] = self.operands()?;
                (Op::AtomicAdd(ptr, value), Some(ty))
            }
            ("compare_exchange", Type::Ptr) => {
                let [ptr, expected, new] = self.operands()?;
                (Op::CompareExchange(ptr, expected, new), Some(ty))
            }
            _ => return self.arithmetic(name, ty),
        }))
    }

    fn arithmetic(&mut self, name: &str, ty: Type) -> Parsed<Option<(Op, Option<Type>)>> {
        let op = if let Some(op) = UnaryOp::from_word(name) {
            Op::Unary(op, self.operand_of(ty)?)
        } else if let Some(op) = BinaryOp::from_word(name) {
            let [a, b] = self.operands_of(ty)?;
            Op::Binary(op, a, b)
        } else if let Some(op) = ConvertOp::from_word(name) {
            Op::Convert(op, ty, self.operand()?)
        } else {
            return Ok(None);
        };
        Ok(Some((op, Some(ty))))
    }

    /// The rest of an operation such as `call`; `None` if there is none of that name.
    fn without_type(&mut self, name: &str) -> Parsed<Option<(Op, Option<Type>)>> {
        let address = Some(Type::Ptr);
        Ok(Some(match name {
            "bconst" => {
                let value = self.tokens.known("`true` or `false`", |word| word.parse().ok())?;
                (Op::BoolConst(value), Some(Type::Bool))
            }
            "pconst" if self.tokens.takes_word("null") => (Op::PtrConst(0), address),
            "pconst" => (Op::PtrConst(self.tokens.integer("`null` or an address")?), address),
            "ptr_add" => {
                let [ptr, bytes] = self.operands()?;
                (Op::PtrAdd(ptr, bytes), address)
            }
            "stack_addr" => {
                let slot = StackSlot::from_u32(self.slots.known(self.tokens)?);
                (Op::StackAddr(slot, self.tokens.offset()?), address)
            }
            "data_addr" => {
                let data = self.tokens.known("data of the module", |name| self.scope.data.get(name).copied())?;
                (Op::DataAddr(data, self.tokens.offset()?), address)
            }
            "func_addr" => (Op::FuncAddr(function(self.tokens, self.module)?), address),
            "call" => {
                let callee = function(self.tokens, self.module)?;
                let ret = self.module.functions[callee].signature.ret;
                (Op::Call(callee, self.arguments()?), ret.map(|ret| ret.ty))
            }
            "call_indirect" => {
                let sig = SigRef::from_u32(self.signatures.known(self.tokens)?);
                let ret = self.func.signatures[sig].ret;
                let callee = self.operand()?;
                (Op::CallIndirect(sig, callee, self.arguments()?), ret.map(|ret| ret.ty))
            }
            _ => return Ok(None),
        }))
    }

    /// Pairs of addresses.
    fn same_bytes(&mut self, bytes: u32) -> Parsed<Op> {
        let mut pairs = Vec::new();
        loop {
            let [a, b] = self.operands()?;
            pairs.push((a, b));
            if !self.tokens.takes_sign(",") {
                return Ok(Op::SameBytes(pairs, bytes));
            }
        }
    }

    fn flags(&mut self) -> MemFlags {
        // a value may have the name of a flag
        let mut flag = |name| matches!(self.tokens.peek_behind(1), Token::Word(_)) && self.tokens.takes_word(name);
        MemFlags { aligned: flag("aligned"), readonly: flag("readonly") }
    }

    /// A float: a number, `inf`, `nan:0x7fc00000`; for another type its bits.
    fn float_bits(&mut self, ty: Type) -> Parsed<u64> {
        if !ty.is_float() {
            return self.tokens.integer("the bits of a constant");
        }
        if self.tokens.takes_word("nan") {
            self.tokens.sign(":")?;
            let (at, expected) = (self.tokens.at(), "the bits of a NaN");
            let bits: u64 = self.tokens.integer(expected)?;
            let is_nan = match ty {
                Type::F32 => u32::try_from(bits).is_ok_and(|bits| f32::from_bits(bits).is_nan()),
                _ => f64::from_bits(bits).is_nan(),
            };
            return if is_nan { Ok(bits) } else { Err(self.tokens.error_at(at, expected, format!("{bits:#x}"))) };
        }
        let sign = if self.tokens.takes_sign("-") { "-" } else { "" };
        self.tokens.known("a float", |word| {
            let number = word == "inf" || word.starts_with(|c: char| c.is_ascii_digit());
            let text = format!("{sign}{word}");
            let bits = match ty {
                Type::F32 => text.parse().ok().map(|value: f32| u64::from(value.to_bits())),
                _ => text.parse().ok().map(f64::to_bits),
            };
            bits.filter(|_| number)
        })
    }

    fn operand(&mut self) -> Parsed<Value> {
        self.values.used(self.tokens).map(Value::from_u32)
    }

    /// An operand whose type the operation states.
    fn operand_of(&mut self, ty: Type) -> Parsed<Value> {
        let at = self.tokens.at();
        let value = self.operand()?;
        self.stated.push((at, value.as_u32(), ty));
        Ok(value)
    }

    /// Operands between commas.
    fn operands<const N: usize>(&mut self) -> Parsed<[Value; N]> {
        let mut values = [Value::from_u32(0); N];
        for (index, value) in values.iter_mut().enumerate() {
            if index > 0 {
                self.tokens.sign(",")?;
            }
            *value = self.operand()?;
        }
        Ok(values)
    }

    /// Two operands. The operation states the type of the first.
    fn operands_of(&mut self, ty: Type) -> Parsed<[Value; 2]> {
        let first = self.operand_of(ty)?;
        self.tokens.sign(",")?;
        Ok([first, self.operand()?])
    }

    fn arguments(&mut self) -> Parsed<Vec<Value>> {
        let values = &mut self.values;
        self.tokens.list(|tokens| values.used(tokens).map(Value::from_u32))
    }

    /// Gives values and blocks their final numbers.
    fn finish(mut self) -> Parsed<Function> {
        let values = self.values.numbers(self.tokens, true)?;
        let blocks = self.blocks.numbers(self.tokens, false)?;
        let mut data = vec![None; values.len()];
        for (value, defined) in self.defined {
            data[values[value as usize] as usize] = Some(defined);
        }
        // each value that is defined has its data
        self.func.values = data.into_iter().flatten().collect();
        for (at, value, ty) in self.stated {
            let found = self.func.values[Value::from_u32(values[value as usize])].ty;
            if found != ty {
                return Err(self.tokens.error_at(at, format!("a value of type {ty}"), format!("one of type {found}")));
            }
        }
        let value = |value: &mut Value| *value = Value::from_u32(values[value.index()]);
        for inst in self.func.insts.values_mut() {
            inst.op.for_each_operand_mut(value);
            inst.result.iter_mut().for_each(value);
        }
        for block in self.func.blocks.values_mut() {
            block.params.iter_mut().for_each(value);
            match &mut block.terminator {
                Some(Terminator::Return(result)) => result.iter_mut().for_each(value),
                Some(Terminator::Branch { cond, .. }) => value(cond),
                Some(Terminator::Jump(_)) | None => {}
            }
            for to in block.terminator.iter_mut().flat_map(Terminator::targets_mut) {
                to.block = Block::from_u32(blocks[to.block.index()]);
                to.args.iter_mut().for_each(value);
            }
        }
        Ok(self.func)
    }
}
