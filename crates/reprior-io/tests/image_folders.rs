//! Folders of IDX and CIFAR files.

use crate::common::{Files, cifar_record, folder, gzip, idx_images, idx_labels, labels, message};
use reprior::model::dataset::InputKind;
use reprior_io::data::Task;

const TRAIN: [&str; 2] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"];
const TEST: [&str; 2] = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

/// Six training images of 2 × 3 pixels with labels 0, 0, 0, 0, 5, 5.
fn train() -> Files {
    let pixels: Vec<u8> = (0..36).collect();
    Files::new()
        .with(TRAIN[0], idx_images(6, 2, 3, &pixels))
        .with(TRAIN[1], idx_labels(6, &[0, 0, 0, 0, 5, 5]))
}

fn both() -> Files {
    train()
        .with(TEST[0], idx_images(2, 2, 3, &[255; 12]))
        .with(TEST[1], idx_labels(2, &[5, 7]))
}

#[test]
fn idx_files_are_read() {
    let split = folder(&both(), |_| {}).unwrap();
    assert_eq!(
        (split.train.rows, split.test.rows, split.train.columns),
        (6, 2, 6)
    );
    assert_eq!(
        split.train.kind,
        InputKind::Image {
            height: 2,
            width: 3,
            channels: 1
        }
    );
    assert_eq!(
        split.train.inputs.to_reals(),
        (0..36).map(f64::from).collect::<Vec<_>>()
    );
    assert_eq!(split.test.inputs.to_reals(), [255.0; 12]);
    assert_eq!(labels(&split.train), [0, 0, 0, 0, 1, 1]);
    assert_eq!(labels(&split.test), [1, 2]);
    assert_eq!(split.train.targets.names(), ["0", "5", "7"]);
    let split = folder(&both(), |r| (r.train, r.test) = (Some(2), Some(1))).unwrap();
    assert_eq!((split.train.inputs.len(), split.test.inputs.len()), (12, 6));
    assert_eq!(split.train.targets.names(), ["0", "5", "7"]);
}

#[test]
fn compressed_files_and_dots_in_names() {
    let pixels: Vec<u8> = (0..36).collect();
    let files = Files::new()
        .with(
            "train-images.idx3-ubyte.gz",
            gzip(&idx_images(6, 2, 3, &pixels)),
        )
        .with(
            "train-labels.idx1-ubyte",
            idx_labels(6, &[0, 0, 0, 0, 5, 5]),
        );
    let split = folder(&files, |_| {}).unwrap();
    assert_eq!(split.train, folder(&train(), |_| {}).unwrap().train);
    assert_eq!((split.test.rows, split.test.columns), (0, 6));
    message(
        folder(&files, |r| r.test = Some(1)),
        &["no test images", "t10k-images-idx3-ubyte"],
    );
}

#[test]
fn shuffled_sets_take_classes_in_turn() {
    let split = folder(&both(), |r| (r.train, r.shuffle) = (Some(4), Some(7))).unwrap();
    assert_eq!(labels(&split.train), [0, 1, 0, 1]);
    for (image, &label) in split
        .train
        .inputs
        .to_reals()
        .chunks(6)
        .zip(labels(&split.train))
    {
        assert_eq!(u32::from(image[0] >= 24.0), label);
    }
}

#[test]
fn idx_requests_that_cannot_be_met() {
    message(
        folder(&both(), |r| r.train = Some(7)),
        &["6 training records but 7"],
    );
    message(
        folder(&both(), |r| r.test = Some(3)),
        &["2 test records but 3"],
    );
    message(folder(&both(), |r| r.train = Some(1)), &["at least 2"]);
    message(
        folder(&both(), |r| r.task = Task::Regression),
        &["classification"],
    );
    let files = Files::new()
        .with(TEST[0], idx_images(1, 1, 1, &[0]))
        .with(TEST[1], idx_labels(1, &[1]));
    message(
        folder(&files, |_| {}),
        &[
            "no training images",
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            ".gz",
        ],
    );
    let files = Files::new().with(TRAIN[0], idx_images(1, 1, 1, &[0]));
    message(
        folder(&files, |_| {}),
        &["no labels for its images", "train-labels.idx1-ubyte.gz"],
    );
}

#[test]
fn damaged_idx_files() {
    let pixels: Vec<u8> = (0..36).collect();
    let images = |bytes: Vec<u8>| folder(&train().with(TRAIN[0], bytes), |_| {});
    message(images(Vec::new()), &[TRAIN[0], "holds no bytes"]);
    message(images(vec![0, 0, 8]), &["truncated"]);
    message(images(idx_images(6, 2, 3, &pixels[..35])), &["truncated"]);
    message(images(idx_images(6, 2, 3, &[0; 37])), &["bytes follow"]);
    message(
        images(idx_images(5, 2, 3, &pixels[..30])),
        &["5 images", "6 labels"],
    );
    message(
        images(idx_labels(6, &[0; 6])),
        &["labels (0x00000801)", "images (0x00000803)"],
    );
    message(images(idx_images(6, 0, 3, &[])), &["0 x 3"]);
    message(
        images(idx_images(u32::MAX, u32::MAX, u32::MAX, &pixels)),
        &["claims", "truncated"],
    );
    let compressed = gzip(&idx_images(6, 2, 3, &pixels));
    message(
        images(compressed[..compressed.len() - 12].to_vec()),
        &[TRAIN[0]],
    );
    message(
        images(gzip(&idx_images(6, 2, 3, &[0; 37]))),
        &["bytes follow"],
    );
    message(
        images(gzip(&idx_images(u32::MAX, u32::MAX, u32::MAX, &pixels))),
        &["truncated"],
    );
    let mut damaged = compressed.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 0xff;
    message(images(damaged), &[TRAIN[0]]);
    let files = train()
        .with(TEST[0], idx_images(1, 3, 3, &[0; 9]))
        .with(TEST[1], idx_labels(1, &[1]));
    message(
        folder(&files, |_| {}),
        &["not of the training images' size"],
    );
}

fn batch(labels: &[u8]) -> Vec<u8> {
    labels
        .iter()
        .flat_map(|&label| cifar_record(&[label], label))
        .collect()
}

#[test]
fn cifar_10_batches_are_read_in_order() {
    let files = Files::new()
        .with("data_batch_2.bin", batch(&[2, 3]))
        .with("data_batch_1.bin", batch(&[9, 0]))
        .with("test_batch.bin", batch(&[1]))
        .with("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
    let split = folder(&files, |_| {}).unwrap();
    assert_eq!(labels(&split.train), [9, 0, 2, 3]);
    assert_eq!(labels(&split.test), [1]);
    assert_eq!(split.train.targets.names().concat(), "abcdefghij");
    assert_eq!(
        split.train.kind,
        InputKind::Image {
            height: 32,
            width: 32,
            channels: 3
        }
    );
    assert_eq!(split.train.inputs.to_reals()[..3], [9.0, 10.0, 11.0]);
    assert_eq!(
        labels(&folder(&files, |r| r.train = Some(3)).unwrap().train),
        [9, 0, 2]
    );
    message(
        folder(&files, |r| r.train = Some(5)),
        &["4 training records but 5"],
    );
    let files = files.with("batches.meta.txt", "a\nb\n");
    message(
        folder(&files, |_| {}),
        &["batches.meta.txt", "2 class names where 10"],
    );
}

#[test]
fn cifar_100_has_fine_labels() {
    let record = |fine| cifar_record(&[3, fine], 0);
    let files = Files::new()
        .with("train.bin", [record(99), record(4)].concat())
        .with("test.bin", record(50));
    let split = folder(&files, |_| {}).unwrap();
    assert_eq!(
        (labels(&split.train), labels(&split.test)),
        (&[99, 4][..], &[50][..])
    );
    assert_eq!(split.train.targets.names().len(), 100);
    let files = files.with("train.bin", [record(99), record(100)].concat());
    message(
        folder(&files, |_| {}),
        &["train.bin", "record 2 has label 100"],
    );
}

#[test]
fn damaged_cifar_files() {
    let load = |bytes: Vec<u8>| folder(&Files::new().with("data_batch_1.bin", bytes), |_| {});
    message(
        load(batch(&[1, 2, 10])),
        &["data_batch_1.bin", "record 3 has label 10", "below 10"],
    );
    message(
        load(batch(&[1, 2])[1..].to_vec()),
        &["6145 bytes", "multiple of the 3073"],
    );
    message(load(Vec::new()), &["no records"]);
    message(load(batch(&[1])), &["at least 2"]);
    let files = Files::new().with("test_batch.bin", batch(&[1]));
    message(
        folder(&files, |_| {}),
        &["no training images", "data_batch_5.bin"],
    );
    let files = Files::new().with("test.bin", cifar_record(&[1, 2], 0));
    message(folder(&files, |_| {}), &["no training images", "train.bin"]);
}
