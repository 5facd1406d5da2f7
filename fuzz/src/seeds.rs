//! Writes small sound files of every kind into `FOLDER/READER`, which fuzzing begins with.
#![allow(dead_code, reason = "the readers are for the other program")]

// what is built for the fuzzer is linked with it
libfuzzer_sys::fuzz_target!(|_bytes: &[u8]| {});

#[path = "../../crates/reprior-run/tests/hostile/readers/mod.rs"]
mod readers;

use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int64Array,
    NullArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use flate2::{Compression, write::GzEncoder};
use parquet::arrow::ArrowWriter;
use parquet::basic;
use parquet::file::properties::{WriterProperties, WriterVersion};
use safetensors::tensor::{Dtype, TensorView, serialize};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Tables as people have them, each behind what is asked of it.
const TABLES: &[&str] = &[
    "a,y\n1,2\n3,4\n5,6\n",
    "id,k,x,when,y\n1,a,0.5,2024-01-31,1\n2,b,,2024-02-29T14:30,2\n3,a,NA,2023-12-31 2:30 PM,3\n4,\"c, d\",1e3,2024-01-01,4\n",
    "a;b;y\n1,5;2;3,25\n1.000,5;-2;0,5\n2,0;4;1,75\n",
    "a\ty\n1\tyes\n2\tno\n3\tyes\n",
    "when,y\n31.01.2024,1\n01.02.2024,2\n15.03.2024,\n",
    "01/31/2024,y\r\n1,\"a \"\"b\"\"\"\r\n2,c\r\n3,c\r\n\r\n",
    "\u{feff},x,k,y\n0, 1 ,true,-1\n1,2,false,-2\n2,nan,true,-3\n",
    "name,y\nanna,1\nbert,2\ncaesar,3\ndora,4\nemil,5\nfritz,6\n",
];
const CHOICES: &[u8] = b"a!Ac%0\x1f\x9f";

const NETWORKS: &[&str] = &[
    "layers = []\n",
    "[[layers]]\ntype = \"dense\"\nunits = 4\n\n[[layers]]\ntype = \"activation\"\nfunction = \"tanh\"\n",
    "[[layers]]\ntype = \"convolution\"\nchannels = 2\nsize = [3, 3]\nstride = [2, 2]\npadding = \"valid\"\nscale = { weight = 1.5, bias = 0.0 }\n\n[[layers]]\ntype = \"max-pool\"\nsize = [2, 2]\n\n[[layers]]\ntype = \"flatten\"\n",
    "[[layers]]\ntype = \"parallel\"\ncombination = \"sum\"\n\n[[layers.branches]]\nfactor = 0.5\n\n[[layers.branches]]\nlayers = [{ type = \"dense\", units = 3 }, { type = \"activation\", function = \"relu\" }]\n",
    "[[layers]]\ntype = \"convolution\"\nchannels = 1\nsize = [1, 1]\npadding = \"circular\"\n\n[[layers]]\ntype = \"batch-norm\"\nmean = [0.5]\nvariance = [2.0]\nepsilon = 0.001\n\n[[layers]]\ntype = \"average-pool\"\nsize = [2, 2]\nstride = [1, 1]\npadding = \"same\"\n\n[[layers]]\ntype = \"global-average-pool\"\n",
    "[[layers]]\ntype = \"parallel\"\ncombination = \"concatenate\"\nbranches = [{ layers = [{ type = \"batch-norm\" }] }, { factor = -1.0, layers = [{ type = \"dense\", units = 2 }] }]\n",
];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn batch() -> RecordBatch {
    let level: DictionaryArray<Int32Type> = [Some("a, b"), Some("c"), None, Some("c")]
        .into_iter()
        .collect();
    let times =
        TimestampMicrosecondArray::from(vec![Some(1_582_977_600_000_000), Some(0), None, Some(1)]);
    let columns: [(&str, ArrayRef); 9] = [
        (
            "size",
            Arc::new(Float64Array::from(vec![
                Some(0.1),
                None,
                Some(1e300),
                Some(2.0),
            ])),
        ),
        (
            "area",
            Arc::new(Float32Array::from(vec![0.1, 2.5, -3.0, 1.0])),
        ),
        ("level", Arc::new(level)),
        (
            "new",
            Arc::new(BooleanArray::from(vec![true, false, true, true])),
        ),
        ("sold", Arc::new(times.with_timezone("UTC"))),
        ("day", Arc::new(Date32Array::from(vec![1, 2, 3, 4]))),
        ("small", Arc::new(UInt8Array::from(vec![1, 2, 3, 4]))),
        (
            "__index_level_0__",
            Arc::new(Int64Array::from(vec![0, 1, 2, 3])),
        ),
        (
            "price",
            Arc::new(StringArray::from(vec!["1", "2", "-3", "4"])),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

fn small(nulls: bool) -> RecordBatch {
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5]));
    let y: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let none: ArrayRef = Arc::new(NullArray::new(3));
    let mut columns = vec![("x", x, true), ("y", y, true)];
    if nulls {
        columns.insert(1, ("none", none, true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn parquet(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn parquets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for compression in [
        basic::Compression::UNCOMPRESSED,
        basic::Compression::SNAPPY,
        basic::Compression::GZIP(basic::GzipLevel::default()),
        basic::Compression::ZSTD(basic::ZstdLevel::default()),
        basic::Compression::LZ4_RAW,
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = |has_dictionary| {
                WriterProperties::builder()
                    .set_compression(compression)
                    .set_writer_version(version)
                    .set_dictionary_enabled(has_dictionary)
                    .build()
            };
            all.push(parquet(&small(false), properties(false)));
            if matches!(
                compression,
                basic::Compression::UNCOMPRESSED | basic::Compression::ZSTD(_)
            ) {
                all.push(parquet(&batch(), properties(true)));
            }
        }
    }
    all
}

fn arrow(batch: &RecordBatch, compression: Option<CompressionType>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let mut writer =
        FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn arrows() -> Vec<Vec<u8>> {
    let kinds = [
        None,
        Some(CompressionType::LZ4_FRAME),
        Some(CompressionType::ZSTD),
    ];
    let of = |kind| [arrow(&small(true), kind), arrow(&batch(), kind)];
    kinds.into_iter().flat_map(of).collect()
}

fn array(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let start = b"\x93NUMPY\x01\x00".to_vec();
    [
        &start[..],
        &(header.len() as u16).to_le_bytes(),
        header.as_bytes(),
        data,
    ]
    .concat()
}

fn reals(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|value| (value as f64).to_le_bytes())
        .collect()
}

fn pairs() -> Vec<[Vec<u8>; 2]> {
    let y = array("|u1", "False", "(3,)", &[1, 0, 1]);
    vec![
        [
            array("<f8", "False", "(3, 2)", &reals(6)),
            array("<f8", "False", "(3,)", &reals(3)),
        ],
        [
            array("<f8", "True", "(3, 2)", &reals(6)),
            array("<f8", "False", "(3, 2)", &reals(6)),
        ],
        [array("|u1", "False", "(3, 2, 2)", &[7; 12]), y.clone()],
        [array(">f4", "False", "(3, 2, 1, 2)", &[0; 48]), y.clone()],
        [
            array("|b1", "False", "(3, 1, 2, 5)", &[1; 30]),
            array("<i8", "False", "(3,)", &[0; 24]),
        ],
        [array(">i2", "False", "(4000000000, 100)", &[0; 8]), y],
    ]
}

fn archives() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for ([x, y], names) in pairs()
        .iter()
        .zip([["x", "y"], ["x_train", "y_train"]].iter().cycle())
    {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let options = SimpleFileOptions::default().compression_method(method);
            let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
            for (name, bytes) in names.iter().zip([x, y]) {
                archive.start_file(format!("{name}.npy"), options).unwrap();
                archive.write_all(bytes).unwrap();
            }
            all.push(archive.finish().unwrap().into_inner());
        }
    }
    all
}

fn idx() -> Vec<Vec<u8>> {
    let images = |count: u32, height: u32, width: u32, pixels: usize| {
        let header = [0x0803, count, height, width]
            .map(u32::to_be_bytes)
            .concat();
        [header, vec![3; pixels]].concat()
    };
    let labels = [&[0_u8, 0, 8, 1, 0, 0, 0, 3][..], &[0, 1, 0]].concat();
    let files = [
        images(3, 2, 2, 12),
        images(50_000_000, 28, 28, 100),
        images(0, u32::MAX, u32::MAX, 0),
    ];
    let with = |(choice, images): (u8, &Vec<u8>)| {
        [
            &[choice][..],
            &(images.len() as u16).to_le_bytes(),
            images,
            &labels,
        ]
        .concat()
    };
    (0..8)
        .flat_map(|choice| files.iter().map(move |file| (choice, file)))
        .map(with)
        .collect()
}

fn cifar() -> Vec<Vec<u8>> {
    let ten = "a b c d e f g h i j".replace(' ', "\n");
    let mut all: Vec<Vec<u8>> = (0..8).map(|choice| vec![choice, 0, 1, 2, 3, 4]).collect();
    all.push([&[6, ten.len() as u8][..], ten.as_bytes(), &[1, 2, 3, 4, 5]].concat());
    all.push([&[0, 0][..], &[1; 3073 * 2]].concat());
    all
}

/// Files of weights: of the dense, the convolutional and the residual network of the reader.
fn weights() -> Vec<Vec<u8>> {
    let dense: Vec<(&str, Vec<usize>)> = vec![
        ("0.weight", vec![4, 3]),
        ("0.bias", vec![4]),
        ("2.weight", vec![2, 4]),
        ("2.bias", vec![2]),
    ];
    let convolutional = vec![
        ("net.0.weight", vec![2, 1, 3, 3]),
        ("net.0.bias", vec![2]),
        ("net.1.weight", vec![2]),
        ("net.1.bias", vec![2]),
        ("net.1.running_mean", vec![2]),
        ("net.1.running_var", vec![2]),
        ("net.5.weight", vec![3, 8]),
        ("net.5.bias", vec![3]),
        ("net.6.weight", vec![2, 3]),
        ("net.6.bias", vec![2]),
    ];
    let residual = vec![
        ("conv1.weight", vec![1, 1, 3, 3]),
        ("layer1.0.conv1.weight", vec![1, 1, 3, 3]),
        ("layer1.0.bn1.weight", vec![1]),
        ("layer1.0.conv2.weight", vec![1, 1, 3, 3]),
        ("layer2.0.downsample.0.weight", vec![2, 1, 1, 1]),
        ("fc.weight", vec![2, 4]),
        ("fc.bias", vec![2]),
    ];
    let mut all = Vec::new();
    for (choice, tensors) in [(0, dense), (1, convolutional), (2, residual)] {
        for (dtype, width) in [
            (Dtype::F32, 4),
            (Dtype::F16, 2),
            (Dtype::BF16, 2),
            (Dtype::F64, 8),
        ] {
            let data: Vec<Vec<u8>> = tensors
                .iter()
                .map(|(_, shape)| vec![0x3c; width * shape.iter().product::<usize>()])
                .collect();
            let views = tensors.iter().zip(&data);
            let views = views.map(|((name, shape), data)| {
                (*name, TensorView::new(dtype, shape.clone(), data).unwrap())
            });
            let file = serialize(views, None).unwrap();
            let length = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
            all.push([&[choice + 16][..], &file[8..8 + length]].concat());
            all.push([&[choice][..], &file].concat());
        }
    }
    all
}

fn tensors() -> Vec<Vec<u8>> {
    let files = readers::runs::sound().iter().flatten();
    let files = files.filter(|(name, bytes)| name.ends_with(".safetensors") && bytes.len() < 8000);
    files.map(|(_, bytes)| bytes.clone()).collect()
}

/// Every kind of edit of every kind of file.
fn scripts() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for (which, files) in (0..).zip(readers::runs::sound()) {
        all.push(vec![which]);
        for (file, name) in (0..).zip(files.keys()) {
            if name.contains("warmup") {
                continue;
            }
            for (what, place, lie) in [(0, 9, 3), (3, 40, 10), (4, 17, 11), (11, 23, 1), (6, 5, 8)]
            {
                all.push(vec![which, file, place, 0, what, lie]);
            }
        }
    }
    all
}

fn main() {
    let folder: PathBuf = std::env::args().nth(1).expect("which folder").into();
    let write = |reader: &str, files: Vec<Vec<u8>>| {
        let folder = folder.join(reader);
        fs::create_dir_all(&folder).unwrap();
        for (number, bytes) in files.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), bytes).unwrap();
        }
    };
    let tables = || TABLES.iter().map(|text| text.as_bytes().to_vec());
    let asked = tables().flat_map(|text| {
        CHOICES
            .iter()
            .map(move |&choice| [&[choice][..], &text].concat())
    });
    write("csv", asked.collect());
    write("given", tables().collect());
    write("gzip", tables().map(|text| gzip(&text)).collect());
    write("parquet", parquets());
    write("arrow", arrows());
    let joined = |[x, y]: [Vec<u8>; 2]| [&(x.len() as u16).to_le_bytes()[..], &x, &y].concat();
    write("npy", pairs().into_iter().map(joined).collect());
    write("npz", archives());
    write("idx", idx());
    write("cifar", cifar());
    write("weights", weights());
    write(
        "network",
        NETWORKS
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect(),
    );
    let configs = readers::runs::CONFIGS.map(|text| text.as_bytes().to_vec());
    write("config", configs.to_vec());
    write("tensors", tensors());
    write("run", scripts());
}
