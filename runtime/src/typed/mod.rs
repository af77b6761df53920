//! Functions with typed parameters, created from closures. They have the same checks, messages and descriptions as
//! upstream's typed functions. `schema` defines the names of types, `function` creates functions, and `export` is the
//! code that the macro of that name calls.
//! No header section: upstream's counterparts are `TypeTraits` and `FunctionInfo`, in C++.

pub(crate) mod export;
mod function;
mod schema;

pub use function::{ReturnValue, TypedFunction};
pub use schema::TypeSchema;
pub(crate) use schema::metadata;
