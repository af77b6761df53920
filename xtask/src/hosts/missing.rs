//! The global functions and types of upstream's library: ours has all.

use std::collections::BTreeSet;

use super::headers::build;
use super::*;

/// A C++ program that prints the functions and types of its library.
const PROGRAM: &str = "names/names";

/// Compares the names of the two libraries.
pub fn check(folder: &Path, theirs: &Path, ours: &Path) -> Result {
    build(PROGRAM, &folder.join("names"))?;
    let names = |library: &Path| -> Result<BTreeSet<String>> {
        let printed = cmd(&text(&folder.join("names")), &[]).env("LD_LIBRARY_PATH", &text(library)).read()?;
        Ok(printed.lines().map(str::to_owned).collect())
    };
    let (theirs, ours) = (names(theirs)?, names(ours)?);
    let missing: Vec<&String> = theirs.difference(&ours).collect();
    if theirs.is_empty() || !missing.is_empty() {
        return Err(failure(format!("of the {} functions and types, ours lacks {missing:?}", theirs.len())));
    }
    println!("our library has all {} functions and types of upstream's", theirs.len());
    Ok(())
}
