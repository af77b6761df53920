//! The attribute `export`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, ItemFn, Result};

use crate::options::{Options, doc};
use crate::params;

pub fn expand(args: TokenStream, input: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(args, &["name", "packed"])?;
    let function: ItemFn = syn::parse2(input)?;
    let krate = options.krate();
    let signature = &function.sig;
    params::check(signature)?;
    let callee = &signature.ident;
    let name = options.name.as_ref().map_or_else(|| plain(&callee.to_string()), syn::LitStr::value);
    if name.is_empty() || name.contains('\0') {
        return Err(Error::new_spanned(callee, "a symbol's name is neither empty nor has a NUL in it"));
    }
    let (body, metadata) = if options.packed {
        if signature.inputs.len() != 1 {
            return Err(Error::new_spanned(callee, "a packed function takes one slice of views"));
        }
        (quote!(|args| #callee(args)), quote!(#krate::__private::packed_metadata()))
    } else {
        let params::Typed { params, args } = params::typed(signature, &krate)?;
        let typed = quote!(|#(#params),*| #callee(#(#args),*));
        (quote!(|args| #krate::__private::call(#name, &#typed, args)), quote!(#krate::__private::metadata_of(&#typed)))
    };
    let doc = doc(&function.attrs);
    let doc = (!doc.is_empty()).then(|| {
        symbol(&krate, "call_doc", &format!("__tvm_ffi__doc_{name}"), &quote!(|_args| Ok(#krate::Any::from(#doc))))
    });
    let call = symbol(&krate, "call", &format!("__tvm_ffi_{name}"), &body);
    let metadata =
        symbol(&krate, "call_metadata", &format!("__tvm_ffi__metadata_{name}"), &quote!(|_args| Ok(#metadata)));
    Ok(quote! {
        #function

        const _: () = {
            #call
            #metadata
            #doc
        };
    })
}

/// A C symbol with a function that runs `body`.
fn symbol(krate: &TokenStream, function: &str, name: &str, body: &TokenStream) -> TokenStream {
    let function = format_ident!("{function}");
    quote! {
        #[unsafe(export_name = #name)]
        unsafe extern "C" fn #function(
            _handle: *mut ::std::ffi::c_void,
            args: *const #krate::abi::TVMFFIAny,
            num_args: i32,
            result: *mut #krate::abi::TVMFFIAny,
        ) -> i32 {
            // SAFETY: the code that calls the symbol follows the calling convention of TVM FFI.
            unsafe { #krate::__private::run(args, num_args, result, #body) }
        }
    }
}

/// A name without the `r#` of raw identifiers.
fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}
