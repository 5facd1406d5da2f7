//! A safetensors file: its header first, then each tensor by itself, so that a file of something else is never in memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata};

use super::WeightsError;
use super::error::printable;

/// Bytes of the header's length, and the most bytes of a header, as the format has it.
const LENGTH_BYTES: u64 = 8;
const MOST_HEADER_BYTES: u64 = 100_000_000;

/// A tensor as the header describes it.
#[derive(Debug, Clone)]
pub(super) struct TensorEntry {
    pub name: String,
    pub shape: Vec<usize>,
    dtype: Dtype,
    /// Its first byte in the file, and how many.
    place: (u64, usize),
}

/// A file whose header has been checked against its length.
#[derive(Debug)]
pub(super) struct TensorFile<R> {
    path: PathBuf,
    file: R,
    /// In no order.
    pub tensors: Vec<TensorEntry>,
}

impl TensorFile<File> {
    /// Opens the file and reads its header.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        let unreadable = || WeightsError::io(path);
        // what is not a file, such as a pipe, could be waited for without end
        let kind = std::fs::metadata(path).map_err(unreadable())?;
        if !kind.is_file() {
            let cause = Error::new(ErrorKind::InvalidInput, "it is not a file");
            return Err(unreadable()(cause));
        }
        Self::new(File::open(path).map_err(unreadable())?, path)
    }
}

impl<R: Read + Seek> TensorFile<R> {
    /// Reads the header of a file that messages call `path`.
    pub fn new(mut file: R, path: &Path) -> Result<Self, WeightsError> {
        let unreadable = || WeightsError::io(path);
        let bytes = file.seek(SeekFrom::End(0)).map_err(unreadable())?;
        file.rewind().map_err(unreadable())?;
        let damaged = |reason: &dyn ToString| WeightsError::damaged(path, reason.to_string());
        let mut length = [0; LENGTH_BYTES as usize];
        if bytes < LENGTH_BYTES {
            return Err(damaged(&"it has fewer than 8 bytes"));
        }
        file.read_exact(&mut length).map_err(unreadable())?;
        let header_bytes = u64::from_le_bytes(length);
        if header_bytes > MOST_HEADER_BYTES.min(bytes - LENGTH_BYTES) {
            return Err(damaged(&"its header is longer than the file"));
        }
        let mut header = vec![0; header_bytes as usize];
        file.read_exact(&mut header).map_err(unreadable())?;
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|error| damaged(&error))?;
        let first = LENGTH_BYTES + header_bytes;
        let entry = |(name, information): (String, &safetensors::tensor::TensorInfo)| {
            let (start, end) = information.data_offsets;
            TensorEntry {
                name,
                shape: information.shape.clone(),
                dtype: information.dtype,
                place: (first + start as u64, end - start),
            }
        };
        let mut tensors: Vec<_> = metadata.tensors().into_iter().map(entry).collect();
        // a map has no order, and messages are the same each time
        tensors.sort_by(|one, other| one.name.cmp(&other.name));
        let end = |tensor: &TensorEntry| tensor.place.0 + tensor.place.1 as u64;
        let end = tensors.iter().map(end).max().unwrap_or(first);
        if end != bytes {
            return Err(damaged(&format!(
                "its tensors end at byte {end}, the file at {bytes}"
            )));
        }
        Ok(Self {
            path: path.to_path_buf(),
            file,
            tensors,
        })
    }

    /// All numbers of tensor `index`, in C order.
    ///
    /// # Errors
    /// Another type than a floating-point one; numbers that are not finite; a disk that refuses.
    pub fn read(&mut self, index: usize) -> Result<Vec<f64>, WeightsError> {
        let tensor = &self.tensors[index];
        let (start, length) = tensor.place;
        let decode: fn(&[u8]) -> Vec<f64> = match tensor.dtype {
            Dtype::F64 => |bytes| each(bytes, f64::from_le_bytes),
            Dtype::F32 => |bytes| each(bytes, |word| f64::from(f32::from_le_bytes(word))),
            Dtype::F16 => |bytes| each(bytes, |word| half(u16::from_le_bytes(word))),
            Dtype::BF16 => |bytes| {
                // the upper half of a number in single precision
                let upper = |word| u32::from(u16::from_le_bytes(word)) << 16;
                each(bytes, |word| f64::from(f32::from_bits(upper(word))))
            },
            other => {
                return Err(WeightsError::Type {
                    path: self.path.display().to_string(),
                    tensor: printable(&tensor.name),
                    found: format!("{other:?}"),
                });
            }
        };
        let mut bytes = vec![0; length];
        let place = SeekFrom::Start(start);
        let read = self.file.seek(place);
        read.and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(WeightsError::io(&self.path))?;
        let values = decode(&bytes);
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => {
                let allowed = "weights must be finite; did the training diverge?";
                Err(self.wrong_number(index, at, values[at], allowed))
            }
        }
    }

    /// The error that element `at`, in C order, of tensor `index` is not what is `allowed`.
    pub fn wrong_number(
        &self,
        index: usize,
        at: usize,
        value: f64,
        allowed: &'static str,
    ) -> WeightsError {
        let tensor = &self.tensors[index];
        let mut place = Vec::with_capacity(tensor.shape.len());
        let mut left = at;
        for &length in tensor.shape.iter().rev() {
            place.push(left % length.max(1));
            left /= length.max(1);
        }
        place.reverse();
        WeightsError::Number {
            path: self.path.display().to_string(),
            tensor: printable(&tensor.name),
            value,
            index: place,
            allowed,
        }
    }
}

fn each<const SIZE: usize>(bytes: &[u8], decode: impl Fn([u8; SIZE]) -> f64) -> Vec<f64> {
    let (words, _) = bytes.as_chunks::<SIZE>();
    words.iter().map(|&word| decode(word)).collect()
}

/// A number of IEEE half precision: sign, 5 bits of exponent, 10 of mantissa.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => mantissa * 2.0_f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2.0_f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn half_precision_is_read_as_the_standard_has_it() {
        // IEEE 754-2008, binary16: the least and largest numbers of either kind, one third, infinity
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2.0_f64.powi(-24)),
            (0x03ff, 1023.0 * 2.0_f64.powi(-24)),
            (0x0400, 2.0_f64.powi(-14)),
            (0x3555, 0.333_251_953_125),
            (0x7c00, f64::INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan() && half(0x8000).is_sign_negative());
    }
}
