use std::collections::HashSet;

use tvm_ffi_runtime::registry::get_global;
use tvm_ffi_runtime::{Any, BigInt, Map, TypeIndex};

/// The powers of two around the ends of words, and their neighbours, with both signs.
fn samples() -> Vec<BigInt> {
    let mut samples: Vec<BigInt> = [0, 63, 64, 65, 127, 128, 129, 191, 640]
        .into_iter()
        .flat_map(|shift: usize| {
            let mut bytes = vec![0; shift / 8 + 2];
            bytes[shift / 8] = 1 << (shift % 8);
            let power = BigInt::from_le_bytes(&bytes);
            let mut below = vec![0xff; shift / 8 + 2];
            below[shift / 8] = (1u16 << (shift % 8)).wrapping_sub(1) as u8;
            below[shift / 8 + 1] = 0;
            let negative: Vec<u8> = below.iter().map(|byte| !byte).collect();
            [BigInt::from_le_bytes(&below), power, BigInt::from_le_bytes(&negative)]
        })
        .collect();
    samples.extend([0, 1, -1, i64::MAX, i64::MIN].map(BigInt::from));
    samples
}

#[test]
fn texts_and_bytes_go_both_ways() {
    for value in samples() {
        assert_eq!(value.to_string().parse::<BigInt>().unwrap(), value);
        assert_eq!(BigInt::from_le_bytes(&value.to_le_bytes()), value);
        assert_eq!(BigInt::from_words(value.as_words()), value);
        assert_eq!(Any::from(value.clone()).cast::<BigInt>().unwrap(), value);
        let is_small = i64::try_from(&value).is_ok();
        assert_eq!(Any::from(value.clone()).type_index() == TypeIndex::INT, is_small);
        assert_eq!(value.as_words().len() == 1, is_small);
    }
    for text in ["", "-", "+", " 1", "1 ", "1_0", "0x1", "--1"] {
        assert_eq!(text.parse::<BigInt>().unwrap_err().kind(), "ValueError", "{text}");
    }
    assert_eq!("+0012".parse::<BigInt>().unwrap(), BigInt::from(12));
    assert_eq!("-0".parse::<BigInt>().unwrap(), BigInt::default());
    assert_eq!(format!("{:>5}|{:+}", BigInt::from(-7), BigInt::from(7)), "   -7|+7");
}

#[test]
fn rusts_integers_go_both_ways() {
    for value in [0, 1, -1, i128::MAX, i128::MIN, i128::from(i64::MAX) + 1, i128::from(i64::MIN) - 1] {
        let big = BigInt::from(value);
        assert_eq!(big.to_string(), value.to_string());
        assert_eq!(i128::try_from(&big), Ok(value));
        assert_eq!(Any::from(value).cast::<i128>().unwrap(), value);
        assert_eq!(u128::try_from(&big).ok(), u128::try_from(value).ok());
        assert_eq!(i64::try_from(&big).ok(), i64::try_from(value).ok());
        assert_eq!(u64::try_from(&big).ok(), u64::try_from(value).ok());
    }
    for value in [u128::MAX, 1 << 127, 1 << 64] {
        assert_eq!(BigInt::from(value).to_string(), value.to_string());
        assert_eq!(Any::from(value).cast::<u128>().unwrap(), value);
    }
    assert!(i128::try_from(&BigInt::from(u128::MAX)).is_err());
    assert_eq!(Any::from(u128::MAX).cast::<i128>().unwrap_err().kind(), "ValueError");
    assert_eq!(Any::from(u128::MAX).cast::<i64>().unwrap_err().kind(), "TypeError");
    assert_eq!(BigInt::from(u64::MAX).to_string(), u64::MAX.to_string());
    assert_eq!(Any::from(true).cast::<BigInt>().unwrap(), BigInt::from(1));
    assert_eq!(Any::from("1").cast::<BigInt>().unwrap_err().kind(), "TypeError");
}

#[test]
fn they_are_ordered_and_are_keys() {
    let mut values: Vec<i128> =
        vec![0, 1, -1, 5, i128::MAX, i128::MIN, 1 << 64, -1 << 64, (1 << 64) + 1, -(1 << 64) - 1];
    let mut big: Vec<BigInt> = values.iter().copied().map(BigInt::from).collect();
    values.sort_unstable();
    big.sort_unstable();
    assert_eq!(big, values.iter().copied().map(BigInt::from).collect::<Vec<_>>());
    assert_eq!(big.iter().cloned().chain(big.iter().cloned()).collect::<HashSet<_>>().len(), values.len());

    let entries = || values.iter().map(|&value| (BigInt::from(value), value.to_string()));
    let map = Map::try_from_entries(entries().chain(entries())).unwrap();
    assert_eq!(map.len(), values.len());
    for value in values {
        assert_eq!(map.get(&BigInt::from(value)).unwrap().unwrap().as_str(), Some(&*value.to_string()));
    }
    let echo = get_global("ffi.Array").unwrap().call((BigInt::from(u128::MAX), 1u128)).unwrap();
    assert_eq!(format!("{:?}", echo.cast::<tvm_ffi_runtime::Array>().unwrap()[1]), "1");
}
