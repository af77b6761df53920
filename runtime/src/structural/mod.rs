//! Structures: values compared, hashed, written and walked by the fields of their types, with variables that are bound
//! where they are defined. Also the paths to the places inside a value.
//! No header section: upstream has these in `extra/structural_*.cc`, `extra/serialization.cc` and
//! `extra/visit_error_context.cc`.

mod content;
mod equal;
mod facts;
mod globals;
mod graph;
mod hash;
mod key;
mod paths;
mod region;
mod shared;

use crate::type_table::Definition;

pub(crate) use globals::globals;

/// The built-in types of structures.
pub(crate) fn types() -> Vec<Definition> {
    let mut types = paths::types();
    types.extend(
        ["ffi.StructuralVisitor", "ffi.VisitErrorContext", "ffi.StructuralMutator"]
            .map(|key| Definition::new(key, "ffi.Object")),
    );
    types.extend(key::types());
    types
}
