//! Functions of typed parameters: made of closures, with the checks, messages and descriptions that upstream's typed functions have.
//! `schema` says what a type is called, `function` makes functions, `export` is behind the macro of that name.
//! No header section: upstream's are `TypeTraits` and `FunctionInfo`, in C++.

pub(crate) mod export;
mod function;
mod schema;

pub use function::{ReturnValue, TypedFunction};
pub use schema::TypeSchema;
pub(crate) use schema::metadata;
