//! Parses values.

use std::sync::Arc;

use super::{HostParser, MAX_DEPTH, Read};
use crate::host::tree::{At, BinaryOp, Call, Callee, Closure, Expr, ExprKind, Input, Scoped, UnaryOp};
use crate::host::words::{RESERVED, Word};
use crate::spec::{CompareOp, DimOp, ParamType, ScalarType, Signature, SyntaxError, Token};

const VALUE: &str = "a value";
const TEXT: &str = "a text in quotes";

impl HostParser<'_> {
    /// A value, `None` or a string.
    pub(super) fn passed(&mut self) -> Read<Expr> {
        match self.peek() {
            Token::Text(_) | Token::Name("None") => self.constant(),
            _ => self.value(),
        }
    }

    fn constant(&mut self) -> Read<Expr> {
        let start = self.start();
        let kind = if self.word("None") { ExprKind::None } else { ExprKind::Text(self.text()?) };
        Ok(self.leaf(start, kind))
    }

    /// Parses an expression, a call, a closure, or a value with `as` and a type. Each form has its own function, so
    /// nested values use less stack.
    pub(super) fn value(&mut self) -> Read<Expr> {
        match self.peek() {
            Token::Name("call") => self.call_value(),
            Token::Name("closure") => self.closure_value(),
            _ => {
                let value = self.expr()?;
                if self.word("as") { self.taken_as(value) } else { Ok(value) }
            }
        }
    }

    fn call_value(&mut self) -> Read<Expr> {
        let start = self.start();
        let call = self.nested(Self::call)?;
        self.made_call(start, call)
    }

    /// A call that ends the function.
    pub(super) fn forwarded(&mut self) -> Read<Expr> {
        let start = self.start();
        let call = self.nested(|parser| {
            parser.p.tokens.next();
            Ok(Call { callee: parser.called()?, inputs: parser.inputs(false)?, returns: None })
        })?;
        self.made_call(start, call)
    }

    fn made_call(&mut self, start: usize, call: Call) -> Read<Expr> {
        let depth = call.inputs.iter().map(|input| input.value.depth).max().unwrap_or_default();
        self.node(start, depth, ExprKind::Call(Box::new(call)))
    }

    fn closure_value(&mut self) -> Read<Expr> {
        let start = self.start();
        let (closure, depth) = self.nested(Self::closure)?;
        self.node(start, depth, ExprKind::Closure(Box::new(closure)))
    }

    fn taken_as(&mut self, value: Expr) -> Read<Expr> {
        let (start, depth) = (value.span.start, value.depth);
        let ty = self.p.param_type()?;
        self.node(start, depth, ExprKind::As(value, Box::new(ty)))
    }

    pub(super) fn expr(&mut self) -> Read<Expr> {
        self.nested(|parser| parser.binary(0))
    }

    /// Parses something inside of the open expressions.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.blocks + self.open >= MAX_DEPTH {
            return Err(self.too_deep().into());
        }
        self.open += 1;
        let read = read(self);
        self.open -= 1;
        read
    }

    pub(super) fn too_deep(&self) -> SyntaxError {
        let problem = format!("expected at most {MAX_DEPTH} blocks and expressions inside each other");
        self.p.error(self.p.tokens.peek().0, problem)
    }

    fn leaf(&self, start: usize, kind: ExprKind) -> Expr {
        Expr { span: self.since(start), depth: 0, kind: Box::new(kind) }
    }

    /// An expression whose parts have at most that depth.
    fn node(&mut self, start: usize, parts: usize, kind: ExprKind) -> Read<Expr> {
        let depth = parts + 1;
        if depth > MAX_DEPTH {
            return Err(self.too_deep().into());
        }
        self.deepest = self.deepest.max(depth);
        Ok(Expr { span: self.since(start), depth, kind: Box::new(kind) })
    }

    /// Operators that bind at least as tightly as those of a precedence.
    fn binary(&mut self, lowest: usize) -> Read<Expr> {
        let start = self.start();
        let mut left = self.unary(lowest)?;
        while let Some((precedence, _, _)) = self.operator().filter(|(precedence, ..)| *precedence >= lowest) {
            left = match precedence {
                COMPARISON => self.comparison(start, left)?,
                _ => self.chain(start, left, precedence)?,
            };
        }
        Ok(left)
    }

    /// Operators of one precedence with their right operands.
    fn chain(&mut self, start: usize, left: Expr, precedence: usize) -> Read<Expr> {
        let mut rest = Vec::new();
        while let Some((_, op, tokens)) = self.operator().filter(|(of, ..)| *of == precedence) {
            let at = self.start();
            (0..tokens).for_each(|_| self.p.tokens.next());
            let op = At { span: self.since(at), value: op };
            rest.push((op, self.nested(|parser| parser.binary(precedence + 1))?));
        }
        let depth = rest.iter().map(|(_, right)| right.depth).chain([left.depth]).max().unwrap_or_default();
        self.node(start, depth, ExprKind::Chain(left, rest))
    }

    /// The next operator with two operands: its precedence, and the number of its tokens.
    fn operator(&self) -> Option<(usize, BinaryOp, usize)> {
        let is_adjacent = || {
            let at = self.p.tokens.mark();
            self.p.tokens.pos_at(at).offset() + 1 == self.p.tokens.pos_at(at + 1).offset()
        };
        let one = |precedence, op| Some((precedence, op, 1));
        match (self.peek(), self.second()) {
            (Token::Name("or"), _) => one(0, BinaryOp::Or),
            (Token::Name("and"), _) => one(1, BinaryOp::And),
            (Token::Compare(CompareOp::Lt), Token::Compare(CompareOp::Lt)) if is_adjacent() => {
                Some((6, BinaryOp::Shl, 2))
            }
            (Token::Compare(CompareOp::Gt), Token::Compare(CompareOp::Gt)) if is_adjacent() => {
                Some((6, BinaryOp::Shr, 2))
            }
            (Token::Compare(_) | Token::Name("is"), _) => one(COMPARISON, BinaryOp::And),
            (Token::Sign("|"), _) => one(3, BinaryOp::BitOr),
            (Token::Sign("^"), _) => one(4, BinaryOp::BitXor),
            (Token::Sign("&"), _) => one(5, BinaryOp::BitAnd),
            (Token::Op(DimOp::Add), _) => one(7, BinaryOp::Add),
            (Token::Op(DimOp::Sub), _) => one(7, BinaryOp::Sub),
            (Token::Op(DimOp::Mul), _) => one(8, BinaryOp::Mul),
            (Token::Sign("/"), _) => one(8, BinaryOp::Div),
            (Token::Op(DimOp::FloorDiv), _) => one(8, BinaryOp::FloorDiv),
            (Token::Op(DimOp::Mod), _) => one(8, BinaryOp::FloorRem),
            _ => None,
        }
    }

    /// A comparison after its left side.
    fn comparison(&mut self, start: usize, left: Expr) -> Read<Expr> {
        if self.word("is") {
            return self.kind_of(start, left);
        }
        let at = self.start();
        let Token::Compare(op) = self.peek() else { return Err(self.p.expected("a comparison").into()) };
        self.p.tokens.next();
        let op = At { span: self.since(at), value: op };
        let right = match self.peek() {
            Token::Text(_) => self.passed()?,
            _ => self.nested(|parser| parser.binary(COMPARISON + 1))?,
        };
        if let Token::Compare(_) = self.peek() {
            return Err(self.p.error(self.p.tokens.peek().0, CHAINED.to_owned()).into());
        }
        let depth = left.depth.max(right.depth);
        self.node(start, depth, ExprKind::Compare(left, op, right))
    }

    /// The name of a kind, after `is`.
    fn kind_of(&mut self, start: usize, value: Expr) -> Read<Expr> {
        let at = self.start();
        let kind = self.p.name("the kind of a value, such as `str`")?.to_owned();
        let (kind, depth) = (At { span: self.since(at), value: kind }, value.depth);
        self.node(start, depth, ExprKind::Is(value, kind))
    }

    fn unary(&mut self, lowest: usize) -> Read<Expr> {
        let start = self.start();
        let (op, operand) = match self.peek() {
            Token::Op(DimOp::Sub) => (UnaryOp::Neg, UNARY),
            Token::Sign("~") => (UnaryOp::Invert, UNARY),
            Token::Name("not") if lowest <= COMPARISON => (UnaryOp::Not, COMPARISON),
            _ => return self.postfix(),
        };
        self.p.tokens.next();
        self.operand_of(start, op, operand)
    }

    fn operand_of(&mut self, start: usize, op: UnaryOp, precedence: usize) -> Read<Expr> {
        let operand = self.nested(|parser| parser.binary(precedence))?;
        let depth = operand.depth;
        self.node(start, depth, ExprKind::Unary(op, operand))
    }

    fn postfix(&mut self) -> Read<Expr> {
        let start = self.start();
        let mut value = self.primary()?;
        loop {
            value = match self.peek() {
                Token::OpenList => self.index(start, value)?,
                Token::Sign(".") => self.part(start, value)?,
                _ => return Ok(value),
            };
        }
    }

    fn index(&mut self, start: usize, value: Expr) -> Read<Expr> {
        self.p.tokens.next();
        let indices = self.exprs(Token::CloseList)?;
        self.p.expect(Token::CloseList)?;
        let depth = indices.iter().map(|index| index.depth).chain([value.depth]).max().unwrap_or_default();
        self.node(start, depth, ExprKind::Index(value, indices))
    }

    fn part(&mut self, start: usize, value: Expr) -> Read<Expr> {
        self.p.tokens.next();
        let at = self.start();
        let parts = self.p.name("the name of a part, such as `shape`")?;
        self.parts(start, value, at, parts)
    }

    /// The parts of a value, which the tokens have as one name with dots.
    fn parts(&mut self, start: usize, mut value: Expr, mut at: usize, names: &str) -> Read<Expr> {
        for name in names.split('.') {
            if name.is_empty() {
                return Err(self
                    .p
                    .error(self.p.tokens.peek().0, format!("`{names}` has a dot without a name after it"))
                    .into());
            }
            let part = At { span: at..at + name.len(), value: name.to_owned() };
            at += name.len() + 1;
            let depth = value.depth;
            value = self.node(start, depth, ExprKind::Part(value, part))?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Read<Expr> {
        match self.peek() {
            Token::Open => self.parentheses(),
            Token::Name("if") => self.chosen(),
            Token::Name(name) if self.second() == Token::Open && !RESERVED.contains(&name) => self.operation(name),
            _ => self.atom(),
        }
    }

    fn parentheses(&mut self) -> Read<Expr> {
        self.p.tokens.next();
        let value = self.value()?;
        if self.p.eat(Token::Close) { Ok(value) } else { Err(self.p.expected("`)`").into()) }
    }

    /// A literal, a name or an operation.
    fn atom(&mut self) -> Read<Expr> {
        let start = self.start();
        let literal = |parser: &mut Self, kind| {
            parser.p.tokens.next();
            Ok(parser.leaf(start, kind))
        };
        match self.peek() {
            Token::Integer(digits) => match digits.parse() {
                Ok(value) => literal(self, ExprKind::Int(value)),
                Err(_) => Err(self.p.error(self.p.tokens.peek().0, format!("`{digits}` fits in no type")).into()),
            },
            // a number that doesn't fit in 64 bits isn't a token
            Token::Float(digits) => literal(self, ExprKind::Float(digits.parse().unwrap_or(f64::INFINITY))),
            Token::Name("inf") => literal(self, ExprKind::Float(f64::INFINITY)),
            Token::Name("nan") => literal(self, ExprKind::Float(f64::NAN)),
            Token::Name(name @ ("True" | "False")) => literal(self, ExprKind::Bool(name == "True")),
            Token::Name(name) if RESERVED.contains(&name) => Err(self.p.expected(VALUE).into()),
            Token::Name(name) => {
                self.p.tokens.next();
                let (first, rest) = name.split_once('.').unwrap_or((name, ""));
                let span = start..start + first.len();
                let value = Expr { span, depth: 0, kind: Box::new(ExprKind::Name(first.to_owned())) };
                match rest {
                    "" if !name.contains('.') => Ok(value),
                    rest => self.parts(start, value, start + first.len() + 1, rest),
                }
            }
            _ => Err(self.p.expected(VALUE).into()),
        }
    }

    /// A word with its inputs.
    fn operation(&mut self, name: &str) -> Read<Expr> {
        match (name.parse::<ScalarType>(), Word::named(name)) {
            (Ok(ty), _) => self.cast(ty),
            (_, Some(word)) if !word.is_statement() => self.word_of(word),
            (_, known) => Err(self.no_value(name, known.is_some())),
        }
    }

    fn no_value(&self, name: &str, is_known: bool) -> Box<SyntaxError> {
        Box::new(match is_known {
            true => self.p.error(self.p.tokens.peek().0, format!("`{name}` has no value; it is a statement")),
            false => self.unknown("an operation", name, Word::NAMES),
        })
    }

    /// `int32(v)`
    fn cast(&mut self, ty: ScalarType) -> Read<Expr> {
        let start = self.start();
        self.p.tokens.next();
        let value = self.parentheses()?;
        let depth = value.depth;
        self.node(start, depth, ExprKind::Cast(ty, value))
    }

    /// A word with its inputs, whose number is checked.
    pub(super) fn word_of(&mut self, word: Word) -> Read<Expr> {
        let start = self.start();
        self.p.tokens.next();
        let name = if matches!(word, Word::Param | Word::Dim) { self.name_in_parentheses() } else { None };
        let inputs = match name {
            Some(value) => vec![Input { name: None, value }],
            None => self.inputs(true)?,
        };
        self.check_inputs(start, word, &inputs)?;
        let depth = inputs.iter().map(|input| input.value.depth).max().unwrap_or_default();
        self.node(start, depth, ExprKind::Word(word, inputs))
    }

    /// `(name)`, where the name may be a reserved word. Reads nothing else.
    fn name_in_parentheses(&mut self) -> Option<Expr> {
        let at = self.p.tokens.mark();
        let name = match (self.peek(), self.second(), self.p.tokens.at(at + 2)) {
            (Token::Open, Token::Name(name), Token::Close) if !name.contains('.') => name,
            _ => return None,
        };
        self.p.tokens.next();
        let start = self.start();
        self.p.tokens.next();
        let name = self.leaf(start, ExprKind::Name(name.to_owned()));
        self.p.tokens.next();
        Some(name)
    }

    fn check_inputs(&self, start: usize, word: Word, inputs: &[Input]) -> Read<()> {
        let error = |span, problem| Err(Box::new(SyntaxError::new(self.p.text, span, problem)));
        let unnamed = inputs.iter().filter(|input| input.name.is_none()).count();
        let (min, max) = word.inputs();
        if !(min..=max).contains(&unnamed) {
            let problem = format!("`{}` takes {min} inputs, got {unnamed}", word.name());
            return error(start..start + word.name().len(), problem);
        }
        let keywords = word.keywords();
        let unknown = inputs.iter().filter_map(|input| input.name.as_ref()).find(|name| {
            let same = inputs.iter().filter(|other| other.name.as_ref().is_some_and(|n| n.value == name.value)).count();
            same > 1 || !keywords.contains(&name.value.as_str())
        });
        let Some(name) = unknown else { return Ok(()) };
        let known: Vec<String> = keywords.iter().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "no names".to_owned() } else { format!("{}, each once", known.join(", ")) };
        let problem = format!("`{}` has the named inputs {known}; got `{}`", word.name(), name.value);
        error(name.span.clone(), problem)
    }

    /// Inputs in parentheses; `lists` are inputs of operations alone.
    fn inputs(&mut self, lists: bool) -> Read<Vec<Input>> {
        self.open()?;
        let mut inputs: Vec<Input> = Vec::new();
        while self.peek() != Token::Close {
            let name = self.optional_name(inputs.last().is_some_and(|last| last.name.is_some()))?;
            let is_list = lists && self.peek() == Token::OpenList;
            let value = if is_list { self.list()? } else { self.passed()? };
            inputs.push(Input { name, value });
            self.comma()?;
        }
        self.p.tokens.next();
        Ok(inputs)
    }

    fn open(&mut self) -> Read<()> {
        Ok(self.p.expect(Token::Open)?)
    }

    fn comma(&mut self) -> Read<()> {
        Ok(self.p.separator(Token::Close)?)
    }

    fn list(&mut self) -> Read<Expr> {
        let start = self.start();
        self.p.tokens.next();
        let items = self.exprs(Token::CloseList)?;
        self.p.expect(Token::CloseList)?;
        let depth = items.iter().map(|item| item.depth).max().unwrap_or_default();
        self.node(start, depth, ExprKind::List(items))
    }

    /// The name of an input, which it needs behind another named one.
    fn optional_name(&mut self, is_needed: bool) -> Read<Option<At<String>>> {
        let is_named = matches!(self.peek(), Token::Name(_)) && self.second() == Token::Equals;
        if is_named {
            return self.input_name().map(Some);
        }
        if is_needed { Err(self.p.expected("a named input, since they stand last").into()) } else { Ok(None) }
    }

    fn input_name(&mut self) -> Read<At<String>> {
        let start = self.start();
        let name = self.p.name("a name")?.to_owned();
        let span = self.since(start);
        self.p.expect(Token::Equals)?;
        Ok(At { span, value: name })
    }

    /// Expressions up to a token, which stays.
    pub(super) fn exprs(&mut self, close: Token<'_>) -> Read<Vec<Expr>> {
        let mut all = Vec::new();
        while self.peek() != close {
            all.push(self.expr()?);
            self.p.separator(close)?;
        }
        Ok(all)
    }

    /// `if c { a } else { b }`
    fn chosen(&mut self) -> Read<Expr> {
        let start = self.start();
        self.expect_word("if")?;
        let cond = self.expr()?;
        let (then, of_then) = self.scoped()?;
        self.expect_word("else")?;
        let (otherwise, of_otherwise) = match self.peek() {
            Token::Name("if") => {
                let value = self.nested(Self::chosen)?;
                let depth = value.depth;
                (Scoped { block: Default::default(), value }, depth)
            }
            _ => self.scoped()?,
        };
        let depth = cond.depth.max(of_then).max(of_otherwise);
        self.node(start, depth, ExprKind::Chosen(cond, then, otherwise))
    }

    /// Statements and a value, in braces; with the greatest depth of an expression inside.
    pub(super) fn scoped(&mut self) -> Read<(Scoped, usize)> {
        let before = std::mem::take(&mut self.deepest);
        self.blocks += BLOCK_IN_A_VALUE;
        let scoped = self.in_block(|parser| {
            let (mut block, value) = parser.statements(true)?;
            let value = match value {
                Some(value) => value,
                None => return Err(parser.p.expected("a value before `}`").into()),
            };
            block.span = value.span.clone();
            Ok(Scoped { block, value })
        });
        self.blocks -= BLOCK_IN_A_VALUE;
        let scoped = scoped?;
        let inside = self.deepest;
        self.deepest = before.max(inside);
        Ok((scoped, inside))
    }

    fn call(&mut self) -> Read<Call> {
        self.p.tokens.next();
        let callee = self.called()?;
        let inputs = self.inputs(false)?;
        let returns = if self.p.eat(Token::Arrow) { Some(self.returned()?) } else { None };
        Ok(Call { callee, inputs, returns })
    }

    fn returned(&mut self) -> Read<ParamType> {
        Ok(self.p.param_type()?)
    }

    /// Parses the function of a call.
    fn called(&mut self) -> Read<Callee> {
        let name = "the name of a function";
        Ok(match (self.peek(), self.second()) {
            (Token::Name("global"), Token::Name(_) | Token::Text(_)) => {
                self.p.tokens.next();
                let uncached = matches!(self.second(), Token::Name(_) | Token::Text(_)) && self.word("uncached");
                Callee::Global { name: self.label(name)?, uncached }
            }
            (Token::Name("import"), Token::Name(_) | Token::Text(_)) => {
                self.p.tokens.next();
                Callee::Import(self.label(name)?)
            }
            (Token::Name("symbol"), Token::Name(_) | Token::Text(_)) => {
                self.p.tokens.next();
                Callee::Symbol(self.label(name)?)
            }
            (Token::Name(name), _) if RESERVED.contains(&name) => return Err(self.p.expected(CALLEE).into()),
            (Token::Name(_), _) => Callee::Value(self.callee()?),
            _ => return Err(self.p.expected(CALLEE).into()),
        })
    }

    /// A name with indices: the path of a function value.
    fn callee(&mut self) -> Read<Expr> {
        let start = self.start();
        let name = self.p.name(CALLEE)?.to_owned();
        let mut value = self.leaf(start, ExprKind::Name(name));
        while self.peek() == Token::OpenList {
            value = self.index(start, value)?;
        }
        Ok(value)
    }

    fn closure(&mut self) -> Read<(Closure, usize)> {
        self.p.tokens.next();
        let captures = self.captures()?;
        let signature = self.closure_signature()?;
        let before = std::mem::take(&mut self.deepest);
        self.blocks += BLOCK_IN_A_VALUE;
        let body = self.block();
        self.blocks -= BLOCK_IN_A_VALUE;
        let body = Arc::new(body?);
        let inside = self.deepest;
        self.deepest = before.max(inside);
        let depth = captures.iter().map(|(_, _, value)| value.depth).chain([inside]).max().unwrap_or_default();
        Ok((Closure { captures, signature, body }, depth))
    }

    /// The captured values of a closure, in brackets.
    fn captures(&mut self) -> Read<Vec<(At<String>, ParamType, Expr)>> {
        self.p.expect(Token::OpenList)?;
        let mut captures = Vec::new();
        while !self.p.eat(Token::CloseList) {
            let name = self.new_name("the name of a captured value, or `]`")?;
            self.p.expect(Token::Colon)?;
            let ty = self.p.param_type()?;
            self.p.expect(Token::Equals)?;
            captures.push((name, ty, self.passed()?));
            self.p.separator(Token::CloseList)?;
        }
        Ok(captures)
    }

    fn closure_signature(&mut self) -> Read<Signature> {
        // its errors are recorded, but for the last one, which stops the statement
        match self.signature()?.0 {
            Some(signature) => Ok(signature),
            None => Err(self.errors.pop().unwrap_or_else(|| self.p.expected("a signature")).into()),
        }
    }

    /// The bytes of a string.
    pub(super) fn text(&mut self) -> Read<Vec<u8>> {
        Ok(self.p.string_bytes(TEXT)?)
    }

    /// A string in UTF-8.
    pub(super) fn utf8(&mut self) -> Read<String> {
        Ok(self.p.string(TEXT)?)
    }
}

/// The additional depth that a block inside a value counts for, since it takes more of the stack.
const BLOCK_IN_A_VALUE: usize = 2;
/// The precedence of comparisons.
const COMPARISON: usize = 2;
/// The precedence of the operand of `-` and `~`: no operator with two operands.
const UNARY: usize = 9;

const CHAINED: &str = "comparisons don't chain; write `a < b and b < c`";
const CALLEE: &str = "`global`, `import` or `symbol` and a name, or a function value";
