//! One array in NumPy's `.npy` format, read from an untrusted stream.
//!
//! Layout: `\x93NUMPY`, version (two bytes), length of the header (2 bytes in version 1, 4 in later ones, little-endian), the header (a Python dictionary with
//! `descr`, `fortran_order`, `shape`), then the values. The header is parsed here rather than by a library because its declared sizes are not to be believed:
//! memory grows with the bytes that have arrived, is asked for before it is used, and the declared shape has to match the
//! stream's length.

use std::io::Read;

use crate::memory;

/// The longest header accepted, in bytes; NumPy's own are below 200.
const MAX_HEADER: usize = 1 << 16;

/// Bytes that are asked of the system without a look at what is free.
const UNCHECKED: u64 = 64 << 20;

/// An array of numbers, all finite.
#[derive(Debug)]
pub(super) struct NpyArray {
    /// Lengths of the axes; the first may have been cut.
    pub shape: Vec<usize>,
    /// Length of the first axis before it was cut.
    pub records: usize,
    /// Values with the last axis fastest.
    pub values: Vec<f64>,
    /// Whether the values were stored as integers or truth values.
    pub is_integer: bool,
}

/// The type of an element.
#[derive(Clone, Copy)]
struct NumberKind {
    letter: u8,
    size: usize,
    is_big_endian: bool,
}

/// Reads an array of `length` bytes from `stream`; of an array in C order, only the first `rows` entries of the first axis.
///
/// The error is a description without the file's name.
pub(super) fn read(
    stream: &mut impl Read,
    length: u64,
    rows: Option<usize>,
) -> Result<NpyArray, String> {
    let (text, header_length) = read_header_text(stream)?;
    let kind = kind(&text)?;
    let is_fortran =
        match after(&text, "fortran_order")? {
            rest if rest.starts_with("True") => true,
            rest if rest.starts_with("False") => false,
            _ => return Err(
                "its header does not say the order of its values; write it again with numpy.savez"
                    .to_string(),
            ),
        };
    let mut shape = shape(&text)?;
    let count = shape
        .iter()
        .try_fold(1_usize, |product, &axis| product.checked_mul(axis));
    let bytes = count
        .and_then(|count| count.checked_mul(kind.size))
        .map(|bytes| bytes as u64);
    if bytes.and_then(|bytes| bytes.checked_add(header_length)) != Some(length) {
        return Err(format!(
            "its shape {shape:?} does not fit its {length} bytes; the file is truncated or damaged"
        ));
    }
    let is_cut = !is_fortran && rows.is_some_and(|rows| rows < shape[0]);
    let records = shape[0];
    if is_cut {
        shape[0] = rows.unwrap_or(shape[0]);
    }
    let count = shape.iter().product();
    // once as they are read, once as they are put into sets
    let needed = (count as u64).saturating_mul(2 * 8);
    if needed > UNCHECKED && needed > memory::left() {
        return Err(too_large(count));
    }
    let values = read_values(stream, kind, count, !is_cut)?;
    let values = if is_fortran {
        from_fortran(&values, &shape)?
    } else {
        values
    };
    if let Some(bad) = values.iter().position(|value| !value.is_finite()) {
        return Err(format!(
            "{} at index {:?} is not finite; remove or replace it",
            values[bad],
            index(bad, &shape)
        ));
    }
    Ok(NpyArray {
        shape,
        records,
        values,
        is_integer: kind.letter != b'f',
    })
}

fn read_header_text(stream: &mut impl Read) -> Result<(String, u64), String> {
    let broken = |_| "its header is truncated; the file is damaged".to_string();
    let mut start = [0; 8];
    stream.read_exact(&mut start).map_err(broken)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(
            "it does not begin as a NumPy array; write it again with numpy.savez".to_string(),
        );
    }
    let width = if start[6] == 1 { 2 } else { 4 };
    let mut size = [0; 4];
    stream.read_exact(&mut size[..width]).map_err(broken)?;
    let size = u32::from_le_bytes(size) as usize;
    if size > MAX_HEADER {
        return Err(format!(
            "its header claims {size} bytes; the file is damaged"
        ));
    }
    let mut header = vec![0; size];
    stream.read_exact(&mut header).map_err(broken)?;
    Ok((
        String::from_utf8_lossy(&header).into_owned(),
        (8 + width + size) as u64,
    ))
}

/// What follows `'key':` in the header.
fn after<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    [format!("'{key}':"), format!("\"{key}\":")]
        .iter()
        .find_map(|key| {
            header
                .find(key.as_str())
                .map(|at| header[at + key.len()..].trim_start())
        })
        .ok_or_else(|| format!("its header has no `{key}`; write it again with numpy.savez"))
}

fn kind(header: &str) -> Result<NumberKind, String> {
    let rest = after(header, "descr")?;
    let name = match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => "a structured type",
    };
    let (is_big_endian, plain) = match name.strip_prefix('>') {
        Some(plain) => (true, plain),
        None => (false, name.trim_start_matches(['<', '|', '='])),
    };
    let (letter, size) = match plain {
        "f4" | "f8" | "i1" | "i2" | "i4" | "i8" | "u1" | "u2" | "u4" | "u8" | "b1" => {
            (plain.as_bytes()[0], usize::from(plain.as_bytes()[1] - b'0'))
        }
        _ => {
            return Err(format!(
                "its type is `{}`; convert it to float64, float32, an integer type or bool",
                super::error::excerpt(name)
            ));
        }
    };
    Ok(NumberKind {
        letter,
        size,
        is_big_endian,
    })
}

fn shape(header: &str) -> Result<Vec<usize>, String> {
    let broken = || "its header has no readable shape; write it again with numpy.savez".to_string();
    let rest = after(header, "shape")?
        .strip_prefix('(')
        .ok_or_else(broken)?;
    let (inside, _) = rest.split_once(')').ok_or_else(broken)?;
    let axes = inside
        .split(',')
        .map(str::trim)
        .filter(|axis| !axis.is_empty());
    let shape = axes
        .map(|axis| axis.parse().map_err(|_| broken()))
        .collect::<Result<Vec<usize>, _>>()?;
    match shape.len() {
        0 => Err("it is a single number; an array with one entry per record is needed".to_string()),
        1..=4 => Ok(shape),
        axes => Err(format!(
            "it has {axes} axes; at most 4 are understood (record, row, column, channel)"
        )),
    }
}

/// Reads `count` values; with `to_end`, nothing may follow (which also lets an archive verify its checksum).
fn read_values(
    stream: &mut impl Read,
    kind: NumberKind,
    count: usize,
    to_end: bool,
) -> Result<Vec<f64>, String> {
    let mut values = Vec::new();
    let mut buffer = vec![0; (1 << 13) * kind.size];
    while values.len() < count {
        let elements = (count - values.len()).min(1 << 13);
        let chunk = elements * kind.size;
        reserve(&mut values, elements, count)?;
        stream.read_exact(&mut buffer[..chunk]).map_err(|cause| {
            format!("its values cannot be read ({cause}); the file is truncated or damaged")
        })?;
        for element in buffer[..chunk].chunks_exact(kind.size) {
            values.push(decode(element, kind)?);
        }
    }
    if to_end {
        match stream.read(&mut [0]) {
            Ok(0) => {}
            Ok(_) => return Err("bytes follow its last value; the file is damaged".to_string()),
            Err(cause) => {
                return Err(format!(
                    "its end cannot be read ({cause}); the file is damaged"
                ));
            }
        }
    }
    Ok(values)
}

fn decode(element: &[u8], kind: NumberKind) -> Result<f64, String> {
    let mut bits = 0_u64;
    for position in 0..kind.size {
        let byte = if kind.is_big_endian {
            element[position]
        } else {
            element[kind.size - 1 - position]
        };
        bits = bits << 8 | u64::from(byte);
    }
    let unused = 64 - 8 * kind.size as u32;
    match kind.letter {
        b'f' if kind.size == 4 => Ok(f64::from(f32::from_bits(bits as u32))),
        b'f' => Ok(f64::from_bits(bits)),
        b'i' => exact((bits << unused) as i64 >> unused),
        b'b' => Ok(f64::from(u8::from(bits != 0))),
        _ => exact(i64::try_from(bits).unwrap_or(i64::MAX)),
    }
}

fn exact(integer: i64) -> Result<f64, String> {
    if integer.unsigned_abs() <= 1 << 53 {
        Ok(integer as f64)
    } else {
        Err("it holds an integer beyond 2^53, which a real number cannot represent exactly; rescale it or save it as float64".to_string())
    }
}

/// Asks for memory of `additional` of the `count` values in all.
pub(super) fn reserve(
    values: &mut Vec<f64>,
    additional: usize,
    count: usize,
) -> Result<(), String> {
    values.try_reserve(additional).map_err(|_| too_large(count))
}

fn too_large(count: usize) -> String {
    format!(
        "its {count} values ({} MB as real numbers) do not fit into memory; ask for fewer records, or save fewer in the file",
        (count as u64).saturating_mul(8) / 1_000_000
    )
}

/// Reorders values with the first axis fastest into values with the last axis fastest.
fn from_fortran(values: &[f64], shape: &[usize]) -> Result<Vec<f64>, String> {
    let mut reordered = Vec::new();
    reserve(&mut reordered, values.len(), values.len())?;
    reordered.extend((0..values.len()).map(|position| {
        let at = index(position, shape);
        let offset = at
            .iter()
            .zip(shape)
            .rev()
            .fold(0, |offset, (&at, &axis)| offset * axis + at);
        values[offset]
    }));
    Ok(reordered)
}

/// The index along each axis of the value at `position`, the last axis being fastest.
fn index(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for (at, &axis) in at.iter_mut().zip(shape).rev() {
        *at = position % axis;
        position /= axis;
    }
    at
}
