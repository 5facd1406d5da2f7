//! Targets from texts and numbers.

use std::collections::BTreeMap;

/// The largest number of classes that a target may have.
pub const MAX_CLASSES: usize = 1000;

/// The class of each record, and the classes' names.
pub(super) type Classes = (Vec<u32>, Vec<String>);

/// Whether a cell says that there is no value.
pub(super) fn is_missing(cell: &str) -> bool {
    const WORDS: [&str; 9] = [
        "?", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null",
    ];
    cell.is_empty() || cell.len() < 5 && WORDS.iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// Classes of texts: the distinct ones in sorted order. Above [`MAX_CLASSES`], the number found.
pub(super) fn classes_of_texts(cells: &[String]) -> Result<Classes, usize> {
    let distinct: BTreeMap<&str, &str> = cells
        .iter()
        .map(|cell| (cell.as_str(), cell.as_str()))
        .collect();
    index(cells.iter().map(String::as_str), distinct)
}

/// Classes of finite numbers with the way each is written: distinct values in numerical order, named as first written. Above [`MAX_CLASSES`], the number found.
pub(super) fn classes_of_numbers(numbers: &[f64], written: &[String]) -> Result<Classes, usize> {
    let mut distinct = BTreeMap::new();
    for (&number, text) in numbers.iter().zip(written) {
        distinct.entry(sort_key(number)).or_insert(text.as_str());
    }
    index(numbers.iter().map(|&number| sort_key(number)), distinct)
}

/// Classes of whole numbers: distinct values in numerical order, named by their digits. Above [`MAX_CLASSES`], the number found.
pub(super) fn classes_of_integers(
    labels: impl Iterator<Item = u8> + Clone,
) -> Result<Classes, usize> {
    let names: BTreeMap<u8, String> = labels
        .clone()
        .map(|label| (label, label.to_string()))
        .collect();
    index(
        labels,
        names
            .iter()
            .map(|(&label, name)| (label, name.as_str()))
            .collect(),
    )
}

/// An integer that sorts as the number does, the same for both zeros.
fn sort_key(number: f64) -> i64 {
    let bits = (number + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn index<Key: Ord>(
    keys: impl Iterator<Item = Key>,
    names: BTreeMap<Key, &str>,
) -> Result<Classes, usize> {
    if names.len() > MAX_CLASSES {
        return Err(names.len());
    }
    let numbers: BTreeMap<&Key, u32> = names.keys().zip(0..).collect();
    let labels = keys.filter_map(|key| numbers.get(&key).copied()).collect();
    Ok((labels, names.values().map(ToString::to_string).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_as_numbers_and_keep_their_spelling() {
        let written: Vec<String> = ["10", "2.0", "-1", "2", "-0.0", "0"]
            .map(String::from)
            .to_vec();
        let numbers: Vec<f64> = written.iter().map(|text| text.parse().unwrap()).collect();
        let targets = classes_of_numbers(&numbers, &written).unwrap();
        let names = ["-1", "-0.0", "2.0", "10"].map(String::from).to_vec();
        assert_eq!(targets, (vec![3, 2, 0, 2, 1, 1], names));
    }

    #[test]
    fn too_many_classes_are_counted() {
        let cells: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
        assert_eq!(classes_of_texts(&cells), Err(1001));
        assert!(classes_of_texts(&cells[..1000]).is_ok());
    }
}
