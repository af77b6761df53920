//! The global functions and types that upstream's library has and ours lacks: exactly the documented ones.

use std::collections::BTreeSet;

use super::headers::build;
use super::*;

/// A C++ program that prints the functions and types of its library.
const PROGRAM: &str = "names/names";

const PAGE: &str = "docs/runtime.md";

/// The section of [`PAGE`] that lists missing ones, in bullets that begin with the names.
const SECTION: &str = "## What is not there";

/// Compares the two libraries with the page, in both directions.
pub fn check(folder: &Path, theirs: &Path, ours: &Path) -> Result {
    build(PROGRAM, &folder.join("names"))?;
    let names = |library: &Path| -> Result<BTreeSet<String>> {
        let printed = cmd(&text(&folder.join("names")), &[]).env("LD_LIBRARY_PATH", &text(library)).read()?;
        Ok(printed.lines().map(str::to_owned).collect())
    };
    let (theirs, ours) = (names(theirs)?, names(ours)?);
    let missing: BTreeSet<String> = theirs.difference(&ours).cloned().collect();
    let listed = listed()?;
    let unlisted: Vec<&String> = missing.difference(&listed).collect();
    let there: Vec<&String> = listed.difference(&missing).collect();
    if !unlisted.is_empty() || !there.is_empty() {
        return Err(failure(format!("{PAGE}, `{SECTION}`: not listed {unlisted:?}, listed and there {there:?}")));
    }
    println!("{PAGE} lists the {} of {} functions and types that our library has not", missing.len(), theirs.len());
    Ok(())
}

/// The names in the section: all names of functions in code marks.
fn listed() -> Result<BTreeSet<String>> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|e| failure(format!("{PAGE}: {e}")))?;
    let section = page.split_once(SECTION).map(|(_, rest)| rest.split("\n## ").next().unwrap_or(rest));
    let section = section.ok_or_else(|| failure(format!("{PAGE} has no section `{SECTION}`")))?;
    // Text before and after the bullets may have other names.
    let bullets = section.split("\n- ").skip(1).filter_map(|bullet| bullet.split("\n\n").next()?.split_once(": "));
    Ok(bullets
        .flat_map(|(_, names)| names.split('`').skip(1).step_by(2))
        .map(|name| format!("function {name}"))
        .collect())
}
