//! The links between the built pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::failed;
use crate::run::Failure;

/// Pages that mdBook makes of the others.
const MADE: [&str; 3] = ["404.html", "print.html", "toc.html"];

/// Every link within the book leads to a file, and to a place in it if the link names one.
pub fn check(book: &Path) -> Result<(), Failure> {
    let mut pages = BTreeMap::new();
    list(book, &mut pages).map_err(|e| failed(format!("{}: {e}", book.display())))?;
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path, attributes(text, "id").collect())).collect();
    let mut broken = Vec::new();
    for (path, text) in pages.iter().filter(|(path, _)| !MADE.iter().any(|made| path.ends_with(made))) {
        let links = attributes(text, "href").filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
        for link in links {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { path.clone() } else { resolve(path, file) };
            let is_there = match ids.get(&file) {
                Some(ids) => place.is_empty() || ids.contains(place),
                None => file.is_file(),
            };
            if !is_there {
                broken.push(format!("{}: {link}", path.strip_prefix(book).unwrap_or(path).display()));
            }
        }
    }
    broken.sort();
    broken.dedup();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(failed(format!("links of the book lead nowhere:\n{}", broken.join("\n"))))
    }
}

/// The HTML files in a directory and those in it, with their texts.
fn list(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(&path, pages)?,
            false if path.extension().is_some_and(|extension| extension == "html") => {
                let text = fs::read_to_string(&path)?;
                pages.insert(path, text);
            }
            false => {}
        }
    }
    Ok(())
}

/// The values of an attribute. mdBook writes `"` in a text as `&quot;`, so a quoted value is one of a tag.
fn attributes<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let start = format!(" {name}=\"");
    text.split('<').skip(1).filter_map(move |tag| {
        let (_, rest) = tag.split_once('>')?.0.split_once(&start)?;
        Some(rest.split_once('"')?.0)
    })
}

/// The file that a link of a page names.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.to_owned();
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}
