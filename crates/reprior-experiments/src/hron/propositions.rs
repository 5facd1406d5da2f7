//! Propositions 2.3 and 3.1: divergence and gradient gap of the repriorised posterior vanish as the network widens.

use reprior::compute::matrix;
use reprior::network::infinite::{InfiniteNetwork, Kinds};

use crate::findings::{ends, listed, ratios, results};
use crate::width::{PriorDraws, WidthProblem, divergences, gradient_gaps, limit_of_divergence};
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Images, Paper, Row, Size, Table,
};

/// σ: with σ = 0.1 importance weights of prior draws degenerate, and the divergence cannot be estimated.
const NOISE: f64 = 1.0;

fn cells(widths: &[usize], draws: usize) -> Vec<Cell> {
    let cells = Cell::new().each("width", widths).into_iter();
    cells.map(|cell| cell.with("draws", draws)).collect()
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
            Size::Quick => cells(&[64, 256, 1024], 200),
            Size::Default => cells(&[64, 256, 1024, 4096], 1000),
            Size::Long | Size::Full => cells(&[64, 256, 1024, 4096, 16_384], 4000),
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
        Ok(vec![
            cell.choices(&["width"])
                .with("standard", found.standard.value)
                .with("its error", found.standard.standard_error)
                .with("limit", limit)
                .with("repriorised", found.repriorised.value)
                .with("error", found.repriorised.standard_error)
                .with("effective draws", found.effective_draws),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let columns = ["standard", "limit", "repriorised"];
        let [standard, limit, repriorised] = columns.map(|column| table.numbers(column, &[]));
        let gaps = ratios(&standard, &limit);
        vec![
            Finding::unjudged(
                "the divergence of the repriorised posterior falls towards 0",
                ends(&repriorised, |first, last| last < 0.5 * first),
                format!("repriorised: {}", listed(&repriorised)),
            ),
            Finding::unjudged(
                "that of the standard one tends to a positive limit",
                gaps.last().is_some_and(|gap| (gap - 1.0).abs() < 0.1),
                format!(
                    "standard: {}; limit {}",
                    listed(&standard),
                    listed(&limit[..1.min(limit.len())])
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "divergence",
                "Divergence of the repriorised posterior from the prior",
                "A straight fall is a power of the width; 0 is the prior itself.",
                ("width", "width"),
                ("repriorised", "KL divergence, nats"),
                &[],
            )
            .errors("error")
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
            what: "how far the gradient of the repriorised log posterior is from the prior's, over draws of the prior, against width",
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
        let norm = gradient_gaps(&model, prior_draws(cell), width)?.norm;
        Ok(vec![
            cell.choices(&["width"])
                .with("gap", norm.value)
                .with("error", norm.standard_error)
                .with("gap·√width", norm.value * (width as f64).sqrt()),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let scaled = table.numbers("gap·√width", &[]);
        let largest = scaled.iter().copied().fold(0.0, f64::max);
        let smallest = scaled.iter().copied().fold(f64::INFINITY, f64::min);
        vec![Finding::unjudged(
            "the gap falls as width^(−1/2)",
            scaled.len() > 1 && largest < 1.3 * smallest,
            format!("gap·√width: {}", listed(&scaled)),
        )]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "gradient-gap",
                "Gradient of the repriorised log posterior less the prior's",
                "A fall by half for every fourfold width is the rate −1/2.",
                ("width", "width"),
                ("gap", "mean norm"),
                &[],
            )
            .errors("error")
            .logarithmic(true, true),
        ]
    }
}

/// Row-major to column-major.
fn by_columns(values: &[f64], rows: usize) -> Vec<f64> {
    let columns = values.len() / rows;
    let entry = |column: usize| (0..rows).map(move |row| values[row * columns + column]);
    (0..columns).flat_map(entry).collect()
}
