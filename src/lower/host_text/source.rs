//! The text that bodies are made of.

use std::ops::Range;
use std::sync::Arc;

use crate::image::Image;

/// A text of host functions, with the images that its launches may use.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub text: Arc<str>,
    /// Each with its name.
    images: Arc<[(String, Image)]>,
}

impl Source {
    pub(crate) fn new<N: Into<String>>(text: &str, images: impl IntoIterator<Item = (N, Image)>) -> Self {
        Source { text: text.into(), images: images.into_iter().map(|(name, image)| (name.into(), image)).collect() }
    }

    /// The names of the images.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.images.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The images of a launch: those with the stated names, or all that have the entry.
    pub(crate) fn images_of(&self, entry: &str, stated: Option<&[(String, Range<usize>)]>) -> Vec<Image> {
        let named = |name: &str| self.images.iter().find(|(known, _)| known == name);
        // an image that doesn't tell its entries may have it
        let has_entry = |image: &Image| image.entries().is_none_or(|_| image.entry(entry).is_some());
        let found: Vec<&(String, Image)> = match stated {
            Some(stated) => stated.iter().filter_map(|(name, _)| named(name)).collect(),
            None => self.images.iter().filter(|(_, image)| has_entry(image)).collect(),
        };
        found.into_iter().map(|(_, image)| image.clone()).collect()
    }
}
