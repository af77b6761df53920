//! Parses arguments of kernels, the inverse of `kernel_arg`.

use std::str::FromStr;

use super::dims;
use super::parser::{Parsed, Parser};
use super::recovery::List;
use crate::spec::check::MAX_TYPE_DEPTH;
use crate::spec::dim::{Dim, DimOp};
use crate::spec::element;
use crate::spec::kernel_arg::{FloatBits, Interleave, KernelArg, L2Promotion, Swizzle, TensorMap};
use crate::spec::parse_error::SyntaxError;
use crate::spec::scalar::ScalarType;
use crate::spec::token::{Token, Tokens};

const ARG: &str =
    "a parameter's name, a type such as `int32`, `cast`, `null`, `struct`, `scratch`, `tensor_map` or `]`";

const MAP_ITEM: &str = "`box`, `element_strides`, `interleave`, `swizzle`, `l2_promotion` or `fill`";

impl FromStr for KernelArg {
    type Err = SyntaxError;

    /// Parses the text form of one argument: `int32(n)`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.arg(0).and_then(|arg| parser.expect(Token::End).map(|()| arg));
        parser.finish(read)
    }
}

impl KernelArg {
    /// Parses a comma-separated list of arguments: `x, int32(n)`.
    ///
    /// # Errors
    /// The error contains all syntax errors of the source.
    pub fn list(text: &str) -> Result<Vec<Self>, SyntaxError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.rest_of_args(Token::End);
        parser.finish(read)
    }
}

impl Parser<'_> {
    /// Arguments up to a closing token.
    pub(crate) fn rest_of_args(&mut self, close: Token<'_>) -> Parsed<Vec<KernelArg>> {
        let mut args = Vec::new();
        while !self.eat(close) {
            let start = self.tokens.mark();
            let read = self.arg(0).and_then(|arg| self.separator(close).map(|()| arg));
            match read {
                Ok(arg) => args.push(arg),
                Err(error) => self.recover(error, start, List::Args)?,
            }
        }
        Ok(args)
    }

    /// One extent, or several in parentheses. A single extent may begin with a parenthesis too.
    pub(super) fn extents(&mut self) -> Parsed<Vec<Dim>> {
        let start = self.tokens.mark();
        if self.eat(Token::Open) {
            let first = self.dim(dims::OPERAND)?;
            if self.eat(Token::Comma) {
                let mut all = vec![first];
                while !self.eat(Token::Close) {
                    all.push(self.dim(dims::OPERAND)?);
                    self.separator(Token::Close)?;
                }
                return Ok(all);
            }
            self.tokens.go_to(start);
        }
        Ok(vec![self.dim(dims::OPERAND)?])
    }

    /// A 32-bit integer.
    pub(super) fn small<T: TryFrom<i64>>(&mut self, what: &str) -> Parsed<T> {
        let (pos, _) = self.tokens.peek();
        let value = self.integer(what)?;
        T::try_from(value).map_err(|_| self.error(pos, format!("`{value}` is out of the range of {what}")))
    }

    /// An argument inside `depth` structs.
    pub(super) fn arg(&mut self, depth: usize) -> Parsed<KernelArg> {
        let name = self.name(ARG)?;
        if self.tokens.peek().1 != Token::Open {
            let path = self.rest_of_path(name)?;
            return Ok(match path.strip_suffix(".device_id") {
                // a field of a record with this name is `param(cfg.device_id)`
                Some(tensor) => KernelArg::DeviceId(tensor.to_owned()),
                None if name == "null" => KernelArg::Null,
                None => KernelArg::Param(path),
            });
        }
        if let Some(ty) = element::scalar(name) {
            return self.in_parentheses(|parser| parser.number(ty));
        }
        match name {
            "param" => self.in_parentheses(Self::path).map(KernelArg::Param),
            "cast" => self.in_parentheses(Self::cast),
            "scratch" => self.in_parentheses(Self::scratch),
            "struct" => self.in_parentheses(|parser| parser.fields(depth + 1)),
            "tensor_map" => self.in_parentheses(Self::tensor_map),
            _ => Err(self.expected("`,` or `]`")),
        }
    }

    /// A number that is passed to a kernel with a type: an expression, a stride, a floating-point number, or a
    /// parameter to convert.
    fn number(&mut self, ty: ScalarType) -> Parsed<KernelArg> {
        if ty.is_float() {
            let (_, token) = self.tokens.peek();
            if let Token::Name(name) = token
                && !matches!(name, "nan" | "inf")
            {
                self.tokens.next();
                return Ok(KernelArg::Cast(self.rest_of_path(name)?, ty));
            }
            return self.float().map(|value| KernelArg::Float(FloatBits::new(value), ty));
        }
        let start = self.tokens.mark();
        if let (_, Token::Name(name)) = self.tokens.peek() {
            self.tokens.next();
            let path = self.rest_of_path(name)?;
            let stride = path.strip_suffix(']').and_then(|path| path.rsplit_once(".strides["));
            // otherwise it may be the start of an expression
            if let Some((tensor, number)) = stride
                && let (Ok(number), Token::Close) = (number.parse(), self.tokens.peek().1)
            {
                return Ok(KernelArg::Stride(tensor.to_owned(), number, ty));
            }
            self.tokens.go_to(start);
        }
        Ok(KernelArg::Int(self.dim(dims::OPERAND)?, ty))
    }

    fn float(&mut self) -> Parsed<f64> {
        let negative = self.eat(Token::Op(DimOp::Sub));
        let value = match self.tokens.peek() {
            (_, Token::Integer(digits) | Token::Float(digits)) => digits.parse().unwrap_or(f64::INFINITY),
            (_, Token::Name("inf")) => f64::INFINITY,
            (_, Token::Name("nan")) if !negative => f64::NAN,
            _ => return Err(self.expected("a number, `inf`, `nan` or a parameter's name")),
        };
        self.tokens.next();
        Ok(if negative { -value } else { value })
    }

    fn path(&mut self) -> Parsed<String> {
        let name = self.name("a parameter's name")?;
        self.rest_of_path(name)
    }

    fn cast(&mut self) -> Parsed<KernelArg> {
        let name = self.path()?;
        self.expect(Token::Comma)?;
        let (_, Token::Name(ty)) = self.tokens.peek() else { return Err(self.expected("a scalar type")) };
        let Some(ty) = element::scalar(ty) else { return Err(self.expected("a scalar type")) };
        self.tokens.next();
        Ok(KernelArg::Cast(name, ty))
    }

    fn scratch(&mut self) -> Parsed<KernelArg> {
        let bytes = self.dim(dims::OPERAND)?;
        let mut align = 16;
        if self.eat(Token::Comma) {
            align = self.keyword("align")?;
        }
        Ok(KernelArg::Scratch { bytes, align })
    }

    /// `name=NUMBER`.
    fn keyword(&mut self, name: &str) -> Parsed<u32> {
        if !self.eat(Token::Name(name)) {
            return Err(self.expected(&format!("`{name}`")));
        }
        self.expect(Token::Equals)?;
        self.small("a number of bytes")
    }

    fn fields(&mut self, depth: usize) -> Parsed<KernelArg> {
        if depth > MAX_TYPE_DEPTH {
            return Err(self.expected(&format!("at most {MAX_TYPE_DEPTH} structs inside each other")));
        }
        let size = self.keyword("size")?;
        self.expect(Token::Comma)?;
        let align = self.keyword("align")?;
        let mut fields = Vec::new();
        while self.eat(Token::Comma) {
            let offset = self.small("a field's offset")?;
            self.expect(Token::Colon)?;
            fields.push((offset, self.arg(depth)?));
        }
        Ok(KernelArg::Struct { size, align, fields })
    }

    fn tensor_map(&mut self) -> Parsed<KernelArg> {
        let mut map = TensorMap::new(self.name("a tensor parameter's name")?, Vec::<Dim>::new());
        let mut seen: Vec<&str> = Vec::new();
        while self.eat(Token::Comma) {
            let (pos, Token::Name(name)) = self.tokens.peek() else { return Err(self.expected(MAP_ITEM)) };
            if seen.contains(&name) {
                return Err(self.error(pos, format!("`{name}` is given twice")));
            }
            if !matches!(name, "box" | "element_strides" | "interleave" | "swizzle" | "l2_promotion" | "fill") {
                return Err(self.expected(MAP_ITEM));
            }
            seen.push(name);
            self.tokens.next();
            self.expect(Token::Equals)?;
            match name {
                "box" => map.box_dims = self.extents()?,
                "element_strides" => map.element_strides = self.numbers()?,
                "interleave" => map.interleave = self.one_of(Interleave::ALL, Interleave::bytes)?,
                "swizzle" => map.swizzle = self.one_of(Swizzle::ALL, Swizzle::bytes)?,
                "l2_promotion" => map.l2_promotion = self.one_of(L2Promotion::ALL, L2Promotion::bytes)?,
                _ if self.eat(Token::Name("nan")) => map.nan_fill = true,
                _ if self.eat(Token::Integer("0")) => {}
                _ => return Err(self.expected("`0` or `nan`")),
            }
        }
        match seen.contains(&"box") {
            true => Ok(KernelArg::TensorMap(map)),
            false => Err(self.expected("`,` and a `box`")),
        }
    }

    /// One number, or several in parentheses.
    fn numbers(&mut self) -> Parsed<Vec<u32>> {
        if !self.eat(Token::Open) {
            return Ok(vec![self.small("a step between elements")?]);
        }
        let mut all = Vec::new();
        while !self.eat(Token::Close) {
            all.push(self.small("a step between elements")?);
            self.separator(Token::Close)?;
        }
        Ok(all)
    }

    /// A variant, given as its number of bytes.
    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N], bytes: fn(T) -> u32) -> Parsed<T> {
        let (pos, token) = self.tokens.peek();
        let names: Vec<String> = all.iter().map(|value| format!("`{}`", bytes(*value))).collect();
        let what = names.join(", ");
        let number = self.integer(&what)?;
        let found = all.into_iter().find(|value| i64::from(bytes(*value)) == number);
        found.ok_or_else(|| self.mismatch(pos, &format!("one of {what}"), token, ""))
    }
}
