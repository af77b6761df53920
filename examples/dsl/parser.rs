//! Tokens to syntax.

use super::lexer::{Token, TokenKind};
use super::program::{Comparison, Math, Operator, Reduction, Scalar};
use super::syntax::{Base, Expr, ExprKind, Item, Kernel, Name, Place, Result, Statement, StatementKind, Type};

pub fn parse(tokens: Vec<Token>) -> Result<Vec<Item>> {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let mut items = Vec::new();
    loop {
        let doc = parser.doc();
        match parser.peek() {
            TokenKind::End => return Ok(items),
            TokenKind::Word(word) if word == "extern" => items.push(parser.external()?),
            TokenKind::Word(word) if word == "kernel" => items.push(Item::Kernel(parser.kernel(doc)?)),
            _ => return Err(parser.expected("`kernel` or `extern`")),
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// The parser's depth in the tree.
    depth: u32,
}

/// Whoever walks through the tree calls itself as often.
const MAX_DEPTH: u32 = 128;

impl Parser {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn place(&self) -> Place {
        self.tokens[self.at].place
    }

    /// The last token, the end, is never left.
    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn expected(&self, what: &str) -> (Place, String) {
        let found = match self.peek() {
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Sign(sign) => format!("`{sign}`"),
            TokenKind::End => "the end".to_owned(),
            TokenKind::Int(_) | TokenKind::Float(_) => "a number".to_owned(),
            TokenKind::Text(_) | TokenKind::Doc(_) => "a text".to_owned(),
        };
        (self.place(), format!("expected {what}, found {found}"))
    }

    fn is(&self, token: &str) -> bool {
        match self.peek() {
            TokenKind::Word(word) => word == token,
            TokenKind::Sign(sign) => *sign == token,
            _ => false,
        }
    }

    /// Takes the word or sign, if it is the next.
    fn takes(&mut self, token: &str) -> bool {
        let is = self.is(token);
        if is {
            self.advance();
        }
        is
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.takes(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    fn name(&mut self) -> Result<Name> {
        let TokenKind::Word(text) = self.peek().clone() else { return Err(self.expected("a name")) };
        let place = self.place();
        self.advance();
        Ok(Name { text, place })
    }

    /// A name with any number of points. After a point, a number is the place of an item of a tuple, in brackets in
    /// the result: `p[0]`.
    fn dotted(&mut self) -> Result<Name> {
        let mut name = self.name()?;
        while self.takes(".") {
            if let TokenKind::Int(item) = self.peek() {
                name.text = format!("{}[{item}]", name.text);
                self.advance();
            } else {
                name.text = format!("{}.{}", name.text, self.name()?.text);
            }
        }
        Ok(name)
    }

    /// A list between two brackets, with commas.
    fn list<T>(&mut self, open: &str, close: &str, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.is(close) {
            items.push(one(self)?);
            if !self.takes(",") {
                break;
            }
        }
        self.expect(close)?;
        Ok(items)
    }

    /// One thing inside of another.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outside = self.depth;
        self.deepen()?;
        let result = inner(self)?;
        self.depth = outside;
        Ok(result)
    }

    /// Parts from here on are deeper in the tree, until the end of the thing around them.
    fn deepen(&mut self) -> Result<()> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err((self.place(), format!("expected at most {MAX_DEPTH} levels of expressions and blocks"))),
            false => Ok(()),
        }
    }

    fn doc(&mut self) -> String {
        let mut lines = Vec::new();
        while let TokenKind::Doc(line) = self.peek().clone() {
            lines.push(line);
            self.advance();
        }
        lines.join("\n")
    }

    fn external(&mut self) -> Result<Item> {
        self.expect("extern")?;
        let name = self.dotted()?;
        let params = self.list("(", ")", Self::ty)?;
        self.expect("->")?;
        let result = self.ty()?;
        self.expect(";")?;
        Ok(Item::Extern { name, params, result })
    }

    fn kernel(&mut self, doc: String) -> Result<Kernel> {
        self.expect("kernel")?;
        let name = self.name()?;
        let params = self.list("(", ")", |parser| {
            let name = parser.name()?;
            parser.expect(":")?;
            Ok((name, parser.ty()?))
        })?;
        let result = if self.takes("->") { Some(self.ty()?) } else { None };
        let mut constraints = Vec::new();
        if self.takes("where") {
            constraints.push(self.expr()?);
            while self.takes(",") {
                constraints.push(self.expr()?);
            }
        }
        let body = self.block()?;
        let end = self.tokens[self.at - 1].place;
        Ok(Kernel { name, doc, params, result, constraints, body, end })
    }

    fn scalar(&mut self) -> Result<Scalar> {
        match Scalar::ALL.into_iter().find(|scalar| self.is(scalar.name())) {
            Some(scalar) => {
                self.advance();
                Ok(scalar)
            }
            None => Err(self.expected("a type")),
        }
    }

    fn ty(&mut self) -> Result<Type> {
        let place = self.place();
        let base = if self.takes("str") {
            Base::Str
        } else if self.takes("[") {
            let element = self.scalar()?;
            self.expect("]")?;
            Base::List(element)
        } else if self.is("(") {
            self.deeper(|parser| Ok(Base::Tuple(parser.list("(", ")", Self::ty)?)))?
        } else {
            let element = self.scalar()?;
            if self.is("[") {
                let shape = self.list("[", "]", Self::expr)?;
                let strides = if self.takes("strides") { Some(self.list("[", "]", Self::expr)?) } else { None };
                Base::Tensor { element, shape, strides }
            } else {
                Base::Scalar(element)
            }
        };
        Ok(Type { base, optional: self.takes("?"), place })
    }

    fn block(&mut self) -> Result<Vec<Statement>> {
        self.deeper(|parser| {
            parser.expect("{")?;
            let mut statements = Vec::new();
            while !parser.takes("}") {
                statements.push(parser.statement()?);
            }
            Ok(statements)
        })
    }

    fn statement(&mut self) -> Result<Statement> {
        let place = self.place();
        let name = self.dotted()?;
        let kind = match name.text.as_str() {
            "for" => return self.loops(place),
            "if" => self.conditional()?,
            "let" => {
                let name = self.name()?;
                self.expect("=")?;
                StatementKind::Let { name, value: self.value()? }
            }
            "raise" => {
                let kind = self.dotted()?.text;
                self.expect("(")?;
                let TokenKind::Text(message) = self.peek().clone() else { return Err(self.expected("a message")) };
                self.advance();
                let mut values = Vec::new();
                while self.takes(",") {
                    values.push(self.expr()?);
                }
                self.expect(")")?;
                self.expect(";")?;
                StatementKind::Raise { kind, message, values }
            }
            "return" => StatementKind::Return(self.value()?),
            _ => {
                let index = self.list("[", "]", Self::expr)?;
                self.expect("=")?;
                StatementKind::Store { tensor: name, index, value: self.value()? }
            }
        };
        Ok(Statement { kind, place })
    }

    fn value(&mut self) -> Result<Expr> {
        let value = self.expr()?;
        self.expect(";")?;
        Ok(value)
    }

    /// `for i in m, j in n { ... }` are two loops.
    fn loops(&mut self, place: Place) -> Result<Statement> {
        self.deeper(|parser| {
            let index = parser.name()?;
            parser.expect("in")?;
            let end = parser.expr()?;
            let body = if parser.takes(",") { vec![parser.loops(place)?] } else { parser.block()? };
            Ok(Statement { kind: StatementKind::For { index, end, body }, place })
        })
    }

    fn conditional(&mut self) -> Result<StatementKind> {
        let condition = self.expr()?;
        let then = self.block()?;
        let otherwise = if !self.takes("else") {
            Vec::new()
        } else if self.is("if") {
            vec![self.deeper(Self::statement)?]
        } else {
            self.block()?
        };
        Ok(StatementKind::If { condition, then, otherwise })
    }

    fn expr(&mut self) -> Result<Expr> {
        self.deeper(|parser| parser.logic(false))
    }

    /// `or`, and inside of it `and`.
    fn logic(&mut self, is_and: bool) -> Result<Expr> {
        let (operand, word): (fn(&mut Self) -> Result<Expr>, _) =
            if is_and { (Self::negation, "and") } else { (|parser| parser.logic(true), "or") };
        let mut left = operand(self)?;
        while self.takes(word) {
            self.deepen()?;
            let (place, right) = (left.place, operand(self)?.into());
            left = Expr { kind: ExprKind::Logic { is_and, left: left.into(), right }, place };
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Expr> {
        let place = self.place();
        if self.takes("not") {
            let inner = self.deeper(Self::negation)?;
            return Ok(Expr { kind: ExprKind::Not(inner.into()), place });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr> {
        use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
        let left = self.sum()?;
        let Some(comparison) = [Eq, Ne, Le, Ge, Lt, Gt].into_iter().find(|comparison| self.is(comparison.sign()))
        else {
            return Ok(left);
        };
        self.advance();
        let (place, right) = (left.place, self.sum()?.into());
        Ok(Expr { kind: ExprKind::Compare(comparison, left.into(), right), place })
    }

    fn sum(&mut self) -> Result<Expr> {
        self.operation(&[("+", Operator::Add), ("-", Operator::Sub)], Self::product)
    }

    fn product(&mut self) -> Result<Expr> {
        const PRODUCTS: [(&str, Operator); 4] =
            [("*", Operator::Mul), ("/", Operator::Div), ("//", Operator::FloorDiv), ("%", Operator::Rem)];
        self.operation(&PRODUCTS, Self::unary)
    }

    fn operation(&mut self, operators: &[(&str, Operator)], operand: fn(&mut Self) -> Result<Expr>) -> Result<Expr> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.is(sign)) {
            self.advance();
            self.deepen()?;
            let (place, right) = (left.place, operand(self)?.into());
            left = Expr { kind: ExprKind::Binary(*operator, left.into(), right), place };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let place = self.place();
        if self.takes("-") {
            let inner = self.deeper(Self::unary)?;
            return Ok(Expr { kind: ExprKind::Negative(inner.into()), place });
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expr> {
        let place = self.place();
        let kind = match self.peek().clone() {
            TokenKind::Int(value) => ExprKind::Int(value),
            TokenKind::Float(value) => ExprKind::Float(value),
            TokenKind::Text(text) => ExprKind::Text(text),
            TokenKind::Sign("(") => {
                self.advance();
                let inner = self.expr()?;
                self.expect(")")?;
                return Ok(inner);
            }
            TokenKind::Word(_) => return Ok(Expr { kind: self.named()?, place }),
            _ => return Err(self.expected("an expression")),
        };
        self.advance();
        Ok(Expr { kind, place })
    }

    fn named(&mut self) -> Result<ExprKind> {
        if self.takes("if") {
            let condition = self.expr()?.into();
            self.expect("then")?;
            let then = self.expr()?.into();
            self.expect("else")?;
            return Ok(ExprKind::Choose { condition, then, otherwise: self.expr()?.into() });
        }
        let name = self.dotted()?.text;
        if self.is("[") {
            return Ok(ExprKind::Load { tensor: name, index: self.list("[", "]", Self::expr)? });
        }
        if !self.is("(") {
            return Ok(ExprKind::Name(name));
        }
        let how = [("sum", Reduction::Sum), ("max", Reduction::Max), ("min", Reduction::Min)];
        if let Some((_, how)) = how.into_iter().find(|(word, _)| *word == name)
            && matches!(self.tokens.get(self.at + 2), Some(Token { kind: TokenKind::Word(word), .. }) if word == "in")
        {
            self.expect("(")?;
            let index = self.name()?;
            self.expect("in")?;
            let end = self.expr()?.into();
            self.expect(":")?;
            let value = self.expr()?.into();
            self.expect(")")?;
            return Ok(ExprKind::Reduce { how, index, end, value });
        }
        let place = self.place();
        let mut args = self.list("(", ")", Self::expr)?;
        let operator = match name.as_str() {
            "min" => Some(Operator::Min),
            "max" => Some(Operator::Max),
            _ => None,
        };
        let math = match name.as_str() {
            "sqrt" => Some(Math::Sqrt),
            "abs" => Some(Math::Abs),
            _ => None,
        };
        match (operator, math, args.len()) {
            (Some(operator), _, 2) => {
                let right = args.remove(1).into();
                Ok(ExprKind::Binary(operator, args.remove(0).into(), right))
            }
            (_, Some(math), 1) => Ok(ExprKind::Math(math, args.remove(0).into())),
            (None, None, _) => Ok(ExprKind::Call { function: name, args }),
            (_, _, got) => Err((place, format!("expected {} arguments, found {got}", operator.map_or(1, |_| 2)))),
        }
    }
}
