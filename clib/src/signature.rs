//! Signatures.

use codegen::diagnostic::Diagnostic;
use codegen::runtime as tvm_ffi;
use codegen::runtime::{Obj, Object, Result};
use codegen::spec::{Part, SourceLocation};
use codegen::{Signature, metadata};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{failure, other, raised};
use crate::structure::structure;

/// A signature.
#[derive(Object)]
#[object(key = "tvm_ffi_codegen.Signature", crate = tvm_ffi)]
pub struct SignatureObject {
    #[object(skip)]
    pub signature: Signature,
}

/// A part of a signature with its location in the caller's source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlacedPart {
    /// `signature`, `result`, a parameter's name, or `where[0]`.
    part: String,
    file: String,
    line: u32,
    function: String,
}

/// Parses a signature. `locations` is a JSON list of `{"part", "file", "line", "function"}`, or an empty string. A part
/// is `signature`, `result`, the name of a parameter, or `where[0]`.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_signature(text: &str, locations: &str) -> Result<Obj<SignatureObject>> {
    let read = text.parse::<Signature>();
    let mut signature = read.map_err(|error| raised(&Diagnostic::of(&error).in_text(text)))?;
    if !locations.is_empty() {
        let locations: Vec<PlacedPart> =
            serde_json::from_str(locations).map_err(|error| other(format!("locations: {error}")))?;
        let locations = locations.iter().map(|location| Ok((part(&signature, &location.part)?, location_of(location))));
        let locations = locations.collect::<Result<Vec<_>>>()?;
        signature = signature.with_locations(locations).map_err(failure)?;
    }
    Obj::new(SignatureObject { signature })
}

fn location_of(location: &PlacedPart) -> SourceLocation {
    SourceLocation::new(&location.file, location.line, &location.function)
}

/// The locations of a signature's parts, as `tfc_signature` takes them.
pub fn locations(signature: &Signature) -> Vec<Value> {
    let params = signature.params().iter().enumerate().map(|(index, param)| (Part::Param(index), param.name.clone()));
    let constraints =
        (0..signature.constraints().len()).map(|index| (Part::Constraint(index), format!("where[{index}]")));
    let whole = [(Part::Signature, "signature".to_owned()), (Part::Result, "result".to_owned())];
    let located = whole.into_iter().chain(params).chain(constraints).filter_map(|(part, name)| {
        let at = signature.location(part)?;
        // other parts have the signature's location unless they have their own
        if part != Part::Signature && signature.location(Part::Signature) == Some(at) {
            return None;
        }
        Some(json!({ "part": name, "file": at.file, "line": at.line, "function": at.function }))
    });
    located.collect()
}

fn part(signature: &Signature, name: &str) -> Result<Part> {
    if let Some(number) = signature.params().iter().position(|param| param.name == name) {
        return Ok(Part::Param(number));
    }
    let number = name.strip_prefix("where[").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
    let constraint = number.filter(|number| *number < signature.constraints().len());
    match name {
        "signature" => Ok(Part::Signature),
        "result" => Ok(Part::Result),
        _ => constraint.map(Part::Constraint).ok_or_else(|| {
            other(format!(
                "locations: `{name}` isn't a part of `{signature}`; parts are `signature`, `result`, \
                `where[0]`, and parameters"
            ))
        }),
    }
}

/// The parts of a signature as JSON. `text`, `name`, `symbol`, `symbols`, `parameters` and `type_schema` are as in a
/// library's metadata. `arity`, `returns` and `where` follow. `structure` has its types, dimensions and constraints as
/// [`structure`] writes them.
#[tvm_ffi::export(crate = tvm_ffi)]
fn tfc_signature_json(signature: &Obj<SignatureObject>) -> Result<String> {
    let signature = &signature.signature;
    let metadata: Value = serde_json::from_str(&metadata(signature)).map_err(failure)?;
    let (fewest, most) = signature.arity();
    let json = json!({
        "text": signature.to_string(),
        "name": signature.name(),
        "symbol": signature.symbol(),
        "dim_vars": signature.dim_vars(),
        "parameters": metadata["parameters"],
        "type_schema": metadata["type_schema"],
        "arity": [fewest, most],
        "returns": signature.ret().map(ToString::to_string),
        "where": signature.constraints().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "structure": structure(signature),
    });
    Ok(json.to_string())
}
