//! Weights that chains begin at, from a file; the run keeps a copy of it.

use std::io::Cursor;
use std::path::PathBuf;

use reprior::network::Composition;
use reprior::network::parameters::ParameterLayout;
use reprior_io::regular;
use reprior_io::run::{Files, WEIGHTS};
use reprior_io::weights::{read_state_dict, read_state_dict_bytes};

use super::Problem;
use crate::failure::Failure;
use crate::method::is_run;
use crate::settings::{Auto, Parametrisation, Precision, Settings, StartName};
use crate::stored::Stored;

/// Weights that chains begin at.
pub struct GivenWeights {
    /// Where they were read.
    path: PathBuf,
    /// All parameters, in the NTK parametrisation.
    parameters: Vec<f64>,
}

impl GivenWeights {
    /// Reads the file that the settings name, of a run in memory its own, `None` where chains begin at draws from the prior. Its statistics of batch
    /// normalisation go into the network, and into the settings goes the file's name in the run's folder.
    ///
    /// # Errors
    /// A wrong request: a file that cannot be used, or weights too large for the precision.
    pub fn read(
        settings: &mut Settings,
        network: &mut Composition,
        run: Option<&Files>,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = settings.minibatch.weights.take() else {
            return Ok(None);
        };
        let read = match run.filter(|run| run.folder().is_none()) {
            Some(run) => {
                let bytes = run.read(WEIGHTS).map_err(Failure::request)?;
                let bytes = Cursor::new(bytes.as_ref().map_or(&[][..], |bytes| bytes));
                read_state_dict_bytes(bytes, &path, network)
            }
            None => read_state_dict(&path, network),
        };
        let (filled, parameters) = read.map_err(Failure::request)?;
        let is_too_large = |parameter: &&f64| !(**parameter as f32).is_finite();
        if settings.sampler.precision != Precision::F64
            && let Some(parameter) = parameters.iter().find(is_too_large)
        {
            return Err(Failure::request(format!(
                "`{}` has weights of {parameter:e} prior standard deviations, too large for single precision: give --precision f64",
                path.display()
            )));
        }
        *network = filled;
        settings.minibatch.weights = Some(WEIGHTS.into());
        Ok(Some(Self { path, parameters }))
    }

    /// The bytes of the file, for the run's folder. To be read before that folder is made: what is removed for it may hold the
    /// file.
    ///
    /// # Errors
    /// A wrong request: a file that cannot be read any more.
    pub fn bytes(&self) -> Result<Vec<u8>, Failure> {
        regular::read(&self.path).map_err(|error| {
            let path = self.path.display();
            Failure::request(format!("the weights `{path}` cannot be read: {error}"))
        })
    }
}

/// Refuses scales of the inputs, by the name of what asks for them, where chains begin at a network that was trained elsewhere: it would be another function.
///
/// # Errors
/// A wrong request.
pub(super) fn refuse_scaled_inputs(settings: &Settings, scales: &str) -> Result<(), Failure> {
    let flag = match &settings.sampler.start {
        _ if settings.minibatch.weights.is_some() => "--weights",
        Auto::Chosen(StartName::Given(place)) if !is_run(place) => "--start",
        _ => return Ok(()),
    };
    Err(Failure::Request(format!(
        "{scales} gives each input a scale, and the network of {flag} was not trained on inputs so scaled: leave one of the two out"
    )))
}

impl Problem {
    /// The weights from the file in the parametrisation that was asked for; `ntk` is the layout of the NTK one.
    pub(crate) fn given_start<R: Stored>(&self, ntk: &ParameterLayout) -> Option<Vec<R>> {
        let mut start = self.weights.as_ref()?.parameters.clone();
        if self.settings.minibatch.parametrisation() == Parametrisation::Standard {
            ntk.scale_by_factors(&mut start);
        }
        Some(start.into_iter().map(R::from_f64).collect())
    }
}
