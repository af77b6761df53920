//! Compiles single functions to machine code. A thread has one worker, which reuses its memory.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::CodegenError;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{Final, MachSrcLoc};
use cranelift_module::{FuncId, ModuleReloc};

use super::compiled::{CompiledFunction, Options};
use super::error::Error;
use super::translate::{self, Scratch};
use crate::backend::Lines;
use crate::backend::code::CACHE_LINE;
use crate::ir::{FuncDecl, FuncRef, Function, Linkage, LocationRef};

/// A worker that has compiled functions of more instructions than this is not kept: it holds too much memory.
const LARGE: usize = 20_000;

/// The memory for compiling a function, reused.
pub(super) struct Worker {
    context: cranelift_codegen::Context,
    control: ControlPlane,
    scratch: Scratch,
    bloated: bool,
}

impl Default for Worker {
    fn default() -> Self {
        Worker {
            context: cranelift_codegen::Context::new(),
            control: ControlPlane::default(),
            scratch: Scratch::default(),
            bloated: false,
        }
    }
}

impl Worker {
    /// Whether the worker's memory is too large to keep, or its last failure left it in an unknown state.
    pub(super) fn is_bloated(&self) -> bool {
        self.bloated
    }

    /// Compiles a function of the module, if it has a body.
    pub(super) fn compile(
        &mut self,
        cx: translate::Context<'_>,
        func: FuncRef,
        isa: &dyn TargetIsa,
        options: Options,
    ) -> Result<CompiledFunction, Error> {
        let decl = &cx.module.functions[func];
        let mut out = CompiledFunction {
            name: decl.name.clone(),
            linkage: decl.linkage,
            signature: cx.target.signature(decl),
            code: Vec::new(),
            align: 1,
            used: false,
            cold: decl.cold,
            disasm: None,
            unwind: None,
            lines: Vec::new(),
            first_location: match cx.module.locations.is_empty() {
                true => None,
                false => decl.body.as_ref().and_then(Function::first_location),
            },
            relocs: Vec::new(),
        };
        if let Some(body) = &decl.body {
            self.body(cx, func, body, isa, options, &mut out)?;
        }
        Ok(out)
    }

    fn body(
        &mut self,
        cx: translate::Context<'_>,
        func: FuncRef,
        body: &Function,
        isa: &dyn TargetIsa,
        options: Options,
        out: &mut CompiledFunction,
    ) -> Result<(), Error> {
        self.bloated |= body.insts.len() > LARGE;
        // Cranelift may panic because of a bug. No panic may leave this library.
        let done = catch_unwind(AssertUnwindSafe(|| {
            self.context.clear();
            self.context.set_disasm(options.disasm);
            self.context.func.signature = out.signature.clone();
            translate::translate(cx, body, &mut self.context.func, &mut self.scratch);
            if options.disasm {
                out.disasm = Some(self.context.func.display().to_string());
            }
            match self.context.compile(isa, &mut self.control) {
                Ok(_) => Ok(()),
                Err(e) => Err(e.inner),
            }
        }));
        let decl = &cx.module.functions[func];
        let missing = self.scratch.take_missing();
        let message = match done {
            // whatever the result: the code doesn't match the function
            _ if let Some(missing) = missing => format!("the function lacks {missing}"),
            Ok(Ok(())) => return self.take_code(func, isa, options, decl, out),
            Ok(Err(e @ (CodegenError::CodeTooLarge | CodegenError::ImplLimitExceeded))) => {
                return Err(Error::TooLarge { function: decl.name.clone(), message: e.to_string() });
            }
            Ok(Err(CodegenError::Verifier(e))) => e.to_string(),
            Ok(Err(e)) => e.to_string(),
            Err(payload) => {
                let text = payload
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| payload.downcast_ref::<&str>().copied());
                format!("panic: {}", text.unwrap_or("unknown"))
            }
        };
        // After a panic the context's state is unknown; even printing it may panic.
        let clif = catch_unwind(AssertUnwindSafe(|| self.context.func.display().to_string())).unwrap_or_default();
        let listing = format!("{}\n{clif}", cx.module.display_function(func));
        *self = Worker { bloated: true, ..Worker::default() };
        Err(Error::Codegen { function: decl.name.clone(), message, listing })
    }

    fn take_code(
        &mut self,
        func: FuncRef,
        isa: &dyn TargetIsa,
        options: Options,
        decl: &FuncDecl,
        out: &mut CompiledFunction,
    ) -> Result<(), Error> {
        let Some(code) = self.context.compiled_code() else { return Ok(()) };
        out.code = code.code_buffer().to_vec();
        let wanted = isa.function_alignment();
        let wanted = match (decl.cold, decl.linkage) {
            (true, _) => wanted.minimum,
            (false, Linkage::Export) => wanted.preferred.max(CACHE_LINE),
            (false, _) => wanted.preferred,
        };
        out.align = code.buffer.alignment.max(wanted).max(isa.symbol_alignment() as u32).max(1);
        let id = FuncId::from_u32(func.as_u32());
        out.relocs =
            code.buffer.relocs().iter().map(|r| ModuleReloc::from_mach_reloc(r, &self.context.func, id)).collect();
        out.lines = lines(code.buffer.get_srclocs_sorted());
        if let (Some(text), Some(vcode)) = (&mut out.disasm, &code.vcode) {
            text.push('\n');
            text.push_str(vcode);
        }
        if options.unwind {
            out.unwind = code.create_unwind_info(isa).map_err(|e| Error::Codegen {
                function: decl.name.clone(),
                message: e.to_string(),
                listing: String::new(),
            })?;
        }
        Ok(())
    }
}

/// The lines of a function's code. Cranelift starts a new range where it has inserted moves.
fn lines(ranges: &[MachSrcLoc<Final>]) -> Vec<Lines> {
    let mut lines: Vec<Lines> = Vec::new();
    for range in ranges.iter().filter(|range| !range.loc.is_default() && range.start < range.end) {
        let location = LocationRef::from_u32(range.loc.bits());
        match lines.last_mut() {
            Some(last) if last.location == location && last.end == range.start => last.end = range.end,
            _ => lines.push(Lines { start: range.start, end: range.end, location }),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cranelift::translate::{Context, TargetAbi};
    use crate::backend::cranelift::{IsaOptions, host_isa};
    use crate::ir::{FuncSig, FunctionBuilder, Module, Type};

    /// No verified module uses a value that its function doesn't define on the path. If one did, compiling it would be
    /// an error.
    #[test]
    fn a_missing_definition_is_an_error() {
        let mut module = Module::new();
        let func = module.declare("f", FuncSig::new([], Some(Type::I64)), Linkage::Export);
        let mut b = FunctionBuilder::new(&mut module, func);
        let (entry, unreached) = (b.current(), b.block());
        b.switch_to(unreached);
        let value = b.i64(1);
        b.ret(Some(value));
        b.switch_to(entry);
        b.ret(Some(value));
        b.finish();
        let isa = host_isa(&IsaOptions::default()).expect("the host has a code generator");
        let cx = Context { module: &module, target: TargetAbi::of(&*isa), data: &[] };
        let refused = Worker::default().compile(cx, func, &*isa, Options::default()).map(|compiled| compiled.code);
        let Err(Error::Codegen { function, message, .. }) = refused else { unreachable!("{refused:?}") };
        assert_eq!(function, "f");
        assert_eq!(message, format!("the function lacks a definition of {value} before its use"));
    }
}
