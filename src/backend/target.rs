//! Targets that no backend supports.

/// Why GPU targets are rejected.
pub(crate) const ON_GPU: &str = "a GPU runs no wrappers; make them for the host, where a kernel launches the GPU's";

/// Whether a target is a GPU.
pub(super) fn is_gpu(triple: &target_lexicon::Triple) -> bool {
    use target_lexicon::Architecture;
    matches!(triple.architecture, Architecture::Nvptx64 | Architecture::AmdGcn)
}
