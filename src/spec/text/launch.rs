//! Launches, read: what `launch` displays.

use std::str::FromStr;

use super::recovery::List;
use super::{ParseError, Parsed, Parser, SyntaxError, dims};
use crate::spec::builder::SignatureBuilder;
use crate::spec::check::MAX_TYPE_DEPTH;
use crate::spec::dim::{Dim, DimOp};
use crate::spec::launch::{
    FloatBits, Interleave, L2Promotion, Launch, LaunchArg, LaunchedSignature, Swizzle, TensorMap,
};
use crate::spec::scalar::ScalarType;
use crate::spec::signature::Signature;
use crate::spec::token::{Token, Tokens};

/// Items that have a value behind `=`.
pub(super) const VALUES: &[&str] = &["grid", "block", "cluster", "preferred_cluster", "shared", "args", "priority"];
/// Items that are one word.
pub(super) const FLAGS: &[&str] = &["cooperative", "programmatic", "non_portable_cluster"];
/// Words that have parentheses behind them as arguments of a kernel, beside the names of scalars.
pub(super) const ARG_FORMS: &[&str] = &["param", "cast", "scratch", "struct", "tensor_map"];

const ITEM: &str = "`grid`, `block`, `cluster`, `preferred_cluster`, `shared`, `args`, `priority`, `cooperative`, `programmatic`, \
                    `non_portable_cluster` or the end";
const ARG: &str =
    "a parameter's name, a type such as `int32`, `cast`, `null`, `struct`, `scratch`, `tensor_map` or `]`";

const MAP_ITEM: &str = "`box`, `element_strides`, `interleave`, `swizzle`, `l2_promotion` or `fill`";

impl FromStr for Launch {
    type Err = SyntaxError;

    /// Reads the text form: `launch add_kernel grid=ceil_div(n, 1024) block=128`.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.launch("the end");
        parser.finish(read)
    }
}

impl FromStr for LaunchedSignature {
    type Err = ParseError;

    /// Reads the text form: the signature's, `@`, and the launch's.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text, Tokens::new(text)?);
        let read = parser.launched();
        let spans = std::mem::take(&mut parser.spans);
        let (mut signature, launch) = parser.finish(read)?;
        signature.spans = spans;
        Ok(LaunchedSignature { signature: signature.build()?, launch })
    }
}

impl<'a> Parser<'a> {
    fn launched(&mut self) -> Parsed<(SignatureBuilder, Launch)> {
        let signature = match self.signature(true) {
            Ok(signature) => signature,
            Err(mistake) => {
                self.recover_at_launch(mistake)?;
                Signature::builder("")
            }
        };
        if self.mistakes.is_empty() || self.tokens.peek().1 != Token::End {
            self.expect(Token::At)?;
            return Ok((signature, self.launch(ITEM)?));
        }
        // a sign that is missing may be the mistake that was found
        Ok((signature, Launch::new("")))
    }

    /// A launch to the end of the text, where `expected` could stand. With mistakes it is no launch that comes back.
    fn launch(&mut self, expected: &str) -> Parsed<Launch> {
        if !self.eat(Token::Name("launch")) {
            return Err(self.expected("`launch`"));
        }
        let mut launch = match self.tokens.peek() {
            (_, Token::Name(name) | Token::Text(name)) => Launch::new(name),
            _ => return Err(self.expected("the name of the kernel's entry")),
        };
        self.tokens.next();
        let mut seen = Vec::new();
        while self.tokens.peek().1 != Token::End {
            let start = self.tokens.mark();
            launch = match self.item(launch, &mut seen, expected) {
                Ok(launch) => launch,
                Err(mistake) => {
                    self.recover_at_item(mistake, start)?;
                    Launch::new("")
                }
            };
        }
        Ok(launch)
    }

    fn item(&mut self, launch: Launch, seen: &mut Vec<&'a str>, expected: &str) -> Parsed<Launch> {
        let (pos, Token::Name(name)) = self.tokens.peek() else { return Err(self.expected(expected)) };
        if seen.contains(&name) {
            return Err(self.error(pos, format!("`{name}` is given twice")));
        }
        let value = VALUES.contains(&name);
        if !value && !FLAGS.contains(&name) {
            return Err(self.expected(ITEM));
        }
        self.tokens.next();
        if value {
            self.expect(Token::Equals)?;
        }
        seen.push(name);
        Ok(match name {
            "cooperative" => launch.cooperative(),
            "programmatic" => launch.programmatic(),
            "non_portable_cluster" => launch.non_portable_cluster(),
            "grid" => launch.grid(self.extents()?),
            "block" => launch.block(self.extents()?),
            "cluster" => launch.cluster(self.extents()?),
            "preferred_cluster" => launch.preferred_cluster(self.extents()?),
            "shared" => launch.shared(self.dim(dims::OPERAND)?),
            "priority" => launch.priority(self.small("a priority")?),
            _ => launch.args(self.args()?),
        })
    }

    /// An integer in 32 bits.
    fn small<T: TryFrom<i64>>(&mut self, what: &str) -> Parsed<T> {
        let (pos, _) = self.tokens.peek();
        let value = self.integer(what)?;
        T::try_from(value).map_err(|_| self.error(pos, format!("`{value}` is out of the range of {what}")))
    }

    /// One extent, or several in parentheses. A parenthesis may also begin the one.
    fn extents(&mut self) -> Parsed<Vec<Dim>> {
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

    fn args(&mut self) -> Parsed<Vec<LaunchArg>> {
        self.expect(Token::OpenList)?;
        let mut args = Vec::new();
        while !self.eat(Token::CloseList) {
            let start = self.tokens.mark();
            let read = self.arg(0).and_then(|arg| self.separator(Token::CloseList).map(|()| arg));
            match read {
                Ok(arg) => args.push(arg),
                Err(mistake) => self.recover(mistake, start, List::Args)?,
            }
        }
        Ok(args)
    }

    /// A parameter of the kernel, inside so many structs.
    fn arg(&mut self, depth: usize) -> Parsed<LaunchArg> {
        let name = self.name(ARG)?;
        if self.tokens.peek().1 != Token::Open {
            return Ok(match name.strip_suffix(".device_id") {
                // no parameter's name has a point
                Some(tensor) => LaunchArg::DeviceId(tensor.to_owned()),
                None if name == "null" => LaunchArg::Null,
                None => LaunchArg::Param(name.to_owned()),
            });
        }
        if let Some(ty) = ScalarType::ALL.iter().find(|ty| ty.name() == name) {
            return self.in_parentheses(|parser| parser.number(*ty));
        }
        match name {
            "param" => {
                self.in_parentheses(|p| p.name("a parameter's name")).map(|name| LaunchArg::Param(name.to_owned()))
            }
            "cast" => self.in_parentheses(Self::cast),
            "scratch" => self.in_parentheses(Self::scratch),
            "struct" => self.in_parentheses(|parser| parser.fields(depth + 1)),
            "tensor_map" => self.in_parentheses(Self::tensor_map),
            _ => Err(self.expected("`,` or `]`")),
        }
    }

    /// The number that a kernel gets with a type: an expression, a stride, a floating-point number, or a parameter that becomes one.
    fn number(&mut self, ty: ScalarType) -> Parsed<LaunchArg> {
        if ty.is_float() {
            let (_, token) = self.tokens.peek();
            if let Token::Name(name) = token
                && !matches!(name, "nan" | "inf")
            {
                self.tokens.next();
                return Ok(LaunchArg::Cast(name.to_owned(), ty));
            }
            return self.float().map(|value| LaunchArg::Float(FloatBits::new(value), ty));
        }
        let start = self.tokens.mark();
        if let (_, Token::Name(name)) = self.tokens.peek()
            && let Some(tensor) = name.strip_suffix(".strides")
        {
            self.tokens.next();
            if self.eat(Token::OpenList) {
                let number = self.small::<usize>("a dimension's number")?;
                self.expect(Token::CloseList)?;
                return Ok(LaunchArg::Stride(tensor.to_owned(), number, ty));
            }
            self.tokens.go_to(start);
        }
        Ok(LaunchArg::Int(self.dim(dims::OPERAND)?, ty))
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

    fn cast(&mut self) -> Parsed<LaunchArg> {
        let name = self.name("a parameter's name")?.to_owned();
        self.expect(Token::Comma)?;
        let (_, Token::Name(ty)) = self.tokens.peek() else { return Err(self.expected("a scalar type")) };
        let found = ScalarType::ALL.iter().find(|known| known.name() == ty);
        let Some(ty) = found else { return Err(self.expected("a scalar type")) };
        self.tokens.next();
        Ok(LaunchArg::Cast(name, *ty))
    }

    fn scratch(&mut self) -> Parsed<LaunchArg> {
        let bytes = self.dim(dims::OPERAND)?;
        let mut align = 16;
        if self.eat(Token::Comma) {
            align = self.keyword("align")?;
        }
        Ok(LaunchArg::Scratch { bytes, align })
    }

    /// `name=NUMBER`.
    fn keyword(&mut self, name: &str) -> Parsed<u32> {
        if !self.eat(Token::Name(name)) {
            return Err(self.expected(&format!("`{name}`")));
        }
        self.expect(Token::Equals)?;
        self.small("a number of bytes")
    }

    fn fields(&mut self, depth: usize) -> Parsed<LaunchArg> {
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
        Ok(LaunchArg::Struct { size, align, fields })
    }

    fn tensor_map(&mut self) -> Parsed<LaunchArg> {
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
            true => Ok(LaunchArg::TensorMap(map)),
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

    /// A value by its bytes.
    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N], bytes: fn(T) -> u32) -> Parsed<T> {
        let (pos, token) = self.tokens.peek();
        let names: Vec<String> = all.iter().map(|value| format!("`{}`", bytes(*value))).collect();
        let what = names.join(", ");
        let number = self.integer(&what)?;
        let found = all.into_iter().find(|value| i64::from(bytes(*value)) == number);
        found.ok_or_else(|| self.mismatch(pos, &format!("one of {what}"), token, ""))
    }
}
