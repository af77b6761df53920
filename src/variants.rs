//! One function with several variants: the `match` that chooses one by keys, and its way to a table, as host text.

#[cfg(feature = "_engine")]
use crate::dispatch::DispatchTable;
#[cfg(feature = "_engine")]
use crate::engine::{Engine, EngineError};
use crate::host::tree::{At, Pattern};
use crate::host::{self, HostTextError};
use crate::image::Image;
use crate::lower::Kernel;
#[cfg(feature = "_engine")]
use crate::spec::ParamType;
use crate::spec::{Signature, SyntaxError, quoted_bytes};
#[cfg(feature = "_engine")]
use tvm_ffi_runtime::Function;

/// One function with several variants. It computes *keys* from its arguments, finds the row of constants that holds for
/// them, and forwards its call to the row's variant.
///
/// Keys are expressions of host text over the signature, rows have a pattern for each key
/// (`docs/reference/host-text.md`, `match`). A variant is an ordinary function with a name and a signature of its own.
/// It gets the arguments as they came, so its signature states what is stricter than the dispatch.
///
#[cfg_attr(feature = "cranelift", doc = "```")]
#[cfg_attr(not(feature = "cranelift"), doc = "```text")]
/// use tvm_ffi_codegen::{Dispatch, Engine, Kernel, Signature, runtime::Tensor};
///
/// let scale: Signature = "scale(x: Tensor([n], any), by: int64)".parse()?;
/// let f32: Signature = "scale_f32(x: Tensor([n], float32), by: int64)".parse()?;
/// let f64: Signature = "scale_f64(x: Tensor([n], float64), by: int64)".parse()?;
/// let kernel = Kernel::body(|b| {
///     let x = b.tensor("x");
///     b.for_range(0, b.dim("n"), |i| {
///         let value = x.load([i]);
///         x.store([i], value * b.arg("by").cast(value.ty()));
///     });
/// });
/// let dispatch =
///     Dispatch::new(&scale, ["x.dtype"]).variant("float32", &f32, &kernel).variant("float64", &f64, &kernel);
/// // SAFETY: the bodies stay within `0..n`, the shape of `x`.
/// let scale = unsafe { dispatch.compile(&Engine::new()?)? };
///
/// let x = Tensor::from_slice(&[1.0f64, 2.0], &[2])?;
/// scale.call((&x, 3))?;
/// assert_eq!(x.to_vec::<f64>()?, [3.0, 6.0]);
/// let error = scale.call((&Tensor::from_slice(&[1i8], &[1])?, 3)).unwrap_err();
/// assert_eq!(
///     error.message(),
///     "no row of `scale(x: Tensor([n], any), by: int64)` holds for `x.dtype` = int8; the rows are float32, float64; \
///      no row takes this `x.dtype`"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Dispatch {
    signature: Signature,
    keys: Vec<String>,
    variants: Vec<Variant>,
    /// The global function for calls that fit no variant.
    global: Option<String>,
}

#[derive(Clone, Debug)]
struct Variant {
    row: String,
    signature: Signature,
    kernel: Kernel,
}

impl Dispatch {
    /// A dispatch without variants. The signature states what all variants take, and `keys` what decides among them,
    /// such as `x.dtype`, `n % 16 == 0`, or with a name for messages `size = n // 64`.
    ///
    /// The dispatch's function states its result as `Any`, because the variants check their own.
    pub fn new<K: Into<String>>(signature: &Signature, keys: impl IntoIterator<Item = K>) -> Self {
        let keys = keys.into_iter().map(Into::into).collect();
        Dispatch { signature: signature.clone(), keys, variants: Vec::new(), global: None }
    }

    /// Adds a variant, for calls whose keys fit a row: a pattern for each key, such as `float16, True, range(64, 256)`.
    /// A pattern is a constant, `range(a, b)` for integers from `a` to `b - 1`, or `_` for any value. Rows are tried in
    /// order. A row that never runs, or overlaps another one, is an error when the functions are compiled.
    ///
    /// The variant's name differs from those of the dispatch and of other variants.
    pub fn variant(mut self, row: impl Into<String>, signature: &Signature, kernel: &Kernel) -> Self {
        self.variants.push(Variant { row: row.into(), signature: signature.clone(), kernel: kernel.clone() });
        self
    }

    /// Forwards calls that fit no row to a global function, with the values of the keys before the arguments. A
    /// [`DispatchTable`] is such a function: a library with precompiled variants grows where the process registers one.
    /// Without this, such a call is a `ValueError` with the values of the keys and at most 8 rows.
    pub fn or_global(mut self, name: impl Into<String>) -> Self {
        self.global = Some(name.into());
        self
    }

    /// The functions to compile together: the dispatch's own, then the variants. Give them to
    /// [`Engine::compile_functions`](crate::Engine::compile_functions),
    /// [`LibraryBuilder::function`](crate::artifact::LibraryBuilder::function) or
    /// [`HostProgram::of`](crate::HostProgram::of), which prints them.
    ///
    /// # Errors
    /// All keys and rows that aren't host text, with their places in the text of the function's body.
    pub fn functions(&self) -> Result<Vec<(Signature, Kernel)>, HostTextError> {
        let mut text = Text::default();
        let otherwise = self.global.as_ref().map(|name| format!("global {}", quoted_bytes(name.as_bytes())));
        text.choice(self, otherwise.as_deref());
        Ok(self.with_variants(self.signature.of_forwarding(), text.kernel()?))
    }

    /// A function, and the variants.
    fn with_variants(&self, signature: Signature, kernel: Kernel) -> Vec<(Signature, Kernel)> {
        let variants = self.variants.iter().map(|variant| (variant.signature.clone(), variant.kernel.clone()));
        [(signature, kernel)].into_iter().chain(variants).collect()
    }

    /// Compiles the dispatch with its variants, and returns its function.
    ///
    /// # Safety
    /// The same as for [`Engine::compile`], for each variant.
    ///
    /// # Errors
    /// The errors of [`functions`](Self::functions) and of [`Engine::compile_functions`].
    #[cfg(feature = "_engine")]
    pub unsafe fn compile(&self, engine: &Engine) -> Result<Function, EngineError> {
        // SAFETY: the caller guarantees the same.
        unsafe { first(engine, &self.functions()?) }
    }

    /// Compiles the dispatch with its variants, and returns its function, which forwards calls that fit no row to a
    /// table. This replaces [`or_global`](Self::or_global). A dispatch without variants forwards all calls.
    ///
    /// The table has a key name for each key of the dispatch, in the same order. The function keeps the table.
    ///
    #[cfg_attr(feature = "cranelift", doc = "```")]
    #[cfg_attr(not(feature = "cranelift"), doc = "```text")]
    /// use tvm_ffi_codegen::dispatch::DispatchTable;
    /// use tvm_ffi_codegen::runtime::{Error, Function, error::kind};
    /// use tvm_ffi_codegen::{Dispatch, Engine, Kernel, Signature};
    ///
    /// const KEYS: [&str; 1] = ["BLOCK"];
    /// let engine = Engine::new()?;
    /// let signature: Signature = "round_up(n: int64, BLOCK: int64) -> int64".parse()?;
    /// let (of_variant, with) = (signature.clone(), engine.clone());
    /// // Gets the values of the keys, and the arguments of the first call.
    /// let on_miss = Function::from_packed(move |args| {
    ///     let block: i64 = args[0].cast()?;
    ///     let kernel = Kernel::body(move |b| b.ret(b.arg("n").ceil_div(block) * block));
    ///     // SAFETY: the body reads no memory.
    ///     let made = unsafe { with.compile(&of_variant, &kernel) };
    ///     made.map(Into::into).map_err(|error| Error::new(kind::VALUE_ERROR, &error.to_string()))
    /// });
    /// let table = DispatchTable::new("round_up", KEYS, on_miss, Some(256))?;
    /// // SAFETY: as above.
    /// let round_up = unsafe { Dispatch::new(&signature, KEYS).compile_growing(&engine, &table)? };
    /// assert_eq!(round_up.call_as::<i64>((100, 64))?, 128);
    /// assert_eq!(round_up.call_as::<i64>((1, 64))?, 64);
    /// assert_eq!((table.stats().misses, table.stats().hits), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// The same as for [`Engine::compile`], for each variant.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile), or the table has another number of key names.
    #[cfg(feature = "_engine")]
    pub unsafe fn compile_growing(&self, engine: &Engine, table: &DispatchTable) -> Result<Function, EngineError> {
        let names: Vec<&str> = self.variants.iter().map(|variant| variant.signature.name()).collect();
        let maker = Signature::builder(unused("make", &names))
            .param("grow", ParamType::Function)
            .param("code", ParamType::Function)
            .returns(ParamType::Function)
            .build();
        let maker = maker.map_err(|error| EngineError::internal(error.to_string()))?;
        let functions = self.with_variants(maker, self.growing(table)?);
        // SAFETY: the caller guarantees the same for the variants, and the maker reads no memory.
        let make = unsafe { first(engine, &functions) }?;
        make.call_as((table.function(), &make)).map_err(|error| EngineError::internal(error.to_string()))
    }

    /// The body of a function that makes the dispatch's function for a table.
    #[cfg(feature = "_engine")]
    fn growing(&self, table: &DispatchTable) -> Result<Kernel, HostTextError> {
        let dims = self.signature.names_in_dims();
        let taken: Vec<&str> = self.signature.params().iter().map(|param| &*param.name).chain(dims).collect();
        let [grow, code] = ["grow", "code"].map(|name| unused(name, &taken));
        let mut text = Text { indent: 1, ..Text::default() };
        let forwarding = self.signature.of_forwarding();
        // a closure doesn't keep its own code, so it keeps a function that does
        text.put(&format!(
            "{{\n  let made = closure [{grow}: Function = grow, {code}: Function = code]\n  {forwarding}\n  "
        ));
        let (has, given) = (table.key_names().len(), self.keys.len());
        if has != given {
            let names = table.key_names().join("`, `");
            text.error(format!("the table `{}` has {has} key names (`{names}`), expected {given}", table.name()));
        }
        text.choice(self, Some(&grow));
        text.put(";\n  return move(made);\n}");
        text.kernel()
    }
}

/// Compiles functions together, and returns the first one.
///
/// # Safety
/// The same as for [`Engine::compile`], for each kernel.
#[cfg(feature = "_engine")]
unsafe fn first(engine: &Engine, functions: &[(Signature, Kernel)]) -> Result<Function, EngineError> {
    let all = functions.iter().map(|(signature, kernel)| (signature, kernel));
    // SAFETY: promised by the caller.
    let compiled = unsafe { engine.compile_functions(all) }?;
    compiled.into_iter().next().ok_or_else(|| EngineError::internal("a dispatch without a function"))
}

/// A name that is none of the others.
#[cfg(feature = "_engine")]
fn unused(name: &str, taken: &[&str]) -> String {
    let mut free = name.to_owned();
    while taken.contains(&free.as_str()) {
        free.push('_');
    }
    free
}

/// The text of a body, and the errors in those parts of it that the author of the dispatch has stated.
#[derive(Default)]
struct Text {
    text: String,
    /// The number of open blocks.
    indent: usize,
    /// Each with the place of its part.
    errors: Vec<(usize, SyntaxError)>,
}

impl Text {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn line(&mut self, deeper: usize) {
        self.text.push('\n');
        self.text.push_str(&"  ".repeat(self.indent + deeper));
    }

    /// Notes an error at the end of the text.
    #[cfg(feature = "_engine")]
    fn error(&mut self, problem: String) {
        self.errors.push((self.text.len(), SyntaxError::new("", 0..0, problem)));
    }

    /// Adds a part that the author of the dispatch has stated, and notes the errors that a parser finds in it.
    fn stated<T>(&mut self, part: &str, parse: fn(&str) -> Result<T, HostTextError>) -> Option<T> {
        let at = self.text.len();
        self.put(part);
        let noted = |error: HostTextError| self.errors.extend(error.errors.into_iter().map(|error| (at, error)));
        parse(part).map_err(noted).ok()
    }

    /// Adds a block that forwards to a variant, or `otherwise` to another callee with the keys. Each key and each row
    /// has lines of its own, which an error shows.
    fn choice(&mut self, dispatch: &Dispatch, otherwise: Option<&str>) {
        let Dispatch { keys, variants, .. } = dispatch;
        self.put("{");
        if variants.is_empty()
            && let Some(callee) = otherwise
        {
            self.line(1);
            self.forward(callee, keys.iter().map(|key| (key.as_str(), true)));
        } else {
            self.line(1);
            self.put("match");
            for (number, key) in keys.iter().enumerate() {
                self.put(if number == 0 { "" } else { "," });
                self.line(2);
                self.stated(key, host::match_key);
            }
            self.line(1);
            self.put("{");
            for Variant { row, signature, .. } in variants {
                self.line(2);
                let _: Option<Vec<At<Pattern>>> = self.stated(row, host::match_patterns);
                self.put(&format!(" => forward symbol {}();", quoted_bytes(signature.name().as_bytes())));
            }
            if let Some(callee) = otherwise {
                self.line(2);
                self.put("else => ");
                self.forward(callee, keys.iter().map(|key| (key.as_str(), false)));
            }
            self.line(1);
            self.put("}");
        }
        self.line(0);
        self.put("}");
    }

    /// Adds a forwarded call with the values of keys. A key comes with whether its errors are new.
    fn forward<'k>(&mut self, callee: &str, keys: impl Iterator<Item = (&'k str, bool)>) {
        self.put(&format!("forward {callee}("));
        for (key, is_new) in keys {
            self.line(3);
            // a key may have a name, which an input of a call doesn't
            match host::match_key(key) {
                Ok(key) => self.put(&key.value.to_string()),
                Err(_) if is_new => _ = self.stated(key, host::match_key),
                Err(_) => self.put(key),
            }
            self.put(",");
        }
        self.line(2);
        self.put(");");
    }

    /// The body with this text.
    fn kernel(self) -> Result<Kernel, HostTextError> {
        if self.errors.is_empty() {
            return Kernel::text(&self.text, [] as [(&str, Image); 0]);
        }
        let errors = self.errors.into_iter().map(|(at, error)| error.within(&self.text, at));
        Err(HostTextError::new(errors.collect()))
    }
}
