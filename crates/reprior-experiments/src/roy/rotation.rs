//! Roy, Miani et al. (2024), Figures 5 and 8: NLL, accuracy and calibration on test images that are turned: MNIST (Figure 5), and MNIST,
//! Fashion-MNIST and CIFAR-10 (Figure 8, whose first column is the fit without a turn).

use super::lenet::{METHODS, begin, settings, trained, with_published};
use super::methods::{Fitted, PUBLISHED};
use crate::data::shape;
use crate::findings::results;
use crate::pictures::Pictures;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// A figure of some data sets.
pub struct Rotation {
    /// Their folders.
    pub data: &'static [&'static str],
    /// Its name.
    pub name: &'static str,
    /// Its number.
    pub figure: &'static str,
    /// What it is.
    pub what: &'static str,
    /// What it costs.
    pub cost: [&'static str; 4],
}

/// Figure 5.
pub const MNIST: Rotation = Rotation {
    data: &["mnist"],
    name: "roy2024-fig5",
    figure: "Figure 5",
    what: "fit and calibration of LeNet's approximations on turned MNIST; seeds, eigenpairs, rows and diffusions as in Table 1, and the first 1,000 (default) or 2,000 test images (long)",
    cost: ["20 s", "30 min", "2 h", "months"],
};
/// Figure 8.
pub const ALL: Rotation = Rotation {
    data: &["mnist", "fashion-mnist", "cifar10"],
    name: "roy2024-fig8",
    figure: "Figure 8",
    what: "fit and calibration of approximations on MNIST, Fashion-MNIST and CIFAR-10, turned and not (CIFAR-10 where it is long); seeds, eigenpairs, rows and diffusions as in Table 1, and the first 1,000 (default) or 2,000 test images (long)",
    cost: ["20 s", "50 min", "10 h", "months"],
};

/// Degrees.
const ANGLES: [f64; 8] = [0.0, 15.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0];

/// The accuracy of the diffusion on MNIST in the released notebook that draws the figure; the text has no numbers.
fn published(angle: f64) -> f64 {
    match angle {
        0.0 => 0.986,
        15.0 => 0.947,
        30.0 => 0.811,
        60.0 => 0.265,
        _ => f64::NAN,
    }
}

impl Experiment for Rotation {
    fn about(&self) -> About {
        About {
            name: self.name,
            paper: Paper::Roy,
            figure: self.figure,
            what: self.what,
            data: Some(self.data[0]),
            cost: self.cost,
        }
    }

    fn data(&self, size: Size) -> Vec<&'static str> {
        let mut data = self.data.to_vec();
        match size {
            // the built-in images stand for each of them
            Size::Quick => data.truncate(1),
            // the residual network's curvature takes hours, as for the tables
            Size::Default => data.retain(|&name| name != "cifar10"),
            Size::Long | Size::Full => {}
        }
        data
    }

    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell> {
        let cell = |(data, seed): (&'static str, usize)| {
            METHODS.map(|method| {
                settings(size, data, seed)
                    .with("method", method)
                    .with("turned", size.pick(300_usize, 1000, 2000, 10_000))
            })
        };
        let seeds = size.pick(1, 1, 1, 3);
        let all = self.data(size).into_iter();
        let all = all.flat_map(|data| (0..seeds).map(move |seed| (data, seed)));
        with_published(all.flat_map(cell).collect(), as_published)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let trained = trained(cell, bench)?;
        let mut fitted = Fitted::new(&trained, cell, bench)?;
        let rows = trained.test.rows.min(cell.count("turned"));
        let part = trained.test.slice(0..rows);
        let [height, width, channels]: [usize; 3] = shape(&part).into();
        let mut found = Vec::new();
        for angle in ANGLES {
            let mut turned = part.clone();
            turned.inputs = part.inputs.rotated([height, width, channels], angle);
            let pictures = Pictures::new(&turned);
            let scores = fitted.scores(&pictures, bench)?;
            let row = begin(cell, bench).with("angle", angle);
            let is_published = cell.text("data") == "mnist" && cell.text("method") == "diffusion";
            let theirs = match is_published && bench.data.path.is_some() {
                true => published(angle),
                false => f64::NAN,
            };
            found.push(scores.onto(row).with("notebook: accuracy", theirs));
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for data in table.distinct("data") {
            for convention in ["", PUBLISHED] {
                findings.extend(of_data(table, &data, convention, self.figure));
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let lines = |name, column: &'static str, error, label| {
            Figure::lines(
                name,
                "Turned test images",
                "A line a method, with the standard errors of its test images",
                ("angle", "angle in degrees"),
                (column, label),
                &["method", "seed"],
            )
            .panels("data")
            .errors(error)
        };
        vec![
            lines("nll", "nll", "± nll", "NLL"),
            lines("accuracy", "accuracy", "± accuracy", "accuracy"),
            lines("ece", "ece", "± ece", "expected calibration error"),
        ]
    }
}

/// The claims of one data set in a figure.
fn of_data(table: &Table, data: &Value, convention: &str, figure: &str) -> Vec<Finding> {
    let name = |method: &str| match convention {
        "" => method.to_owned(),
        convention => format!("{method}, {convention}"),
    };
    let of_seeds = |method: &str, column: &str, angle: f64| {
        let wanted = [
            ("data", data.clone()),
            ("method", name(method).into()),
            ("angle", angle.into()),
        ];
        table.estimates(column, &wanted)
    };
    let of = |method: &str, column: &str, angle: f64| {
        Estimate::pooled_on_same_rows(&of_seeds(method, column, angle))
    };
    let is_below = |column: &str, own: &str, other: &str, angle: f64| {
        let [own, other] = [own, other].map(|method| of_seeds(method, column, angle));
        Judgement::below_on_same_rows(&own, &other)
    };
    if of("diffusion", "nll", 0.0).value.is_nan() {
        return Vec::new();
    }
    let words = |method: &str, column: &str| {
        let each = ANGLES.map(|angle| of(method, column, angle).to_string());
        format!("{method} {}", each.join(", "))
    };
    let begin = match convention {
        "" => format!("{data}:"),
        convention => format!("{data}, {convention}:"),
    };
    let better = |column: &str, what: &str, other: &str| {
        let each = ANGLES.map(|angle| is_below(column, "diffusion", other, angle));
        Finding::new(
            format!("{begin} at every angle the diffusion has a lower {what} than {other} Laplace"),
            &Judgement::all(each),
            format!(
                "from 0° to 180°: {}; {}",
                words("diffusion", column),
                words(other, column)
            ),
        )
        .published(format!("{figure}: consistently better than the others"))
    };
    let [sampled, mode] = ["sampled", "map"].map(|method| of(method, "accuracy", 0.0));
    vec![
        Finding::new(
            format!("{begin} sampled Laplace underfits without any rotation: it is less accurate than the mode"),
            &is_below("accuracy", "sampled", "map", 0.0),
            format!("accuracy: sampled {sampled}, mode {mode}"),
        )
        .published(format!("{figure}: significantly")),
        better("nll", "NLL", "sampled"),
        better("nll", "NLL", "linearised"),
        better("ece", "expected calibration error", "sampled"),
        better("ece", "expected calibration error", "linearised"),
    ]
}
