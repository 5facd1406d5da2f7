//! Arbitrary and damaged files give an error or records, never a panic, and never much more memory than the file's own size calls for.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Files, archive, cifar_record, f8, gzip, idx_images, idx_labels, npy};
use proptest::prelude::*;
use reprior_io::data::{Request, load};

/// Notes the largest single allocation.
struct Noting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// Loads with and without a shuffle; the files here are below 20 kB.
fn survives(source: &str) {
    for shuffle in [None, Some(1)] {
        let request = Request {
            shuffle,
            ..Request::new(source)
        };
        if let Err(error) = load(&request) {
            assert!(!error.to_string().contains(['\n', '\r']), "{error:?}");
        }
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 64 << 20, "{largest} bytes at once");
}

fn idx() -> Vec<u8> {
    idx_images(3, 2, 2, &[1; 12])
}

fn npz_bytes() -> Vec<u8> {
    let x = npy("<f8", false, "(3, 2)", &f8(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let files = archive(&[
        ("x_train", x),
        ("y_train", npy("|u1", false, "(3,)", &[1, 0, 1])),
    ]);
    fs::read(files.path("data.npz")).unwrap()
}

/// Every place of the file with every byte, and every length.
fn damage(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = bytes.len();
    (
        prop::collection::vec((0..length, any::<u8>()), 0..4),
        0..=length,
    )
        .prop_map(move |(changes, end)| {
            let mut bytes = bytes.clone();
            for (place, byte) in changes {
                bytes[place] = byte;
            }
            // Half of the cases keep their length.
            bytes.truncate(if end % 2 == 0 { length } else { end });
            bytes
        })
}

fn idx_folder(images: &[u8], labels: &[u8]) {
    let files = Files::new()
        .with("train-images-idx3-ubyte", images)
        .with("train-labels-idx1-ubyte", labels);
    survives(&files.folder());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), header in 0..5_usize) {
        let start: &[u8] = [&b""[..], b"PK\x05\x06", &[0, 0, 8, 3], &[0x1f, 0x8b, 8, 0], b"a,b\n"][header];
        let bytes = [start, &bytes].concat();
        let files = Files::new().with("data.csv", &bytes).with("data.npz", &bytes);
        survives(&files.path("data.csv"));
        survives(&files.path("data.npz"));
        idx_folder(&bytes, &bytes);
        survives(&Files::new().with("train.bin", &bytes).folder());
    }

    #[test]
    fn any_csv(text in "[ab,\"\n\r 0-9.eE+-]{0,60}") {
        survives(&Files::new().with("data.csv", &text).path("data.csv"));
        survives(&Files::new().with("data.csv", format!("x,y\n{text}")).path("data.csv"));
    }

    #[test]
    fn damaged_idx(images in damage(idx()), labels in damage(idx_labels(3, &[0, 1, 0]))) {
        idx_folder(&images, &idx_labels(3, &[0, 1, 0]));
        idx_folder(&idx(), &labels);
    }

    #[test]
    fn damaged_gzip(images in damage(gzip(&idx())), inner in damage(idx())) {
        idx_folder(&images, &idx_labels(3, &[0, 1, 0]));
        idx_folder(&gzip(&inner), &idx_labels(3, &[0, 1, 0]));
    }

    #[test]
    fn damaged_cifar(bytes in damage([cifar_record(&[1], 0), cifar_record(&[2], 0)].concat())) {
        survives(&Files::new().with("data_batch_1.bin", &bytes).folder());
    }

    #[test]
    fn damaged_npz(bytes in damage(npz_bytes())) {
        survives(&Files::new().with("data.npz", bytes).path("data.npz"));
    }

    #[test]
    fn damaged_arrays(x in damage(npy("<f4", false, "(2, 3)", &[0; 24])), header in "[(){}\\[\\]':, 0-9a-z<>|]{0,80}") {
        let y = npy("|u1", false, "(2,)", &[0, 1]);
        survives(&archive(&[("x_train", x), ("y_train", y.clone())]).path("data.npz"));
        let mut array = b"\x93NUMPY\x01\x00".to_vec();
        array.extend((header.len() as u16).to_le_bytes());
        array.extend(header.as_bytes());
        survives(&archive(&[("x_train", array), ("y_train", y)]).path("data.npz"));
    }
}

#[test]
fn lying_headers_allocate_nothing() {
    for shape in ["(4000000000, 100)", "(100000000, 1)"] {
        let x = npy("<f8", false, shape, &[0; 64]);
        survives(&archive(&[("x_train", x.clone()), ("y_train", x)]).path("data.npz"));
    }
    // A deep header must not exhaust the stack.
    let deep = "[".repeat(60_000);
    survives(
        &archive(&[
            ("x_train", npy(&deep, false, &deep, &[])),
            ("y_train", npy(&deep, false, "(1,)", &[])),
        ])
        .path("data.npz"),
    );
    idx_folder(
        &gzip(&idx_images(50_000_000, 28, 28, &[0; 100])),
        &idx_labels(3, &[0; 3]),
    );
}
