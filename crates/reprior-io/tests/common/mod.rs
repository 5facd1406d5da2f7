//! Small files in temporary folders.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};
use reprior::model::dataset::{Dataset, Split, Targets};
use reprior_io::data::{DataError, Request, load};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A temporary folder with files.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn with(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        fs::write(self.0.path().join(name), bytes).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    pub fn folder(&self) -> String {
        self.0.path().to_str().unwrap().to_string()
    }
}

/// Loads a CSV file of this text.
pub fn csv(text: impl AsRef<[u8]>, change: impl FnOnce(&mut Request)) -> Result<Split, DataError> {
    let files = Files::new().with("table.csv", text);
    let mut request = Request::new(files.path("table.csv"));
    change(&mut request);
    load(&request)
}

/// Loads a folder.
pub fn folder(files: &Files, change: impl FnOnce(&mut Request)) -> Result<Split, DataError> {
    let mut request = Request::new(files.folder());
    change(&mut request);
    load(&request)
}

/// The message of a failure, checked to be one line that holds `parts`.
pub fn message<T: std::fmt::Debug>(result: Result<T, DataError>, parts: &[&str]) -> String {
    let message = result.unwrap_err().to_string();
    assert!(!message.contains(['\n', '\r']), "{message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    message
}

pub fn labels(data: &Dataset) -> &[u32] {
    match &data.targets {
        Targets::Classes { labels, .. } => labels,
        Targets::Real { .. } => panic!("classes are due"),
    }
}

pub fn real(data: &Dataset) -> &[f64] {
    match &data.targets {
        Targets::Real { values, .. } => values,
        Targets::Classes { .. } => panic!("real targets are due"),
    }
}

/// An IDX file of images.
pub fn idx_images(count: u32, height: u32, width: u32, pixels: &[u8]) -> Vec<u8> {
    let header = [0x0803, count, height, width]
        .map(u32::to_be_bytes)
        .concat();
    [header, pixels.to_vec()].concat()
}

/// An IDX file of labels.
pub fn idx_labels(count: u32, labels: &[u8]) -> Vec<u8> {
    [
        [0x0801, count].map(u32::to_be_bytes).concat(),
        labels.to_vec(),
    ]
    .concat()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A record of CIFAR with these label bytes; the pixels count up from `first`.
pub fn cifar_record(labels: &[u8], first: u8) -> Vec<u8> {
    let mut record = labels.to_vec();
    record.extend((0..3072_u32).map(|pixel| (u32::from(first) + pixel) as u8));
    record
}

/// An array in `.npy` format.
pub fn npy(descr: &str, is_fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// Real numbers as bytes.
pub fn f8(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// A compressed archive of these arrays in a temporary folder, `data.npz`.
pub fn archive(arrays: &[(&str, Vec<u8>)]) -> Files {
    let files = Files::new();
    let mut zip = ZipWriter::new(File::create(files.path("data.npz")).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    files
}

/// The folder of real data next to the workspace, if it is there.
pub fn shared_data(name: &str) -> Option<String> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../../shared/data", name]
        .iter()
        .collect();
    path.exists().then(|| path.to_str().unwrap().to_string())
}
