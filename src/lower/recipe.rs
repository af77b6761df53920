//! Recipes: all inputs of a module of wrappers as one value, and its lowering to IR.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use target_lexicon::{BinaryFormat, Triple};

use super::at_exit::register_destructors;
use super::error::LowerError;
use super::kernel::Kernel;
use super::launch_description::LaunchDescription;
use super::library::{Carried, is_symbol_prefix, no_global};
use super::module::{Lowering, RuntimeHelpers};
use super::problem::GlobalProblem;
use super::protocol::Capabilities;
use crate::ir;
use crate::spec::Signature;

/// The use of a module with wrappers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Purpose {
    /// A module that contains only the wrappers. This crate doesn't run its destructors.
    #[default]
    Wrappers,
    /// Code of this process. Its owner runs the module's destructors before it frees the code.
    Process,
    /// The object file of a library that a host loads as a file.
    Library,
    /// The object file of a system library: one that is part of the program and registers its symbols at program start.
    /// The string is the prefix that `ffi.SystemLib` takes. All exported C symbols contain it, so you can link several
    /// system libraries into one program: `__tvm_ffi_<prefix><name>`, `<prefix>__tvm_ffi__metadata_<name>`.
    SystemLibrary(String),
}

impl Purpose {
    /// Whether the module becomes the object file of a library, including the parts other than wrappers.
    pub fn is_library(&self) -> bool {
        matches!(self, Purpose::Library | Purpose::SystemLibrary(_))
    }

    /// The prefix of a system library; otherwise an empty string.
    pub fn prefix(&self) -> &str {
        match self {
            Purpose::SystemLibrary(prefix) => prefix,
            _ => "",
        }
    }
}

/// A function of a [`Recipe`].
#[derive(Clone, Debug)]
pub struct RecipeFunction<'a> {
    /// Its signature.
    pub signature: Cow<'a, Signature>,
    /// Its kernel, or the error that explains why it has none.
    pub kernel: Result<Cow<'a, Kernel>, LowerError>,
    /// Whether it is a C function instead of a wrapper, created from a [body](Kernel::body). Native code calls it in
    /// the same way as a kernel of convention `flat`. It is exported under the signature's own name, returns a status,
    /// and writes a scalar to its last parameter: `int32_t name(const char* s, size_t s_size, double* result)`. It
    /// doesn't check its arguments. A tensor or container among them can't be passed on to a callee, because the device
    /// or the object isn't known.
    pub is_c: bool,
}

/// All inputs that determine a module of wrappers.
///
/// ```
/// use tvm_ffi_codegen::lower::{Recipe, RuntimeHelpers};
/// use tvm_ffi_codegen::{Kernel, Signature};
///
/// let (f, g): (Signature, Signature) = ("f(x: int64)".parse()?, "g() -> int64".parse()?);
/// let none = Kernel::check_only();
/// let recipe = Recipe { helpers: RuntimeHelpers::Define, ..Recipe::default() };
/// let errors = recipe.function(&f, &none).function(&g, &none).lower().unwrap_err();
/// assert_eq!(errors.len(), 1); // `g` has no result
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Recipe<'a> {
    /// The target; the host by default. Only two properties matter: its byte order, and whether it is Windows. On
    /// Windows a constructor registers a library's destructors with `atexit`, because COFF has no section for them, and
    /// launches locate drivers in another way.
    pub target: Triple,
    /// How the module will be used.
    pub purpose: Purpose,
    /// The origin of the runtime helpers.
    pub helpers: RuntimeHelpers,
    /// Whether functions of a library carry their metadata; true by default.
    pub metadata: bool,
    /// Whether a system library also registers `<prefix>__tvm_ffi__library_bin`. Another object has to define that
    /// symbol then. In any other library, the loader looks the symbol up.
    pub carries_modules: bool,
    /// The functions.
    pub functions: Vec<RecipeFunction<'a>>,
    /// Functions of a library that are registered as global functions while it is loaded, each with its global name.
    pub globals: Vec<(String, String)>,
}

impl Default for Recipe<'_> {
    fn default() -> Self {
        Recipe {
            target: Triple::host(),
            purpose: Purpose::default(),
            helpers: RuntimeHelpers::default(),
            metadata: true,
            carries_modules: false,
            functions: Vec::new(),
            globals: Vec::new(),
        }
    }
}

/// A function after lowering.
#[derive(Clone, Debug)]
pub struct LoweredFunction {
    /// Its name.
    pub name: String,
    /// Its symbol.
    pub symbol: String,
    /// Its launches: that of its kernel, or those of its body.
    pub launches: Vec<LaunchDescription>,
    /// The numbers of the module's functions that belong to it.
    pub parts: Range<usize>,
}

/// A [`Recipe`]'s module.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The module.
    pub module: ir::Module,
    /// The recipe's functions, in order.
    pub functions: Vec<LoweredFunction>,
    /// The capabilities that the wrappers need of the runtime helpers.
    pub capabilities: Capabilities,
    /// Whether a wrapper calls `bind` on every call, not only on its slow path.
    pub always_binds: bool,
}

impl<'a> Recipe<'a> {
    /// Adds a wrapper, exported as [`Signature::symbol`].
    pub fn function(mut self, signature: &'a Signature, kernel: &'a Kernel) -> Self {
        let (signature, kernel) = (Cow::Borrowed(signature), Ok(Cow::Borrowed(kernel)));
        self.functions.push(RecipeFunction { signature, kernel, is_c: false });
        self
    }

    /// Lowers the recipe to a module.
    ///
    /// # Errors
    /// All errors of all functions, in order. A kernel doesn't fit its signature, or its body has errors. A name is
    /// taken, or has another meaning in a library. A kernel of a library is an address of this process. If no function
    /// has an error: the errors of registered functions, then those of calls by symbol.
    pub fn lower(&self) -> Result<Lowered, Vec<LowerError>> {
        self.lower_with_progress(|_| ())
    }

    /// Like [`lower`](Self::lower); the observer receives the number of functions lowered so far.
    ///
    /// # Errors
    /// The same as for [`lower`](Self::lower).
    pub fn lower_with_progress(&self, observer: impl Fn(u64)) -> Result<Lowered, Vec<LowerError>> {
        let Recipe { target, purpose, helpers, .. } = self;
        let mut errors = Vec::new();
        let mut prefix = purpose.prefix();
        if !is_symbol_prefix(prefix) {
            errors.push(LowerError::Prefix { prefix: prefix.to_owned() });
            prefix = "";
        }
        let mut lowering = Lowering::new(target, prefix, *helpers);
        lowering.unit.drivers.has_hooks = *purpose != Purpose::Wrappers;
        let mut carried = purpose.is_library().then(|| Carried::new(&mut lowering.unit, self.metadata));
        let mut functions = Vec::with_capacity(self.functions.len());
        for (done, function) in (1..).zip(&self.functions) {
            match function.lower(&mut lowering, carried.as_mut()) {
                Ok(lowered) => functions.push(lowered),
                Err(error) => errors.push(error),
            }
            observer(done);
        }
        // functions with errors are not in the module, so only check a complete one
        if errors.is_empty() {
            let unit = &lowering.unit;
            let register = |(function, global): &(String, String)| match &mut carried {
                Some(carried) => carried.register_global(unit, function, global),
                None => Err(no_global(function, global, GlobalProblem::NotALibrary)),
            };
            errors.extend(self.globals.iter().map(register).filter_map(Result::err));
        }
        if errors.is_empty() {
            let wrappers = self.functions.iter().filter(|function| !function.is_c);
            errors = lowering.check_calls(wrappers.map(|function| &*function.signature));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let is_file = carried.is_some();
        if let Some(carried) = carried {
            let is_system = matches!(purpose, Purpose::SystemLibrary(_));
            carried.finish(&mut lowering.unit, is_system, self.carries_modules);
        }
        let (capabilities, always_binds) = (lowering.unit.pool.constants.capabilities(), lowering.unit.always_binds);
        let mut module = lowering.finish();
        if is_file && target.binary_format == BinaryFormat::Coff {
            register_destructors(&mut module);
        }
        Ok(Lowered { module, functions, capabilities, always_binds })
    }
}

impl RecipeFunction<'_> {
    fn lower(&self, lowering: &mut Lowering, carried: Option<&mut Carried>) -> Result<LoweredFunction, LowerError> {
        let RecipeFunction { signature, kernel, is_c } = self;
        let kernel = kernel.as_deref().map_err(LowerError::clone)?;
        if carried.is_some() && !is_c {
            Carried::check(&lowering.unit, signature, kernel)?;
        }
        let first = lowering.unit.module.functions.len();
        let func = match is_c {
            true => lowering.add_c_function(signature, kernel)?,
            false => lowering.add(signature, kernel)?,
        };
        let functions = &lowering.unit.module.functions;
        let (symbol, parts) = (functions[func].name.clone(), first..functions.len());
        if let Some(carried) = carried.filter(|_| !is_c) {
            carried.add(&mut lowering.unit, func, signature);
        }
        let launches = std::mem::take(&mut lowering.unit.launches.described);
        Ok(LoweredFunction { name: signature.name().to_owned(), symbol, launches, parts })
    }
}

/// The symbols that functions call but their module doesn't define: kernels, functions that bodies call, and C
/// functions. Each has the names of the functions that call it.
pub fn callers(module: &ir::Module, functions: &[LoweredFunction]) -> BTreeMap<String, BTreeSet<String>> {
    let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let declared: Vec<_> = module.functions.values().collect();
    for LoweredFunction { name, parts, .. } in functions {
        let bodies = declared.get(parts.clone()).unwrap_or_default().iter().filter_map(|part| part.body.as_ref());
        let callees = bodies.flat_map(|body| body.insts.values()).filter_map(|inst| match &inst.op {
            ir::Op::Call(callee, _) => module.functions.get(*callee),
            _ => None,
        });
        for callee in callees.filter(|callee| callee.linkage == ir::Linkage::Import) {
            called.entry(callee.name.clone()).or_default().insert(name.clone());
        }
    }
    called
}

/// Lowers one wrapper to its own module.
///
/// # Errors
/// The error of that function, as from [`Recipe::lower`].
pub fn lower(signature: &Signature, kernel: &Kernel, helpers: RuntimeHelpers) -> Result<ir::Module, LowerError> {
    let mut lowering = Lowering::new(&Triple::host(), "", helpers);
    lowering.add(signature, kernel)?;
    Ok(lowering.finish())
}

/// The driver calls of a function's launches, in order, printed for people: the launch of its kernel, or those of its
/// body. For a launch on the CPU, the prototype of the function that is called for each block. `None` for a function
/// without launches.
///
/// # Errors
/// The same as for [`lower`].
pub fn launch_sequence(signature: &Signature, kernel: &Kernel) -> Result<Option<String>, LowerError> {
    let mut lowering = Lowering::new(&Triple::host(), "", RuntimeHelpers::Import);
    lowering.unit.launches.sequences = Some(Vec::new());
    lowering.add(signature, kernel)?;
    let sequences = lowering.unit.launches.sequences.unwrap_or_default();
    Ok((!sequences.is_empty()).then(|| sequences.join("\n")))
}
