//! stub
use super::module::Module;
/// A module that passed.
#[derive(Debug)]
pub struct VerifiedModule(Module);
/// One broken rule.
#[derive(Debug)]
pub struct Problem;
/// All broken rules.
#[derive(Debug)]
pub struct VerifyError;
/// Checks.
pub fn verify(module: Module) -> Result<VerifiedModule, VerifyError> {
    Ok(VerifiedModule(module))
}
impl std::ops::Deref for VerifiedModule {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}
