//! Folders of images.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use reprior_io::data::{Request, load};

use super::{calmly, in_scratch};

fn folder(path: &Path) {
    let source = path.to_string_lossy();
    for (train, shuffle) in [(None, None), (Some(2), None), (None, Some(1))] {
        calmly(load(&Request {
            train,
            shuffle,
            ..Request::new(source.clone())
        }));
    }
}

/// A folder with these files and no others.
fn with_files(name: &str, files: &[(&str, &[u8])]) {
    in_scratch(|scratch| {
        let path = scratch.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir(&path).unwrap();
        for (name, bytes) in files {
            fs::write(path.join(name), bytes).unwrap();
        }
        folder(&path);
    });
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// IDX files of images and of labels: a byte that says whether they are to be compressed and whether they are test files too, the length of
/// the first, both.
pub fn idx(bytes: &[u8]) {
    let Some((&[choice, low, high], files)) = bytes.split_first_chunk::<3>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes([low, high])).min(files.len());
    let (images, labels) = files.split_at(length);
    let [images, labels] = [(images, 0), (labels, 1)].map(|(file, bit)| match choice >> bit & 1 {
        1 => compressed(file),
        _ => file.to_vec(),
    });
    let all: [(&str, &[u8]); 4] = [
        ("train-images-idx3-ubyte", &images),
        ("train-labels-idx1-ubyte.gz", &labels),
        ("t10k-images.idx3-ubyte", &images),
        ("t10k-labels.idx1-ubyte", &labels),
    ];
    let has_test = choice >> 2 & 1 == 1;
    with_files("idx", &all[..if has_test { 4 } else { 2 }]);
}

/// CIFAR files: a byte of choices, the length of the list of classes, the list, and then either a file as it is or the label bytes of whole
/// records.
pub fn cifar(bytes: &[u8]) {
    let Some((&[choice, length], rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let (list, rest) = rest.split_at(usize::from(length).min(rest.len()));
    let is_hundred = choice & 1 == 1;
    let batch = match choice >> 1 & 1 {
        0 => rest.to_vec(),
        _ => {
            let labels = rest.chunks_exact(1 + usize::from(is_hundred)).take(20);
            let record = |labels: &[u8]| [labels, &[7; 3072]].concat();
            labels.flat_map(record).collect()
        }
    };
    let [train, test, names] = match is_hundred {
        true => ["train.bin", "test.bin", "fine_label_names.txt"],
        false => ["data_batch_2.bin", "test_batch.bin", "batches.meta.txt"],
    };
    let mut files: Vec<(&str, &[u8])> = vec![(train, &batch)];
    if choice >> 2 & 1 == 1 {
        files.push((test, &batch));
    }
    if !list.is_empty() {
        files.push((names, list));
    }
    with_files("cifar", &files);
}
