//! Arguments of macros, and doc comments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Path, Result};

/// Arguments that several macros take.
#[derive(Default)]
pub struct Options {
    pub name: Option<LitStr>,
    pub packed: bool,
    krate: Option<Path>,
}

impl Options {
    /// Parses the arguments of an attribute macro. `allowed` are those that it accepts in addition to `crate`.
    pub fn parse(args: TokenStream, allowed: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("crate") {
                options.krate = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("name") && allowed.contains(&"name") {
                options.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("packed") && allowed.contains(&"packed") {
                options.packed = true;
            } else {
                return Err(meta.error("no such argument"));
            }
            Ok(())
        });
        parser.parse2(args)?;
        Ok(options)
    }

    /// The path of the runtime's crate.
    pub fn krate(&self) -> TokenStream {
        krate(self.krate.as_ref())
    }
}

/// The path of the runtime's crate.
pub fn krate(path: Option<&Path>) -> TokenStream {
    path.map_or_else(|| quote!(::tvm_ffi_runtime), |path| quote!(#path))
}

/// The doc comment among attributes, without each line's leading space.
pub fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else { return None };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else { return None };
        let text = text.value();
        Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Removes a marker attribute, and returns whether it was present.
pub fn take(attributes: &mut Vec<Attribute>, name: &str) -> bool {
    let before = attributes.len();
    attributes.retain(|attribute| !attribute.path().is_ident(name));
    attributes.len() < before
}
