//! Section 4.1.3: what single precision does to the acceptance probability of Langevin steps.
//!
//! From the same positions with the same momenta one leapfrog is made in single and in double precision; compared are the acceptance
//! probabilities of the two. The paper found differences of two to five percentage points.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::{Purpose, Real, Stream};
use reprior::model::{InputReduction, Model};
use reprior::posterior::Posterior;
use reprior::sampler::SamplerSettings;

use super::langevin::langevin;
use super::{COORDINATES, coordinates};
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Single against double precision.
pub(super) struct Precision;

impl Experiment for Precision {
    fn about(&self) -> About {
        About {
            name: "hron2022-precision",
            paper: Paper::Hron,
            figure: "Section 4.1.3",
            what: "acceptance probabilities of the same Langevin steps in single and in double precision, three hidden layers",
            data: Some("cifar10"),
            cost: ["5 s", "4 min", "20 min", "10 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let cases = size.pick(
            &[(32, 64)][..],
            &[(256, 128), (256, 512)],
            &[(256, 128), (256, 512), (256, 1024), (1024, 512)],
            &[(256, 128), (256, 512), (256, 1024), (1024, 512)],
        );
        let cell = |&(n, width): &(usize, usize)| {
            let cell = Cell::new().with("n", n).with("width", width);
            cell.each("coordinates", &COORDINATES)
        };
        let draws: usize = size.pick(40, 60, 100, 100);
        let cells = cases.iter().flat_map(cell);
        cells.map(|cell| cell.with("draws", draws)).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let hidden = [cell.count("width"); 3];
        let single = images.model::<f32>(&hidden, &[], InputReduction::Auto)?;
        let double = images.model::<f64>(&hidden, &[], InputReduction::Auto)?;
        let schedule = Schedule {
            chains: 1,
            warmup: 300,
            draws: cell.long("draws"),
            thin: 10,
            seed: 16,
        };
        let mut plan = langevin(cell, schedule);
        plan.settings.arrival = Some(30);
        let chains = plan.run(&single, bench, |_| reprior::chain::Collect::default())?;
        let Some((chain, collected)) = chains.into_iter().next() else {
            return Err(Failure::failed("there is no chain"));
        };
        let mut settings = plan.settings.clone();
        settings.step_size = chain.snapshot().step_size;
        // momenta are given; what is added to them changes nothing that is measured
        settings.damping = Some(1e-14);
        let wide = |z: &[f32]| z.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let positions: Vec<Vec<f64>> = collected.positions.iter().map(|z| wide(z)).collect();
        let singles = rates(&single, cell, &settings, &positions)?;
        let doubles = rates(&double, cell, &settings, &positions)?;
        let pairs = singles.iter().zip(&doubles);
        let differences: Vec<f64> = pairs.map(|(a, b)| 100.0 * (a - b).abs()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        Ok(vec![
            cell.choices(&["coordinates", "n", "width"])
                .with("step size", settings.step_size.unwrap_or(f64::NAN))
                .with("acceptance, single", mean(&singles))
                .with("acceptance, double", mean(&doubles))
                .with_estimate("percentage points", &Estimate::mean(&differences))
                .with("largest", differences.iter().copied().fold(0.0, f64::max)),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let found = results(tables).estimates("percentage points", &[]);
        let least = Estimate::exact(2.0);
        let above = found.iter().map(|own| Judgement::above(own, &least));
        let below = found.iter().map(|own| Judgement::below(own, &least));
        vec![
            Finding::new(
                "single precision changes acceptance probabilities by two percentage points or more",
                &Judgement::all(above),
                estimates(&found),
            )
            .published("Section 4.1.3: two to five, in their program"),
            Finding::new(
                "in this program, whose sums of ℓ and of energies are in double precision, it changes them by less",
                &Judgement::all(below),
                estimates(&found),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "difference",
                "Acceptance in single less that in double precision",
                "Lower is better.",
                ("width", "width"),
                ("percentage points", "mean difference, percentage points"),
                &["coordinates", "n"],
            )
            .errors("± percentage points")
            .logarithmic(true, true),
        ]
    }
}

/// The acceptance probability of one step from each position, with a momentum that is the same in either precision but for rounding.
fn rates<R: Real>(
    model: &Arc<Model<R>>,
    cell: &Cell,
    settings: &SamplerSettings,
    positions: &[Vec<f64>],
) -> Result<Vec<f64>, Failure> {
    let mut target = Posterior::new(Arc::clone(model), coordinates(cell.text("coordinates")))?;
    let rate = |(index, z): (usize, &Vec<f64>)| {
        let z: Vec<R> = z.iter().map(|&x| R::from_f64(x)).collect();
        let mut sampler = settings.sampler();
        let mut momentum = vec![0.0; z.len()];
        Stream::new(18, index as u64, Purpose::Transition, 0).fill_normal(&mut momentum);
        let mut state = sampler.init(&mut target, z)?;
        state.momentum = momentum.into_iter().map(R::from_f64).collect();
        let mut stream = Stream::new(17, index as u64, Purpose::Transition, 0);
        let info = sampler.step(&mut target, &mut state, &mut stream)?;
        Ok(info.acceptance_rate)
    };
    positions.iter().enumerate().map(rate).collect()
}
