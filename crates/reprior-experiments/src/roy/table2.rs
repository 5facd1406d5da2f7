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
use crate::findings::{mean, results};
use crate::pictures::Pictures;
use crate::scores::{Averaged, DrawnLogits, with_draws};
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

/// Mean confidence on the other data, and the area under the curve: Appendix E.3.3.
fn published(data: &str, other: &str, method: &str) -> [f64; 2] {
    match (data, other, method) {
        ("mnist", "fashion-mnist", "diffusion") => [0.810, 0.911],
        ("mnist", "fashion-mnist", "sampled") => [0.583, 0.515],
        ("mnist", "fashion-mnist", "linearised") => [0.895, 0.715],
        ("mnist", "fashion-mnist", "swag") => [0.827, 0.949],
        ("mnist", "fashion-mnist", "last layer") => [0.842, 0.904],
        ("mnist", "fashion-mnist", "diag, sampled") => [0.770, 0.866],
        ("mnist", "fashion-mnist", "map") => [0.850, 0.907],
        ("mnist", "kmnist", "diffusion") => [0.817, 0.930],
        ("mnist", "kmnist", "sampled") => [0.588, 0.507],
        ("mnist", "kmnist", "linearised") => [0.863, 0.757],
        ("mnist", "kmnist", "swag") => [0.823, 0.947],
        ("mnist", "kmnist", "last layer") => [0.837, 0.935],
        ("mnist", "kmnist", "diag, sampled") => [0.747, 0.897],
        ("mnist", "kmnist", "map") => [0.837, 0.938],
        ("fashion-mnist", "mnist", "diffusion") => [0.734, 0.759],
        ("fashion-mnist", "mnist", "sampled") => [0.597, 0.495],
        ("fashion-mnist", "mnist", "linearised") => [0.817, 0.625],
        ("fashion-mnist", "mnist", "swag") => [0.727, 0.817],
        ("fashion-mnist", "mnist", "last layer") => [0.757, 0.761],
        ("fashion-mnist", "mnist", "diag, sampled") => [0.652, 0.767],
        ("fashion-mnist", "mnist", "map") => [0.759, 0.757],
        ("fashion-mnist", "kmnist", "diffusion") => [0.746, 0.749],
        ("fashion-mnist", "kmnist", "sampled") => [0.598, 0.493],
        ("fashion-mnist", "kmnist", "linearised") => [0.816, 0.624],
        ("fashion-mnist", "kmnist", "swag") => [0.777, 0.782],
        ("fashion-mnist", "kmnist", "last layer") => [0.772, 0.747],
        ("fashion-mnist", "kmnist", "diag, sampled") => [0.696, 0.728],
        ("fashion-mnist", "kmnist", "map") => [0.773, 0.743],
        ("cifar10", "cifar100", "diffusion") => [0.790, 0.851],
        ("cifar10", "cifar100", "sampled") => [0.727, 0.687],
        ("cifar10", "cifar100", "linearised") => [0.818, 0.837],
        ("cifar10", "cifar100", "swag") => [0.776, 0.845],
        ("cifar10", "cifar100", "last layer") => [0.789, 0.864],
        ("cifar10", "cifar100", "map") => [0.797, 0.873],
        _ => [f64::NAN; 2],
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
            what: "how well LeNet's approximations tell test images from those of other data sets, by their largest probability; one seed but at full size; quick: 1,500 images, 50 eigenpairs of 150 rows; default: 150 of 1,000, 5 diffusions of 5 steps; long: 500 of 10,000 (CIFAR-10: 300 of 500), 5 of 5; full: 2,000 of 60,000, 20 of 20, as published",
            data: Some("mnist"),
            cost: ["20 s", "22 min", "8 h", "months"],
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
        let count = cell.count("test");
        let like = Pictures::new(&trained.test).first(count);
        let like = fitted.logits(&like, bench)?;
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
            let unlike = fitted.logits(&pictures.first(count), bench)?;
            let found = Told {
                logits: [&like, &unlike],
                averaged: fitted.averaged,
            };
            let [confidence, auroc] = match bench.data.path {
                Some(_) => published(data, name, method),
                // what stands for the data is no match for what is published
                None => [f64::NAN; 2],
            };
            rows.push(
                row.with("pair", format!("{} from {name}", bench.data.shown(data)))
                    .with_estimate("auroc", &found.area()?)
                    .with("E.3.3: auroc", auroc)
                    .with("fpr95", found.detection(None)?.fpr95)
                    .with("confidence on other", found.confidence()?)
                    .with("E.3.3: confidence", confidence),
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
                "Up and left is better; one half is chance. Published values are those of Appendix E.3.3.",
                ("confidence on other", "mean confidence on the other data"),
                ("auroc", "area under the curve"),
                &["method"],
            )
            .scatter()
            .published_at("E.3.3: confidence", "E.3.3: auroc")
            .panels("pair"),
        ]
    }
}

/// Draws' logits of test images and of others, to be told apart by the largest mean probability.
struct Told<'a> {
    logits: [&'a DrawnLogits; 2],
    averaged: Averaged,
}

impl Told<'_> {
    /// Largest mean probabilities of all draws, or of all but one, of both sets of images.
    fn scores(&self, left_out: Option<usize>) -> Result<[Vec<f64>; 2], Failure> {
        let of = |logits: &DrawnLogits| {
            let probabilities = logits.probabilities(self.averaged, left_out);
            UncertaintyScore::MaxProbability.of_draws(&probabilities, 1, logits.classes)
        };
        let [like, other] = self.logits;
        Ok([of(like)?, of(other)?])
    }

    fn detection(&self, left_out: Option<usize>) -> Result<Detection, Failure> {
        let [like, other] = self.scores(left_out)?;
        Ok(Detection::new(&like, &other)?)
    }

    /// The area under the curve with the errors of images and of draws.
    fn area(&self) -> Result<Estimate, Failure> {
        let [like, other] = self.scores(None)?;
        let all = area(self.detection(None)?.auroc, like.len(), other.len());
        let draws = self.logits[0].draws.len();
        if draws < 2 {
            return Ok(all);
        }
        let of = |left_out| Ok(self.detection(Some(left_out))?.auroc);
        let without: Vec<f64> = (0..draws).map(of).collect::<Result<_, Failure>>()?;
        Ok(with_draws(&all, &without))
    }

    /// Mean confidence on the other images.
    fn confidence(&self) -> Result<f64, Failure> {
        let [_, other] = self.scores(None)?;
        Ok(mean(&other))
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
    let [diffusion, sampled, linearised, mode] = ["diffusion", "sampled", "linearised", "map"]
        .map(|name| Estimate::pooled_on_same_rows(&of_seeds(name)));
    let is_above =
        |other: &str| Judgement::below_on_same_rows(&of_seeds(other), &of_seeds("diffusion"));
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
