//! Roy, Miani et al. (2024), Table 1: confidence, NLL, accuracy, Brier score and calibration on MNIST and Fashion-MNIST.
//!
//! Their low-rank approximations have 2,000 Lanczos vectors of all rows, ours `rank` eigenpairs of `curvature rows` rows that stand for
//! all. Their tables are of the first 500 test rows. CIFAR-10 is left out: their residual network needs batch normalisation that is
//! trained, ours is frozen.

use super::lenet::{begin, table_cells, table_data, trained};
use super::methods::Fitted;
use crate::findings::{named, results};
use crate::pictures::Pictures;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
};

/// Table 1.
pub struct Table1;

/// Confidence, NLL, accuracy, Brier score, and the calibration errors, which are those of their faulty bins.
fn published(data: &str, method: &str) -> Option<[f64; 6]> {
    Some(match (data, method) {
        ("mnist", "diffusion") => [0.988, 0.040, 0.986, 0.022, 0.146, 0.773],
        ("mnist", "sampled") => [0.593, 3.669, 0.157, 1.162, 0.436, 0.984],
        ("mnist", "linearised") => [0.967, 0.295, 0.930, 0.111, 0.239, 0.862],
        ("mnist", "swag") => [0.993, 0.032, 0.989, 0.019, 0.187, 0.901],
        ("mnist", "last layer") => [0.991, 0.047, 0.987, 0.021, 0.198, 0.721],
        ("mnist", "diag, sampled") => [0.963, 0.078, 0.976, 0.038, 0.095, 0.692],
        ("mnist", "map") => [0.992, 0.042, 0.988, 0.021, 0.198, 0.685],
        // the printed NLL of the diffusion is the mean divided by 500
        ("fashion-mnist", "diffusion") => [0.900, 0.275, 0.906, 0.141, 0.108, 0.729],
        ("fashion-mnist", "sampled") => [0.618, 4.507, 0.098, 1.295, 0.518, 0.986],
        ("fashion-mnist", "linearised") => [0.897, 0.423, 0.862, 0.207, 0.147, 0.756],
        ("fashion-mnist", "swag") => [0.925, 0.259, 0.911, 0.135, 0.152, 0.752],
        ("fashion-mnist", "last layer") => [0.914, 0.280, 0.901, 0.144, 0.131, 0.673],
        ("fashion-mnist", "diag, sampled") => [0.862, 0.323, 0.889, 0.165, 0.102, 0.660],
        ("fashion-mnist", "map") => [0.914, 0.279, 0.904, 0.143, 0.125, 0.609],
        _ => return None,
    })
}

impl Experiment for Table1 {
    fn about(&self) -> About {
        About {
            name: "roy2024-table1",
            paper: Paper::Roy,
            figure: "Table 1",
            what: "fit and calibration of LeNet's mode, Laplace approximations, SWAG and Laplace diffusions (CIFAR-10 is left out)",
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
        let test = Pictures::new(&trained.test).first(cell.count("test"));
        let scores = fitted.scores(&test, bench)?;
        let (data, method) = (cell.text("data"), cell.text("method"));
        let [expected, maximum] = scores.published_calibration;
        let mut row = scores
            .onto(begin(cell, bench))
            .with("ece, faulty bins", expected)
            .with("mce, faulty bins", maximum);
        // what stands for the data is no match for what is published
        let published = published(data, method).filter(|_| bench.data.path.is_some());
        let names = [
            "confidence",
            "nll",
            "accuracy",
            "brier",
            "ece, faulty bins",
            "mce, faulty bins",
        ];
        for (at, name) in names.into_iter().enumerate() {
            let value = published.map_or(f64::NAN, |values| values[at]);
            row = row.with(&format!("published {name}"), value);
        }
        Ok(vec![row.with(
            "least rank",
            fitted.least_rank.map_or(Value::Missing, Value::from),
        )])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for data in table.distinct("data") {
            let mean = |method: &str, column: &str| {
                table.mean(column, &[("data", data.clone()), ("method", method.into())])
            };
            let words = |column: &str, methods: &[&str]| {
                let each = methods.iter().map(|name| (name, mean(name, column)));
                format!("{column}: {}", named(each))
            };
            let methods = ["map", "linearised", "sampled"];
            let [nll, accuracy] =
                ["nll", "accuracy"].map(|column| methods.map(|name| mean(name, column)));
            let diffusion = mean("diffusion", "nll");
            findings.push(Finding::unjudged(
                format!("{data}: sampled Laplace underfits: less than half of the mode's accuracy"),
                accuracy[2] < 0.5 * accuracy[0],
                words("accuracy", &["sampled", "map"]),
            ));
            findings.push(Finding::unjudged(
                format!(
                    "{data}: linearised Laplace is between sampled and mode in NLL and accuracy"
                ),
                nll[0] < nll[1]
                    && nll[1] < nll[2]
                    && accuracy[0] > accuracy[1]
                    && accuracy[1] > accuracy[2],
                ["nll", "accuracy"]
                    .map(|name| words(name, &methods))
                    .join("; "),
            ));
            findings.push(Finding::unjudged(
                format!("{data}: the diffusion fits better than sampled and linearised Laplace"),
                diffusion < nll[1].min(nll[2]),
                words("nll", &["diffusion", "linearised", "sampled"]),
            ));
            findings.push(Finding::unjudged(
                format!(
                    "{data}: the diffusion is as good as the mode, and no more: NLL within a tenth"
                ),
                (diffusion - nll[0]).abs() < 0.1 * nll[0],
                words("nll", &["diffusion", "map"]),
            ));
            let [all, theirs] = ["ece", "ece, faulty bins"].map(|name| mean("map", name));
            findings.push(Finding::unjudged(
                format!("{data}: in the published code's bins (100, the fullest left out) the mode's calibration error comes out over 1.3 times that of 15 whole bins"),
                theirs > 1.3 * all,
                format!("{} and {}", Value::from(theirs), Value::from(all)),
            ));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "fit",
                "Fit and confidence",
                "Confidence above accuracy is overconfidence; a tenth of both is chance",
                ("accuracy", "accuracy"),
                ("confidence", "mean confidence"),
                &["method"],
            )
            .scatter()
            .panels("data"),
        ]
    }
}
