//! Propositions 2.3 and 3.1: divergence and gradient gap of the repriorised posterior vanish as the network widens.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::kernels::norm_squared;
use reprior::compute::matrix;
use reprior::model::Model;
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::posterior::{Coordinates, Posterior, Target};

use crate::chains::ChainPlan;
use crate::findings::{estimates, results};
use crate::width::{PriorDraws, WidthProblem, divergences, gradient_gaps, limit_of_divergence};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Images, Judgement, Paper,
    Row, Size, Table,
};

/// σ: with σ = 0.1 importance weights of prior draws degenerate, and the divergence cannot be estimated.
const NOISE: f64 = 1.0;
/// Effective draws of the weights below which log Z and its jackknife are not relied on: a choice.
const FEW: f64 = 50.0;

fn cells(widths: &[usize], draws: usize) -> Vec<Cell> {
    let cells = Cell::new().each("width", widths).into_iter();
    cells.map(|cell| cell.with("draws", draws)).collect()
}

/// The same with as many more draws as a network is narrower than 1,024: their weights are the more unequal.
fn weighted(widths: &[usize], draws: usize) -> Vec<Cell> {
    let more = |cell: Cell| {
        let factor = (1024 / cell.count("width")).max(1);
        cell.replaced("draws", factor * draws)
    };
    cells(widths, draws).into_iter().map(more).collect()
}

fn images(bench: &Bench<'_>) -> Result<Images, Failure> {
    bench.data.images("cifar10", 16)
}

/// The regression of the images.
fn problem(images: &Images) -> WidthProblem<'_> {
    WidthProblem {
        inputs: &images.inputs,
        targets: &images.targets,
        noise: NOISE,
    }
}

fn prior_draws(cell: &Cell) -> PriorDraws {
    PriorDraws {
        count: cell.count("draws"),
        seed: 1,
    }
}

/// Proposition 2.3.
pub(super) struct Divergence;

impl Experiment for Divergence {
    fn about(&self) -> About {
        About {
            name: "hron2022-prop2.3",
            paper: Paper::Hron,
            figure: "Proposition 2.3",
            what: "KL divergence of the posterior from the prior, standard and repriorised, against width and its limit (16 images, σ = 1)",
            data: Some("cifar10"),
            cost: ["3 s", "2 min", "30 min", "30 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => weighted(&[64, 256, 1024], 400),
            Size::Default => weighted(&[64, 256, 1024, 4096], 1000),
            Size::Long | Size::Full => weighted(&[64, 256, 1024, 4096, 16_384], 4000),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = images(bench)?;
        let (width, n) = (cell.count("width"), images.rows());
        let model = problem(&images).model(images.network(&[width]))?;
        let found = divergences(&model, prior_draws(cell), width)?;
        let columns = by_columns(&images.inputs, n);
        let x = matrix(&columns, n, images.columns());
        let infinite = InfiniteNetwork::new(&images.network(&[1]))?;
        let kernel = infinite.kernels(x, Kinds::Nngp, bench.threads)?.nngp;
        let limit = limit_of_divergence(&kernel, &images.targets, n, NOISE)?;
        let known = |estimate: Estimate| match found.effective_draws < FEW {
            true => estimate.doubted(format!(
                "the weighted draws are worth {:.0} independent ones, fewer than {FEW}",
                found.effective_draws
            )),
            false => estimate,
        };
        Ok(vec![
            cell.choices(&["width"])
                .with_estimate("standard", &known(found.standard))
                .with("limit", limit)
                .with_estimate("repriorised", &known(found.repriorised))
                .with("effective draws", found.effective_draws),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let [standard, repriorised] =
            ["standard", "repriorised"].map(|column| table.estimates(column, &[]));
        let limit = Estimate::exact(table.last("limit", &[]));
        let near = standard
            .last()
            .map(|last| Judgement::within(&last.ln(), &limit.ln(), 0.1_f64.ln_1p()));
        vec![
            Finding::new(
                "the divergence of the repriorised posterior falls with width",
                &Judgement::falls(&repriorised),
                estimates(&repriorised),
            )
            .published("Theorem 2.1: to 0"),
            Finding::new(
                "that of the standard one tends to a positive limit: at the widest it is within a tenth of it",
                &near.unwrap_or_else(|| Judgement::all([])),
                format!("{}; limit {limit}", estimates(&standard)),
            )
            .published("Proposition 2.3"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "standard",
                "Divergence of the standard posterior from the prior",
                "It tends to the divergence of the infinitely wide network's posterior from its prior.",
                ("width", "width"),
                ("standard", "KL divergence, nats"),
                &[],
            )
            .errors("± standard")
            .limits(&[("limit", "limit")])
            .logarithmic(true, false),
            Figure::lines(
                "divergence",
                "Divergence of the repriorised posterior from the prior",
                "A straight fall is a power of the width; 0 is the prior itself.",
                ("width", "width"),
                ("repriorised", "KL divergence, nats"),
                &[],
            )
            .errors("± repriorised")
            .logarithmic(true, true),
        ]
    }
}

/// Proposition 3.1.
pub(super) struct Gradient;

impl Experiment for Gradient {
    fn about(&self) -> About {
        About {
            name: "hron2022-prop3.1",
            paper: Paper::Hron,
            figure: "Proposition 3.1",
            what: "how far the gradient of the repriorised log posterior is from the prior's, over draws of the prior and of the posterior, against width",
            data: Some("cifar10"),
            cost: ["3 s", "1 min", "10 min", "10 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[64, 256, 1024], 40),
            Size::Default => cells(&[64, 256, 1024, 4096], 100),
            Size::Long | Size::Full => cells(&[64, 256, 1024, 4096, 16_384], 400),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = images(bench)?;
        let width = cell.count("width");
        let model = problem(&images).model(images.network(&[width]))?;
        let gaps = gradient_gaps(&model, prior_draws(cell), width)?;
        let root = (width as f64).sqrt();
        let row = |law: &str, norm: &Estimate| {
            cell.choices(&["width"])
                .with("draws of", law)
                .with_estimate("gap", norm)
                .with_estimate("gap·√width", &norm.times(root))
        };
        let posterior = gap_of_the_posterior(cell, &model, bench)?;
        Ok(vec![row("prior", &gaps.norm), row("posterior", &posterior)])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |law: &str, column: &str| table.estimates(column, &[("draws of", law.into())]);
        let finding = |law: &str, published: &str| {
            let gaps = of(law, "gap");
            let scaled = of(law, "gap·√width");
            // the rate: from the first width to the last the power is −1/2 or lower, to within a tenth
            let widths = table.numbers("width", &[("draws of", law.into())]);
            let power = gaps.first().zip(gaps.last()).map(|(first, last)| {
                let ratio = widths[widths.len() - 1] / widths[0];
                last.ln().minus(&first.ln()).times(ratio.ln().recip())
            });
            let judged = power.map(|power| Judgement::below(&power, &Estimate::exact(-0.4)));
            Finding::new(
                format!("over draws of the {law} the gap falls as width^(−1/2), or faster: its power from end to end is below −0.4"),
                &judged.unwrap_or_else(|| Judgement::all([])),
                format!(
                    "gap {}; gap·√width {}",
                    estimates(&gaps),
                    estimates(&scaled)
                ),
            )
            .published(published)
        };
        vec![
            finding("prior", "Appendix A.4: at least so fast"),
            finding("posterior", "Proposition 3.1: to 0"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "gradient-gap",
                "Gradient of the repriorised log posterior less the prior's",
                "A fall by half for every fourfold width is the rate −1/2.",
                ("width", "width"),
                ("gap", "mean norm"),
                &["draws of"],
            )
            .errors("± gap")
            .logarithmic(true, true),
        ]
    }
}

/// The gap over nearly independent draws of the posterior.
fn gap_of_the_posterior(
    cell: &Cell,
    model: &Arc<Model<f64>>,
    bench: &Bench<'_>,
) -> Result<Estimate, Failure> {
    let plan = ChainPlan::marginal(Schedule {
        chains: 2,
        warmup: 60,
        draws: cell.long("draws") / 4,
        thin: 2,
        seed: 2,
    });
    let mut target = Posterior::new(Arc::clone(model), Coordinates::Marginal)?;
    let mut norms = Vec::new();
    for z in plan.positions(model, bench)? {
        let mut gradient = vec![0.0; z.len()];
        target.log_ratio_and_gradient(&z, &mut gradient)?;
        norms.push(norm_squared(&gradient).sqrt());
    }
    Ok(Estimate::mean(&norms))
}

/// Row-major to column-major.
fn by_columns(values: &[f64], rows: usize) -> Vec<f64> {
    let columns = values.len() / rows;
    let entry = |column: usize| (0..rows).map(move |row| values[row * columns + column]);
    (0..columns).flat_map(entry).collect()
}
