//! Roy, Miani et al. (2024), Table 2: how well the largest mean probability tells test images from those of other data sets: areas under
//! the curve of true against false positives.
//!
//! Theirs are against Fashion-MNIST or MNIST, EMNIST's digits (which their code turns over, and which are nearly in-distribution
//! otherwise) and KMNIST; ours have notMNIST in place of EMNIST. Without a folder of data the built-in images are told from their own
//! negatives and quarter turns.

use reprior::metrics::detection::{Detection, UncertaintyScore};
use reprior::model::dataset::{Dataset, Targets};
use reprior_io::data::{ExpectedInputs, load_inputs};

use super::lenet::{LeNet, begin, table_cells, table_data, trained};
use super::methods::Fitted;
use crate::data::shape;
use crate::findings::{named, results};
use crate::pictures::Pictures;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

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
            cost: ["20 seconds", "15 minutes", "two days", "two days"],
        }
    }

    fn data(&self, size: Size) -> Vec<&'static str> {
        table_data(size)
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        table_cells(size)
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
        let names: &[&str] = match &bench.data.path {
            Some(_) => &OTHERS,
            None => &MADE,
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
                row.with("auroc", found.auroc)
                    .with("published auroc", published(data, name, method))
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
                let mean = |method: &'static str| {
                    let wanted = [
                        ("data", data.clone()),
                        ("other", other.clone()),
                        ("method", method.into()),
                    ];
                    (method, table.mean("auroc", &wanted))
                };
                let means = ["diffusion", "sampled", "linearised", "map"].map(mean);
                let [diffusion, sampled, linearised, mode] = means.map(|(_, value)| value);
                if diffusion.is_nan() {
                    continue;
                }
                let measured = named(means);
                findings.push(Finding::unjudged(
                    format!("{data} from {other}: the diffusion tells them apart better than sampled and linearised Laplace"),
                    diffusion > sampled.max(linearised),
                    measured.clone(),
                ));
                findings.push(Finding::unjudged(
                    format!("{data} from {other}: as well as the mode, to within 0.05"),
                    (diffusion - mode).abs() < 0.05,
                    measured,
                ));
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
