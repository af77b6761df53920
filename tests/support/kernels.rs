//! Kernels by name: bodies, and C functions that note what they receive.

use std::cell::RefCell;
use std::ffi::c_void;

use tvm_ffi_codegen::runtime::Error;
use tvm_ffi_codegen::runtime::error::set_raised;
use tvm_ffi_codegen::{Body, DLDataType, Kernel};

use super::{by_convention, written};

pub const F32: DLDataType = DLDataType::FLOAT32;

/// Part of what a kernel received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Noted {
    Word(u64),
    /// The object at an address, in printed form.
    Text(String),
}

impl PartialEq<u64> for Noted {
    fn eq(&self, word: &u64) -> bool {
        *self == Noted::Word(*word)
    }
}

impl From<String> for Noted {
    fn from(text: String) -> Self {
        Noted::Text(text)
    }
}

thread_local! {
    static RECEIVED: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
}

/// Notes what a native kernel received.
pub fn note(what: impl IntoIterator<Item = Noted>) {
    RECEIVED.with_borrow_mut(|all| all.extend(what));
}

/// Notes plain words.
pub fn receive(words: impl IntoIterator<Item = u64>) {
    note(words.into_iter().map(Noted::Word));
}

pub fn take_received() -> Vec<Noted> {
    RECEIVED.take()
}

/// A body for tests: its name, and the function that builds it. The comment of each one is its signature.
pub type NamedBody = (&'static str, fn(&Body<'_>));

pub const BODIES: &[NamedBody] = &[
    // (x: Tensor([n]), y: Tensor([n]))
    ("add_one", |b| {
        let (x, y) = (b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], x.load([i]) + 1));
    }),
    // (a: float32, x: Tensor([n]), y: Tensor([n]))
    ("saxpy", |b| {
        let (a, x, y) = (b.arg("a"), b.tensor("x"), b.tensor("y"));
        b.for_range(0, b.dim("n"), |i| y.store([i], a * x.load([i]) + y.load([i])));
    }),
    // (x: Tensor([n], float64)) -> float64
    ("sum", |b| {
        let x = b.tensor("x");
        b.ret(b.fold(0, b.dim("n"), b.f64(0.0), |i, sum| sum + x.load([i])));
    }),
    // (a: T) -> T
    ("echo", |b| b.ret(b.arg("a"))),
    // (a: int64)
    ("raise", |b| b.raise("KeyError", "no {} here, nor {}", [b.arg("a"), b.arg("a") + 1])),
    // (s: EnvState("name")) -> handle
    ("state", |b| b.ret(b.arg("s"))),
    // (a: int64) -> int64
    ("ensure", |b| {
        b.ensure(b.arg("a").gt(0), "ValueError", "a has to be positive, got {}", [b.arg("a")]);
        b.ret(b.arg("a") * 2);
    }),
];

/// (x: Tensor([m, n]), y: Tensor([m, n])): each row adds up to 1
pub fn softmax(b: &Body<'_>) {
    let (x, y) = (b.tensor("x"), b.tensor("y"));
    let (m, n) = (x.size(0), x.size(1));
    b.for_range(0, m, |i| {
        b.if_(n.gt(0), || {
            let max = b.fold(1, n, x.load([i, b.i64(0)]), |j, max| max.max(x.load([i, j])));
            let sum = b.fold(0, n, b.f64(0.0).cast(max.ty()), |j, sum| {
                let e = (x.load([i, j]) - max).exp();
                y.store([i, j], e);
                sum + e
            });
            b.for_range(0, n, |j| y.store([i, j], y.load([i, j]) / sum));
        });
    });
}

/// (a: Tensor([m, k], float32), b: Tensor([k, n], float32), c: Tensor([m, n], float32))
pub fn matmul(b: &Body<'_>) {
    let (x, y, z) = (b.tensor("a"), b.tensor("b"), b.tensor("c"));
    b.for_range(0, b.dim("m"), |i| {
        b.for_range(0, b.dim("n"), |j| {
            let sum = b.fold(0, b.dim("k"), b.f32(0.0), |k, sum| sum + x.load([i, k]) * y.load([k, j]));
            z.store([i, j], sum);
        });
    });
}

pub fn body(name: &str) -> Option<Kernel> {
    BODIES.iter().find(|(known, _)| *known == name).map(|(_, build)| Kernel::body(build))
}

/// A native kernel: its symbol and its address.
pub type NativeKernel = (&'static str, fn() -> *const u8);

/// Functions for `symbol` and `address`. The comment of each one is its signature.
pub const NATIVE: &[NativeKernel] = &[
    ("native_add_one", || add_one as *const u8),
    ("native_sum", || sum as *const u8),
    ("native_nothing", || nothing as *const u8),
    ("native_status", || status as *const u8),
    ("native_raise", || raise as *const u8),
    ("native_int8", || int8 as *const u8),
    ("native_int16", || int16 as *const u8),
    ("native_int32", || int32 as *const u8),
    ("native_int64", || int64 as *const u8),
    ("native_uint8", || uint8 as *const u8),
    ("native_uint16", || uint16 as *const u8),
    ("native_uint32", || uint32 as *const u8),
    ("native_uint64", || uint64 as *const u8),
    ("native_float32", || float32 as *const u8),
    ("native_float64", || float64 as *const u8),
    ("native_bool", || bool_ as *const u8),
    ("native_handle", || handle as *const u8),
    ("native_int8_status", || beside_status::int8 as *const u8),
    ("native_uint16_status", || beside_status::uint16 as *const u8),
    ("native_int32_status", || beside_status::int32 as *const u8),
    ("native_int64_status", || beside_status::int64 as *const u8),
    ("native_float32_status", || beside_status::float32 as *const u8),
    ("native_float64_status", || beside_status::float64 as *const u8),
    ("native_bool_status", || beside_status::bool_ as *const u8),
    ("native_handle_status", || beside_status::handle as *const u8),
    ("native_dtype_status", || beside_status::dtype as *const u8),
    ("native_device_status", || beside_status::device as *const u8),
    ("native_receive2", || receive2 as *const u8),
    ("native_receive3", || receive3 as *const u8),
    ("native_receive4", || receive4 as *const u8),
    ("native_stated", || stated as *const u8),
    ("native_stated_structs", || stated_structs as *const u8),
    ("native_stated_result", || stated_result as *const u8),
    ("native_stated_status", || stated_status as *const u8),
    ("native_mixed", || mixed as *const u8),
    ("native_write", || written::write as *const u8),
    ("native_write_packed", || written::write_packed as *const u8),
    ("native_receive8", || receive8 as *const u8),
    ("native_dltensor", || by_convention::dltensor as *const u8),
    ("native_dltensor2", || by_convention::dltensor2 as *const u8),
    ("native_note_flat", || by_convention::note_flat as *const u8),
    ("native_note_dltensor", || by_convention::note_dltensor as *const u8),
    ("native_note_memref", || by_convention::note_memref as *const u8),
    ("native_note_packed", || by_convention::note_packed as *const u8),
    ("native_fill_flat", || by_convention::fill_flat as *const u8),
    ("native_fill_dltensor", || by_convention::fill_dltensor as *const u8),
    ("native_fill_memref", || by_convention::fill_memref as *const u8),
];

pub fn native(name: &str) -> Option<*const u8> {
    NATIVE.iter().find(|(known, _)| *known == name).map(|(_, address)| address().cast())
}

/// (x: Tensor([n], float32), y: Tensor([n], float32))
unsafe extern "C" fn add_one(x: *const f32, y: *mut f32, n: i64) {
    for i in 0..n as usize {
        // SAFETY: both tensors have `n` elements, and are accessed without an alignment, because the signature may
        // require none.
        unsafe { y.add(i).write_unaligned(x.add(i).read_unaligned() + 1.0) };
    }
}

/// (x: Tensor([n], float32)) -> float32
unsafe extern "C" fn sum(x: *const f32, n: i64) -> f32 {
    // SAFETY: the tensor has `n` elements.
    (0..n as usize).fold(0.0, |sum, i| sum + unsafe { x.add(i).read() })
}

/// ()
extern "C" fn nothing() {
    receive([42]);
}

/// (code: int32), returns a status
extern "C" fn status(code: i32) -> i32 {
    code
}

/// (code: int32), returns a status after raising
extern "C" fn raise(code: i32) -> i32 {
    set_raised(Error::new("KeyError", "the kernel's own words"));
    code
}

macro_rules! returning {
    ($($name:ident -> $ty:ty;)*) => {
        $(
            /// (a: int64)
            extern "C" fn $name(a: i64) -> $ty {
                a as $ty
            }
        )*
    };
}
/// The same kernels, returning a status: (a: int64, status: int32)
mod beside_status {
    use std::ffi::c_void;

    macro_rules! writing {
        ($($name:ident -> $ty:ty;)*) => {
            $(
                pub unsafe extern "C" fn $name(a: i64, status: i32, result: *mut $ty) -> i32 {
                    // a status of 100 stands for success without a result
                    if status != 100 {
                        // SAFETY: the wrapper gives a place for a value of this type.
                        unsafe { result.write(a as $ty) };
                    }
                    status % 100
                }
            )*
        };
    }
    writing! {
        int8 -> i8;
        uint16 -> u16;
        int32 -> i32;
        int64 -> i64;
        float32 -> f32;
        float64 -> f64;
        bool_ -> u8;
        handle -> *mut c_void;
        dtype -> u32;
        device -> u64;
    }
}

returning! {
    int8 -> i8;
    int16 -> i16;
    int32 -> i32;
    int64 -> i64;
    uint8 -> u8;
    uint16 -> u16;
    uint32 -> u32;
    uint64 -> u64;
    float32 -> f32;
    float64 -> f64;
    bool_ -> u8;
    handle -> *mut c_void;
}

extern "C" fn receive2(a: u64, b: u64) {
    receive([a, b]);
}

/// The parameters of a kernel with `args=[...]`.
#[allow(clippy::too_many_arguments)]
extern "C" fn stated(x: u64, n: i32, device_id: i32, k: u8, f: f32, half: u16, stride: i16, null: u64) {
    receive([x, n as u64, device_id as u64, k.into(), f.to_bits().into(), half.into(), stride as u64, null]);
}

#[repr(C)]
struct Pair {
    first: i32,
    second: i32,
}

#[repr(C)]
struct Small {
    first: u8,
    second: i16,
}

#[repr(C)]
struct Pointer {
    address: u64,
}

extern "C" fn stated_structs(pair: Pair, small: Small, n: i64, pointer: Pointer) {
    let Small { first, second } = small;
    receive([pair.first as u64, pair.second as u64, first.into(), second as u64, n as u64, pointer.address]);
}

extern "C" fn stated_result(result: u64, n: i8) {
    receive([(result != 0).into(), n as u64]);
}

unsafe extern "C" fn stated_status(n: i32, result: *mut i64) -> i32 {
    // SAFETY: `result` is the place for the result.
    unsafe { *result = i64::from(n) + 1 };
    i32::from(n == 7)
}

extern "C" fn receive3(a: u64, b: u64, c: u64) {
    receive([a, b, c]);
}

extern "C" fn receive4(a: u64, b: u64, c: u64, d: u64) {
    receive([a, b, c, d]);
}

/// (a: int8, b: uint8, c: int16, d: uint16, e: float32, f: bool, g: float64, h: int32, i: uint32)
#[allow(clippy::too_many_arguments)]
extern "C" fn mixed(a: i8, b: u8, c: i16, d: u16, e: f32, f: u8, g: f64, h: i32, i: u32) {
    let (a, c, h) = (i64::from(a) as u64, i64::from(c) as u64, i64::from(h) as u64);
    receive([a, b.into(), c, d.into(), e.to_bits().into(), f.into(), g.to_bits(), h, i.into()]);
}

/// (x: Tensor([m, n], T, strides=[s, t]), n: int64) as a memref and a number
#[allow(clippy::too_many_arguments)]
extern "C" fn receive8(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) {
    receive([a, b, c, d, e, f, g, h]);
}
