//! A hostile problem: a table that nobody would wish for, and flags that are all allowed one by one.

use std::path::Path;

use super::chance::Chance;

/// How a column of inputs is.
#[derive(Debug, Clone, Copy)]
enum Column {
    Normal,
    Constant,
    CopyOfFirst,
    SumOfOthers,
    Huge,
    Tiny,
    Offset,
    Outlier,
    Binary,
    Missing,
    Levels,
}

/// How targets are.
#[derive(Debug, Clone, Copy)]
enum Target {
    Smooth,
    Constant,
    Huge,
    Tiny,
    Outlier,
    Linear,
    Counts,
    LargeCounts,
    TwoClasses,
    OneClass,
    ManyClasses,
    Binary,
}

const COLUMNS: [Column; 11] = [
    Column::Normal,
    Column::Constant,
    Column::CopyOfFirst,
    Column::SumOfOthers,
    Column::Huge,
    Column::Tiny,
    Column::Offset,
    Column::Outlier,
    Column::Binary,
    Column::Missing,
    Column::Levels,
];

const REAL: [Target; 6] = [
    Target::Smooth,
    Target::Constant,
    Target::Huge,
    Target::Tiny,
    Target::Outlier,
    Target::Linear,
];
const COUNTS: [Target; 2] = [Target::Counts, Target::LargeCounts];
const CLASSES: [Target; 4] = [
    Target::TwoClasses,
    Target::OneClass,
    Target::ManyClasses,
    Target::Binary,
];

const CHAINS: [&str; 11] = [
    "hmc-infinite",
    "hmc",
    "nuts",
    "pcn",
    "pcnl",
    "mala",
    "langevin",
    "elliptical",
    "rwm",
    "mams",
    "mclmc",
];
const MINIBATCH: [&str; 7] = [
    "sgld", "sghmc", "sgnht", "map", "dropout", "swag", "ensemble",
];

pub struct Hostile {
    pub flags: Vec<String>,
    columns: Vec<Column>,
    target: Target,
    rows: usize,
}

impl Hostile {
    pub fn new(number: u64, place: &Path) -> Self {
        let mut chance = Chance::new(number);
        let likelihood = chance.of(&[
            "auto",
            "auto",
            "gaussian",
            "gaussian",
            "student-t",
            "gaussian-heteroscedastic",
            "student-t-heteroscedastic",
            "categorical",
            "bernoulli",
            "poisson",
        ]);
        let target = match likelihood {
            "categorical" | "bernoulli" => chance.of(&CLASSES),
            "poisson" => chance.of(&COUNTS),
            "auto" if chance.once_in(2) => chance.of(&CLASSES),
            _ => chance.of(&REAL),
        };
        let has_thousand = matches!(target, Target::ManyClasses) && chance.once_in(4);
        let train = match has_thousand {
            true => 1000,
            false => chance.of(&[1, 2, 3, 8, 30]),
        };
        let test = chance.of(&[1, 3]);
        let columns: Vec<_> = (0..chance.of(&[1, 2, 5, 12]))
            .map(|_| chance.of(&COLUMNS))
            .collect();
        let rows = train + test;
        let table = place.join("table.csv");
        let text = table_of(&columns, target, rows, &mut chance);
        std::fs::write(&table, text).unwrap();
        let mut flags: Vec<String> = Vec::new();
        let mut add = |text: &str| flags.extend(text.split_whitespace().map(str::to_owned));
        add(&format!(
            "--data {} --target y --train {train} --test {test} --no-shuffle --likelihood {likelihood}",
            table.display()
        ));
        let is_large = add_network(&mut chance, has_thousand, &mut add);
        add_method(&mut chance, is_large, &mut add);
        if chance.once_in(3) {
            add(chance.of(&[
                "--noise 0.1",
                "--noise 1e-8",
                "--noise 1e6",
                "--noise learn",
                "--noise auto",
                "--noise learn-each",
            ]));
        }
        if chance.once_in(4) {
            add(chance.of(&[
                "--scales evidence",
                "--scales learn",
                "--scales learn-half-normal",
                "--scales none",
            ]));
        }
        if chance.once_in(3) {
            add(chance.of(&["--precision f32", "--precision f64"]));
        }
        if chance.once_in(8) {
            add("--standardise off");
        }
        if chance.once_in(6) {
            add(chance.of(&["--missing mean", "--missing drop"]));
        }
        Self {
            flags,
            columns,
            target,
            rows,
        }
    }

    /// What it is, in words.
    pub fn said(&self) -> String {
        format!(
            "{} rows of {:?}, target {:?}; {}",
            self.rows,
            self.columns,
            self.target,
            self.flags[2..].join(" ")
        )
    }
}

/// Whether it has many weights or layers.
fn add_network(chance: &mut Chance, has_thousand: bool, add: &mut impl FnMut(&str)) -> bool {
    let network = match chance.below(if has_thousand { 3 } else { 12 }) {
        0 | 1 => "linear".to_owned(),
        2 | 3 => "fcn:1".to_owned(),
        4 => "fcn:64".to_owned(),
        5 => format!("fcn:{}2", "2,".repeat(199)),
        6 | 7 => "fcn:4,4,4".to_owned(),
        _ => "fcn:8".to_owned(),
    };
    add(&format!("--network {network}"));
    if chance.once_in(2) {
        add("--activation");
        add(chance.of(&["relu", "erf", "tanh", "identity", "leaky_relu(0.1)", "sin"]));
    }
    if chance.once_in(6) {
        add(chance.of(&[
            "--weight-variance 1e-12",
            "--weight-variance 1e12",
            "--bias-variance 1e12",
            "--readout-weight-variance 1e-12",
            "--readout-bias-variance 1e12",
        ]));
    }
    network.len() > "fcn:4,4,4".len() || network == "fcn:64"
}

fn add_method(chance: &mut Chance, is_large: bool, add: &mut impl FnMut(&str)) {
    match chance.below(20) {
        0..=11 => {
            let method = chance.of(&CHAINS);
            add(&format!("--method {method}"));
            add(&format!(
                "--warmup {} --draws 6 --thin 1 --chains 2",
                chance.of(&[0, 1, 12])
            ));
            if chance.once_in(2) {
                let coordinates = chance.of(&["marginal", "repriorised", "standard", "tangent"]);
                // gradients of determinants in all weights take their time
                let is_slow = coordinates == "tangent" && (is_large || method == "nuts");
                add("--coordinates");
                add(if is_slow { "standard" } else { coordinates });
            }
            if chance.once_in(4) {
                add(chance.of(&["--space feature", "--space data", "--space data-symmetric"]));
            }
            if chance.once_in(3) {
                add(chance.of(&["--start mode", "--start prior"]));
            }
            if chance.once_in(10) {
                add("--replicas 2");
            }
        }
        12 => add("--method smc --draws 12 --chains 2"),
        13..=15 => {
            add(&format!("--method {}", chance.of(&MINIBATCH)));
            add("--epochs 4 --batch 4");
            if chance.once_in(3) {
                add("--preconditioner");
                add(chance.of(&["rmsprop", "diagonal", "quasi-diagonal", "full", "kfac"]));
            }
        }
        16 | 17 => {
            add("--method laplace --epochs 4 --batch 4 --draws 4 --hessian-structure");
            add(chance.of(&["kron", "full", "diag", "lowrank"]));
            if chance.once_in(3) {
                add("--pred-type nn");
            }
            if chance.once_in(3) {
                add("--prior-precision marglik");
            }
        }
        18 => add(
            "--method laplace-diffusion --epochs 4 --batch 4 --draws 2 --rank 3 --diffusion-steps 3",
        ),
        _ => {
            add("--method");
            add(chance.of(&["nngp", "ntk"]));
        }
    }
}

fn table_of(columns: &[Column], target: Target, rows: usize, chance: &mut Chance) -> String {
    let mut values = vec![vec![0.0; columns.len()]; rows];
    let are_twice = chance.once_in(5);
    for row in 0..rows {
        for at in 0..columns.len() {
            let normal = chance.normal();
            values[row][at] = match columns[at] {
                Column::Constant => 7.0,
                Column::CopyOfFirst => values[row][0],
                Column::SumOfOthers => values[row][..at].iter().sum(),
                Column::Huge => 1e150 * normal,
                Column::Tiny => 1e-150 * normal,
                Column::Offset => 1e12 + normal,
                Column::Outlier if row == rows / 2 => 1e300,
                Column::Binary | Column::Levels => f64::from(normal > 0.0),
                _ => normal,
            };
        }
        // rows of the same inputs and other targets
        if are_twice && row % 2 == 1 {
            values[row] = values[row - 1].clone();
        }
    }
    let mut text: String = (0..columns.len()).map(|at| format!("x{at},")).collect();
    text.push_str("y\n");
    for row in 0..rows {
        for (at, column) in columns.iter().enumerate() {
            match column {
                Column::Missing if chance.once_in(3) => {}
                Column::Levels => text.push_str(["low", "high"][values[row][at] as usize]),
                _ => text.push_str(&format!("{:e}", values[row][at])),
            }
            text.push(',');
        }
        let normal = chance.normal();
        let first = values[row][0];
        let own = match target {
            Target::Smooth => format!("{:e}", (first.clamp(-9.0, 9.0)).sin() + 0.1 * normal),
            Target::Constant => "3".to_owned(),
            Target::Huge => format!("{:e}", 1e150 * normal),
            Target::Tiny => format!("{:e}", 1e-150 * normal),
            Target::Outlier if row == 0 => "1e300".to_owned(),
            Target::Outlier => format!("{normal:e}"),
            Target::Linear => format!("{:e}", 2.0 * first.clamp(-1e9, 1e9)),
            Target::Counts => format!("{}", chance.below(5)),
            Target::LargeCounts => format!("{}", chance.below(1_000_000_000)),
            Target::TwoClasses => ["yes", "no"][chance.below(2)].to_owned(),
            Target::OneClass => "same".to_owned(),
            Target::ManyClasses => format!("class {row}"),
            Target::Binary => format!("{}", chance.below(2)),
        };
        text.push_str(&own);
        text.push('\n');
    }
    text
}
