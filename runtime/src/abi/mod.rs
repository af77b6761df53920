//! Every C type and constant of the TVM FFI and DLPack headers, laid out as in C. Names are the C names, for comparison
//! with the headers. This module has no behaviour. Sizes and offsets are asserted at compile time.

mod any;
mod cells;
mod device;
mod dlpack;
mod object;
mod reflection;
pub mod symbol;
mod type_index;

pub use any::{TVMFFIAny, TVMFFIAnyValue, TVMFFIByteArray, TVMFFIVersion};
pub use cells::*;
pub use device::{DLDevice, DLDeviceType, ParseDeviceError};
pub use dlpack::*;
pub use object::*;
pub use reflection::*;
pub use type_index::TypeIndex;

// The layouts below assume the 64-bit targets that this crate supports.
const _: () = assert!(size_of::<usize>() == 8);
