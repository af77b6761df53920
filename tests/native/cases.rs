//! Kernels that take structs by value: calls of them, and the kernels in C. Tests run them here, and
//! `cargo xtask test --only struct-args` on other machines.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;

use tvm_ffi_codegen::spec::{FloatBits, KernelArg};
use tvm_ffi_codegen::{Kernel, ScalarType, dim};

/// How the kernels' source begins.
pub const START: &str = "\
#include <stddef.h>
#include <stdint.h>

typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
uint64_t noted[1 << 10];
size_t noted_count;

";

/// Structs: a letter is a field (`b`, `h`, `i`, `l`: an integer of 1, 2, 4 or 8 bytes; `f`, `d`: a float; `p`: a
/// pointer; `t`, `v`: a `DLDataType`, a `DLDevice`), braces are a nested struct, and `@` aligns a struct to 16.
const SHAPES: &str = "\
    b h i l p f d bbb hhh ib ii lb ll lp lll ff fff ffff fffff dd ddd dddd ddddd fd df if fi lf fl bd pf dp hf iif ffi \
    ffii bdb {ff}f {d}{d} f{i} {bh}{f} tf vd fv ht htf llllllllll bfdhpi @l @ll @d @dd @ffff @lll {@l}f {@f}{@d}";

/// The numbers of integers and of floats before the first struct.
const BEFORE: &[(usize, usize)] = &[(0, 0), (3, 2), (5, 7), (6, 8), (7, 5), (8, 8), (2, 8)];

/// Arguments under construction: each scalar has a value of its own, which the kernel notes.
#[derive(Default)]
pub struct Arguments {
    pub args: Vec<KernelArg>,
    /// The types of the kernel's parameters in C.
    pub types: Vec<String>,
    /// The sizes and alignments of structs.
    pub sizes: Vec<Option<(u32, u32)>>,
    /// The kernel's code.
    code: String,
    pub expected: Vec<u64>,
    count: i64,
}

/// The parameters of each function.
pub const PARAMS: &str = "(p: int64, h: handle, t: dtype, v: device)";

/// The arguments of each call: those of the types `dtype` and `device` as their bits in little-endian order.
pub const P: i64 = -3;
pub const H: u64 = 0x7000;
pub const T: u64 = 0x4_1002;
pub const V: u64 = 0x3_0000_0002;

impl Arguments {
    /// A scalar: the argument, and its size. The kernel finds it at `place`.
    fn scalar(&mut self, kind: char, place: &str) -> (KernelArg, u32) {
        self.count += 1;
        let count = self.count % 100;
        let param = |name: &str| KernelArg::Param(name.to_owned());
        let int = |ty| (KernelArg::Int(dim("p") + count, ty), ty.bits() / 8);
        let float = |ty: ScalarType| (KernelArg::Float(FloatBits::new(count as f64 + 0.5), ty), ty.bits() / 8);
        let (arg, bytes) = match kind {
            'b' => int(ScalarType::Int8),
            'h' => int(ScalarType::Int16),
            'i' => int(ScalarType::Int32),
            'l' => int(ScalarType::Int64),
            'f' => float(ScalarType::Float32),
            'd' => float(ScalarType::Float64),
            'p' => (param("h"), 8),
            't' => (param("t"), 4),
            'v' => (param("v"), 8),
            other => unreachable!("the test knows no {other}"),
        };
        let (noted, value) = match kind {
            'f' | 'd' => (format!("(int64_t)({place} * 2)"), (2 * count + 1) as u64),
            'p' => (format!("(intptr_t){place}"), H),
            't' => (format!("{place}.code + ({place}.bits << 8) + ({place}.lanes << 16)"), T),
            'v' => (format!("{place}.device_type + ((int64_t){place}.device_id << 32)"), V),
            _ => (place.to_owned(), (P + count) as u64),
        };
        writeln!(self.code, "  noted[noted_count++] = (uint64_t)({noted});").unwrap();
        self.expected.push(value);
        (arg, bytes)
    }

    /// The rest of a struct: the argument, its size, its alignment, and its type in C.
    fn of_struct(&mut self, rest: &mut std::str::Chars<'_>, place: &str) -> (KernelArg, u32, u32, String) {
        let (mut fields, mut end, mut align) = (Vec::new(), 0u32, 1u32);
        let mut ty = "struct { ".to_owned();
        while let Some(kind) = rest.next().filter(|kind| *kind != '}') {
            if kind == '@' {
                align = 16;
                ty.push_str("_Alignas(16) ");
                continue;
            }
            // a field knows its place only once its alignment is known
            let own = match kind {
                '{' if rest.as_str().starts_with('@') => 16,
                '{' => rest.as_str().split('}').next().unwrap().chars().map(natural).max().unwrap(),
                kind => natural(kind),
            };
            let offset = end.next_multiple_of(own);
            let inner = format!("{place}.m{offset}");
            let (field, bytes, member) = match kind {
                '{' => {
                    let (field, bytes, _, member) = self.of_struct(rest, &inner);
                    (field, bytes, member)
                }
                kind => {
                    let (field, bytes) = self.scalar(kind, &inner);
                    (field, bytes, c_type(kind).to_owned())
                }
            };
            write!(ty, "{member} m{offset}; ").unwrap();
            fields.push((offset, field));
            (end, align) = (offset + bytes, align.max(own));
        }
        let size = end.next_multiple_of(align);
        (KernelArg::Struct { size, align, fields }, size, align, ty + "}")
    }

    /// Adds an argument by its shape.
    fn add(&mut self, shape: &str, is_struct: bool) {
        let place = format!("a{}", self.args.len());
        let (arg, ty, size) = match is_struct {
            false => {
                let kind = shape.chars().next().unwrap();
                (self.scalar(kind, &place).0, c_type(kind).to_owned(), None)
            }
            true => {
                let (arg, size, align, ty) = self.of_struct(&mut shape.chars(), &place);
                (arg, ty, Some((size, align)))
            }
        };
        self.args.push(arg);
        self.types.push(ty);
        self.sizes.push(size);
    }
}

/// The C type of a scalar.
fn c_type(kind: char) -> &'static str {
    match kind {
        'b' => "int8_t",
        'h' => "int16_t",
        'i' => "int32_t",
        'l' => "int64_t",
        'f' => "float",
        'd' => "double",
        'p' => "void*",
        't' => "DLDataType",
        _ => "DLDevice",
    }
}

/// The alignment of a scalar.
fn natural(kind: char) -> u32 {
    match kind {
        'b' => 1,
        'h' | 't' => 2,
        'i' | 'f' | 'v' => 4,
        _ => 8,
    }
}

/// A kernel with scalars, and with a struct twice if it has a shape.
pub struct Case {
    pub name: String,
    pub shape: &'static str,
    pub args: Arguments,
}

/// Every struct, and none, after every number of scalars.
pub fn all() -> Vec<Case> {
    let all = SHAPES.split(' ').chain([""]).flat_map(|shape| BEFORE.iter().map(move |before| (shape, *before)));
    all.enumerate().map(|(number, (shape, before))| case(number, shape, before)).collect()
}

fn case(number: usize, shape: &'static str, (integers, floats): (usize, usize)) -> Case {
    let mut args = Arguments::default();
    let structs = |args: &mut Arguments| (!shape.is_empty()).then(|| args.add(shape, true));
    (0..integers.max(floats)).for_each(|i| {
        [("l", integers), ("d", floats)].into_iter().filter(|(_, count)| i < *count).for_each(|(kind, _)| {
            args.add(kind, false);
        });
    });
    structs(&mut args);
    ["b", "f"].into_iter().for_each(|kind| args.add(kind, false));
    structs(&mut args);
    ["i", "d", "l"].into_iter().for_each(|kind| args.add(kind, false));
    Case { name: format!("kernel{number}"), shape, args }
}

impl Case {
    pub fn kernel(&self, kernel: Kernel) -> Kernel {
        kernel.args(self.args.args.clone())
    }

    /// The kernel in C, with types of its own.
    pub fn source(&self) -> String {
        let (mut types, mut params) = (String::new(), Vec::new());
        for (number, ty) in self.args.types.iter().enumerate() {
            let name = format!("{}_{number}", self.name);
            writeln!(types, "typedef {ty} {name};").unwrap();
            params.push(format!("{name} a{number}"));
        }
        format!("{types}void {}({}) {{\n{}}}\n\n", self.name, params.join(", "), self.args.code)
    }
}
