//! Lowers `match`.

use super::driver::Driver;
use super::questions::{facts_of_pattern, kind_named, used_facts};
use super::value::Val;
use crate::host::tree::{At, ExprKind, Match, MatchKey as KeyTree, Pattern, Span};
use crate::lower::body::{MatchKey, MatchPart, MatchPattern, MatchRow, MatchValue};
use crate::spec::{Device, DeviceId, did_you_mean, named_dtype};
use tvm_ffi_runtime::abi::{DLDevice, DLDeviceType};

impl<'b> Driver<'b, '_, '_> {
    pub(super) fn match_(&self, span: &Span, match_: &Match) {
        let keys: Vec<Option<MatchKey<'b>>> = match_.keys.iter().map(|key| self.match_key(key)).collect();
        let mut is_wrong = keys.iter().any(Option::is_none);
        let mut rows = Vec::with_capacity(match_.rows.len());
        for row in &match_.rows {
            let of_keys = keys.iter().map(Some).chain(std::iter::repeat(None));
            let mut patterns = Vec::with_capacity(row.patterns.len());
            for (pattern, key) in row.patterns.iter().zip(of_keys) {
                let made = match key {
                    Some(Some(key)) => self.match_pattern(key, pattern),
                    // a pattern without a key is an error of the row
                    _ => Some(MatchPattern::Any),
                };
                is_wrong |= made.is_none();
                patterns.extend(made);
            }
            rows.push(MatchRow::new(patterns, move || {
                let stated = match_.keys.iter().zip(&row.patterns);
                let facts: Vec<_> =
                    stated.flat_map(|(key, pattern)| facts_of_pattern(&key.value, &pattern.value)).collect();
                self.knowing(&used_facts(facts, &row.block), row.block.span.end, || self.block(&row.block));
            }));
        }
        let otherwise = match_.otherwise.as_ref();
        let otherwise = otherwise.map(|block| -> Box<dyn FnOnce() + '_> { Box::new(|| self.block(block)) });
        let at = |part: MatchPart| {
            let row = |row: usize| match_.rows.get(row);
            let found = match part {
                MatchPart::Whole => None,
                MatchPart::Key(key) => match_.keys.get(key).map(|key| &key.value.span),
                MatchPart::Row(number) => row(number).map(|row| &row.span),
                MatchPart::Pattern(number, key) => {
                    row(number).and_then(|row| row.patterns.get(key)).map(|pattern| &pattern.span)
                }
                MatchPart::Otherwise => match_.otherwise.as_ref().map(|block| &block.span),
            };
            self.at(found.unwrap_or(span));
        };
        match is_wrong {
            true => self.body.wrong_match(rows, otherwise),
            false => self.body.match_of(keys.into_iter().flatten().collect(), rows, otherwise, &at),
        }
    }

    /// A key; `None` after an error.
    fn match_key(&self, key: &KeyTree) -> Option<MatchKey<'b>> {
        let KeyTree { name, value } = key;
        let name = name.clone().unwrap_or_else(|| value.to_string());
        if let ExprKind::Part(of, part) = &*value.kind
            && part.value == "kind"
        {
            let of = self.value(of);
            let device = self.as_device(&of);
            if device.is_none() && !matches!(of, Val::Missing) {
                self.error(&part.span, "kind", "only a device has one: `x.device.kind`");
            }
            return Some(MatchKey::new(name, MatchValue::DeviceKind(device?)));
        }
        let found = self.value(value);
        self.at(&value.span);
        let found: MatchValue<'b> = match found {
            Val::DType(dtype) => dtype.into(),
            Val::Device(device) => device.into(),
            Val::Param(param) | Val::Whole(param) => param.into(),
            Val::Result(result) => result.into(),
            Val::Missing => return None,
            found => self.as_expr(&value.span, found).into(),
        };
        Some(MatchKey::new(name, found))
    }

    /// A pattern for a key; `None` after an error.
    fn match_pattern(&self, key: &MatchKey<'b>, pattern: &At<Pattern>) -> Option<MatchPattern> {
        let At { span, value } = pattern;
        let wrong = |problem: String| {
            self.error(span, "match", problem);
            None
        };
        Some(match value {
            Pattern::Any => MatchPattern::Any,
            Pattern::Int(value) => MatchPattern::Int(*value),
            Pattern::Bool(value) => MatchPattern::Bool(*value),
            Pattern::Range(start, end) => MatchPattern::Range(*start..*end),
            Pattern::Name(name) => match named_dtype(name) {
                Ok(dtype) => MatchPattern::DType(dtype),
                Err(_) => {
                    return wrong(format!("expected a constant or `_`, got `{name}`, which is no dtype"));
                }
            },
            Pattern::Text(text) => {
                let Ok(text) = String::from_utf8(text.clone()) else {
                    return wrong("the text isn't UTF-8".to_owned());
                };
                match key.value {
                    MatchValue::Device(_) => MatchPattern::Device(match text.parse::<Device>() {
                        Ok(Device::Kind(kind, DeviceId::Fixed(id))) => DLDevice::new(kind, id),
                        Ok(Device::Kind(kind, DeviceId::Shared)) => DLDevice::new(kind, 0),
                        _ => return wrong(format!("`{text}` is no device, such as `cuda:1`")),
                    }),
                    MatchValue::DeviceKind(_) => match kind_named(&text) {
                        Some(kind) => MatchPattern::DeviceKind(kind),
                        None => {
                            let names: Vec<&str> = DLDeviceType::ALL.iter().filter_map(|kind| kind.name()).collect();
                            return wrong(format!(
                                "no kind of device is called `{text}`{}",
                                did_you_mean(&text, &names)
                            ));
                        }
                    },
                    _ => MatchPattern::Str(text),
                }
            }
        })
    }
}
