//! `--start RUN` and `--start FILE`: chains that begin where an earlier run's ended, or at a trained network.

mod earlier;
mod trained;

use std::path::Path;

use reprior::model::Model;

use self::earlier::EarlierRun;
use self::trained::TrainedNetworks;
use crate::failure::Failure;
use crate::problem::Problem;
use crate::settings::{Auto, StartName};
use crate::stored::Stored;

/// Whether a start is the folder of a run, and not of weights.
pub fn is_run(place: &str) -> bool {
    Path::new(place).join("config.toml").is_file()
}

/// Where chains begin that are told so.
pub enum GivenStart {
    /// Where those of an earlier run ended.
    Earlier(EarlierRun),
    /// At trained networks.
    Trained(TrainedNetworks),
}

impl GivenStart {
    /// Where a problem's chains are to begin, if it says so.
    ///
    /// # Errors
    /// A wrong request: neither a run nor a file of weights, or one that does not go with the problem.
    pub fn of(problem: &Problem) -> Result<Option<Self>, Failure> {
        let Auto::Chosen(StartName::Given(place)) = &problem.settings.sampler.start else {
            return Ok(None);
        };
        if is_run(place) {
            return EarlierRun::open(place, problem).map(|run| Some(Self::Earlier(run)));
        }
        let trained = TrainedNetworks::open(place, problem)?;
        trained.map(Self::Trained).map(Some).ok_or_else(|| {
            Failure::request(format!(
                "--start {place}: it is neither `prior` nor `mode`, and there is no run or .safetensors file of that name: give one of the two, a run \
                 folder, a file of weights or a folder of such files"
            ))
        })
    }

    /// Refuses states of another dimension.
    ///
    /// # Errors
    /// A wrong request.
    pub fn check(&self, dimension: usize) -> Result<(), Failure> {
        match self {
            Self::Earlier(run) => run.check(dimension),
            // read for the problem's own network
            Self::Trained(_) => Ok(()),
        }
    }

    /// Where each of the chains of these numbers begins.
    ///
    /// # Errors
    /// A state of another dimension; a damaged checkpoint.
    pub fn positions<R: Stored>(
        &self,
        problem: &Problem,
        model: &Model<R>,
        dimension: usize,
        chains: &[usize],
    ) -> Result<Vec<Vec<R>>, Failure> {
        match self {
            Self::Earlier(run) => chains
                .iter()
                .map(|&chain| run.position(chain, dimension))
                .collect(),
            Self::Trained(networks) => Ok(networks.positions(problem, model, dimension, chains)),
        }
    }
}
