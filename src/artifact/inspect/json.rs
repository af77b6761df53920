//! The inspector's findings, as JSON.

use serde_json::{Value, json};

use super::binary::{Binary, BinaryFunction, BinaryModule};

impl Binary {
    /// The contents as a JSON object with one field per field of the struct. `metadata` is an object, not a string.
    pub fn to_json(&self) -> String {
        let binary = json!({
            "format": self.format,
            "architecture": self.architecture,
            "linked": self.linked,
            "functions": self.functions.iter().map(function).collect::<Vec<_>>(),
            "has_context": self.has_context,
            "modules": self.modules.as_ref().map(|modules| modules.iter().map(module).collect::<Vec<_>>()),
            "needed_symbols": self.needed_symbols,
            "needed_tvm_ffi": self.needed_tvm_ffi.map(|version| version.to_string()),
            "needed_libraries": self.needed_libraries,
        });
        binary.to_string()
    }
}

fn function(function: &BinaryFunction) -> Value {
    json!({
        "name": function.name,
        "has_metadata": function.has_metadata,
        "has_doc": function.has_doc,
        "signature": function.signature,
        "metadata": function.metadata.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()),
        "doc": function.doc,
    })
}

fn module(module: &BinaryModule) -> Value {
    json!({ "kind": module.kind, "size": module.size, "imports": module.imports })
}
