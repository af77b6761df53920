//! Symbols of object files: their C names and what refers to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use object::{
    BinaryFormat, File, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SectionKind, SymbolKind,
};

/// A symbol's name in C: Mach-O prefixes names with an additional `_`.
pub(crate) fn c_name(format: BinaryFormat, name: &str) -> &str {
    let stripped = if format == BinaryFormat::MachO { name.strip_prefix('_') } else { None };
    stripped.unwrap_or(name)
}

/// The functions and variables of an object that refer to undefined symbols with these C names, by symbol. A
/// reference from outside any function or variable is attributed to its section. Broken parts of the object are
/// skipped.
pub(crate) fn referrers(file: &File<'_>, wanted: &BTreeSet<&str>) -> BTreeMap<String, BTreeSet<String>> {
    let format = file.format();
    let undefined = file.symbols().filter(|symbol| symbol.is_undefined());
    let targets: HashMap<_, &str> = undefined
        .filter_map(|symbol| Some((symbol.index(), c_name(format, symbol.name().ok()?))))
        .filter(|(_, name)| wanted.contains(name))
        .collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if targets.is_empty() {
        return found;
    }
    let places = Places::of(file);
    let holds_code = |kind| !matches!(kind, SectionKind::Debug | SectionKind::Other | SectionKind::Metadata);
    for section in file.sections().filter(|section| holds_code(section.kind())) {
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(target) = relocation.target() else { continue };
            let Some(name) = targets.get(&target) else { continue };
            let place = places.name(section.index(), section.address().wrapping_add(offset)).map(str::to_owned);
            let place = place.unwrap_or_else(|| format!("section {}", section.name().unwrap_or("without a name")));
            found.entry((*name).to_owned()).or_default().insert(place);
        }
    }
    found
}

/// The functions and variables of an object by section and address.
struct Places<'a>(BTreeMap<(usize, u64), (u64, &'a str)>);

impl<'a> Places<'a> {
    fn of(file: &File<'a>) -> Self {
        let named = file.symbols().filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data));
        let place = |symbol: object::Symbol<'a, '_>| {
            let place = (symbol.section_index()?.0, symbol.address());
            Some((place, (symbol.size(), c_name(file.format(), symbol.name().ok()?))))
        };
        Places(named.filter_map(place).collect())
    }

    /// The function or variable at an address. One without a size extends to the next one.
    fn name(&self, section: SectionIndex, address: u64) -> Option<&'a str> {
        let ((_, start), (size, name)) = self.0.range((section.0, 0)..=(section.0, address)).next_back()?;
        (*size == 0 || address - start < *size).then_some(*name)
    }
}
