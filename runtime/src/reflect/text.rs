//! String forms of numbers, strings and bytes, as upstream writes them.

use std::fmt::Write;

/// Formats a number as C's `%.*g` does.
pub(super) fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs());
    }
    without_zeros(&format!("{value:.*}", (precision as i32 - 1 - exponent) as usize))
}

/// Decodes the code point at the start of `bytes` if its bytes have the form of UTF-8. Returns it with its length in
/// bytes.
fn code_point(bytes: &[u8]) -> Option<(u32, usize)> {
    let (first, lead, len) = match *bytes.first()? {
        byte if byte & 0xe0 == 0xc0 => (byte, 0x1f, 2),
        byte if byte & 0xf0 == 0xe0 => (byte, 0x0f, 3),
        byte if byte & 0xf8 == 0xf0 => (byte, 0x07, 4),
        _ => return None,
    };
    let rest = bytes.get(1..len)?;
    if rest.iter().any(|byte| byte & 0xc0 != 0x80) {
        return None;
    }
    Some((rest.iter().fold(u32::from(first & lead), |code, byte| code << 6 | u32::from(byte & 0x3f)), len))
}

/// The length of the sequence at the start of `bytes` that sets a terminal's colour.
fn colour_sequence(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    matches!(rest[end], b'm' | b'K').then_some(end + 3)
}

/// A string in quotes, as upstream writes it for Python. The result is ASCII.
pub(super) fn quoted(mut bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    while let Some(&byte) = bytes.first() {
        let mut len = 1;
        if let Some(sequence) = colour_sequence(bytes) {
            len = sequence;
            out.push_str("\\x1b");
            out.extend(bytes[1..len].iter().map(|&byte| char::from(byte)));
        } else if let Some((code, code_len)) = code_point(bytes) {
            len = code_len;
            _ = if len == 4 { write!(out, "\\U{code:08x}") } else { write!(out, "\\u{code:04x}") };
        } else {
            match byte {
                b'\n' => out.push_str("\\n"),
                b'\t' => out.push_str("\\t"),
                b'\r' => out.push_str("\\r"),
                b'\\' => out.push_str("\\\\"),
                b'"' => out.push_str("\\\""),
                b' '..=b'~' => out.push(char::from(byte)),
                _ => _ = write!(out, "\\x{byte:02x}"),
            }
        }
        bytes = &bytes[len..];
    }
    out.push('"');
    out
}

/// Bytes as a Python literal.
pub(super) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("b\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => _ = write!(out, "\\x{byte:02x}"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => _ = write!(out, "\\x{byte:02x}"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_printf_writes_them() {
        let written: Vec<String> = [0.0, -0.0, 1.0, 0.1, 100000.0, 1e6, 1.5e-5, 123456.7, 1e300, f64::MIN_POSITIVE]
            .map(|v| general(v, 6))
            .into();
        assert_eq!(written, ["0", "-0", "1", "0.1", "100000", "1e+06", "1.5e-05", "123457", "1e+300", "2.22507e-308"]);
        assert_eq!(general(0.1, 17), "0.10000000000000001");
        assert_eq!(general(1e22, 17), "1e+22");
        assert_eq!([general(f64::INFINITY, 6), general(f64::NAN, 6)], ["inf", "nan"]);
    }

    #[test]
    fn strings_are_ascii() {
        assert_eq!(
            quoted("a\"\\\n\u{1}é€😀\x1b[31mred".as_bytes()),
            r#""a\"\\\n\x01\u00e9\u20ac\U0001f600\x1b[31mred""#
        );
        assert_eq!(quoted(b"\xff\xe2\x28"), r#""\xff\xe2(""#);
        assert_eq!(quoted_bytes(b"a\"\\\x00"), r#"b"a\x22\x5c\x00""#);
    }
}
