//! The host IR: a small typed SSA language with pointers, in which wrappers and bodies are expressed.
//!
//! It knows neither the TVM FFI ABI nor any backend. You build a [`Module`] with [`FunctionBuilder`], or read
//! it from text with `FromStr`. `Display` prints it and [`verify`] checks it. A backend compiles it, or the interpreter
//! runs it (`interp`, with feature `interpreter`).
//!
//! For backends and experts, and [outside of semver](crate#stability). Functions, values and other entities are indices
//! into maps of the crate `cranelift-entity`, which is small and doesn't depend on Cranelift's code generator. This
//! module re-exports the maps for code that works with a [`Module`].

mod builder;
mod inline;
mod inst;
#[cfg(feature = "interpreter")]
pub mod interp;
mod lines;
mod module;
mod structured;
#[cfg(all(test, feature = "_engine"))]
pub(crate) mod testing;
mod text;
mod types;
mod verify;

pub use builder::FunctionBuilder;
pub use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
pub use inst::{
    BinaryOp, Block, BlockCall, ConvertOp, DataRef, FloatCC, FuncRef, Hint, Inst, IntCC, LocationRef, MAX_SAME_BYTES,
    MemFlags, Op, SigRef, StackSlot, Terminator, UnaryOp, Value,
};
pub use module::{
    BlockData, Data, DataKind, FuncDecl, Function, HOST_ENDIANNESS, InstData, Linkage, LocationData, Module, SlotData,
    ValueData, ValueDef,
};
pub(crate) use structured::{Emitter, Operand, Val, Var};
pub use text::{DisplayFunction, ParseError};
pub use types::{AbiParam, Extension, FuncSig, PointerFacts, StructLayout, Type};
pub use verify::{Problem, ProblemLocation, Rule, VerifiedModule, VerifyError, verify};
