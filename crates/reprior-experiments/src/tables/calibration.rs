//! Whether the program as a whole is calibrated (Cook, Gelman & Rubin 2006; Talts et al. 2018): where data come from the prior, the truth is anywhere
//! in its posterior with the same probability.
//!
//! A table has a network's weights and a noise drawn from the prior, by code of its own: 100 training rows of 5 inputs, 50 units in a hidden layer. The
//! program samples it by its defaults, and ends as they do: when its chains agree, or after a minute. The rank of a true number is its posterior's distribution function there: of log σ
//! the share of draws below it, of the function at a held-out row x, of which a draw of the inner weights leaves N(m, s²), the mean of Φ((f(x) − m)/s).
//! Ranks are uniform. The prior is not to depend on the data here: nothing is standardised, and the likelihood and the median of the noise are given.

use libm::erfc;
use reprior::compute::{Purpose, Stream};
use reprior_io::data::{Given, GivenColumn, GivenValues};
use reprior_io::run::{DrawReader, RunFolder, Selection};
use reprior_run::{NewRun, Settings, prepare_given};

use super::{believed, with_options};
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

const TRAIN: usize = 100;
const TEST: usize = 20;
const INPUTS: usize = 5;
const UNITS: usize = 50;
/// Prior variances that a table has by default: weights times fan-in and biases of the hidden layer, those of the readout.
const HIDDEN: [f64; 2] = [2.0, 1.0];
const READOUT: [f64; 2] = [4.0, 0.01];
/// Median of the noise, whose logarithm has the standard deviation 1.
const MEDIAN: f64 = 0.3;
/// How far mean ranks, and shares within 90 % intervals, may be from what they should be.
const OF_RANKS: f64 = 0.1;
const OF_SHARES: f64 = 0.08;
/// The broken twin asks about a noise that is so many times smaller than that of the data.
const TWIN: f64 = 1.4;

pub(super) struct Calibration;

/// A table from the prior.
struct Truth {
    table: Given,
    /// f at the test rows.
    function: Vec<f64>,
    noise: f64,
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / std::f64::consts::SQRT_2)
}

impl Truth {
    /// The table of this number: the same at each call.
    fn draw(number: u64) -> Result<Self, Failure> {
        let rows = TRAIN + TEST;
        let mut draws = vec![0.0; rows * INPUTS + UNITS * (INPUTS + 2) + 2 + rows];
        Stream::new(2718, number, Purpose::Simulation, 0).fill_normal(&mut draws);
        let mut rest = draws.as_slice();
        let mut take = |count: usize| {
            let (own, others) = rest.split_at(count);
            rest = others;
            own
        };
        let (x, weights) = (take(rows * INPUTS), take(UNITS * INPUTS));
        let (biases, readout) = (take(UNITS), take(UNITS));
        let (bias, log_noise) = (take(1)[0], take(1)[0]);
        let of_weight = (HIDDEN[0] / INPUTS as f64).sqrt();
        let of_readout = (READOUT[0] / UNITS as f64).sqrt();
        let function = |x: &[f64]| {
            let unit = |unit: usize| {
                let own = &weights[unit * INPUTS..(unit + 1) * INPUTS];
                let sum: f64 = x.iter().zip(own).map(|(x, w)| x * w).sum();
                let input = of_weight * sum + HIDDEN[1].sqrt() * biases[unit];
                of_readout * readout[unit] * input * normal_cdf(input)
            };
            READOUT[1].sqrt() * bias + (0..UNITS).map(unit).sum::<f64>()
        };
        let function: Vec<f64> = x.chunks(INPUTS).map(function).collect();
        let noise = MEDIAN * log_noise.exp();
        let targets = function.iter().zip(take(rows));
        let targets = targets.map(|(f, e)| f + noise * e).collect();
        let column = |name: String, values| GivenColumn {
            name,
            values: GivenValues::Numbers(values),
        };
        let inputs = (0..INPUTS).map(|at| {
            let values = x.iter().skip(at).step_by(INPUTS).copied().collect();
            column(format!("x{at}"), values)
        });
        let columns: Vec<GivenColumn> = inputs.chain([column("y".to_owned(), targets)]).collect();
        Ok(Self {
            table: Given::table(&columns).map_err(Failure::failed)?,
            function: function[TRAIN..].to_vec(),
            noise,
        })
    }
}

/// The default, with a prior that does not depend on the data.
fn settings(number: u64) -> Settings {
    let mut settings = Settings::default();
    settings.data.target = Some(vec!["y".to_owned()]);
    settings.data.train = Some(TRAIN);
    settings.data.test = Some(TEST);
    settings.data.no_shuffle = Some(true);
    settings.data.standardise = reprior_run::Switch::Off;
    settings.run.seed = number;
    let model = &mut settings.model;
    model.network = format!("fcn:{UNITS}");
    model.likelihood = reprior::model::likelihood::name::LikelihoodName::Gaussian.into();
    model.noise_median = Some(MEDIAN);
    settings
}

/// Draws of a variable, one after the other.
fn draws(folder: &RunFolder, group: &str, name: &str) -> Result<Vec<f64>, Failure> {
    let reader = DrawReader::open(folder.files()).map_err(Failure::failed)?;
    let found = reader.read(group, name, &Selection::all());
    Ok(found.map_err(Failure::failed)?.values)
}

/// The mean rank of the function, and the share of ranks that are within the central 90 %.
fn of_function(truth: &Truth, means: &[f64], deviations: &[f64]) -> [f64; 2] {
    let rank = |row: usize| {
        let at = |values: &[f64]| values.iter().skip(row).step_by(TEST).copied().collect();
        let (means, deviations): (Vec<f64>, Vec<f64>) = (at(means), at(deviations));
        let of = |(mean, sd): (&f64, &f64)| normal_cdf((truth.function[row] - mean) / sd);
        means.iter().zip(&deviations).map(of).sum::<f64>() / means.len() as f64
    };
    let ranks: Vec<f64> = (0..TEST).map(rank).collect();
    let within = ranks.iter().filter(|rank| is_within(**rank)).count();
    [
        ranks.iter().sum::<f64>() / TEST as f64,
        within as f64 / TEST as f64,
    ]
}

fn is_within(rank: f64) -> bool {
    (0.05..=0.95).contains(&rank)
}

fn rank(draws: &[f64], truth: f64) -> f64 {
    let below = draws.iter().filter(|draw| **draw < truth).count();
    (below as f64 + 0.5) / (draws.len() as f64 + 1.0)
}

impl Experiment for Calibration {
    fn about(&self) -> About {
        About {
            name: "calibration",
            paper: Paper::Ours,
            figure: "calibration of the whole program",
            what: "ranks of held-out functions and of the noise in their posteriors, where tables (100 rows, 5 inputs, 50 units, learned noise) are drawn from the prior, and what the verdicts say; quick: 6 tables; default: 100; long: 200; full: 1,000",
            data: None,
            cost: ["6 s", "2 min", "3 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let tables: usize = size.pick(6, 100, 200, 1000);
        let cell = |table: usize| Cell::new().with("table", table);
        (0..tables).map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let number = cell.count("table") as u64;
        let truth = Truth::draw(number)?;
        let problem = prepare_given(settings(number), &truth.table);
        let run = NewRun::new(problem.map_err(Failure::failed)?, None).map_err(Failure::failed)?;
        let (folder, summary) = with_options(bench, |options| run.sample(options));
        bench.advance(1.0)?;
        let summary = summary.map_err(Failure::failed)?;
        let means = draws(&folder, "predictions", "mean")?;
        let deviations = draws(&folder, "predictions", "sd")?;
        let noise = draws(&folder, "posterior", "noise")?;
        let [of_function, within] = of_function(&truth, &means, &deviations);
        let of_noise = rank(&noise, truth.noise);
        let predictions = summary.ess.prediction.as_ref();
        Ok(vec![
            cell.choices(&["table"])
                .with("noise", truth.noise)
                .with("rank of the function", of_function)
                .with("function within 90 %", within)
                .with("rank of the noise", of_noise)
                .with(
                    "noise within 90 %",
                    f64::from(u8::from(is_within(of_noise))),
                )
                .with("rank, broken twin", rank(&noise, truth.noise / TWIN))
                .with("R-hat", predictions.map_or(f64::NAN, |ess| ess.rhat_max))
                .with("draws", summary.draws)
                .with("believed", believed(&summary))
                .with("seconds", summary.seconds),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let all: Vec<&Row> = results(tables).rows.iter().collect();
        let is_believed = |row: &&&Row| row.text("believed") == "yes";
        let believed: Vec<&Row> = all.iter().filter(is_believed).copied().collect();
        // of numbers from 0 to 1: where all are the same they show no spread, which is at most that of yes and no
        let of = |rows: &[&Row], column: &str| {
            let values: Vec<f64> = rows.iter().map(|row| row.number(column)).collect();
            let mean = Estimate::mean(&values);
            match mean.error == 0.0 {
                true => Estimate::proportion(mean.value, values.len()),
                false => mean,
            }
        };
        // of yes and no: how many, of how many
        let counted = |rows: &[&Row], is: &dyn Fn(&Row) -> f64| {
            let count: f64 = rows.iter().map(|row| is(row)).sum();
            (count, rows.len() as f64)
        };
        let share_of = |(count, all): (f64, f64)| Estimate::proportion(count / all, all as usize);
        let ranks = |rows: &[&Row], what: &str, whose: &str| {
            let column = format!("{what} within 90 %");
            let rank = of(rows, &format!("rank of the {what}"));
            let (share, judged) = match what {
                // of a table it is one rank
                "noise" => {
                    let (count, all) = counted(rows, &|row| row.number(&column));
                    let judged = Judgement::share_within(count, all, 0.9, OF_SHARES);
                    (share_of((count, all)), judged)
                }
                _ => {
                    let share = of(rows, &column);
                    let judged = Judgement::within(&share, &Estimate::exact(0.9), OF_SHARES);
                    (share, judged)
                }
            };
            let judged = Judgement::all([
                Judgement::within(&rank, &Estimate::exact(0.5), OF_RANKS),
                judged,
            ]);
            Finding::new(
                format!(
                    "{whose}: ranks of the {what} are uniform, as far as their mean, 0.5 ± {OF_RANKS}, and the share in the central 90 %, 0.9 ± {OF_SHARES}, say"
                ),
                &judged,
                estimates(&[rank, share]),
            )
        };
        let (twin, apart) = (
            of(&all, "rank, broken twin"),
            Estimate::exact(0.5 - OF_RANKS),
        );
        let warned = counted(&all, &|row| {
            f64::from(u8::from(row.text("believed") != "yes"))
        });
        vec![
            ranks(&all, "function", "all tables"),
            ranks(&all, "noise", "all tables"),
            ranks(&believed, "function", "runs without a warning"),
            ranks(&believed, "noise", "runs without a warning"),
            Finding::new(
                format!("a noise that is {TWIN} times what was said is found out"),
                &Judgement::below(&twin, &apart),
                twin.to_string(),
            ),
            Finding::new(
                "most runs end without a warning",
                &Judgement::share_below(warned.0, warned.1, 0.5),
                format!("{} of the runs have one", share_of(warned)),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let caption =
            "Each point is a table from the prior; uniform along the axis up, whatever the noise.";
        let figure = Figure::lines(
            "ranks",
            "Ranks of the noise in its posterior",
            caption,
            ("noise", "true noise"),
            ("rank of the noise", "rank"),
            &["believed"],
        );
        vec![figure.scatter()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn verdicts(ranks: impl Fn(usize) -> [f64; 2], believed: &str) -> Vec<Verdict> {
        verdicts_of(400, ranks, believed)
    }

    /// Of so many tables.
    fn verdicts_of(
        tables: usize,
        ranks: impl Fn(usize) -> [f64; 2],
        believed: &str,
    ) -> Vec<Verdict> {
        let row = |at: usize| {
            let [of_function, of_noise] = ranks(at);
            let within = |rank: f64| f64::from(u8::from(is_within(rank)));
            Row::new()
                .with("rank of the function", of_function)
                .with("function within 90 %", within(of_function))
                .with("rank of the noise", of_noise)
                .with("noise within 90 %", within(of_noise))
                .with("rank, broken twin", 0.1 * of_noise)
                .with("believed", believed)
        };
        let table = Table {
            name: Row::RESULTS.to_owned(),
            rows: (0..tables).map(row).collect(),
        };
        let findings = Calibration.findings(&[table]);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    /// Uniform ranks hold; posteriors that are shifted, or too narrow, do not; and without believed runs nothing is said of them.
    #[test]
    fn claims_hold_where_ranks_are_uniform_and_only_there() {
        use Verdict::{CannotBeTold, DoesNotHold, Holds};
        let uniform = |at: usize| (at as f64 + 0.5) / 400.0;
        assert_eq!(verdicts(|at| [uniform(at); 2], "yes"), [Holds; 6]);
        let shifted = verdicts(|at| [uniform(at).powi(2), uniform(at)], "no");
        assert_eq!(shifted[0], DoesNotHold);
        assert_eq!(shifted[2..4], [CannotBeTold; 2]);
        assert_eq!((shifted[1], shifted[5]), (Holds, DoesNotHold));
        // half the spread: a third are beyond, on either side
        let narrow = |at: usize| normal_cdf(2.0 * (uniform(at) - 0.5) * 4.0);
        assert_eq!(
            verdicts(|at| [uniform(at), narrow(at)], "yes")[1],
            DoesNotHold
        );
        // a twin that is not found out
        assert_eq!(verdicts(|_| [0.5, 10.0 * 0.5], "yes")[4], DoesNotHold);
    }

    /// At 0.9 six ranks in six are within more often than not, and of fair coins six in six are heads more often than 1 %: numbers without
    /// any spread are not without error.
    #[test]
    fn six_tables_alike_are_no_proof() {
        use Verdict::{CannotBeTold, Holds};
        let alike = verdicts_of(6, |_| [0.5; 2], "yes");
        assert_eq!(alike[..4], [CannotBeTold; 4]);
        assert_eq!(alike[5], CannotBeTold);
        assert_eq!(verdicts_of(7, |_| [0.5; 2], "yes")[5], Holds);
    }

    /// The prior's variance of the function at a row, E f² = 0.01 + 4 E φ(u)² with u ~ N(0, 1 + 2|x|²/5), and the median of the noise.
    #[test]
    fn tables_are_drawn_from_the_prior() {
        let truths: Vec<Truth> = (0..400).map(|at| Truth::draw(at).unwrap()).collect();
        let noises: Vec<f64> = truths
            .iter()
            .map(|truth| (truth.noise / MEDIAN).ln())
            .collect();
        let of_noise = Estimate::mean(&noises);
        assert!(
            of_noise.value.abs() < 4.0 * of_noise.error && (of_noise.error - 0.05).abs() < 0.01
        );
        let squares: Vec<f64> = truths
            .iter()
            .map(|truth| truth.function.iter().map(|f| f * f).sum::<f64>() / TEST as f64)
            .collect();
        let found = Estimate::mean(&squares);
        // the same by sums: over |x|² = χ²₅, by its own draws, and over u
        let mut x = vec![0.0; 5 * 20_000];
        Stream::new(1, 0, Purpose::Simulation, 0).fill_normal(&mut x);
        let of_row = |x: &[f64]| {
            let norm: f64 = x.iter().map(|x| x * x).sum();
            let sd = (HIDDEN[1] + HIDDEN[0] * norm / INPUTS as f64).sqrt();
            let steps = -400..=400;
            let all = steps.map(|step| {
                let t = f64::from(step) * 0.02;
                let u = sd * t;
                (u * normal_cdf(u)).powi(2) * (-0.5 * t * t).exp() * 0.02
            });
            all.sum::<f64>() / std::f64::consts::TAU.sqrt()
        };
        let rows = x.chunks(5).take(2000).map(of_row);
        let exact = READOUT[1] + READOUT[0] * rows.sum::<f64>() / 2000.0;
        assert!(
            (found.value - exact).abs() < 4.0 * found.error + 0.05 * exact,
            "{found:?} {exact}"
        );
    }
}
