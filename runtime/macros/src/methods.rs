//! The attribute `methods`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, ReceiverKind, Result, Visibility};

use crate::options::{Options, doc, take};
use crate::params;

pub fn expand(args: TokenStream, input: TokenStream) -> Result<TokenStream> {
    let krate = Options::parse(args, &[])?.krate();
    let mut block: ItemImpl = syn::parse2(input)?;
    if block.trait_.is_some() || !block.generics.params.is_empty() {
        return Err(Error::new_spanned(&block.self_ty, "`methods` is for an `impl` of a type, without parameters"));
    }
    let ty = block.self_ty.clone();
    let mut statements = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else { continue };
        let (skip, init) = (take(&mut function.attrs, "skip"), take(&mut function.attrs, "init"));
        if !skip && (init || matches!(function.vis, Visibility::Public(_))) {
            statements.push(statement(function, init, &krate)?);
        }
    }
    Ok(quote! {
        #block

        impl #krate::__private::Methods for #ty {
            fn methods(registration: &mut #krate::__private::Registration<Self>) {
                #(#statements)*
            }
        }
    })
}

/// The statement that registers one method.
fn statement(function: &ImplItemFn, init: bool, krate: &TokenStream) -> Result<TokenStream> {
    let signature = &function.sig;
    params::check(signature)?;
    let (callee, doc) = (&signature.ident, doc(&function.attrs));
    let name = callee.to_string();
    let params::Typed { params, args } = params::typed(signature, krate)?;
    let Some(receiver) = signature.receiver() else {
        return Ok(if init {
            quote! {
                registration.init(#doc, |#(#params),*| {
                    #krate::__private::InitResult::<Self>::into_obj(Self::#callee(#(#args),*))
                });
            }
        } else {
            quote!(registration.static_method(#name, #doc, |#(#params),*| Self::#callee(#(#args),*));)
        });
    };
    if init {
        return Err(Error::new_spanned(receiver, "a constructor has no object yet"));
    }
    if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) {
        return Err(Error::new_spanned(receiver, "objects are shared: a method takes `&self`"));
    }
    Ok(quote! {
        registration.method(#name, #doc, |object: #krate::Obj<Self>, #(#params),*| Self::#callee(&object, #(#args),*));
    })
}
