//! A sound run with lies in it: a script of edits says which value of which file is another one. Whatever stands beside it - checksums,
//! lengths of tensors, the same number elsewhere - can be made to agree, so that it is believed as far as it can be.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::tensors::{packed, unpacked};

/// Files by their names.
pub type Named = BTreeMap<String, Vec<u8>>;

/// Bytes of an edit: which file, which place in it (two bytes), what is done there, and with which value.
const EDIT: usize = 5;
/// The most edits of a script.
const MOST: usize = 6;
/// The most bytes that a tensor grows to.
const MOST_BYTES: u64 = 1 << 16;

/// Carries a script out. An edit that does what is [`REPLACED`] puts the rest of the script in the file's place.
pub fn apply(files: &mut Named, script: &[u8]) {
    let names: Vec<String> = files.keys().cloned().collect();
    for (number, edit) in script.chunks_exact(EDIT).take(MOST).enumerate() {
        let &[file, low, high, what, lie] = edit else {
            return;
        };
        let name = &names[usize::from(file) % names.len()];
        let place = usize::from(u16::from_le_bytes([low, high]));
        if what == REPLACED {
            let rest = script[EDIT * (number + 1)..].to_vec();
            files.insert(name.clone(), rest);
            return;
        }
        if what == REMOVED {
            files.remove(name);
            continue;
        }
        let Some(bytes) = files.get(name) else {
            continue;
        };
        let changed = match name.rsplit('.').next() {
            Some("json") => in_json(bytes, place, what, lie),
            Some("toml") => in_lines(bytes, place, what, lie),
            Some("safetensors") => in_tensors(bytes, place, what, lie),
            _ => in_numbers(bytes, place, what, lie),
        };
        files.insert(name.clone(), changed);
        // the same lie wherever the number was told
        if name.ends_with(".json") && what & 8 != 0 {
            everywhere(files, name, place, lie);
        }
    }
}

/// What is done to a whole file.
const REPLACED: u8 = 255;
const REMOVED: u8 = 254;

/// A value in another's place.
fn lies(lie: u8) -> Value {
    let all = [
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(6),
        json!(7),
        json!(100),
        json!(1_000_000),
        json!(1_000_000_000_000_u64),
        json!(1_u64 << 61),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(-1),
        json!(0.5),
        json!(1e308),
        json!(-1e-300),
        json!(null),
        json!(true),
        json!(""),
        json!("x"),
        json!("fcn:3"),
        json!([]),
        json!({}),
        json!([1, 2]),
        json!("float64"),
        json!("nan"),
        json!([[0, 0]]),
    ];
    all[usize::from(lie) % all.len()].clone()
}

/// Calls `change` with the value at a place, counted over all values, those in text that is JSON itself included.
fn at_place(value: &mut Value, place: &mut usize, change: &mut dyn FnMut(&mut Value)) {
    if *place == 0 {
        *place = usize::MAX;
        change(value);
        return;
    }
    *place -= 1;
    match value {
        Value::Array(all) => all.iter_mut().for_each(|own| step(own, place, change)),
        Value::Object(all) => all.values_mut().for_each(|own| step(own, place, change)),
        Value::String(text) if text.starts_with(['{', '[']) => {
            if let Ok(mut own) = serde_json::from_str::<Value>(text) {
                step(&mut own, place, change);
                *text = own.to_string();
            }
        }
        _ => {}
    }
}

fn step(value: &mut Value, place: &mut usize, change: &mut dyn FnMut(&mut Value)) {
    if *place != usize::MAX {
        at_place(value, place, change);
    }
}

fn count(value: &Value) -> usize {
    let mut place = usize::MAX - 1;
    at_place(&mut value.clone(), &mut place, &mut |_| {});
    usize::MAX - 1 - place
}

fn change_json(document: &mut Value, place: usize, what: u8, lie: u8) {
    let mut place = place % count(document).max(1);
    at_place(document, &mut place, &mut |value| match (what & 7, value) {
        (0, Value::Array(all)) => drop(all.pop()),
        (1, Value::Array(all)) => all.extend(all.first().cloned()),
        (2, Value::Array(all)) => all.resize(usize::from(lie), lies(lie)),
        (0, Value::Object(all)) => {
            let key = all.keys().nth(usize::from(lie) % all.len().max(1)).cloned();
            key.map(|key| all.remove(&key));
        }
        (1, Value::Object(all)) => drop(all.insert("x".to_owned(), lies(lie))),
        (3, Value::Number(number)) => {
            let next = number
                .as_i64()
                .unwrap_or(0)
                .wrapping_add(i64::from(lie as i8));
            *number = next.into();
        }
        (_, value) => *value = lies(lie),
    });
}

fn in_json(bytes: &[u8], place: usize, what: u8, lie: u8) -> Vec<u8> {
    let Ok(mut document) = serde_json::from_slice(bytes) else {
        return bytes.to_vec();
    };
    change_json(&mut document, place, what, lie);
    document.to_string().into_bytes()
}

/// Replaces every number that is the one at a place of the file, in all JSON files.
fn everywhere(files: &mut Named, name: &str, place: usize, lie: u8) {
    let Some(Ok(mut document)) = files.get(name).map(|bytes| serde_json::from_slice(bytes)) else {
        return;
    };
    let mut told = None;
    let mut at = place % count(&document).max(1);
    at_place(&mut document, &mut at, &mut |value| {
        told = Some(value.clone())
    });
    let Some(told @ Value::Number(_)) = told else {
        return;
    };
    for (_, bytes) in files.iter_mut().filter(|(name, _)| name.ends_with(".json")) {
        if let Ok(mut document) = serde_json::from_slice(bytes) {
            replace_all(&mut document, &told, &lies(lie));
            *bytes = document.to_string().into_bytes();
        }
    }
}

fn replace_all(value: &mut Value, told: &Value, lie: &Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|own| replace_all(own, told, lie)),
        Value::Object(all) => all.values_mut().for_each(|own| replace_all(own, told, lie)),
        Value::String(text) if text.starts_with(['{', '[']) => {
            if let Ok(mut own) = serde_json::from_str::<Value>(text) {
                replace_all(&mut own, told, lie);
                *text = own.to_string();
            }
        }
        value if value == told => *value = lie.clone(),
        _ => {}
    }
}

/// Settings, line by line.
fn in_lines(bytes: &[u8], place: usize, what: u8, lie: u8) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return bytes.to_vec();
    }
    let place = place % lines.len();
    match (what & 3, lines[place].split_once(" = ")) {
        (0, _) => drop(lines.remove(place)),
        (1, _) => lines.insert(place, lines[place].clone()),
        (_, Some((key, _))) => lines[place] = format!("{key} = {}", lies(lie)),
        (_, None) => {}
    }
    lines.join("\n").into_bytes()
}

/// A file of tensors, whose checksum is right afterwards.
fn in_tensors(bytes: &[u8], place: usize, what: u8, lie: u8) -> Vec<u8> {
    let Some((mut format, mut body, mut tensors)) = unpacked(bytes) else {
        return bytes.to_vec();
    };
    let chosen = place % tensors.len().max(1);
    match (what % 8, tensors.get_mut(chosen)) {
        (0, Some(_)) => drop(tensors.remove(chosen)),
        (1, Some(tensor)) => tensor.name.push('x'),
        (2, Some(tensor)) => tensor.dtype = ["F32", "F64", "U64"][usize::from(lie) % 3].to_owned(),
        (3, Some(tensor)) => match tensor.shape.first_mut() {
            Some(length) => *length = lies(lie).as_u64().unwrap_or(u64::from(lie)),
            None => tensor.shape.push(u64::from(lie)),
        },
        (4, Some(tensor)) => tensor.bytes = in_numbers(&tensor.bytes, place / 7, 2, lie),
        (5, _) => format = lies(lie),
        _ => {
            if let Ok(mut document) = serde_json::from_str(&body) {
                change_json(&mut document, place, what / 8, lie);
                body = document.to_string();
            }
        }
    }
    // as many bytes as the shape calls for
    if let (2 | 3, Some(tensor)) = (what % 8, tensors.get_mut(chosen)) {
        let elements = tensor
            .shape
            .iter()
            .copied()
            .try_fold(1_u64, u64::checked_mul);
        let wanted = elements.and_then(|all| all.checked_mul(tensor.width() as u64));
        if let Some(wanted) = wanted.filter(|&wanted| wanted <= MOST_BYTES) {
            tensor.bytes.resize(wanted as usize, 0);
        }
    }
    packed(&format, &body, tensors)
}

/// Bytes that are numbers: another length, or a number that none should be.
fn in_numbers(bytes: &[u8], place: usize, what: u8, lie: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let numbers = [
        f64::NAN,
        f64::INFINITY,
        -1.0,
        0.0,
        1e300,
        -1e300,
        5e-324,
        f64::MAX,
    ];
    let number = numbers[usize::from(lie) % numbers.len()];
    let width = if lie & 16 == 0 { 8 } else { 4 };
    let at = place % (bytes.len() / width).max(1) * width;
    match what & 3 {
        0 => bytes.truncate(place % bytes.len().max(1)),
        1 => bytes.resize(bytes.len() + usize::from(lie), lie),
        2 if width == 8 && at + 8 <= bytes.len() => {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        2 if at + 4 <= bytes.len() => {
            bytes[at..at + 4].copy_from_slice(&(number as f32).to_le_bytes());
        }
        _ => {
            let place = place % bytes.len().max(1);
            bytes
                .iter_mut()
                .skip(place)
                .take(1)
                .for_each(|byte| *byte = lie);
        }
    }
    bytes
}
