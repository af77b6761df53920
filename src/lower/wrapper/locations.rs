//! The source locations (`SourceLocation`s) added to the errors of a wrapper.

use super::records;
use crate::ir::{BinaryOp, DataRef, Emitter, Type, Val};
use crate::lower::protocol::{Field, SizedText, field, state_offset};
use crate::lower::trace;
use crate::lower::unit::ModulePool;
use crate::spec::{Part, Signature, SourceLocation};

/// Appends the place of a part of the signature to the backtrace of the error raised with `code`; does nothing if the
/// part has no location.
pub(super) fn append<'c>(c: Emitter<'c>, pool: &mut ModulePool, signature: &Signature, part: Part, code: Val<'c>) {
    if let Some([line, wrapper]) = texts(c, pool, signature, part) {
        trace::append_texts(c, line, wrapper, code);
    }
}

/// The arguments of [`append_texts`](trace::append_texts) for a part of the signature, in the current wrapper; `None`
/// if the part has no location.
pub(super) fn texts<'c>(
    c: Emitter<'c>,
    pool: &mut ModulePool,
    signature: &Signature,
    part: Part,
) -> Option<[[Val<'c>; 2]; 2]> {
    let location = signature.location(part)?;
    let wrapper = c.with(|b| {
        let func = b.func_ref();
        trace::end_of_line(records::exported_name(&b.module().functions[func].name))
    });
    Some([line(location), wrapper].map(|text| trace::text(c, pool, &text)))
}

fn line(location: &SourceLocation) -> String {
    trace::line(&location.file, location.line, &location.function)
}

/// The locations of a signature, indexed by the numbers that `bind` assigns to the subjects of its checks: the passed
/// parameters, the constraints, the result. The call itself has number -1 and comes last.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocationTable {
    /// The data that contains the table.
    data: DataRef,
    /// The offset and the length of the end of the wrapper's line.
    wrapper: (u32, usize),
    /// The offset of an array with a [`SizedText`] for each subject.
    offset: u32,
    /// The index of the call itself.
    last: i64,
    /// Offset of the subject's number in the scratch memory.
    number: i32,
}

impl LocationTable {
    /// Writes the table of a signature into the pool; `None` if the signature has no location.
    pub(super) fn new(pool: &mut ModulePool, signature: &Signature, wrapper: &str) -> Option<Self> {
        if !signature.has_locations() {
            return None;
        }
        let passed = signature.params().iter().enumerate().filter(|(_, param)| param.is_passed());
        let passed: Vec<_> = passed.map(|(number, _)| Part::Param(number)).collect();
        let number = state_offset(signature) as i32 + 8 * Field::Arg as i32;
        let constraints = (0..signature.constraints().len()).map(Part::Constraint);
        let parts: Vec<_> = passed.into_iter().chain(constraints).chain([Part::Result, Part::Signature]).collect();
        let mut bytes = Vec::new();
        for part in &parts {
            // a part without a location has an empty string, which adds nothing to the backtrace
            let line = signature.location(*part).map_or_else(String::new, line);
            let text = SizedText { text: pool.constants.text(&line), len: line.len() as u32 };
            bytes.extend(pool.constants.encoded(&text));
        }
        let offset = pool.constants.descriptor(&bytes);
        let wrapper = trace::end_of_line(wrapper);
        let wrapper = (pool.constants.text(&wrapper), wrapper.len());
        Some(LocationTable { data: pool.data, wrapper, offset, last: parts.len() as i64 - 1, number })
    }

    /// Appends the place of the subject that failed its check to the backtrace of the error that `bind` has raised with
    /// `code`.
    pub(super) fn append<'c>(&self, c: Emitter<'c>, scratch: Val<'c>, code: Val<'c>) {
        let number = scratch.load(Type::I64, self.number).binary(BinaryOp::UMin, self.last);
        const { assert!(size_of::<SizedText>() == 8) };
        let entry = c.data(self.data, self.offset).element(number, Type::I64);
        let [text, len] =
            [field!(SizedText, text), field!(SizedText, len)].map(|field| entry.load(field.ty, field.offset).zext());
        let text = c.data(self.data, 0) + text;
        let (wrapper, wrapper_len) = self.wrapper;
        let wrapper = [c.data(self.data, wrapper), c.i64(wrapper_len as i64)];
        trace::append_texts(c, [text, len], wrapper, code);
    }
}
