//! The text that bodies are made of.

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

    /// The images of a launch: the one with the stated name, or all that have the entry.
    pub(crate) fn images_of(&self, entry: &str, stated: Option<&str>) -> Vec<Image> {
        let is_meant = |(name, image): &&(String, Image)| match stated {
            Some(stated) => name == stated,
            // an image that doesn't tell its entries may have it
            None => image.entries().is_none_or(|_| image.entry(entry).is_some()),
        };
        self.images.iter().filter(is_meant).map(|(_, image)| image.clone()).collect()
    }
}
