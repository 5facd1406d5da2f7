//! Roy, Miani et al. (2024), Figure 4: the higher the rank of the curvature, the less sampled Laplace underfits. The small convolutional
//! network on 10 to 300 images of each class, as in the paper.
//!
//! The rank is taken to be the number of eigenvalues above α, the directions in which the data say more than the prior: in double
//! precision hardly any eigenvalue is zero, however few the images. Those above 1e-6 of the largest are counted too.

use super::small::{Small, THRESHOLD, cells};
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// Figure 4.
pub struct Rank;

impl Experiment for Rank {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig4",
            paper: Paper::Roy,
            figure: "Figure 4",
            what: "fit of training images by sampled and linearised Laplace and diffusions against the rank of the curvature of a small convolutional network",
            data: Some("mnist"),
            cost: ["10 seconds", "20 minutes", "2 hours", "2 hours"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        cells(size)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut small = Small::new(cell, bench)?;
        let values = small.network.eigenvalues()?;
        let largest = values.first().copied().unwrap_or(0.0);
        let above = |least: f64| values.iter().filter(|&&v| v > least).count();
        let (rank, not_zero) = (above(cell.number("alpha")), above(THRESHOLD * largest));
        let laplace = small.laplace(cell)?;
        let ends = small.diffusion(cell, bench)?;
        let mode = small.network.at_mode();
        let methods = [
            ("map", small.scores(&mode, false)?),
            ("sampled", small.scores(&laplace, false)?),
            ("linearised", small.scores(&laplace, true)?),
            ("diffusion", small.scores(&ends, false)?),
        ];
        Ok(methods
            .map(|(method, scores)| {
                cell.choices(&["per class", "seed"])
                    .with("rank", rank)
                    .with("not zero", not_zero)
                    .with("weights", values.len())
                    .with("method", method)
                    .with_estimate("train accuracy", &scores.accuracy)
                    .with_estimate("train nll", &scores.nll)
            })
            .into())
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let numbers = table.distinct("per class");
        let of_seeds = |method: &str, column: &str, number: &Value| {
            let wanted = [("per class", number.clone()), ("method", method.into())];
            table.estimates(column, &wanted)
        };
        let of = |method: &str, column: &str| -> Vec<Estimate> {
            let one = |number| Estimate::pooled(&of_seeds(method, column, number));
            numbers.iter().map(one).collect()
        };
        let ranks = of("map", "rank");
        let words = |name: &str, values: &[Estimate]| format!("{name} {}", estimates(values));
        let accuracy = of("sampled", "train accuracy");
        let [sampled, linearised, diffusion] =
            ["sampled", "linearised", "diffusion"].map(|method| of(method, "train nll"));
        let below_of = |column: &str, own: &str, other: &str| {
            Judgement::all(numbers.iter().map(|number| {
                let [own, other] = [own, other].map(|name| of_seeds(name, column, number));
                Judgement::below_in_pairs(&own, &other)
            }))
        };
        let below = |own: &str, other: &str| below_of("train nll", own, other);
        let both = |name: &str, own: &[Estimate], other: &str, others: &[Estimate]| {
            format!("{}; {}", words(name, own), words(other, others))
        };
        vec![
            Finding::new(
                "the rank rises with the number of images",
                &Judgement::rises(&ranks),
                words("rank", &ranks),
            )
            .published("Appendix E.2.2"),
            Finding::new(
                "sampled Laplace fits the training images better the higher the rank: accuracy rises",
                &Judgement::rises(&accuracy),
                both("rank", &ranks, "accuracy", &accuracy),
            )
            .published("Figure 4"),
            Finding::new(
                "linearised Laplace fits better than sampled Laplace at every rank: its training NLL is lower",
                &below("linearised", "sampled"),
                both("sampled", &sampled, "linearised", &linearised),
            )
            .published("Section 3"),
            Finding::new(
                "the diffusion fits better than sampled Laplace at every rank",
                &below("diffusion", "sampled"),
                both("sampled", &sampled, "diffusion", &diffusion),
            )
            .published("Section 7, of other networks"),
            Finding::new(
                "the diffusion, with all eigenpairs, fits better than linearised Laplace at every rank",
                &below("diffusion", "linearised"),
                both("linearised", &linearised, "diffusion", &diffusion),
            )
            .published("Section 7, of other networks: slightly better"),
            Finding::new(
                "the diffusion is more accurate on the training images than sampled Laplace at every rank",
                &below_of("train accuracy", "sampled", "diffusion"),
                both("sampled", &accuracy, "diffusion", &of("diffusion", "train accuracy")),
            )
            .published("Section 7, of other networks"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "accuracy",
                "Fit of the training images",
                "The more directions have curvature, the less sampled Laplace underfits",
                ("rank", "eigenvalues of the Gauss-Newton matrix above α"),
                ("train accuracy", "training accuracy"),
                &["method"],
            )
            .scatter(),
        ]
    }
}
