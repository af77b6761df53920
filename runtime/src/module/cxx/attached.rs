//! The C++ part of this process, which calls the virtual methods of C++ modules, and has a vtable for this crate's.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::any::Any;
use crate::container::Map;
use crate::error::{Result, runtime_error};
use crate::function::{CallArgs, Function};

/// Names the methods: a field for each, and its name in the C++ part.
macro_rules! methods {
    ($($field:ident)*) => {
        /// Functions of the C++ part. Each calls the virtual method on the module in its first argument.
        pub(in crate::module) struct Methods {
            $(pub(in crate::module) $field: Method,)*
        }

        impl Methods {
            fn from_map(methods: &Map) -> Result<Self> {
                let method = |name: &str| match methods.get(name)? {
                    Some(method) => Ok(Method(method.cast()?)),
                    None => Err(runtime_error(&format!("the C++ part has no method `{name}`"))),
                };
                Ok(Self { $($field: method(stringify!($field))?,)* })
            }
        }
    };
}

methods!(
    kind property_mask get_function implements_function function_metadata function_doc save_to_bytes inspect_source
    write_formats write_to_file import_module clear_imports keep_function
);

pub(in crate::module) struct Method(Function);

impl Method {
    pub(in crate::module) fn call(&self, args: impl CallArgs) -> Result<Any> {
        self.0.call(args)
    }
}

struct Attached {
    vtable: *const c_void,
    methods: Methods,
}

// SAFETY: the vtable is read-only data of the C++ part, which stays in the process.
unsafe impl Send for Attached {}
// SAFETY: as above.
unsafe impl Sync for Attached {}

static ATTACHED: OnceLock<Attached> = OnceLock::new();

/// The methods of C++ modules; `None` without a C++ part.
pub(in crate::module) fn methods() -> Option<&'static Methods> {
    ATTACHED.get().map(|attached| &attached.methods)
}

/// The vtable of this crate's modules; `None` without a C++ part.
pub(in crate::module) fn vtable() -> Option<*const c_void> {
    ATTACHED.get().map(|attached| attached.vtable)
}

/// # Errors
/// If a method is missing, or if there is a C++ part already.
///
/// # Safety
/// As [`attach`](super::attach).
pub(super) unsafe fn set(vtable: *const c_void, methods: &Map) -> Result<()> {
    let methods = Methods::from_map(methods)?;
    ATTACHED.set(Attached { vtable, methods }).map_err(|_| runtime_error("the process has two C++ parts"))
}
