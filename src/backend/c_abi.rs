//! How C functions take structs by value: a table of rules for each calling convention.
//!
//! Both backends pass scalars as C does, but for Cranelift's floats on RISC-V. So a call that takes structs becomes one
//! that takes only scalars: those in registers first, then those on the stack. Where arguments are on the stack
//! although registers are free, zeros fill the registers before them. A callee doesn't look at registers that C leaves
//! unused.

use target_lexicon::{Architecture, CallingConvention, Triple};

use crate::ir::{AbiParam, FuncSig, StructLayout, Type};

/// A target's rules for arguments of C functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CAbi {
    /// x86-64, but not on Windows.
    SystemV,
    /// x86-64 on Windows.
    Windows,
    /// AArch64, but not on Windows and on Apple's systems.
    Aapcs64,
    /// AArch64 on Windows.
    Aarch64Windows,
    /// AArch64 on Apple's systems.
    Apple,
    /// 64-bit RISC-V with floating-point registers (`lp64d`).
    RiscV,
    /// s390x.
    S390x,
}

/// The source of a scalar argument of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The argument with this number. If its type differs from the call's, the call takes its bits as an integer,
    /// extended with zeros.
    Argument(usize),
    /// A load from the struct that the argument with this number points to, at an offset.
    Field(usize, u32),
    /// Zero: it fills a register or a gap on the stack.
    Filler,
}

/// A call that takes only scalars.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scalars {
    /// The signature of the call.
    pub(crate) sig: FuncSig,
    /// The source of each argument.
    pub(crate) sources: Vec<Source>,
}

impl CAbi {
    /// The rules of a target; `None` if they aren't known.
    pub(crate) fn of(triple: &Triple) -> Option<Self> {
        let convention = triple.default_calling_convention();
        Some(match (triple.architecture, convention) {
            (Architecture::X86_64 | Architecture::X86_64h, Ok(CallingConvention::WindowsFastcall)) => CAbi::Windows,
            (Architecture::X86_64 | Architecture::X86_64h, _) => CAbi::SystemV,
            (Architecture::Aarch64(_), Ok(CallingConvention::AppleAarch64)) => CAbi::Apple,
            (Architecture::Aarch64(_), Ok(CallingConvention::WindowsFastcall)) => CAbi::Aarch64Windows,
            (Architecture::Aarch64(_), _) => CAbi::Aapcs64,
            (Architecture::Riscv64(_), _) => CAbi::RiscV,
            (Architecture::S390x, _) => CAbi::S390x,
            _ => return None,
        })
    }

    /// The call that passes the arguments of `sig` by these rules; `None` if the backends follow them without help.
    pub(crate) fn scalars(self, sig: &FuncSig) -> Option<Scalars> {
        if !sig.params.iter().any(|param| param.by_value.is_some()) {
            return if self == CAbi::Apple { apples_words(sig) } else { None };
        }
        Some(self.assigned(sig))
    }

    /// The call that passes floats without a register in registers for integers; `None` if the target has no such rule,
    /// or each float has a register. Cranelift passes these floats on the stack.
    #[cfg(any(test, feature = "cranelift"))]
    pub(crate) fn floats_as_integers(self, sig: &FuncSig) -> Option<Scalars> {
        let (_, registers) = self.registers();
        let floats = sig.params.iter().filter(|param| param.ty.is_float()).count();
        (self == CAbi::RiscV && floats > registers).then(|| self.assigned(sig))
    }

    /// The call with a register or a place on the stack for each argument.
    fn assigned(self, sig: &FuncSig) -> Scalars {
        let mut call = Call::new(self);
        for (number, param) in sig.params.iter().enumerate() {
            match &param.by_value {
                Some(layout) => call.structure(number, layout),
                None => call.scalar(number, *param),
            }
        }
        call.finish(sig.ret)
    }

    /// The registers for integers and for floating-point numbers.
    const fn registers(self) -> (usize, usize) {
        match self {
            CAbi::SystemV => (6, 8),
            CAbi::Aapcs64 | CAbi::Aarch64Windows | CAbi::Apple | CAbi::RiscV => (8, 8),
            // a struct is one scalar, so the backends assign the registers
            CAbi::Windows | CAbi::S390x => (usize::MAX, usize::MAX),
        }
    }

    /// How a struct is passed if there are enough registers.
    fn form(self, layout: &StructLayout) -> Form {
        let (size, float) = (layout.size(), |(_, ty): (u32, Type)| ty.is_float());
        match self {
            CAbi::SystemV if size > 16 => Form::Stack,
            CAbi::SystemV => Form::Scalars((0..size.div_ceil(8)).filter_map(|n| eightbyte(layout, 8 * n)).collect()),
            CAbi::Windows if matches!(size, 1 | 2 | 4 | 8) => Form::Scalars(vec![(0, integer(size))]),
            CAbi::Windows => Form::Address,
            CAbi::Aapcs64 | CAbi::Aarch64Windows | CAbi::Apple => match homogeneous(layout) {
                Some(floats) => Form::Scalars(floats),
                None if size > 16 => Form::Address,
                None => Form::Scalars(words(layout)),
            },
            CAbi::RiscV => {
                // alignment may make such a struct larger than two registers
                let scalars: Vec<_> = layout.scalars().take(3).collect();
                let flat = scalars.len() <= 2
                    && scalars.iter().copied().any(float)
                    && scalars.iter().all(|(_, ty)| *ty != Type::Ptr);
                match flat {
                    true => Form::Scalars(scalars),
                    false if size > 16 => Form::Address,
                    false => Form::Scalars(words(layout)),
                }
            }
            CAbi::S390x => match layout.scalars().next().filter(|(_, ty)| ty.is_float() && ty.bytes() == size) {
                Some(only) => Form::Scalars(vec![only]),
                None if matches!(size, 1 | 2 | 4 | 8) => Form::Scalars(vec![(0, integer(size))]),
                None => Form::Address,
            },
        }
    }
}

/// How a struct is passed.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    /// As scalars, each with its offset in the struct.
    Scalars(Vec<(u32, Type)>),
    /// As its bytes on the stack.
    Stack,
    /// As the address of a copy that belongs to the callee.
    Address,
}

/// The integer type of so many bytes; `I64` for 5 to 8.
const fn integer(bytes: u32) -> Type {
    match bytes {
        1 => Type::I8,
        2 => Type::I16,
        3 | 4 => Type::I32,
        _ => Type::I64,
    }
}

/// A struct as words of 8 bytes.
fn words(layout: &StructLayout) -> Vec<(u32, Type)> {
    (0..layout.size().div_ceil(8)).map(|word| (8 * word, Type::I64)).collect()
}

/// The register of System V for the 8 bytes at an offset; `None` if they are only padding.
fn eightbyte(layout: &StructLayout, at: u32) -> Option<(u32, Type)> {
    let mut scalars = layout.scalars().filter(|(offset, _)| offset / 8 == at / 8).peekable();
    scalars.peek()?;
    let ty = match scalars.all(|(_, ty)| ty.is_float()) {
        true if layout.size() - at <= 4 => Type::F32,
        true => Type::F64,
        false => Type::I64,
    };
    Some((at, ty))
}

/// The members of a homogeneous floating-point aggregate: one to four of one type, and nothing else.
fn homogeneous(layout: &StructLayout) -> Option<Vec<(u32, Type)>> {
    let floats: Vec<_> = layout.scalars().collect();
    let ty = floats.first()?.1;
    let alike = ty.is_float() && floats.len() <= 4 && floats.iter().all(|(_, other)| *other == ty);
    (alike && floats.len() as u32 * ty.bytes() == layout.size()).then_some(floats)
}

/// A call without structs by value, with 8 bytes of Apple's stack for each struct of 4: as an integer it would take 4.
/// `None` if there is no such struct.
fn apples_words(sig: &FuncSig) -> Option<Scalars> {
    let (integers, _) = CAbi::Apple.registers();
    let mut sig = sig.clone();
    let on_stack = sig.params.iter_mut().filter(|param| !param.ty.is_float()).skip(integers);
    let mut structs = on_stack.filter(|param| param.aggregate && param.ty == Type::I32).peekable();
    structs.peek()?;
    structs.for_each(|param| *param = AbiParam::new(Type::I64));
    let sources = (0..sig.params.len()).map(Source::Argument).collect();
    Some(Scalars { sig, sources })
}

/// A call under construction.
struct Call {
    abi: CAbi,
    /// The free registers.
    integers: usize,
    floats: usize,
    in_registers: Vec<(AbiParam, Source)>,
    on_stack: Vec<(AbiParam, Source)>,
    /// The bytes of `on_stack`.
    stack: u32,
}

impl Call {
    fn new(abi: CAbi) -> Self {
        let (integers, floats) = abi.registers();
        Call { abi, integers, floats, in_registers: Vec::new(), on_stack: Vec::new(), stack: 0 }
    }

    fn scalar(&mut self, number: usize, param: AbiParam) {
        let source = Source::Argument(number);
        if !param.ty.is_float() {
            return self.integer(param, source);
        }
        match (self.floats, self.abi) {
            (1.., _) => self.in_register(param, source),
            // the registers for integers take over
            (0, CAbi::RiscV) => self.integer(AbiParam::new(integer(param.ty.bytes())), source),
            (0, _) => self.push(AbiParam::new(integer(param.ty.bytes())), source),
        }
    }

    fn integer(&mut self, param: AbiParam, source: Source) {
        match self.integers {
            1.. => self.in_register(param, source),
            // 8 bytes, also on Apple's stack
            0 if param.aggregate => self.push(AbiParam::new(Type::I64), source),
            0 => self.push(param, source),
        }
    }

    fn in_register(&mut self, param: AbiParam, source: Source) {
        let registers = if param.ty.is_float() { &mut self.floats } else { &mut self.integers };
        *registers -= 1;
        self.in_registers.push((param, source));
    }

    /// Passes an integer on the stack.
    fn push(&mut self, param: AbiParam, source: Source) {
        let bytes = if self.abi == CAbi::Apple { param.ty.bytes() } else { 8 };
        self.stack = self.stack.next_multiple_of(bytes) + bytes;
        self.on_stack.push((param, source));
    }

    fn structure(&mut self, number: usize, layout: &StructLayout) {
        let scalars = match self.abi.form(layout) {
            Form::Address => return self.integer(AbiParam::new(Type::Ptr), Source::Argument(number)),
            Form::Stack => return self.bytes(number, layout),
            Form::Scalars(scalars) => scalars,
        };
        let floats = scalars.iter().filter(|(_, ty)| ty.is_float()).count();
        let integers = scalars.len() - floats;
        let field = |(offset, ty)| (AbiParam::new(ty), Source::Field(number, offset));
        let in_pairs = matches!(self.abi, CAbi::Aapcs64 | CAbi::Aarch64Windows) && floats == 0 && layout.align() == 16;
        if in_pairs && self.integers % 2 == 1 {
            self.in_register(AbiParam::new(Type::I64), Source::Filler);
        }
        if integers <= self.integers && floats <= self.floats {
            return scalars.into_iter().map(field).for_each(|(param, source)| self.in_register(param, source));
        }
        match self.abi {
            CAbi::RiscV if layout.size() > 16 => self.integer(AbiParam::new(Type::Ptr), Source::Argument(number)),
            CAbi::RiscV => self.split(number, layout),
            CAbi::SystemV | CAbi::Windows | CAbi::S390x => self.bytes(number, layout),
            CAbi::Aapcs64 | CAbi::Aarch64Windows | CAbi::Apple => {
                // all of it is on the stack, and so are all later arguments of its kind
                match floats {
                    0 => self.fill_integers(),
                    _ => self.floats = 0,
                }
                match self.abi {
                    CAbi::Apple if floats > 0 => {
                        for (offset, ty) in scalars {
                            self.push(AbiParam::new(integer(ty.bytes())), Source::Field(number, offset));
                        }
                    }
                    // clang ignores their alignment there
                    CAbi::Aarch64Windows if floats > 0 => self.words(number, layout),
                    _ => self.bytes(number, layout),
                }
            }
        }
    }

    fn fill_integers(&mut self) {
        let filler = (AbiParam::new(Type::I64), Source::Filler);
        self.in_registers.extend(std::iter::repeat_n(filler, std::mem::take(&mut self.integers)));
    }

    /// Passes each word of a struct as an integer.
    fn split(&mut self, number: usize, layout: &StructLayout) {
        if self.integers == 0 {
            return self.bytes(number, layout);
        }
        for (offset, ty) in words(layout) {
            self.integer(AbiParam::new(ty), Source::Field(number, offset));
        }
    }

    /// Passes all bytes of a struct on the stack.
    fn bytes(&mut self, number: usize, layout: &StructLayout) {
        self.stack = self.stack.next_multiple_of(8);
        if !self.stack.is_multiple_of(layout.align()) {
            self.push(AbiParam::new(Type::I64), Source::Filler);
        }
        self.words(number, layout);
    }

    fn words(&mut self, number: usize, layout: &StructLayout) {
        for (offset, ty) in words(layout) {
            self.push(AbiParam::new(ty), Source::Field(number, offset));
        }
    }

    fn finish(mut self, ret: Option<AbiParam>) -> Scalars {
        if !self.on_stack.is_empty() {
            self.fill_integers();
            self.in_registers.append(&mut self.on_stack);
        }
        let (params, sources) = self.in_registers.into_iter().unzip();
        Scalars { sig: FuncSig { params, ret }, sources }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use Type::{F32, F64, I8, I16, I32, I64, Ptr};

    fn layout(size: u32, align: u32, scalars: &[(u32, Type)]) -> AbiParam {
        AbiParam::by_value(StructLayout::new(size, align, scalars.iter().copied()).unwrap())
    }

    /// A call's arguments as text: `2: f64`, a load from an argument `1+8: i64`, `0: i64` for a filler.
    fn shown(abi: CAbi, params: &[AbiParam]) -> String {
        let call = abi.scalars(&FuncSig { params: params.to_vec(), ret: None }).unwrap();
        let parts = call.sig.params.iter().zip(&call.sources).map(|(param, source)| match source {
            Source::Argument(number) => format!("{number}: {}", param.ty),
            Source::Field(number, offset) => format!("{number}+{offset}: {}", param.ty),
            Source::Filler => format!("0: {}", param.ty),
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    const ALL: [CAbi; 6] = [CAbi::SystemV, CAbi::Windows, CAbi::Aapcs64, CAbi::Apple, CAbi::RiscV, CAbi::S390x];

    /// For each struct how it is passed where registers are free: in the order of `ALL`.
    #[test]
    fn structs_in_registers() {
        let table: &[(AbiParam, [&str; 6])] = &[
            (layout(1, 1, &[(0, I8)]), ["i64", "i8", "i64", "i64", "i64", "i8"]),
            (layout(4, 4, &[(0, F32)]), ["f32", "i32", "f32", "f32", "f32", "f32"]),
            (layout(8, 8, &[(0, F64)]), ["f64", "i64", "f64", "f64", "f64", "f64"]),
            (layout(8, 4, &[(0, F32), (4, F32)]), ["f64", "i64", "f32 f32+4", "f32 f32+4", "f32 f32+4", "i64"]),
            (layout(8, 4, &[(0, F32), (4, I32)]), ["i64", "i64", "i64", "i64", "f32 i32+4", "i64"]),
            (
                layout(12, 4, &[(0, F32), (4, F32), (8, F32)]),
                ["f64 f32+8", "ptr", "f32 f32+4 f32+8", "f32 f32+4 f32+8", "i64 i64+8", "ptr"],
            ),
            (layout(16, 8, &[(0, F32), (8, F64)]), ["f64 f64+8", "ptr", "i64 i64+8", "i64 i64+8", "f32 f64+8", "ptr"]),
            (layout(16, 8, &[(0, I16), (8, F64)]), ["i64 f64+8", "ptr", "i64 i64+8", "i64 i64+8", "i16 f64+8", "ptr"]),
            (layout(16, 8, &[(0, Ptr), (8, F64)]), ["i64 f64+8", "ptr", "i64 i64+8", "i64 i64+8", "i64 i64+8", "ptr"]),
            (layout(16, 16, &[(0, F64)]), ["f64", "ptr", "i64 i64+8", "i64 i64+8", "f64", "ptr"]),
            (
                layout(32, 8, &[(0, F64), (8, F64), (16, F64), (24, F64)]),
                ["", "ptr", "f64 f64+8 f64+16 f64+24", "f64 f64+8 f64+16 f64+24", "ptr", "ptr"],
            ),
            (layout(24, 8, &[(0, I64), (8, I64), (16, I64)]), ["", "ptr", "ptr", "ptr", "ptr", "ptr"]),
        ];
        for (param, expected) in table {
            for (abi, expected) in ALL.into_iter().zip(expected) {
                let call = abi.scalars(&FuncSig { params: vec![*param], ret: None }).unwrap();
                // leave out those on the stack, which come after the fillers
                let used = call.sources.iter().take_while(|source| **source != Source::Filler);
                let parts: Vec<String> = used
                    .zip(&call.sig.params)
                    .map(|(source, param)| match source {
                        Source::Field(0, offset @ 1..) => format!("{}+{offset}", param.ty),
                        _ => param.ty.to_string(),
                    })
                    .collect();
                assert_eq!(parts.join(" "), *expected, "{abi:?}: {param}");
            }
        }
    }

    #[test]
    fn system_v_takes_a_struct_whole_in_registers_or_on_the_stack() {
        let pair = layout(16, 8, &[(0, I64), (8, I64)]);
        let ints = [AbiParam::new(I64); 5];
        let params = [&ints[..], &[pair, AbiParam::signed(I32), AbiParam::new(I64)]].concat();
        assert_eq!(
            shown(CAbi::SystemV, &params),
            "0: i64, 1: i64, 2: i64, 3: i64, 4: i64, 6: i32, 5+0: i64, 5+8: i64, 7: i64"
        );
        let mixed = layout(16, 8, &[(0, I64), (8, F64)]);
        let floats = [AbiParam::new(F32); 9];
        let params = [&floats[..], &[mixed]].concat();
        let expected = "0: f32, 1: f32, 2: f32, 3: f32, 4: f32, 5: f32, 6: f32, 7: f32, 0: i64, 0: i64, 0: i64, \
            0: i64, 0: i64, 0: i64, 8: i32, 9+0: i64, 9+8: i64";
        assert_eq!(shown(CAbi::SystemV, &params), expected);
        // the second is aligned to 16 on the stack
        let wide = layout(32, 16, &[(0, I64), (8, I64), (16, I64), (24, I64)]);
        let large = layout(24, 8, &[(0, I64), (8, I64), (16, I64)]);
        let tail = shown(CAbi::SystemV, &[large, wide]).split_off("0: i64, ".len() * 6);
        assert_eq!(tail, "0+0: i64, 0+8: i64, 0+16: i64, 0: i64, 1+0: i64, 1+8: i64, 1+16: i64, 1+24: i64");
    }

    #[test]
    fn aarch64_leaves_registers_free_after_a_struct_on_the_stack() {
        let pair = layout(16, 8, &[(0, I64), (8, I64)]);
        let ints = [AbiParam::new(I64); 7];
        let params = [&ints[..], &[pair, AbiParam::signed(I32)]].concat();
        let registers = "0: i64, 1: i64, 2: i64, 3: i64, 4: i64, 5: i64, 6: i64, 0: i64, ";
        assert_eq!(shown(CAbi::Aapcs64, &params), format!("{registers}7+0: i64, 7+8: i64, 8: i32"));
        let even = layout(16, 16, &[(0, I64), (8, I64)]);
        let params = [AbiParam::new(Ptr), even, AbiParam::new(Ptr)];
        assert_eq!(shown(CAbi::Aapcs64, &params), "0: ptr, 0: i64, 1+0: i64, 1+8: i64, 2: ptr");
        assert_eq!(shown(CAbi::Apple, &params), "0: ptr, 1+0: i64, 1+8: i64, 2: ptr");
        let doubles = layout(16, 16, &[(0, F64), (8, F64)]);
        let params = [&[AbiParam::new(F64); 9][..], &[doubles]].concat();
        let stack = |abi| shown(abi, &params).split_off("0: f64, ".len() * 8 + "0: i64, ".len() * 8);
        assert_eq!(stack(CAbi::Aapcs64), "8: i64, 0: i64, 9+0: i64, 9+8: i64");
        assert_eq!(stack(CAbi::Aarch64Windows), "8: i64, 9+0: i64, 9+8: i64");
        // floats on the stack are 8 bytes apart, and next to each other on Apple's
        let floats = [AbiParam::new(F64); 7];
        let three = layout(12, 4, &[(0, F32), (4, F32), (8, F32)]);
        let params = [&floats[..], &[three, AbiParam::new(F32)]].concat();
        let registers = "0: f64, 1: f64, 2: f64, 3: f64, 4: f64, 5: f64, 6: f64, 0: i64, 0: i64, 0: i64, 0: i64, \
            0: i64, 0: i64, 0: i64, 0: i64, ";
        assert_eq!(shown(CAbi::Aapcs64, &params), format!("{registers}7+0: i64, 7+8: i64, 8: i32"));
        assert_eq!(shown(CAbi::Apple, &params), format!("{registers}7+0: i32, 7+4: i32, 7+8: i32, 8: i32"));
    }

    #[test]
    fn apples_stack_has_8_bytes_for_a_struct_of_4() {
        let byte = layout(1, 1, &[(0, I8)]);
        let params = [&[AbiParam::new(I64); 7][..], &[byte, AbiParam::aggregate(I32), AbiParam::signed(I32)]].concat();
        let shown = shown(CAbi::Apple, &params);
        assert!(shown.ends_with("6: i64, 7+0: i64, 8: i64, 9: i32"), "{shown}");
        // also without structs by value
        let eight = [AbiParam::new(I64); 8];
        let words = [AbiParam::aggregate(I32), AbiParam::new(F32), AbiParam::signed(I32)];
        let params = [&eight[..], &words].concat();
        let shown = self::shown(CAbi::Apple, &params);
        assert!(shown.ends_with("7: i64, 8: i64, 9: f32, 10: i32"), "{shown}");
        let params = [&eight[1..], &words].concat();
        assert_eq!(CAbi::Apple.scalars(&FuncSig { params, ret: None }), None);
    }

    #[test]
    fn risc_v_splits_a_struct_between_registers_and_the_stack() {
        let pair = layout(16, 8, &[(0, I64), (8, I64)]);
        let params = [&[AbiParam::new(I64); 7][..], &[pair, AbiParam::new(I8)]].concat();
        let registers = "0: i64, 1: i64, 2: i64, 3: i64, 4: i64, 5: i64, 6: i64, ";
        assert_eq!(shown(CAbi::RiscV, &params), format!("{registers}7+0: i64, 7+8: i64, 8: i8"));
        // without registers for floats those for integers take over
        let floats = [AbiParam::new(F64); 8];
        let float = layout(8, 4, &[(0, F32), (4, F32)]);
        let params = [&floats[..], &[float, AbiParam::new(F32)]].concat();
        let registers = "0: f64, 1: f64, 2: f64, 3: f64, 4: f64, 5: f64, 6: f64, 7: f64, ";
        assert_eq!(shown(CAbi::RiscV, &params), format!("{registers}8+0: i64, 9: i32"));
    }

    #[test]
    fn risc_v_passes_the_ninth_float_as_an_integer() {
        let sig = |floats: usize, integers: usize| {
            let params = [vec![AbiParam::new(F32); floats], vec![AbiParam::new(I64); integers]].concat();
            FuncSig { params, ret: None }
        };
        assert_eq!(CAbi::RiscV.floats_as_integers(&sig(8, 9)), None);
        assert_eq!(CAbi::SystemV.floats_as_integers(&sig(9, 0)), None);
        let call = CAbi::RiscV.floats_as_integers(&sig(17, 1)).unwrap();
        let types: Vec<Type> = call.sig.params.iter().map(|param| param.ty).collect();
        assert_eq!(types, [vec![F32; 8], vec![I32; 9], vec![I64]].concat());
        assert_eq!(call.sources, (0..18).map(Source::Argument).collect::<Vec<_>>());
    }

    #[test]
    fn targets_have_rules() {
        let of = |triple: &str| CAbi::of(&triple.parse().unwrap());
        for (triple, expected) in [
            ("x86_64-unknown-linux-gnu", CAbi::SystemV),
            ("x86_64-apple-darwin", CAbi::SystemV),
            ("x86_64-pc-windows-msvc", CAbi::Windows),
            ("x86_64-pc-windows-gnu", CAbi::Windows),
            ("aarch64-unknown-linux-gnu", CAbi::Aapcs64),
            ("aarch64-linux-android", CAbi::Aapcs64),
            ("aarch64-pc-windows-msvc", CAbi::Aarch64Windows),
            ("aarch64-apple-darwin", CAbi::Apple),
            ("arm64-apple-macosx11.0.0", CAbi::Apple),
            ("riscv64gc-unknown-linux-gnu", CAbi::RiscV),
            ("riscv64-unknown-linux-gnu", CAbi::RiscV),
            ("s390x-unknown-linux-gnu", CAbi::S390x),
        ] {
            assert_eq!(of(triple), Some(expected), "{triple}");
        }
        assert_eq!(of("wasm32-unknown-unknown"), None);
    }
}
