//! What a column of a known kind becomes, by the training rows.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::DataError;
use super::super::csv_table::TextTable;
use super::super::dates::{self, DateForm};
use super::super::error::excerpt;
use super::super::numbers::{self, NumberForm};
use super::kinds::boolean;
use super::{Becomes, ColumnEncoding, Kind, Missing};

/// Levels of a column that have an input of their own, at most.
const MOST_LEVELS: usize = 20;
/// Training rows of a level that has one, where there are more levels than that.
const LEAST_ROWS: usize = 3;
/// Training rows below which no column is an identifier.
const LEAST_IDENTIFIED: usize = 5;

/// What a column becomes. `all` are the rows of the table that are used, `train` those that train.
///
/// # Errors
/// A column without any value in the training rows.
pub(in super::super) fn fit(
    path: &Path,
    table: &TextTable,
    column: usize,
    (kind, is_categorical): (&Kind, bool),
    [all, train]: [&[usize]; 2],
    missing: Missing,
) -> Result<ColumnEncoding, DataError> {
    let name = &table.header[column];
    let values = table.values(train, column);
    let count = values.clone().count();
    if count == 0 {
        return Err(DataError::malformed(
            path,
            format!(
                "input column `{0}` has no value in the training rows; leave it out (--ignore {0}) or fill it in",
                excerpt(name)
            ),
        ));
    }
    let fill = |values: Vec<f64>| match missing {
        Missing::Error => None,
        Missing::Mean => Some(mean(&values)),
        Missing::Median | Missing::Drop => Some(median(values)),
    };
    let has_indicator = count < train.len() && matches!(missing, Missing::Median | Missing::Mean);
    let becomes = match kind {
        Kind::Number => {
            let form = NumberForm::of(table, all, column);
            let numbers = values.filter_map(|(_, cell)| numbers::parse(cell, form));
            Becomes::Number {
                fill: fill(numbers.collect()),
            }
        }
        Kind::Boolean => {
            let bits = values.filter_map(|(_, cell)| boolean(cell));
            Becomes::Boolean {
                fill: fill(bits.map(|is| f64::from(u8::from(is))).collect()),
            }
        }
        Kind::Date(form) => of_dates(*form, table, [all, train], column, fill),
        Kind::Unusable(why) => Becomes::LeftOut { why: why.clone() },
        Kind::Text => {
            let mut counts = BTreeMap::new();
            for (_, cell) in values {
                *counts.entry(cell).or_insert(0_usize) += 1;
            }
            of_levels(counts, count, is_categorical, missing, has_indicator)
        }
    };
    Ok(ColumnEncoding {
        column: name.clone(),
        has_indicator: has_indicator && !matches!(becomes, Becomes::LeftOut { .. }),
        becomes,
    })
}

fn of_dates(
    form: DateForm,
    table: &TextTable,
    [all, train]: [&[usize]; 2],
    column: usize,
    fill: impl Fn(Vec<f64>) -> Option<f64>,
) -> Becomes {
    let moments = |rows| {
        let values = table.values(rows, column);
        values.filter_map(move |(_, cell)| dates::parse(cell, form))
    };
    let days: Vec<f64> = moments(train).map(|moment| moment.days).collect();
    let first = days.iter().copied().fold(f64::INFINITY, f64::min);
    Becomes::Date {
        form,
        origin: if first.is_finite() {
            first.floor()
        } else {
            0.0
        },
        has_time: moments(all).any(|moment| moment.has_time),
        fill: fill(days),
    }
}

fn of_levels(
    counts: BTreeMap<&str, usize>,
    count: usize,
    is_categorical: bool,
    missing: Missing,
    has_indicator: bool,
) -> Becomes {
    let distinct = counts.len();
    if !is_categorical && count >= LEAST_IDENTIFIED && 10 * distinct >= 9 * count {
        return Becomes::LeftOut {
            why: "text with a value of its own in nearly every row".to_owned(),
        };
    }
    let mut ranked: Vec<(&str, usize)> = counts.into_iter().collect();
    // stable: equally frequent levels stay in their order
    ranked.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
    let commonest = ranked.first().map_or("", |(level, _)| *level).to_owned();
    let has_other = distinct > MOST_LEVELS;
    if has_other {
        ranked.retain(|(_, rows)| *rows >= LEAST_ROWS);
        ranked.truncate(MOST_LEVELS);
        if ranked.is_empty() {
            return Becomes::LeftOut {
                why: format!(
                    "text with {distinct} values, none of them in {LEAST_ROWS} training rows"
                ),
            };
        }
    }
    let mut levels: Vec<String> = ranked
        .iter()
        .map(|(level, _)| (*level).to_owned())
        .collect();
    levels.sort_unstable();
    Becomes::Levels {
        levels,
        has_other,
        fill: match (missing, has_indicator) {
            (Missing::Error, _) => None,
            (_, true) => Some(String::new()),
            (_, false) => Some(commonest),
        },
    }
}

/// The middle of the values, or halfway between the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 if middle > 0 => values[middle - 1] / 2.0 + values[middle] / 2.0,
        _ => values.get(middle).copied().unwrap_or(0.0),
    }
}

/// Each is divided before they are added, so that large ones stay finite.
fn mean(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    values.iter().map(|value| value / count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert_eq!(median(vec![1e308, 1.5e308]), 1.25e308);
        assert_eq!(mean(&[1e308, 1e308]), 1e308);
    }

    fn levels(cells: &[&str], is_categorical: bool) -> Becomes {
        let mut counts = BTreeMap::new();
        for cell in cells {
            *counts.entry(*cell).or_insert(0) += 1;
        }
        of_levels(counts, cells.len(), is_categorical, Missing::Median, false)
    }

    #[test]
    fn many_levels_keep_the_most_frequent() {
        let names: Vec<String> = (0..30).map(|n| format!("l{n:02}")).collect();
        // level n is in n rows
        let cells: Vec<&str> = (0..30).flat_map(|n| vec![names[n].as_str(); n]).collect();
        let Becomes::Levels {
            levels: kept,
            has_other,
            fill,
        } = levels(&cells, false)
        else {
            panic!("levels are due")
        };
        assert_eq!(
            (kept.len(), has_other, fill.as_deref()),
            (20, true, Some("l29"))
        );
        assert_eq!(kept[0], "l10");
        // two rows each: none is frequent enough
        let cells: Vec<&str> = names.iter().flat_map(|name| [name.as_str(); 2]).collect();
        assert!(matches!(levels(&cells, false), Becomes::LeftOut { .. }));
    }

    #[test]
    fn a_value_of_its_own_in_nearly_every_row_identifies() {
        let names: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let cells: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(matches!(levels(&cells, false), Becomes::LeftOut { .. }));
        assert!(matches!(levels(&cells, true), Becomes::Levels { .. }));
        assert!(matches!(levels(&cells[..4], false), Becomes::Levels { .. }));
    }
}
