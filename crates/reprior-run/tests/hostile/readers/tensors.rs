//! The files of chains: their checkpoints, and what Laplace approximations predict with. Their checksum is made right, so that what is
//! wrong with them is told by what reads them and not by the sum.

use flate2::Crc;
use reprior_io::run::{Files, checkpoint, laplace};
use reprior_run::restore_chain;
use serde_json::{Map, Value, json};

use super::calmly;

/// What stands in headers.
pub const WORDS: &[&str] = &[
    "\"dtype\":\"F32\"",
    "\"dtype\":\"F64\"",
    "\"dtype\":\"U64\"",
    "\"shape\":[]",
    "\"data_offsets\":[0,8]",
    "\\\"format\\\":1",
    "\\\"chain\\\":0",
    "cursor",
    "document",
    "position",
    "reprior",
    "__metadata__",
];

/// A tensor: its name, its type as the file has it, its shape and its bytes.
pub struct Stored {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// Bytes of an element.
    pub fn width(&self) -> usize {
        match self.dtype.as_str() {
            "F32" => 4,
            _ => 8,
        }
    }
}

/// A file's format, its document as text, and its tensors; none of what is no such file.
pub fn unpacked(file: &[u8]) -> Option<(Value, String, Vec<Stored>)> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (header, data) = rest.split_at_checked(length)?;
    let header: Map<String, Value> = serde_json::from_slice(header).ok()?;
    let own = header.get("__metadata__")?.get("reprior")?.as_str()?;
    let own: Value = serde_json::from_str(own).ok()?;
    let body = own.get("body")?.as_str()?.to_owned();
    let mut tensors = Vec::new();
    for (name, tensor) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        let numbers = |key: &str| -> Option<Vec<u64>> {
            tensor
                .get(key)?
                .as_array()?
                .iter()
                .map(Value::as_u64)
                .collect()
        };
        let place = numbers("data_offsets")?;
        let [start, end] = [place.first()?, place.get(1)?].map(|&place| place as usize);
        tensors.push(Stored {
            name: name.clone(),
            dtype: tensor.get("dtype")?.as_str()?.to_owned(),
            shape: numbers("shape")?,
            bytes: data.get(start..end)?.to_vec(),
        });
    }
    Some((own.get("format")?.clone(), body, tensors))
}

/// A file of these, with the right checksum.
pub fn packed(format: &Value, body: &str, mut tensors: Vec<Stored>) -> Vec<u8> {
    tensors.sort_by(|one, other| one.name.cmp(&other.name));
    let mut crc = Crc::new();
    crc.update(body.as_bytes());
    let mut header = Map::new();
    let mut data = Vec::new();
    for tensor in &tensors {
        let name = match tensor.dtype.as_str() {
            "F32" => "float32",
            "F64" => "float64",
            _ => "uint64",
        };
        crc.update(tensor.name.as_bytes());
        crc.update(format!("{name}{:?}", tensor.shape).as_bytes());
        crc.update(&tensor.bytes);
        let start = data.len();
        data.extend_from_slice(&tensor.bytes);
        let entry = json!({
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [start, data.len()],
        });
        header.insert(tensor.name.clone(), entry);
    }
    let own = json!({"format": format, "crc32": crc.sum(), "body": body}).to_string();
    header.insert("__metadata__".to_owned(), json!({"reprior": own}));
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

/// A file as it is, and the same with its checksum made right.
pub fn tensors(bytes: &[u8]) {
    read(bytes);
    if let Some((format, body, tensors)) = unpacked(bytes) {
        read(&packed(&format, &body, tensors));
    }
}

fn read(bytes: &[u8]) {
    let files = Files::in_memory();
    for name in [checkpoint::name(0), laplace::name(0)] {
        files.write(&name, bytes).unwrap();
    }
    for found in [checkpoint::load(&files, 0), laplace::load(&files, 0)] {
        let Some(Some(found)) = calmly(found) else {
            continue;
        };
        for (name, shape) in found.tensors() {
            let elements: usize = shape.iter().product();
            let of_any_type = [
                found.f32(name, shape).map(|all| all.len()),
                found.f64(name, shape).map(|all| all.len()),
                found.u64(name, shape).map(|all| all.len()),
            ];
            let read: Vec<usize> = of_any_type.into_iter().filter_map(calmly).collect();
            assert_eq!(read, [elements]);
        }
        for dimension in [0, 2, 65] {
            calmly(restore_chain(&found, dimension));
        }
    }
    calmly(checkpoint::finish(&files, 0));
}
