//! Chains that begin at networks that were trained elsewhere: files of PyTorch's, as `--weights` reads them.
//!
//! A position's inner weights are the file's, with reduced inputs V = Q·W of the first layer's W. What the file does not say begins at 0:
//! a learned noise at its prior median, and in `repriorised` coordinates φ_out, so that the readout begins at its mean given the features (with a
//! Gaussian likelihood, of its approximation with others). In `standard` coordinates the readout is the file's. Chain k begins at
//! file k of a folder, in the order of their names, and at the first again where there are fewer.

use std::path::{Path, PathBuf};

use reprior::model::Model;
use reprior::model::design::whole_weights;
use reprior::posterior::Coordinates;
use reprior_io::weights::read_state_dict;

use crate::failure::Failure;
use crate::problem::Problem;
use crate::stored::Stored;

/// What files of weights end in.
const ENDING: &str = "safetensors";

/// All parameters of each network, in the NTK parametrisation.
pub struct TrainedNetworks(Vec<Vec<f64>>);

impl TrainedNetworks {
    /// Those of a file, or of the files in a folder; none where there is no such file.
    ///
    /// # Errors
    /// A wrong request: a file of another network, or a problem whose chains cannot begin at one.
    pub fn open(place: &str, problem: &Problem) -> Result<Option<Self>, Failure> {
        let paths = files(Path::new(place))?;
        if paths.is_empty() {
            return Ok(None);
        }
        let refuse = |why: &str| Err(Failure::request(format!("--start {place}: {why}")));
        if problem.settings.coordinates() == Coordinates::Tangent {
            return refuse(
                "tangent coordinates of given weights are not known: give --coordinates marginal, repriorised or standard, or another start",
            );
        }
        if problem.settings.model.scale_prior().is_some() {
            return refuse(
                "its weights are of known scales, and --scales learns them: leave --scales out, or give another start",
            );
        }
        let mut networks = Vec::with_capacity(paths.len());
        for path in paths {
            let network = &problem.architecture;
            let (filled, parameters) = read_state_dict(&path, network).map_err(Failure::request)?;
            if filled != *network {
                return refuse(
                    "it has batch normalisation with statistics of its own, which would change the network: write them into the network's description, or give \
                     another start",
                );
            }
            networks.push(parameters);
        }
        Ok(Some(Self(networks)))
    }

    /// Where each of the chains of these numbers begins.
    pub fn positions<R: Stored>(
        &self,
        problem: &Problem,
        model: &Model<R>,
        dimension: usize,
        chains: &[usize],
    ) -> Vec<Vec<R>> {
        let coordinates = problem.settings.coordinates();
        let whole = whole_weights(
            &model.architecture,
            &model.design,
            &problem.arranged::<f64>(&problem.train.inputs),
        );
        let readout = model.architecture.readout_parameters();
        let units = model.architecture.hidden_widths().first().copied();
        let position = |parameters: &Vec<f64>| {
            let (inner, of_readout) = parameters.split_at(parameters.len() - readout);
            let mut position: Vec<R> = match &whole {
                Some(whole) => {
                    let rows = model.design.whole_columns();
                    let (first, above) = inner.split_at(rows * units.unwrap_or(0));
                    let first: Vec<R> = first.iter().map(|&w| R::from_f64(w)).collect();
                    let mut reduced = whole.reduce(&first);
                    reduced.extend(above.iter().map(|&w| R::from_f64(w)));
                    reduced
                }
                None => inner.iter().map(|&w| R::from_f64(w)).collect(),
            };
            position.resize(dimension, R::ZERO);
            if coordinates == Coordinates::Standard {
                let own = position[dimension - readout..].iter_mut();
                own.zip(of_readout)
                    .for_each(|(own, &w)| *own = R::from_f64(w));
            }
            position
        };
        let own: Vec<Vec<R>> = self.0.iter().map(position).collect();
        chains
            .iter()
            .map(|&chain| own[chain % own.len()].clone())
            .collect()
    }
}

/// The file, or those in the folder by their names.
fn files(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_weights =
        |path: &Path| path.is_file() && path.extension().is_some_and(|ending| ending == ENDING);
    if is_weights(place) {
        return Ok(vec![place.to_owned()]);
    }
    if !place.is_dir() {
        return Ok(Vec::new());
    }
    let unreadable =
        |error: std::io::Error| Failure::request(format!("--start {}: {error}", place.display()));
    let mut found = Vec::new();
    for entry in place.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if is_weights(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
