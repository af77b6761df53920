//! Images of device code, from files.

use std::path::{Path, PathBuf};

use clap::Args;
use tvm_ffi_codegen::image::Image;
use tvm_ffi_codegen::image::rtc::{Hiprtc, KernelSource, Nvrtc};

use crate::error::{CliError, failure};
use crate::io::{read_bytes, read_text};

/// The images with the kernels of launches.
#[derive(Args)]
pub struct Images {
    /// An image of device code for launches: a cubin, fatbin, PTX, or AMD code objects. Each launch gets the images
    /// that contain its kernel. For host text each has a name, which launches may state: NAME=FILE
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// CUDA C++ or HIP C++ with kernels for launches. NVIDIA's NVRTC or AMD's hiprtc compiles it for each architecture:
    /// the one that TVM_FFI_CODEGEN_NVRTC or TVM_FFI_CODEGEN_HIPRTC names, or the machine's. Kernels are extern "C".
    /// Not for host text
    #[arg(long, value_name = "FILE", requires = "arch")]
    source: Vec<PathBuf>,
    /// An architecture to compile sources for: sm_90a, compute_80 for PTX, or gfx942
    #[arg(long, value_name = "NAME", requires = "source")]
    arch: Vec<String>,
    /// An option of the compiler for all sources: -DN=16
    #[arg(long, value_name = "OPTION", requires = "source", allow_hyphen_values = true)]
    source_option: Vec<String>,
}

impl Images {
    /// Reads them all, and compiles the sources.
    pub fn read(&self) -> Result<Vec<Image>, CliError> {
        let mut images = self.image.iter().map(|path| read_image(path)).collect::<Result<Vec<_>, _>>()?;
        if self.source.is_empty() {
            return Ok(images);
        }
        let (amd, nvidia): (Vec<&str>, Vec<&str>) =
            self.arch.iter().map(String::as_str).partition(|arch| arch.starts_with("gfx"));
        let nvrtc = (!nvidia.is_empty()).then(Nvrtc::find).transpose().map_err(failure)?;
        let hiprtc = (!amd.is_empty()).then(Hiprtc::find).transpose().map_err(failure)?;
        for path in &self.source {
            let source = KernelSource::new(read_text(path)?).file(path.display().to_string());
            let source = self.source_option.iter().fold(source, |source, option| source.option(option));
            let of_nvidia = nvrtc.iter().map(|compiler| compiler.compile(&source, &nvidia));
            let of_amd = hiprtc.iter().map(|compiler| compiler.compile(&source, &amd));
            for compiled in of_nvidia.chain(of_amd) {
                let compiled = compiled.map_err(failure)?;
                eprint!("{}", compiled.log());
                images.extend_from_slice(compiled.images());
            }
        }
        Ok(images)
    }

    /// Reads the images of a host text, each with its name.
    pub fn read_named(&self) -> Result<Vec<(String, Image)>, CliError> {
        if let Some(path) = self.source.first() {
            let problem = format!("--source {}: host text takes images, not sources", path.display());
            return Err(CliError::Usage(problem));
        }
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
