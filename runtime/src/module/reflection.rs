//! The one field of modules that upstream's reflection exposes: `imports_`, an array.
//! No header section: upstream registers it in `extra/module_internal.h`.

use std::ffi::{c_int, c_void};

use super::object::Module;
use crate::abi::*;
use crate::any::Any;
use crate::boundary::{guard, null_argument, required_out};
use crate::container::Array;
use crate::error::{runtime_error, type_mismatch};
use crate::heap::ObjectRef;
use crate::type_table::{Definition, FieldDef};

/// The reflection that is registered for `ffi.Module`.
pub(crate) fn types() -> Vec<Definition> {
    let imports = FieldDef {
        name: "imports_",
        doc: "",
        schema: r#"{"type_schema":"{\"type\":\"ffi.Array\",\"args\":[{\"type\":\"Any\"}]}"}"#,
        flags: 0,
        size: size_of::<TVMFFIObjectHandle>(),
        // The getter takes the object itself, since it makes the array on demand.
        offset: 0,
        getter: get_imports,
        setter: Some(refuse_imports),
        static_index: TypeIndex::ARRAY,
    };
    vec![Definition::object("ffi.Module", "ffi.Object", size_of::<[u64; 6]>(), true).field(imports.info())]
}

/// The setter of the read-only field: it always fails. It exists because upstream's field has one.
unsafe extern "C" fn refuse_imports(_field: *mut c_void, _value: *const TVMFFIAny) -> c_int {
    guard(|| Err(runtime_error("`imports_` changes by `ffi.ModuleImportModule` and `ffi.ModuleClearImports`")))
}

/// Reads the field of the module that `field` points at.
unsafe extern "C" fn get_imports(field: *mut c_void, result: *mut TVMFFIAny) -> c_int {
    guard(|| {
        let result = required_out(result, "result")?;
        // SAFETY: by the header, a getter is called with an object's address plus the field's offset, which is 0.
        let object = unsafe { ObjectRef::clone_from_raw(field.cast()) }.ok_or_else(|| null_argument("field"))?;
        let module: Module =
            object.downcast().map_err(|object: ObjectRef| type_mismatch("ffi.Module", object.type_index()))?;
        let imports: Any = module.imports().into_iter().collect::<Array>().into();
        // SAFETY: the result is readable, and this reads only its type index.
        if TypeIndex(unsafe { (*result).type_index }).is_object() {
            return Err(runtime_error("result must be initialised to None"));
        }
        // SAFETY: as above; the result is also writable, and owns nothing that would leak.
        unsafe { result.write(imports.into_raw()) };
        Ok(())
    })
}
