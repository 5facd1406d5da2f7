//! Numbers, sizes and times in words, and tables of them.

/// A number with about four significant digits.
pub fn number(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// Bytes in words.
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value >= 99.5 || unit == 0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Seconds in words.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "unknown time".to_owned();
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.0} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A number as it was given, without the hundreds of digits that very small and very large ones would have.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-4..1e9 => value.to_string(),
        _ if value.is_finite() => format!("{value:e}"),
        _ => value.to_string(),
    }
}

/// Rows of cells, the first column to the left, the others to the right.
pub fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("  {cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                }
            });
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_numbers() {
        assert_eq!(
            [
                number(0.12345),
                number(1234.5),
                number(f64::NAN),
                number(0.0)
            ],
            ["0.1235", "1234", "-", "0"]
        );
        assert_eq!(
            [bytes(12.0), bytes(1.5e6), bytes(2.34e9)],
            ["12 B", "1.5 MB", "2.3 GB"]
        );
        assert_eq!(
            [duration(5.2), duration(125.0), duration(7260.0)],
            ["5 s", "2 min 5 s", "2 h 1 min"]
        );
    }

    #[test]
    fn extreme_numbers_stay_short() {
        for (value, text) in [
            (0.1, "0.1"),
            (-250.0, "-250"),
            (0.0, "0"),
            (1e-300, "1e-300"),
            (-1e300, "-1e300"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "22".to_owned()],
        ];
        assert_eq!(align(&rows), "  a     1\n  bcd  22");
    }
}
