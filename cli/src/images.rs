//! Images of device code, from files.

use std::path::{Path, PathBuf};

use clap::Args;
use tvm_ffi_codegen::image::Image;

use crate::error::CliError;
use crate::io::read_bytes;

/// The images with the kernels of launches.
#[derive(Args)]
pub struct Images {
    /// An image of device code for launches: a cubin, fatbin, PTX, or AMD code objects. Each launch gets the images
    /// that contain its kernel. For host text each has a name, which launches may state: NAME=FILE
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
}

impl Images {
    /// Reads them all.
    pub fn read(&self) -> Result<Vec<Image>, CliError> {
        self.image.iter().map(|path| read_image(path)).collect()
    }

    /// Reads the images of a host text, each with its name.
    pub fn read_named(&self) -> Result<Vec<(String, Image)>, CliError> {
        let named = |stated: &PathBuf| {
            let Some((name, path)) = stated.to_str().and_then(|stated| stated.split_once('=')) else {
                let problem = format!("--image {}: expected NAME=FILE for an image of host text", stated.display());
                return Err(CliError::Usage(problem));
            };
            Ok((name.to_owned(), read_image(path.as_ref())?))
        };
        self.image.iter().map(named).collect()
    }
}

fn read_image(path: &Path) -> Result<Image, CliError> {
    Image::from_bytes(read_bytes(path)?).map_err(|error| CliError::at_path(path, error))
}
