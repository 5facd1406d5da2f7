//! Data and reference draws: JSON in zip archives of one file each.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::DeflateDecoder;
use serde_json::Value;

/// The folder, where it is.
fn folder() -> PathBuf {
    std::env::var_os("REPRIOR_DATA").map_or_else(
        || {
            [env!("CARGO_MANIFEST_DIR"), "../../../shared/data"]
                .iter()
                .collect()
        },
        PathBuf::from,
    )
}

/// The JSON of `posteriordb/{kind}/{name}.json.zip`, or `None` with a line on the terminal if it is not there.
#[allow(
    clippy::print_stderr,
    reason = "a test that does nothing should say so"
)]
pub fn json(kind: &str, name: &str) -> Option<Value> {
    let path = folder()
        .join("posteriordb")
        .join(kind)
        .join(format!("{name}.json.zip"));
    let Ok(bytes) = fs::read(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    };
    Some(serde_json::from_str(&only_member(&bytes)).unwrap())
}

/// The text of the first member of a zip archive, stored by deflate with its sizes in the local header.
fn only_member(bytes: &[u8]) -> String {
    let number = |at: usize, len: usize| {
        let little = bytes[at..at + len].iter().rev();
        little.fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    assert_eq!(&bytes[..4], b"PK\x03\x04", "not a zip archive");
    assert_eq!((number(6, 2) & 8, number(8, 2)), (0, 8), "unusual archive");
    let start = 30 + number(26, 2) + number(28, 2);
    let packed = &bytes[start..start + number(18, 4)];
    let mut text = String::new();
    DeflateDecoder::new(packed)
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// A number.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// A list of numbers.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}
