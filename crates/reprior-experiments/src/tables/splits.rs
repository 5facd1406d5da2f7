//! Splits of a set, each written as a table whose last rows are for testing.

use std::fs;
use std::path::Path;

use super::published::Set;
use crate::Failure;
use crate::findings::mean_and_sd;

/// A table as a file, whose last rows are for testing.
pub struct Written {
    pub file: tempfile::NamedTempFile,
    pub train: usize,
    pub test: usize,
    /// Of the training rows' targets.
    pub deviation: f64,
}

/// Split number `split` of a set in the folder `uci`.
///
/// # Errors
/// Files that are not there, or not as they should be.
pub fn written(folder: &Path, set: &Set, split: usize) -> Result<Written, Failure> {
    let path = folder.join(format!("{}.csv", set.name));
    let text = fs::read_to_string(&path).map_err(Failure::io(&path))?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().unwrap_or_default();
    let rows: Vec<&str> = lines.collect();
    let test = test_rows(folder, set, split, rows.len())?;
    let mut is_test = vec![false; rows.len()];
    for &row in &test {
        *is_test.get_mut(row).ok_or_else(|| wrong(&path))? = true;
    }
    let column = header.split(',').position(|name| name == set.target);
    let column = column.ok_or_else(|| wrong(&path))?;
    let target = |row: &str| row.split(',').nth(column)?.trim().parse::<f64>().ok();
    let train: Vec<&str> = (0..rows.len())
        .filter(|&row| !is_test[row])
        .map(|row| rows[row])
        .collect();
    let targets: Option<Vec<f64>> = train.iter().map(|row| target(row)).collect();
    let targets = targets.ok_or_else(|| wrong(&path))?;
    let all = train
        .iter()
        .copied()
        .chain(test.iter().map(|&row| rows[row]));
    let lines: Vec<&str> = std::iter::once(header).chain(all).collect();
    let file = tempfile::Builder::new()
        .suffix(".csv")
        .tempfile()
        .map_err(Failure::failed)?;
    fs::write(file.path(), lines.join("\n") + "\n").map_err(Failure::io(file.path()))?;
    Ok(Written {
        file,
        train: train.len(),
        test: test.len(),
        deviation: mean_and_sd(&targets).1,
    })
}

/// The rows that a split tests on. Of airfoil there is one split: its last rows, after the first 1,202.
fn test_rows(folder: &Path, set: &Set, split: usize, rows: usize) -> Result<Vec<usize>, Failure> {
    if set.is_one_split() {
        return Ok((1202.min(rows)..rows).collect());
    }
    let path = folder.join(format!("splits/{}_test_rows.csv", set.name));
    let text = fs::read_to_string(&path).map_err(Failure::io(&path))?;
    let line = text.lines().nth(split).ok_or_else(|| wrong(&path))?;
    let numbers: Result<Vec<usize>, _> = line.split(',').map(|word| word.trim().parse()).collect();
    numbers.map_err(|_| wrong(&path))
}

fn wrong(path: &Path) -> Failure {
    Failure::Request(format!(
        "{} is not as it should be: a table with the target's column, and one line of row numbers a split",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::published::set;
    use super::*;

    #[test]
    fn splits_are_written_with_their_test_rows_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("splits")).unwrap();
        let table = "AT,V,PE\n1,2,10\n3,4,20\n5,6,30\n7,8,50\n";
        fs::write(path.join("power_plant.csv"), table).unwrap();
        fs::write(path.join("splits/power_plant_test_rows.csv"), "0\n3,1\n").unwrap();
        let set = set("power_plant").unwrap();
        let made = written(path, set, 1).unwrap();
        assert_eq!([made.train, made.test], [2, 2]);
        assert!((made.deviation - 10.0).abs() < 1e-12);
        let text = fs::read_to_string(made.file.path()).unwrap();
        assert_eq!(text, "AT,V,PE\n1,2,10\n5,6,30\n7,8,50\n3,4,20\n");
        assert!(written(path, set, 2).is_err());
        fs::write(path.join("splits/power_plant_test_rows.csv"), "9\n").unwrap();
        assert!(written(path, set, 0).is_err());
    }
}
