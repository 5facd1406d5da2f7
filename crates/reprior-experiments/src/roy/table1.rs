//! Roy, Miani et al. (2024), Table 1: confidence, NLL, accuracy, Brier score and calibration on MNIST, Fashion-MNIST and CIFAR-10.
//!
//! Their low-rank approximations have 2,000 Lanczos vectors of all rows, ours `rank` eigenpairs of `curvature rows` rows that stand for
//! all: see `table1_rank` for what that does. Their tables are of the first 500 test rows. Published numbers are those of Appendix
//! E.3.1, which has all methods; Table 1 itself has three of them, with other numbers.

use super::lenet::{begin, table_cells, table_data, trained};
use super::methods::{Fitted, PUBLISHED};
use crate::findings::results;
use crate::pictures::Pictures;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
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
        ("cifar10", "diffusion") => [0.948, 0.403, 0.889, 0.180, 0.264, 0.879],
        ("cifar10", "sampled") => [0.843, 0.997, 0.717, 0.422, 0.221, 0.804],
        ("cifar10", "linearised") => [0.951, 0.614, 0.863, 0.222, 0.337, 0.789],
        ("cifar10", "swag") => [0.942, 0.393, 0.884, 0.176, 0.234, 0.912],
        ("cifar10", "last layer") => [0.953, 0.343, 0.899, 0.155, 0.260, 0.884],
        ("cifar10", "map") => [0.960, 0.333, 0.913, 0.143, 0.282, 0.932],
        _ => return None,
    })
}

impl Experiment for Table1 {
    fn about(&self) -> About {
        About {
            name: "roy2024-table1",
            paper: Paper::Roy,
            figure: "Table 1",
            what: "fit and calibration of LeNet's mode, Laplace approximations, SWAG and Laplace diffusions, and of a small residual network's on CIFAR-10 (long and full size); one seed but at full size; quick: 1,500 images, 50 eigenpairs of 150 rows; default: 150 of 1,000, 5 diffusions of 5 steps; long: 500 of 10,000 (CIFAR-10: 300 of 500), 5 of 5; full: 2,000 of 60,000, 20 of 20, as published",
            data: Some("mnist"),
            cost: ["20 s", "1 h", "8 h", "months"],
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
            row = row.with(&format!("E.3.1: {name}"), value);
        }
        let row = row.with("alpha", fitted.precision);
        Ok(vec![row.with(
            "least rank",
            fitted.least_rank.map_or(Value::Missing, Value::from),
        )])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for data in table.distinct("data") {
            for convention in ["", PUBLISHED] {
                findings.extend(of_data(table, &data, convention));
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "fit",
                "Test NLL",
                "Further left is better; published values are those of Appendix E.3.1.",
                ("nll", "test NLL"),
                ("method", ""),
                &[],
            )
            .lanes()
            .published_at("E.3.1: nll", "method")
            .logarithmic(true, false)
            .panels("data"),
            Figure::lines(
                "accuracy",
                "Test accuracy",
                "Further right is better; published values are those of Appendix E.3.1.",
                ("accuracy", "accuracy"),
                ("method", ""),
                &[],
            )
            .lanes()
            .published_at("E.3.1: accuracy", "method")
            .panels("data"),
        ]
    }
}

/// The claims of one data set.
fn of_data(table: &Table, data: &Value, convention: &str) -> Vec<Finding> {
    let name = |method: &str| match convention {
        "" => method.to_owned(),
        convention => format!("{method}, {convention}"),
    };
    let of_seeds = |method: &str, column: &str| {
        let wanted = [("data", data.clone()), ("method", name(method).into())];
        table.estimates(column, &wanted)
    };
    let of = |method: &str, column: &str| Estimate::pooled_on_same_rows(&of_seeds(method, column));
    let is_below = |column: &str, own: &str, other: &str| {
        Judgement::below_on_same_rows(&of_seeds(own, column), &of_seeds(other, column))
    };
    if of("diffusion", "nll").value.is_nan() {
        return Vec::new();
    }
    let words = |column: &str, methods: &[&str]| {
        let each = methods
            .iter()
            .map(|method| format!("{method} {}", of(method, column)));
        format!("{column}: {}", each.collect::<Vec<_>>().join(", "))
    };
    let begin = match convention {
        "" => format!("{data}:"),
        convention => format!("{data}, {convention}:"),
    };
    let logarithms = |method: &str, factor: f64| -> Vec<Estimate> {
        let all = of_seeds(method, "nll").into_iter();
        all.map(|nll| nll.times(factor).ln()).collect()
    };
    let is_near = |other: &str| {
        Judgement::below_on_same_rows(&logarithms("diffusion", 1.0), &logarithms(other, 1.25))
    };
    vec![
        Finding::new(
            format!("{begin} sampled Laplace underfits: it is less accurate than linearised Laplace, and has a higher NLL"),
            &Judgement::all([
                is_below("accuracy", "sampled", "linearised"),
                is_below("nll", "linearised", "sampled"),
            ]),
            ["accuracy", "nll"].map(|column| words(column, &["sampled", "linearised", "map"])).join("; "),
        )
        .published("Table 1: NLL 3.812 and 0.306, E.3.1: 3.669 and 0.295 (MNIST)"),
        Finding::new(
            format!("{begin} the diffusion fits better than sampled and linearised Laplace"),
            &Judgement::all([
                is_below("nll", "diffusion", "sampled"),
                is_below("nll", "diffusion", "linearised"),
            ]),
            words("nll", &["diffusion", "linearised", "sampled"]),
        )
        .published("Table 1: NLL 0.042, E.3.1: 0.040 (MNIST)"),
        Finding::new(
            format!("{begin} the diffusion is better calibrated than sampled and linearised Laplace: its expected calibration error is lower"),
            &Judgement::all([
                is_below("ece", "diffusion", "sampled"),
                is_below("ece", "diffusion", "linearised"),
            ]),
            words("ece", &["diffusion", "linearised", "sampled", "map"]),
        )
        .published("Table 1: 0.137 against 0.251 and 0.443, in bins of which one is left out (MNIST)"),
        Finding::new(
            format!("{begin} the diffusion is competitive: its NLL is less than 1.25 times that of the mode, of SWAG and of the last layer"),
            &Judgement::all(["map", "swag", "last layer"].map(is_near)),
            words("nll", &["diffusion", "map", "swag", "last layer"]),
        )
        .published("E.3.1: 0.040 to 0.032, which is where the factor is from (MNIST)"),
        Finding::new(
            format!("{begin} linearised Laplace is as accurate as published, to within 0.03"),
            &Judgement::within(
                &of("linearised", "accuracy"),
                &Estimate::exact(published(&data.to_string(), "linearised").map_or(f64::NAN, |all| all[2])),
                0.03,
            ),
            words("accuracy", &["linearised"]),
        )
        .published("E.3.1: 0.930 (MNIST), 0.862 (Fashion-MNIST)"),
    ]
}
