//! Uses the lines of a module's listing as source locations, so a backend's report of locations refers to the listing.

use std::fmt::{self, Write};

use super::inst::FuncRef;
use super::module::{LocationData, Module};
use super::text::print::{Listing, ListingItem};

/// The file name of these locations.
const FILE: &str = "listing";

impl Module {
    /// Returns the listing, as `Display` writes it, and a copy of the module. In the copy, the source location of each
    /// instruction and block end is its line in the listing, counted from 1. The module's own locations are not in the
    /// copy.
    pub fn located_in_listing(&self) -> (String, Module) {
        let mut listing = NumberedListing { text: String::new(), line: 1, shown: Vec::new() };
        // writing to a String can't fail
        let _ = self.write_listing(&mut listing);
        let mut located = self.clone();
        located.clear_locations();
        for (func, place, line) in listing.shown {
            let function = located.functions[func].name.clone();
            let location = located.location(LocationData { file: FILE.to_owned(), line, function });
            let Some(body) = &mut located.functions[func].body else { continue };
            match place {
                ListingItem::Inst(inst) => body.locations[inst] = location.into(),
                ListingItem::End(block) => body.end_locations[block] = location.into(),
            }
        }
        (listing.text, located)
    }
}

/// A listing that counts its lines.
struct NumberedListing {
    text: String,
    /// The number of the current line.
    line: u32,
    /// The line of each place.
    shown: Vec<(FuncRef, ListingItem, u32)>,
}

impl Write for NumberedListing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.line += text.bytes().filter(|byte| *byte == b'\n').count() as u32;
        self.text.push_str(text);
        Ok(())
    }
}

impl Listing for NumberedListing {
    fn shows(&mut self, func: FuncRef, place: ListingItem) {
        self.shown.push((func, place, self.line));
    }
}
