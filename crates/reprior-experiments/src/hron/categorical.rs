//! Figure 11: repriorisation under a categorical likelihood, by the likelihood's Gaussian approximation. A smaller version of Figure 7,
//! left: three hidden layers, 256 images, fewer steps, step sizes tuned for an acceptance of 0.9.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::likelihood::Categorical as CategoricalLikelihood;
use reprior::model::{InputReduction, Model};

use super::langevin::{langevin, onto, with_tuned_damping};
use super::{COORDINATES, FLOORS};
use crate::data::{labels, one_hot};
use crate::effective::Effective;
use crate::findings::results;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Judgement, Paper, Row, Size, Table,
};

/// Steps between draws.
const THIN: u64 = 25;

/// Figure 11.
pub(super) struct Categorical;

impl Experiment for Categorical {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig11",
            paper: Paper::Hron,
            figure: "Figure 11",
            what: "effective draws of Langevin steps under a categorical likelihood against width, three hidden layers, standard and repriorised with the likelihood's Gaussian approximation; except at full size, on the weights that the data touch, at widths 32, 128 and 512, by 6,000 (default) or 20,000 steps (long) where the paper has 100,000; quick: n = 32",
            data: Some("cifar10"),
            cost: ["15 s", "25 min", "90 min", "2 months"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths = size.pick(
            &[64_usize, 256][..],
            &[32, 128, 512],
            &[32, 128, 512],
            &[32, 64, 128, 384, 512, 768, 1024],
        );
        let cells = Cell::new()
            .with("n", size.pick(32_usize, 256, 256, 256))
            .each("width", widths)
            .into_iter();
        let steps: u64 = size.pick(6000, 6000, 20_000, 100_000);
        cells
            .flat_map(|cell| cell.each("coordinates", &COORDINATES))
            .map(|cell| cell.with("steps", steps))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let network = images.network(&[cell.count("width"); 3]);
        let targets = one_hot(labels(&images.train), images.classes());
        let (x, test) = (&images.inputs, images.midpoints(20));
        let reduction = match bench.size {
            Size::Full => InputReduction::Off,
            _ => InputReduction::Auto,
        };
        let model = Model::<f32>::new(network, 1.0, x, targets, &test, reduction)?;
        let model = Arc::new(model.with_likelihood(Arc::new(CategoricalLikelihood)));
        let schedule = Schedule {
            chains: 2,
            warmup: bench.size.pick(600, 1000, 2000, 20_000),
            draws: cell.long("steps") / THIN,
            thin: THIN,
            seed: 10,
        };
        let mut plan = langevin(cell, schedule);
        plan.settings.target_acceptance = Some(0.9);
        plan.settings.arrival = bench.size.pick(Some(40), Some(40), Some(40), Some(0));
        let plan = with_tuned_damping(plan, &model, bench)?;
        let sampled = plan.sample(&model, bench)?;
        Ok(vec![onto(
            cell.choices(&["coordinates", "width"]),
            &plan,
            &sampled,
        )])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of =
            |name: &str| Effective::by_width(table, "ess weights", &[("coordinates", name.into())]);
        let [standard, repriorised] = COORDINATES.map(of);
        let pairs = standard.iter().zip(&repriorised);
        vec![
            Finding::new(
                "repriorised chains have more effective draws of weights at every width",
                &Judgement::all(pairs.map(|(a, b)| b.above(a))),
                format!(
                    "standard {}; repriorised {}",
                    Effective::listed(&standard),
                    Effective::listed(&repriorised)
                ),
            )
            .published("Figure 11: a boost, likely underestimated"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "ess",
                "Effective draws of weights, categorical likelihood",
                "Higher is better; 1 is an independent draw every 25 steps.",
                ("width", "width"),
                ("ess weights", "effective draws per draw"),
                &["coordinates"],
            )
            .band("least, weights", "greatest, weights")
            .limits(FLOORS)
            .logarithmic(true, true),
        ]
    }
}
