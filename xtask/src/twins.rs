//! The runtime's modules that have two implementations, one for its own runtime and one for an external one. Both must
//! have the same interface.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{FnArg, ImplItem, Item, Visibility};

use crate::command::root;

const SOURCES: &str = "runtime/src";

/// Items that exist only in the crate's own runtime: modules of an external runtime are C++ objects, which Rust code
/// can't create.
const BUNDLED_ONLY: &[&str] = &[
    "Module::builder",
    "Module::from_impl",
    "Module::lookup_from_imports",
    "Module::new",
    "Module::unload_when_unused",
    "ModuleBuilder",
    "ModuleImpl",
    "register_module_loader",
];

/// The twins: each module, and the file that replaces it.
fn twins() -> Vec<(String, PathBuf)> {
    let parsed = parse(&root().join(SOURCES).join("lib.rs"));
    let path = |attribute: &syn::Attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text.strip_prefix("cfg_attr")
            .and_then(|text| Some(text.split_once("path = \"")?.1.split_once('"')?.0.to_owned()))
    };
    let twin = |item: Item| match item {
        Item::Mod(module) => module.attrs.iter().find_map(path).map(|path| (module.ident.to_string(), path.into())),
        _ => None,
    };
    parsed.items.into_iter().filter_map(twin).collect()
}

fn parse(file: &Path) -> syn::File {
    syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The files of a directory and below it.
fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push(path),
        }
    }
}

/// The items that are visible outside their file, by name: whether they are `pub`, and their types.
#[derive(Default)]
struct Interface(BTreeMap<String, (bool, String)>);

impl Interface {
    fn of(files: &[PathBuf]) -> Self {
        let mut interface = Self::default();
        for file in files {
            parse(file).items.iter().for_each(|item| interface.item(item));
        }
        interface
    }

    fn add(&mut self, visibility: &Visibility, name: String, types: String) {
        let is_public = matches!(visibility, Visibility::Public(_));
        if is_public || visibility.to_token_stream().to_string() == "pub (crate)" {
            self.0.insert(name, (is_public, types));
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Fn(function) => self.add(&function.vis, function.sig.ident.to_string(), types(&function.sig)),
            Item::Const(item) => self.add(&item.vis, item.ident.to_string(), item.ty.to_token_stream().to_string()),
            Item::Struct(item) => {
                self.add(&item.vis, item.ident.to_string(), item.generics.to_token_stream().to_string());
            }
            Item::Trait(item) => {
                self.add(&item.vis, item.ident.to_string(), item.generics.to_token_stream().to_string());
            }
            Item::Impl(block) if block.trait_.is_none() => {
                let of = block.self_ty.to_token_stream();
                for item in &block.items {
                    if let ImplItem::Fn(method) = item {
                        self.add(&method.vis, format!("{of}::{}", method.sig.ident), types(&method.sig));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The types of a function, without the names of its parameters.
fn types(signature: &syn::Signature) -> String {
    let input = |input: &FnArg| match input {
        FnArg::Receiver(receiver) => receiver.to_token_stream().to_string(),
        FnArg::Typed(typed) => typed.ty.to_token_stream().to_string(),
    };
    let inputs: Vec<String> = signature.inputs.iter().map(input).collect();
    let (generics, output) = (signature.generics.to_token_stream(), signature.output.to_token_stream());
    let is_unsafe = if matches!(signature.safety, syn::Safety::Unsafe(_)) { "unsafe " } else { "" };
    format!("{is_unsafe}fn{generics}({}) {output}", inputs.join(", "))
}

/// The names that a module's own file exports.
fn exported(file: &Path) -> BTreeSet<String> {
    fn names(tree: &syn::UseTree, found: &mut BTreeSet<String>) {
        match tree {
            syn::UseTree::Path(path) => names(&path.tree, found),
            syn::UseTree::Name(name) => drop(found.insert(name.ident.to_string())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, found)),
            // the C symbols, which the other runtime defines
            syn::UseTree::Glob(_) | syn::UseTree::Rename(_) => {}
        }
    }
    let own = Interface::of(&[file.to_owned()]).0.into_iter().filter(|(_, (is_public, _))| *is_public);
    let mut found: BTreeSet<String> = own.map(|(name, _)| name).collect();
    for item in parse(file).items {
        match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => names(&item.tree, &mut found),
            _ => {}
        }
    }
    found
}

#[test]
fn twins_have_the_same_interface() {
    let sources = root().join(SOURCES);
    let twins = twins();
    assert!(twins.len() >= 7, "{twins:?}");
    let mut missing = BTreeSet::new();
    for (module, file) in &twins {
        let twin = sources.join(file);
        let mut files = Vec::new();
        files_below(&sources.join(module), &mut files);
        files.retain(|file| *file != twin);
        let of_module = Interface::of(&files);
        let of_twin = Interface::of(std::slice::from_ref(&twin));
        for (name, (_, types)) in &of_twin.0 {
            let other = of_module.0.get(name).map(|(_, types)| types);
            assert_eq!(other, Some(types), "{module}: `{name}` as in {}", file.display());
        }
        let twins_names = exported(&twin);
        for name in exported(&sources.join(module).join("mod.rs")) {
            if !twins_names.contains(&name) {
                missing.insert(name);
                continue;
            }
            let is_shared = !of_twin.0.contains_key(&name);
            let methods = of_module.0.iter().filter(|(method, (is_public, _))| {
                *is_public && !is_shared && method.starts_with(&format!("{name}::")) && !of_twin.0.contains_key(*method)
            });
            missing.extend(methods.map(|(method, _)| method.clone()));
        }
    }
    let expected: BTreeSet<String> = BUNDLED_ONLY.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(missing, expected, "what an external runtime lacks");
}
