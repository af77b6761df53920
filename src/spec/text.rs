//! The text form of a signature, read: the inverse of its `Display`.
//!
//! ```text
//! signature := name "(" [ param { "," param } [ "," ] ] ")" [ "->" ( scalar | "None" ) ]
//! param     := name ":" ( scalar | tensor )
//! tensor    := "Tensor" "(" dims "," dtype { "," keyword } [ "," ] ")"
//! keyword   := "strides" "=" dims | "device" "=" string | "align" "=" number
//!            | "noalias" "=" ( "True" | "False" )
//! dims      := "[" [ dim { "," dim } [ "," ] ] "]"
//! dim       := number | name
//! ```
//!
//! Whitespace is free between tokens. What the grammar lets through and the builder doesn't, such as a name that is
//! used twice, comes back as the builder's list of mistakes.

use std::fmt;
use std::str::FromStr;

use tvm_ffi_runtime::abi::{DLDataType, DLDeviceType};

use super::builder::SignatureError;
use super::param::ParamType;
use super::signature::Signature;
use super::token::{Pos, Token, Tokens};
use super::dim::Dim;
use super::scalar::ScalarType;
use super::tensor::{Device, DeviceId, Layout, TensorType};

/// A place in a signature's text where it is not what it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1; one past the last at its end.
    pub column: usize,
    /// What was expected, and what was found.
    pub message: String,
    /// That line of the text.
    pub text: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a tab stays one, so that the caret stands where the terminal puts the character
        let before = self.text.chars().take(self.column.saturating_sub(1));
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{}\n  {}\n  {indent}^", self.message, self.text)
    }
}

impl std::error::Error for SyntaxError {}

/// Why a text is no signature.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// It doesn't follow the grammar.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// It does, and the signature has mistakes: all of them are here.
    #[error(transparent)]
    Mistakes(#[from] SignatureError),
}

impl FromStr for Signature {
    type Err = ParseError;

    /// Reads the text form.
    ///
    /// ```
    /// use tvm_ffi_codegen::Signature;
    ///
    /// let sig: Signature = "scale(x: Tensor([n], float32, align=16), factor: float64)".parse()?;
    /// assert_eq!(sig.params().len(), 2);
    /// assert_eq!(sig.to_string().parse(), Ok(sig));
    ///
    /// let error = "scale(x: Tensr([n], float32))".parse::<Signature>().unwrap_err();
    /// assert!(error.to_string().starts_with("expected a type, found `Tensr`"));
    /// # Ok::<(), tvm_ffi_codegen::spec::ParseError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser { tokens: Tokens::new(text)?, text };
        let signature = parser.signature()?;
        Ok(signature.build()?)
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    text: &'a str,
}

type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    fn signature(&mut self) -> Parsed<super::builder::SignatureBuilder> {
        let name = self.name("the function's name")?;
        let mut signature = Signature::builder(name);
        self.expect(Token::Open)?;
        while !self.eat(Token::Close) {
            let name = self.name("a parameter's name or `)`")?;
            self.expect(Token::Colon)?;
            let ty = self.param_type()?;
            signature = signature.param(name, ty);
            self.separator(Token::Close)?;
        }
        if self.eat(Token::Arrow)
            && let Some(ty) = self.result_type()?
        {
            signature = signature.returns(ty);
        }
        match self.tokens.peek() {
            (_, Token::End) => Ok(signature),
            _ => Err(self.expected("the end")),
        }
    }

    fn result_type(&mut self) -> Parsed<Option<ScalarType>> {
        if let (_, Token::Name(name)) = self.tokens.peek() {
            if name == "None" {
                self.tokens.next();
                return Ok(None);
            }
            if let Some(ty) = scalar(name) {
                self.tokens.next();
                return Ok(Some(ty));
            }
        }
        Err(self.expected(&format!("the type of the result ({}, or None)", scalar_names())))
    }

    fn param_type(&mut self) -> Parsed<ParamType> {
        if let (_, Token::Name(name)) = self.tokens.peek() {
            if name == "Tensor" {
                self.tokens.next();
                return self.tensor().map(ParamType::Tensor);
            }
            if let Some(ty) = scalar(name) {
                self.tokens.next();
                return Ok(ParamType::Scalar(ty));
            }
        }
        let found = self.tokens.peek().1;
        let pos = self.tokens.peek().0;
        let known = format!("types are Tensor(...), {}", scalar_names());
        Err(self.error(pos, format!("expected a type, found {found}; {known}")))
    }

    fn tensor(&mut self) -> Parsed<TensorType> {
        self.expect(Token::Open)?;
        let shape = self.dims("a list of sizes, such as `[n, 4]`")?;
        self.expect(Token::Comma)?;
        let (pos, name) = (self.tokens.peek().0, self.name("a dtype")?);
        let dtype: DLDataType = name.parse().map_err(|e| self.error(pos, format!("expected a dtype, found `{name}`: {e}")))?;
        let mut tensor = TensorType::new(shape, dtype);
        self.separator(Token::Close)?;
        let mut seen: Vec<&str> = Vec::new();
        while !self.eat(Token::Close) {
            let pos = self.tokens.peek().0;
            let keyword = self.name("`strides=`, `device=`, `align=`, `noalias=` or `)`")?;
            if seen.contains(&keyword) {
                return Err(self.error(pos, format!("`{keyword}` is given twice")));
            }
            seen.push(keyword);
            if !["strides", "device", "align", "noalias"].contains(&keyword) {
                let problem = format!("expected `strides`, `device`, `align` or `noalias`, found `{keyword}`");
                return Err(self.error(pos, problem));
            }
            self.expect(Token::Equals)?;
            match keyword {
                "strides" => tensor.layout = Layout::Strides(self.dims("a list of strides, such as `[s, 1]`")?),
                "device" => tensor.device = self.device()?,
                "align" => tensor.align = Some(self.align()?),
                _ => tensor.noalias = self.truth()?,
            }
            self.separator(Token::Close)?;
        }
        Ok(tensor)
    }

    fn dims(&mut self, what: &str) -> Parsed<Vec<Dim>> {
        if !self.eat(Token::OpenList) {
            return Err(self.expected(what));
        }
        let mut dims = Vec::new();
        while !self.eat(Token::CloseList) {
            match self.tokens.peek() {
                (_, Token::Number(digits)) => dims.push(Dim::Const(self.number(digits)?)),
                (_, Token::Name(name)) => dims.push(Dim::Symbol(name.to_owned())),
                _ => return Err(self.expected("a number, a name or `]`")),
            }
            self.tokens.next();
            self.separator(Token::CloseList)?;
        }
        Ok(dims)
    }

    fn device(&mut self) -> Parsed<Device> {
        let (pos, Token::Text(text)) = self.tokens.peek() else {
            return Err(self.expected("a device in quotes, such as `\"cuda:1\"`"));
        };
        let (kind, id) = match text.split_once(':') {
            Some((kind, id)) => (kind, Some(id)),
            None => (text, None),
        };
        let device_type: DLDeviceType =
            kind.parse().map_err(|_| self.error(pos, format!("{kind:?} is no kind of device")))?;
        let number = |id: &str| id.parse().ok().filter(|_| !id.starts_with('+'));
        let id = match id.map(|id| number(id).ok_or(id)) {
            None => DeviceId::Shared,
            Some(Ok(id)) => DeviceId::Fixed(id),
            Some(Err(id)) => return Err(self.error(pos, format!("expected a device number, found {id:?}"))),
        };
        self.tokens.next();
        Ok(Device::Kind(device_type, id))
    }

    fn align(&mut self) -> Parsed<u32> {
        let (pos, Token::Number(digits)) = self.tokens.peek() else {
            return Err(self.expected("a number of bytes"));
        };
        let align = digits.parse();
        let align = align.map_err(|_| self.error(pos, format!("expected a number of bytes, found `{digits}`")))?;
        self.tokens.next();
        Ok(align)
    }

    fn truth(&mut self) -> Parsed<bool> {
        match self.tokens.peek() {
            (_, Token::Name(name @ ("True" | "False"))) => {
                self.tokens.next();
                Ok(name == "True")
            }
            _ => Err(self.expected("`True` or `False`")),
        }
    }

    fn number(&self, digits: &str) -> Parsed<i64> {
        let pos = self.tokens.peek().0;
        digits.parse().map_err(|_| self.error(pos, format!("`{digits}` doesn't fit in 64 bits")))
    }

    fn name(&mut self, what: &str) -> Parsed<&'a str> {
        match self.tokens.peek() {
            (_, Token::Name(name)) => {
                self.tokens.next();
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn eat(&mut self, token: Token<'_>) -> bool {
        let is = self.tokens.peek().1 == token;
        if is {
            self.tokens.next();
        }
        is
    }

    fn expect(&mut self, token: Token<'_>) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&token.to_string())) }
    }

    /// A comma, or the closing token, which is left for the loop that looks for it.
    fn separator(&mut self, close: Token<'_>) -> Parsed<()> {
        if self.tokens.peek().1 == close || self.eat(Token::Comma) {
            return Ok(());
        }
        Err(self.expected(&format!("`,` or {close}")))
    }

    fn expected(&self, what: &str) -> SyntaxError {
        let (pos, found) = self.tokens.peek();
        self.error(pos, format!("expected {what}, found {found}"))
    }

    fn error(&self, pos: Pos, message: String) -> SyntaxError {
        pos.error(self.text, message)
    }
}

fn scalar(name: &str) -> Option<ScalarType> {
    ScalarType::ALL.into_iter().find(|ty| ty.name() == name)
}

fn scalar_names() -> String {
    ScalarType::ALL.map(ScalarType::name).join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn round_trip(text: &str) {
        assert_eq!(text.parse::<Signature>().unwrap().to_string(), text);
    }

    fn syntax(text: &str) -> SyntaxError {
        match text.parse::<Signature>() {
            Err(ParseError::Syntax(error)) => error,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn what_is_shown_is_read() {
        round_trip("f()");
        round_trip("f() -> float64");
        round_trip("ns.f$1(x: int64) -> handle");
        round_trip("add_one(x: Tensor([n], float32), y: Tensor([n], float32))");
        round_trip(
            "add_one(x: Tensor([n], float32), y: Tensor([n, 4], int8x4, strides=[s, 1], device=\"cuda:1\", align=16), \
             a: int64, h: handle) -> float64",
        );
        round_trip("f(x: Tensor([], float8_e4m3fn), y: Tensor([0], float4_e2m1fnx2, strides=[-1]))");
        round_trip("f(x: Tensor([9223372036854775807], int8xvscalex4, device=\"cpu:0\"))");
        round_trip("f(x: Tensor([n], float32, align=16, noalias=True), y: Tensor([n], float32, noalias=True))");
        for ty in ScalarType::ALL {
            round_trip(&format!("f(a: {ty}) -> {ty}"));
        }
    }

    #[test]
    fn whitespace_order_and_trailing_commas_are_free() {
        let text = " f\t(x:Tensor([n,],f32,align=8,device=\"cuda\",strides=[ 1 ],),\n a :\r\n int8 , )->None ";
        let want = "f(x: Tensor([n], float32, strides=[1], device=\"cuda\", align=8), a: int8)";
        assert_eq!(text.parse::<Signature>().unwrap().to_string(), want);
        assert_eq!("f()->bool".parse::<Signature>().unwrap().ret(), Some(&ScalarType::Bool.into()));
    }

    #[test]
    fn errors_say_what_was_expected_and_found() {
        let cases = [
            ("", 1, "expected the function's name, found the end"),
            ("3()", 1, "expected the function's name, found `3`"),
            ("f", 2, "expected `(`, found the end"),
            ("f(", 3, "expected a parameter's name or `)`, found the end"),
            ("f(,)", 3, "expected a parameter's name or `)`, found `,`"),
            ("f(x)", 4, "expected `:`, found `)`"),
            ("f(x: int64 y: int64)", 12, "expected `,` or `)`, found `y`"),
            ("f(x: Tensor)", 12, "expected `(`, found `)`"),
            ("f(x: Tensor(n, f32))", 13, "expected a list of sizes, such as `[n, 4]`, found `n`"),
            ("f(x: Tensor([n, f32))", 20, "expected `,` or `]`, found `)`"),
            ("f(x: Tensor([\"n\"], f32))", 14, "expected a number, a name or `]`, found \"n\""),
            ("f(x: Tensor([n]))", 16, "expected `,`, found `)`"),
            ("f(x: Tensor([n], 32))", 18, "expected a dtype, found `32`"),
            ("f(x: Tensor([n], f33x0))", 18, "expected a dtype, found `f33x0`: Invalid lanes"),
            ("f(x: Tensor([n], f32, size=3))", 23, "expected `strides`, `device`, `align` or `noalias`, found `size`"),
            ("f(x: Tensor([n], f32, align=3, align=3))", 32, "`align` is given twice"),
            ("f(x: Tensor([n], f32, align=-1))", 29, "expected a number of bytes, found `-1`"),
            ("f(x: Tensor([n], f32, align=n))", 29, "expected a number of bytes, found `n`"),
            ("f(x: Tensor([n], f32, noalias))", 30, "expected `=`, found `)`"),
            ("f(x: Tensor([n], f32, noalias=1))", 31, "expected `True` or `False`, found `1`"),
            ("f(x: Tensor([n], f32, device=cuda))", 30, "expected a device in quotes, such as `\"cuda:1\"`, found"),
            ("f(x: Tensor([n], f32, device=\"tpu\"))", 30, "\"tpu\" is no kind of device"),
            ("f(x: Tensor([n], f32, device=\"cuda:\"))", 30, "expected a device number, found \"\""),
            ("f(x: Tensor([n], f32, device=\"cuda:+1\"))", 30, "expected a device number, found \"+1\""),
            ("f(x: Tensor([99999999999999999999], f32))", 14, "`99999999999999999999` doesn't fit in 64 bits"),
            ("f() -> Tensor", 8, "expected the type of the result (int8, "),
            ("f() int8", 5, "expected the end, found `int8`"),
            ("f(x: int64) -", 13, "`-` starts neither a number nor `->`"),
            ("f(x: 1n)", 6, "`1n` is neither a number nor a name"),
            ("f(x: \"abc", 6, "a text that doesn't end"),
            ("f(\u{e9}\u{e8}: int64)", 3, "unexpected character '\u{e9}'"),
            ("f(\0)", 3, "unexpected character '\\0'"),
        ];
        for (text, column, message) in cases {
            let error = syntax(text);
            assert!(error.message.starts_with(message), "{text:?}: {}", error.message);
            assert_eq!((error.line, error.column), (1, column), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_caret_is_under_the_mistake() {
        let shown = syntax("f(a: int64,\n\tb int64)").to_string();
        assert_eq!(shown, "expected `:`, found `int64`\n  \tb int64)\n  \t  ^");
        assert_eq!(syntax("f(a: int64,\n\tb int64)").line, 2);
        assert_eq!(syntax("f(\n").to_string(), "expected a parameter's name or `)`, found the end\n  \n  ^");
    }

    #[test]
    fn mistakes_come_from_the_builder() {
        let text = "f(a.b: int8, x: Tensor([-1], f32, align=3), x: Tensor([n], void, device=\"cuda:-1\"))";
        let Err(ParseError::Mistakes(error)) = text.parse::<Signature>() else { panic!() };
        let paths: Vec<_> = error.mistakes.iter().map(|m| m.path.as_str()).collect();
        assert_eq!(paths, ["params[0].name", "params[2].name", "x.shape[0]", "x.align", "x.dtype", "x.device"]);
    }
}
