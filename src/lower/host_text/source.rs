//! The text that bodies are made of.

use std::sync::Arc;

use crate::image::Image;

/// A text of host functions, with the images that its launches may use.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub text: Arc<str>,
    /// Each with its name.
    pub images: Arc<[(String, Image)]>,
}

impl Source {
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
