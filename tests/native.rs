//! Native kernels at an address, with up to 40 arguments of every type. That is more than fit in registers.

mod cases;
mod structs;

use std::ffi::c_void;

use tvm_ffi_codegen::{Kernel, ScalarType};

use crate::support::exec::{Prepared, Program};
use crate::support::kernels::receive;
use crate::support::sig;
use crate::support::value::{Call, Value};

/// A value as the 64 bits that the tests compare.
trait Word {
    fn word(self) -> u64;
}

macro_rules! words {
    ($($ty:ty: $convert:expr;)*) => {$(
        impl Word for $ty {
            fn word(self) -> u64 {
                let convert: fn($ty) -> u64 = $convert;
                convert(self)
            }
        }
    )*};
}
words! {
    i8: |v| i64::from(v) as u64;
    i16: |v| i64::from(v) as u64;
    i32: |v| i64::from(v) as u64;
    i64: |v| v as u64;
    u8: u64::from;
    u16: u64::from;
    u32: u64::from;
    u64: |v| v;
    f32: |v| u64::from(v.to_bits());
    f64: |v| v.to_bits();
    *mut c_void: |v| v.expose_provenance() as u64;
}

/// For each prefix of the list, creates a C function that records its arguments.
macro_rules! prefixes {
    ($list:ident; [$($done:ident: $ty:ty),*];) => {
        $list.push(prefixes!(@function [$($done: $ty),*]));
    };
    ($list:ident; [$($done:ident: $ty:ty),*]; $next:ident: $next_ty:ty, $($rest:tt)*) => {
        $list.push(prefixes!(@function [$($done: $ty),*]));
        prefixes!($list; [$($done: $ty,)* $next: $next_ty]; $($rest)*);
    };
    (@function [$($done:ident: $ty:ty),*]) => {{
        #[allow(clippy::too_many_arguments)]
        extern "C" fn kernel($($done: $ty),*) {
            receive([$($done.word()),*]);
        }
        kernel as *const u8
    }};
}

fn kernels() -> Vec<*const u8> {
    let mut list = Vec::new();
    prefixes! {
        list; [];
        a0: i8, a1: u8, a2: f32, a3: i16, a4: u16, a5: f64, a6: i32, a7: u32, a8: i64, a9: u64, a10: u8, a11: *mut c_void,
        b0: i8, b1: u8, b2: f32, b3: i16, b4: u16, b5: f64, b6: i32, b7: u32, b8: i64, b9: u64, b10: u8, b11: *mut c_void,
        c0: i8, c1: u8, c2: f32, c3: i16, c4: u16, c5: f64, c6: i32, c7: u32, c8: i64, c9: u64, c10: u8, c11: *mut c_void,
        d0: i8, d1: u8, d2: f32, d3: i16,
    }
    list
}

const TYPES: [ScalarType; 12] = [
    ScalarType::Int8,
    ScalarType::UInt8,
    ScalarType::Float32,
    ScalarType::Int16,
    ScalarType::UInt16,
    ScalarType::Float64,
    ScalarType::Int32,
    ScalarType::UInt32,
    ScalarType::Int64,
    ScalarType::UInt64,
    ScalarType::Bool,
    ScalarType::Handle,
];

/// The argument at position `i`, and the word that a kernel records for it.
fn argument(i: usize) -> (Value, u64) {
    let n = i as i64;
    let int = |v: i64| (Value::int(v), v as u64);
    match TYPES[i % TYPES.len()] {
        ScalarType::Int8 => int(-128 + n),
        ScalarType::Int16 => int(-32768 + n),
        ScalarType::Int32 => int(i64::from(i32::MIN) + n),
        ScalarType::Int64 => int(i64::MIN + n),
        ScalarType::UInt8 => int(255 - n),
        ScalarType::UInt16 => int(65535 - n),
        ScalarType::UInt32 => int(i64::from(u32::MAX) - n),
        ScalarType::UInt64 => int(-n),
        ScalarType::Float32 => (Value::Float(n as f64 + 0.5), u64::from((n as f32 + 0.5).to_bits())),
        ScalarType::Float64 => (Value::Float(-0.25 - n as f64), (-0.25 - n as f64).to_bits()),
        ScalarType::Bool => (Value::int(256 * n), u64::from(i != 0)),
        ScalarType::Handle => (Value::Raw(4, 0xfff0_0000_0000_0000 + i as u64), 0xfff0_0000_0000_0000 + i as u64),
        other => unreachable!("the test knows no {other}"),
    }
}

#[test]
fn up_to_forty_arguments_of_every_type() {
    let kernels = kernels();
    assert_eq!(kernels.len(), 41);
    for (count, address) in kernels.into_iter().enumerate() {
        let params: Vec<String> = (0..count).map(|i| format!("p{i}: {}", TYPES[i % TYPES.len()])).collect();
        let signature = sig(&format!("f({})", params.join(", ")));
        let program = Program::new(signature, Kernel::address(address)).unwrap();
        let (values, words): (Vec<_>, Vec<_>) = (0..count).map(argument).unzip();
        let outcome = Prepared::new(&program).unwrap().run(&Call::new(values)).unwrap();
        assert_eq!((outcome.code, outcome.error), (Ok(0), None));
        assert_eq!(outcome.received, words, "{count} arguments");
    }
}
