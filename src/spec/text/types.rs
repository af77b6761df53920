//! Parses types.

use tvm_ffi_runtime::abi::{DLDevice, DLDeviceType};

use super::parser::{Parsed, Parser};
use super::suggestion::did_you_mean;
use super::words::{FORMS, WORDS, word};
use crate::spec::check::MAX_TYPE_DEPTH;
use crate::spec::element;
use crate::spec::param::ParamType;
use crate::spec::parse_error::SyntaxError;
use crate::spec::path::Step;
use crate::spec::scalar::ScalarType;
use crate::spec::tensor::{Access, DType, Device, DeviceId, Layout, TensorShape, TensorType};
use crate::spec::token::{Pos, Token};

/// The most common dtypes, as suggestions for misspelt names.
const DTYPES: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
];

const SIZES: &str = "a list of sizes, such as `[n, 4]`";

impl Parser<'_> {
    pub(crate) fn param_type(&mut self) -> Parsed<ParamType> {
        self.type_inside(0)
    }

    /// A type inside `depth` others.
    fn type_inside(&mut self, depth: usize) -> Parsed<ParamType> {
        let (pos, found) = self.tokens.peek();
        if depth > MAX_TYPE_DEPTH {
            return Err(self.error(pos, format!("expected at most {MAX_TYPE_DEPTH} types inside each other")));
        }
        let Token::Name(name) = found else { return Err(self.no_type(pos, found)) };
        if let Some(ty) = word(name) {
            self.tokens.next();
            return Ok(ty);
        }
        // parses the part after the type's name, given the depth of the inner types
        let rest: fn(&mut Self, usize) -> Parsed<ParamType> = match name {
            "Tensor" => |parser, _| parser.tensor().map(ParamType::Tensor),
            "Shape" => |parser, _| parser.shape(),
            "Int" => |parser, _| parser.in_parentheses(|p| p.integer("an integer")).map(ParamType::Int),
            "Bool" => |parser, _| parser.in_parentheses(Self::truth).map(ParamType::Bool),
            "Object" => |parser, _| parser.in_parentheses(Self::type_key).map(ParamType::Object),
            "EnvState" => |parser, _| parser.in_parentheses(Self::global_name).map(ParamType::EnvState),
            "Optional" => |parser, depth| parser.one_type(|p| p.type_inside(depth)).map(ParamType::optional),
            "Array" => |parser, depth| parser.elements(depth).map(ParamType::array),
            "List" => |parser, depth| parser.elements(depth).map(ParamType::list),
            "Map" => |parser, depth| parser.two_types(depth).map(|(key, value)| ParamType::map(key, value)),
            "Dict" => |parser, depth| parser.two_types(depth).map(|(key, value)| ParamType::dict(key, value)),
            "Record" => |parser, depth| parser.record(depth),
            "Tuple" => |parser, depth| parser.types(depth).map(ParamType::Tuple),
            _ => return Err(self.no_type(pos, found)),
        };
        self.tokens.next();
        rest(self, depth + 1)
    }

    fn no_type(&self, pos: Pos, found: Token<'_>) -> SyntaxError {
        let forms = FORMS.map(|(name, rest)| format!("{name}{rest}"));
        let [forms @ .., last] = &forms;
        let words = ScalarType::ALL.iter().map(|ty| ty.name()).chain(WORDS.map(|(name, _)| name));
        let types = words.clone().chain(forms.iter().map(String::as_str)).collect::<Vec<_>>().join(", ");
        let meant = match found {
            Token::Name(name) => did_you_mean(name, &words.chain(FORMS.map(|(name, _)| name)).collect::<Vec<_>>()),
            _ => String::new(),
        };
        self.mismatch(pos, "a type", found, &format!("{meant}; types are {types} and {last}"))
    }

    fn one_type(&mut self, read: impl FnOnce(&mut Self) -> Parsed<ParamType>) -> Parsed<ParamType> {
        self.expect(Token::OpenList)?;
        let ty = read(self)?;
        self.close(Token::CloseList)?;
        Ok(ty)
    }

    fn elements(&mut self, depth: usize) -> Parsed<ParamType> {
        self.one_type(|parser| parser.spanned(Step::Elements, |p| p.type_inside(depth)))
    }

    fn two_types(&mut self, depth: usize) -> Parsed<(ParamType, ParamType)> {
        self.expect(Token::OpenList)?;
        let key = self.spanned(Step::Keys, |parser| parser.type_inside(depth))?;
        self.expect(Token::Comma)?;
        let value = self.spanned(Step::Values, |parser| parser.type_inside(depth))?;
        self.close(Token::CloseList)?;
        Ok((key, value))
    }

    fn types(&mut self, depth: usize) -> Parsed<Vec<ParamType>> {
        self.expect(Token::OpenList)?;
        let mut types = Vec::new();
        while !self.eat(Token::CloseList) {
            types.push(self.spanned(Step::Item(types.len()), |parser| parser.type_inside(depth))?);
            self.separator(Token::CloseList)?;
        }
        Ok(types)
    }

    /// A record, after its first word.
    fn record(&mut self, depth: usize) -> Parsed<ParamType> {
        self.expect(Token::Open)?;
        let name = self.spanned_alone(Step::Name, |parser| {
            parser.quoted("the name of the Record in quotes, such as `\"Config\"`")
        })?;
        self.separator(Token::Close)?;
        let mut fields = Vec::new();
        while !self.eat(Token::Close) {
            let number = fields.len();
            fields.push(self.spanned(Step::Field(number), |parser| {
                let name = parser.spanned_alone(Step::Name, |parser| parser.name("a field's name or `)`"))?;
                parser.expect(Token::Colon)?;
                Ok((name.to_owned(), parser.type_inside(depth)?))
            })?);
            self.separator(Token::Close)?;
        }
        Ok(ParamType::Record { name, fields })
    }

    pub(super) fn in_parentheses<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.expect(Token::Open)?;
        let inside = inside(self)?;
        self.expect(Token::Close)?;
        Ok(inside)
    }

    fn type_key(&mut self) -> Parsed<String> {
        self.quoted("a type key in quotes, such as `\"ffi.Module\"`")
    }

    fn global_name(&mut self) -> Parsed<String> {
        self.quoted("the name of a global function in quotes, such as `\"mylang.get_global_state\"`")
    }

    fn quoted(&mut self, what: &str) -> Parsed<String> {
        let (_, Token::Text(text)) = self.tokens.peek() else { return Err(self.expected(what)) };
        self.tokens.next();
        Ok(text.to_owned())
    }

    fn shape(&mut self) -> Parsed<ParamType> {
        if self.tokens.peek().1 != Token::Open {
            return Ok(ParamType::Shape(None));
        }
        self.in_parentheses(|parser| parser.dims(SIZES, Step::Item)).map(|dims| ParamType::Shape(Some(dims)))
    }

    /// A tensor type, after its first word.
    pub(super) fn tensor(&mut self) -> Parsed<TensorType> {
        self.expect(Token::Open)?;
        let shape = self.spanned_alone(Step::Shape, Self::tensor_shape)?;
        self.expect(Token::Comma)?;
        let dtype = self.spanned_alone(Step::DType, Self::dtype)?;
        self.separator(Token::Close)?;
        let mut tensor = TensorType { shape, ..TensorType::new([0; 0], dtype) };
        let mut seen: Vec<&str> = Vec::new();
        while !self.eat(Token::Close) {
            let pos = self.tokens.peek().0;
            let keyword = self.name("`strides=`, `device=`, `align=`, `noalias=`, `out=`, `inout=` or `)`")?;
            if seen.contains(&keyword) {
                return Err(self.error(pos, format!("`{keyword}` is given twice")));
            }
            seen.push(keyword);
            if !["strides", "device", "align", "noalias", "out", "inout"].contains(&keyword) {
                let expected = "`strides`, `device`, `align`, `noalias`, `out` or `inout`";
                return Err(self.mismatch(pos, expected, Token::Name(keyword), ""));
            }
            self.expect(Token::Equals)?;
            match keyword {
                "strides" => tensor.layout = self.spanned_alone(Step::Strides, Self::layout)?,
                "device" => tensor.device = self.spanned_alone(Step::Device, Self::device)?,
                "align" => tensor.align = Some(self.spanned_alone(Step::Align, Self::align)?),
                "noalias" => tensor.noalias = self.spanned_alone(Step::NoAlias, Self::truth)?,
                _ => {
                    let access = if keyword == "out" { Access::Out } else { Access::InOut };
                    if self.spanned_alone(Step::Access, Self::truth)? {
                        if tensor.access.writes() {
                            return Err(self.error(pos, "expected `out` or `inout`, not both".to_owned()));
                        }
                        tensor.access = access;
                    }
                }
            }
            self.separator(Token::Close)?;
        }
        Ok(tensor)
    }

    fn tensor_shape(&mut self) -> Parsed<TensorShape> {
        if !self.eat(Token::OpenList) {
            return Err(self.expected(SIZES));
        }
        if self.eat(Token::Ellipsis) {
            self.expect(Token::CloseList)?;
            return Ok(TensorShape::Any);
        }
        self.rest_of_dims(Step::Size).map(TensorShape::Ranked)
    }

    /// A dtype's name; in a result, any other name is a parameter's.
    fn dtype(&mut self) -> Parsed<DType> {
        let (pos, name) = (self.tokens.peek().0, self.name("a dtype")?);
        if name == "any" {
            return Ok(DType::Any);
        }
        match element::dtype(name) {
            Ok(dtype) => Ok(DType::Exact(dtype)),
            Err(_) if self.in_result && element::without_bits(name).is_none() => Ok(DType::Param(name.to_owned())),
            Err(problem) => {
                let meant = did_you_mean(name, DTYPES);
                Err(self.mismatch(pos, "a dtype", Token::Name(name), &format!("{meant}: {problem}")))
            }
        }
    }

    fn layout(&mut self) -> Parsed<Layout> {
        if self.eat(Token::Name("any")) {
            return Ok(Layout::Any);
        }
        self.dims("a list of strides, such as `[s, 1]`, or `any`", Step::Stride).map(Layout::Strides)
    }

    fn device(&mut self) -> Parsed<Device> {
        let device = match self.tokens.peek() {
            (_, Token::Name("any")) => Device::Any,
            (_, Token::Name(name)) if self.in_result => Device::Param(name.to_owned()),
            (pos, Token::Text(text)) => {
                let (kind, id) = self.kind_and_id(pos, text)?;
                Device::Kind(kind, id)
            }
            _ => return Err(self.expected("a device in quotes, such as `\"cuda:1\"`, or `any`")),
        };
        self.tokens.next();
        Ok(device)
    }

    pub(super) fn kind_and_id(&self, pos: Pos, text: &str) -> Parsed<(DLDeviceType, DeviceId)> {
        let (kind, id) = match text.split_once(':') {
            Some((kind, id)) => (kind, Some(id)),
            None => (text, None),
        };
        let kind = kind.parse().map_err(|_| {
            let kinds: Vec<_> = DLDeviceType::ALL.iter().filter_map(|kind| kind.name()).collect();
            let (meant, kinds) = (did_you_mean(kind, &kinds), kinds.join(", "));
            self.error(pos, format!("unknown device {kind:?}{meant}; known devices: {kinds}"))
        })?;
        let id = match id {
            None => DeviceId::Shared,
            Some("any") => DeviceId::Any,
            Some(id) => DeviceId::Fixed(self.device_number(pos, id)?),
        };
        Ok((kind, id))
    }

    fn device_number(&self, pos: Pos, id: &str) -> Parsed<i32> {
        let number = id.parse().ok().filter(|_| !id.starts_with('+'));
        number.ok_or_else(|| self.mismatch(pos, "a device number", format_args!("{id:?}"), ""))
    }

    /// The single device that a string names, number 0 by default.
    pub(crate) fn one_device(&self, pos: Pos, text: &str) -> Parsed<DLDevice> {
        match self.kind_and_id(pos, text)? {
            (kind, DeviceId::Shared) => Ok(DLDevice::new(kind, 0)),
            (kind, DeviceId::Fixed(id)) => Ok(DLDevice::new(kind, id)),
            (_, DeviceId::Any) => Err(self.mismatch(pos, "one device, such as `\"cuda:1\"`", "any", "")),
        }
    }

    fn align(&mut self) -> Parsed<u32> {
        let (pos, Token::Integer(digits)) = self.tokens.peek() else {
            return Err(self.expected("a number of bytes"));
        };
        let align = digits.parse();
        let align = align.map_err(|_| self.mismatch(pos, "a number of bytes", Token::Integer(digits), ""))?;
        self.tokens.next();
        Ok(align)
    }
}
