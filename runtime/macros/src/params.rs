//! The closure that calls a function. It takes owned arguments, and borrows them for parameters that are references.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, FnArg, Result, Signature, Type};

/// The closure `|a: A, b: B| callee(a, &b)`.
pub struct Typed {
    /// Its parameters.
    pub params: Vec<TokenStream>,
    /// The arguments that it passes to the function.
    pub args: Vec<TokenStream>,
}

/// Refuses functions that can't be called through the ABI.
pub fn check(signature: &Signature) -> Result<()> {
    let generic = signature.generics.params.iter().find(|param| !matches!(param, syn::GenericParam::Lifetime(_)));
    if let Some(param) = generic {
        return Err(Error::new_spanned(param, "a generic function can't be called through the ABI"));
    }
    for (what, is_there) in [
        ("an async function", signature.asyncness.is_some()),
        (
            "an unsafe function, which callers could call without `unsafe`,",
            matches!(signature.safety, syn::Safety::Unsafe(_)),
        ),
        ("a variadic function", signature.variadic.is_some()),
    ] {
        if is_there {
            return Err(Error::new_spanned(&signature.ident, format!("{what} can't be called through the ABI")));
        }
    }
    Ok(())
}

/// The parameters of a function, without its receiver.
pub fn typed(signature: &Signature, krate: &TokenStream) -> Result<Typed> {
    let mut typed = Typed { params: Vec::new(), args: Vec::new() };
    let params = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        FnArg::Receiver(_) => None,
    });
    for (index, param) in params.enumerate() {
        let name = format_ident!("argument_{index}");
        let (ty, arg) = match &*param.ty {
            Type::Reference(reference) if reference.mutability.is_some() => {
                return Err(Error::new_spanned(reference, "an argument can't be changed: take a value"));
            }
            Type::Reference(reference) => (owned(&reference.elem, krate), quote!(&#name)),
            ty => (quote!(#ty), quote!(#name)),
        };
        typed.params.push(quote!(#name: #ty));
        typed.args.push(arg);
    }
    Ok(typed)
}

/// The owned type that a reference to `ty` borrows from.
fn owned(ty: &Type, krate: &TokenStream) -> TokenStream {
    match ty {
        Type::Path(path) if path.path.is_ident("str") => quote!(::std::string::String),
        Type::Slice(_) => quote!(#krate::Bytes),
        ty => quote!(#ty),
    }
}
