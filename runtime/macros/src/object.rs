//! `derive(Object)`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Field, Fields, LitStr, Path, Result};

use crate::options::{doc, krate};

/// The arguments of the struct's attribute.
#[derive(Default)]
struct TypeOptions {
    key: Option<LitStr>,
    default: bool,
    krate: Option<Path>,
}

/// The arguments of a field's attribute.
#[derive(Default)]
struct FieldOptions {
    parent: bool,
    skip: bool,
    name: Option<LitStr>,
    default: Option<Expr>,
}

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let options = type_options(&input.attrs)?;
    let key = options
        .key
        .ok_or_else(|| Error::new_spanned(&input.ident, "state the type key: `#[object(key = \"my.Type\")]`"))?;
    let is_plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    if key.value().is_empty() || !key.value().chars().all(is_plain) {
        return Err(Error::new_spanned(key, "a type key is made of printable ASCII characters without quotes"));
    }
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a type key is that of one type: generic types can't be objects",
        ));
    }
    let krate = krate(options.krate.as_ref());
    let is_c = is_repr_c(&input.attrs)?;
    let fields = fields(input)?;
    let mut parent = None;
    let mut statements = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let options = field_options(&field.attrs)?;
        if options.parent {
            if index != 0 || !is_c {
                return Err(Error::new_spanned(field, "the parent is the first field of a `#[repr(C)]` struct"));
            }
            parent = Some(&field.ty);
        } else if !options.skip {
            statements.push(statement(field, &options, &krate)?);
        }
    }
    let ident = &input.ident;
    let (parent, check) = match (parent, fields.first().and_then(|field| field.ident.as_ref())) {
        (Some(parent), Some(field)) => (
            quote!(#parent),
            quote! {
                const _: () = assert!(
                    ::std::mem::offset_of!(#ident, #field) == 0
                        && #krate::__private::value_offset::<#ident>() == #krate::__private::value_offset::<#parent>(),
                    "the fields of a type are aligned as those of its parent",
                );
            },
        ),
        _ => (quote!(#krate::define::Root), quote!()),
    };
    let doc = doc(&input.attrs);
    let creator = options.default.then(|| quote!(registration.creator();));
    Ok(quote! {
        #check

        // SAFETY: fields are registered with their own types and offsets. The assertion above checks that a parent is
        // the first field.
        unsafe impl #krate::Object for #ident {
            type Parent = #parent;

            const TYPE_KEY: &'static str = #key;

            fn slot() -> &'static #krate::__private::TypeSlot {
                static SLOT: #krate::__private::TypeSlot = #krate::__private::TypeSlot::new();
                &SLOT
            }

            fn describe(registration: &mut #krate::__private::Registration<Self>) -> #krate::Result<()> {
                #[allow(unused_imports)]
                use #krate::__private::NoMethods as _;

                registration.doc(#doc);
                #creator
                #(#statements)*
                (&#krate::__private::MethodsOf::<Self>::new()).state(registration);
                Ok(())
            }
        }
    })
}

/// The statement that registers one field.
fn statement(field: &Field, options: &FieldOptions, krate: &TokenStream) -> Result<TokenStream> {
    let ident = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "fields have names"))?;
    let (ty, doc) = (&field.ty, doc(&field.attrs));
    let name =
        options.name.as_ref().map_or_else(|| ident.to_string().trim_start_matches("r#").to_owned(), LitStr::value);
    let default = match &options.default {
        Some(value) => quote!(::std::option::Option::Some(#krate::Any::from(#value))),
        None => quote!(::std::option::Option::None),
    };
    Ok(quote! {
        // SAFETY: the type and the offset are the field's.
        unsafe {
            registration.field::<#ty>(
                #name,
                ::std::mem::offset_of!(Self, #ident),
                #krate::__private::FieldOptions { doc: #doc, default: #default },
            );
        }
    })
}

fn fields(input: &DeriveInput) -> Result<Vec<&Field>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().collect()),
            Fields::Unit => Ok(Vec::new()),
            Fields::Unnamed(_) => Err(Error::new_spanned(&input.ident, "fields of an object have names")),
        },
        _ => Err(Error::new_spanned(&input.ident, "objects are structs")),
    }
}

fn type_options(attributes: &[Attribute]) -> Result<TypeOptions> {
    let mut options = TypeOptions::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("object")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("key") {
                options.key = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("default") {
                options.default = true;
            } else if meta.path.is_ident("crate") {
                options.krate = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("a type has `key`, `default` and `crate`"));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

fn field_options(attributes: &[Attribute]) -> Result<FieldOptions> {
    let mut options = FieldOptions::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("object")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("parent") {
                options.parent = true;
            } else if meta.path.is_ident("skip") {
                options.skip = true;
            } else if meta.path.is_ident("name") {
                options.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("default") {
                options.default = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("a field has `parent`, `skip`, `name` and `default`"));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

/// True if the struct is `repr(C)`, so its fields are in declaration order. Refuses `repr(packed)`, since that may
/// misalign fields.
fn is_repr_c(attributes: &[Attribute]) -> Result<bool> {
    let mut is_c = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            is_c |= meta.path.is_ident("C");
            if meta.path.is_ident("packed") {
                return Err(meta.error("reflection gives references to fields, which a packed struct misaligns"));
            }
            if meta.input.peek(syn::token::Paren) {
                let _arguments: proc_macro2::Group = meta.input.parse()?;
            }
            Ok(())
        })?;
    }
    Ok(is_c)
}
