//! Roy, Miani et al. (2024), Table 2: how well the largest mean probability tells test images from those of other data sets: areas under
//! the curve of true against false positives.
//!
//! Theirs are against Fashion-MNIST or MNIST, EMNIST's digits (which their code turns over, and which are nearly in-distribution
//! otherwise) and KMNIST, and of CIFAR-10 against CIFAR-100 and SVHN; ours have notMNIST in place of EMNIST, and no SVHN. Without a folder of data the built-in images are told from their own
//! negatives and quarter turns.

use reprior::metrics::detection::{Detection, UncertaintyScore};
use reprior::model::dataset::{Dataset, Targets};
use reprior_io::data::{ExpectedInputs, load_inputs};

use super::lenet::{LeNet, begin, table_cells, table_data, trained};
use super::methods::{Fitted, PUBLISHED};
use crate::data::shape;
use crate::findings::results;
use crate::pictures::Pictures;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// Table 2.
pub struct Table2;

/// Other data sets.
const OTHERS: [&str; 4] = ["mnist", "fashion-mnist", "kmnist", "notmnist"];
/// Others of the built-in images.
const MADE: [&str; 2] = ["negatives", "quarter turns"];

fn published(data: &str, other: &str, method: &str) -> f64 {
    match (data, other, method) {
        ("mnist", "fashion-mnist", "diffusion") => 0.911,
        ("mnist", "kmnist", "diffusion") => 0.930,
        ("mnist", "fashion-mnist", "sampled") => 0.515,
        ("mnist", "kmnist", "sampled") => 0.507,
        ("mnist", "fashion-mnist", "linearised") => 0.715,
        ("mnist", "kmnist", "linearised") => 0.757,
        ("mnist", "fashion-mnist", "map") => 0.907,
        ("mnist", "kmnist", "map") => 0.938,
        ("fashion-mnist", "mnist", "diffusion") => 0.759,
        ("fashion-mnist", "kmnist", "diffusion") => 0.749,
        ("fashion-mnist", "mnist", "sampled") => 0.495,
        ("fashion-mnist", "kmnist", "sampled") => 0.493,
        ("fashion-mnist", "mnist", "linearised") => 0.625,
        ("fashion-mnist", "kmnist", "linearised") => 0.624,
        ("fashion-mnist", "mnist", "map") => 0.757,
        ("fashion-mnist", "kmnist", "map") => 0.743,
        ("cifar10", "cifar100", "diffusion") => 0.851,
        ("cifar10", "cifar100", "sampled") => 0.687,
        ("cifar10", "cifar100", "linearised") => 0.837,
        ("cifar10", "cifar100", "map") => 0.873,
        _ => f64::NAN,
    }
}

/// Images that are not of the data set; none if there is no such folder.
fn other(trained: &LeNet, name: &str, bench: &Bench<'_>) -> Result<Option<Pictures>, Failure> {
    let test = &trained.test;
    let mut data = Dataset {
        targets: Targets::Classes {
            labels: Vec::new(),
            names: Vec::new(),
        },
        ..test.clone()
    };
    match name {
        "negatives" => {
            let values: Vec<f64> = test.inputs.iter().map(|x| 255.0 - x).collect();
            data.inputs = values.into();
        }
        "quarter turns" => {
            let [height, width, channels]: [usize; 3] = shape(test).into();
            data.inputs = test.inputs.rotated([height, width, channels], 90.0);
        }
        _ if !bench.data.has(name) => return Ok(None),
        _ => {
            let expected = ExpectedInputs {
                kind: test.kind,
                columns: test.columns,
                column_names: Vec::new(),
                targets: None,
            };
            let found = load_inputs(&bench.data.source(name), &expected)?;
            (data.inputs, data.rows) = (found.values, found.rows);
        }
    }
    Ok(Some(Pictures::new(&data)))
}

impl Experiment for Table2 {
    fn about(&self) -> About {
        About {
            name: "roy2024-table2",
            paper: Paper::Roy,
            figure: "Table 2",
            what: "how well LeNet's approximations tell test images from those of other data sets, by their largest probability",
            data: Some("mnist"),
            cost: ["20 s", "15 min", "8 h", "months"],
        }
    }

    fn data(&self, size: Size) -> Vec<&'static str> {
        table_data(size)
    }

    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell> {
        table_cells(size, as_published)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let trained = trained(cell, bench)?;
        let mut fitted = Fitted::new(&trained, cell, bench)?;
        let (count, classes) = (cell.count("test"), trained.network.outputs);
        let mut scores = |pictures: &Pictures| {
            let probabilities = fitted.predict(&pictures.first(count), bench)?;
            Ok::<_, Failure>(UncertaintyScore::MaxProbability.of_draws(
                &probabilities,
                1,
                classes,
            )?)
        };
        let like = scores(&Pictures::new(&trained.test))?;
        let (data, method) = (cell.text("data"), cell.text("method"));
        let names: &[&str] = match (&bench.data.path, data) {
            (Some(_), "cifar10") => &["cifar100"],
            (Some(_), _) => &OTHERS,
            (None, _) => &MADE,
        };
        let mut rows = Vec::new();
        for &name in names.iter().filter(|name| **name != data) {
            let row = begin(cell, bench).with("other", name);
            let Some(pictures) = other(&trained, name, bench)? else {
                rows.push(row.with("left out", "no such folder"));
                continue;
            };
            let found = Detection::new(&like, &scores(&pictures)?)?;
            rows.push(
                row.with_estimate(
                    "auroc",
                    &area(found.auroc, like.len(), pictures.rows.min(count)),
                )
                .with("E.3.3: auroc", published(data, name, method))
                .with("fpr95", found.fpr95),
            );
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for data in table.distinct("data") {
            for other in table.distinct("other") {
                for convention in ["", PUBLISHED] {
                    findings.extend(of_pair(table, &data, &other, convention));
                }
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "auroc",
                "Other data told from test images",
                "One half is chance",
                ("fpr95", "false positives at 95 % true ones"),
                ("auroc", "area under the curve"),
                &["method"],
            )
            .scatter()
            .panels("other"),
        ]
    }
}

/// An area under the curve with its standard error (Hanley & McNeil 1982).
fn area(value: f64, like: usize, others: usize) -> Estimate {
    let (n, m) = (like as f64, others as f64);
    let [first, second] = [value / (2.0 - value), 2.0 * value * value / (1.0 + value)];
    let square = value * value;
    let variance =
        value * (1.0 - value) + (n - 1.0) * (first - square) + (m - 1.0) * (second - square);
    Estimate::new(value, (variance / (n * m)).sqrt())
}

/// The claim of one data set against another.
fn of_pair(table: &Table, data: &Value, other: &Value, convention: &str) -> Option<Finding> {
    let of_seeds = |method: &str| {
        let method = match convention {
            "" => method.to_owned(),
            convention => format!("{method}, {convention}"),
        };
        let wanted = [
            ("data", data.clone()),
            ("other", other.clone()),
            ("method", method.into()),
        ];
        table.estimates("auroc", &wanted)
    };
    let [diffusion, sampled, linearised, mode] =
        ["diffusion", "sampled", "linearised", "map"].map(|name| Estimate::pooled(&of_seeds(name)));
    let is_above =
        |other: &str| Judgement::below_in_pairs(&of_seeds(other), &of_seeds("diffusion"));
    if diffusion.value.is_nan() {
        return None;
    }
    let shown = match convention {
        "" => String::new(),
        convention => format!(", {convention}"),
    };
    let found = Finding::new(
        format!(
            "{data} from {other}{shown}: the diffusion tells them apart better than sampled and linearised Laplace"
        ),
        &Judgement::all(["sampled", "linearised"].map(is_above)),
        format!(
            "areas: diffusion {diffusion}, linearised {linearised}, sampled {sampled}; mode {mode}"
        ),
    );
    Some(found.published("Table 2: on every pair of data sets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At one half the variance is that of the rank-sum statistic, (n + m + 1)/(12nm).
    #[test]
    fn an_area_of_chance_has_the_error_of_the_rank_sum() {
        let estimate = area(0.5, 40, 60);
        assert!((estimate.error.powi(2) - 101.0 / (12.0 * 2400.0)).abs() < 1e-9);
    }
}
