//! The sizes of a problem, which decide what a run takes.

use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::Composition;
use reprior::network::layer::Layer;
use reprior::posterior::{Coordinates, Space, TangentDeterminant};
use reprior::sampler::{Method, Start};

use super::sampler_settings;
use crate::settings::{Precision, Settings};

/// The sizes that decide everything.
#[derive(Debug, Clone)]
pub struct ProblemSizes {
    pub architecture: Composition,
    pub rows: usize,
    pub test_rows: usize,
    pub chains: usize,
    pub coordinates: Coordinates,
    /// How the determinant of tangent coordinates is computed; none in others.
    pub determinant: Option<TangentDeterminant>,
    pub method: Method,
    /// Copies of a chain at higher temperatures.
    pub replicas: usize,
    /// Whether a momentum persists.
    pub keeps_momentum: bool,
    /// Whether the first transitions are made by `hmc-infinite`.
    pub arrives: bool,
    /// Whether chains look for a mode first.
    pub starts_at_mode: bool,
    pub space: Space,
    pub precision: Precision,
    /// Rows of the first layer's parameter matrix in the chain's coordinates.
    pub first_rows: usize,
    /// Whether the readout is integrated out or solved for in closed form at each draw.
    pub is_gaussian: bool,
    /// Whether T is evaluated with each ℓ rather than for draws alone.
    pub maps_readout: bool,
    /// Coordinates of learned noise scales.
    pub noise_coordinates: usize,
    /// Factorisations of one ℓ: a noise scale that may differ has its own, or where the noise depends on the inputs the function and its noise.
    pub factorisations: usize,
    /// Coordinates of learned scales of weights.
    pub scale_coordinates: usize,
}

impl ProblemSizes {
    /// ProblemSizes for data of this many rows.
    pub fn new(
        settings: &Settings,
        method: Method,
        architecture: Composition,
        [rows, test_rows]: [usize; 2],
    ) -> Self {
        let whole = architecture.design_columns();
        let reduction = settings.sampler.input_reduction;
        let is_reduced = reduction.reduces(&architecture, rows);
        let space = settings.sampler.space.forced();
        let (schedule, sampler) = (settings.schedule(), sampler_settings(settings, method));
        let outputs = architecture.outputs;
        let is_gaussian = settings.model.likelihood() == LikelihoodName::Gaussian;
        let noise = settings.model.noise();
        let mut sizes = Self {
            is_gaussian,
            maps_readout: settings.posterior().maps_readout(is_gaussian),
            noise_coordinates: if settings.model.likelihood().has_scale() {
                noise.coordinates(outputs)
            } else {
                0
            },
            factorisations: match (is_gaussian, settings.model.likelihood().has_row_noise()) {
                (true, _) => noise.count(outputs).max(1),
                (false, has_row_noise) => 1 + usize::from(has_row_noise),
            },
            scale_coordinates: 0,
            replicas: sampler.replicas,
            keeps_momentum: sampler.keeps_momentum(),
            arrives: sampler.arrival_transitions(schedule.warmup) > 0,
            starts_at_mode: sampler.start != Start::Prior,
            chains: schedule.chains,
            first_rows: if is_reduced { rows.min(whole) } else { whole },
            space: space.unwrap_or_else(|| Space::cheaper(rows, architecture.readout_rows())),
            rows,
            test_rows,
            coordinates: settings.coordinates(),
            determinant: None,
            method,
            precision: settings.sampler.precision,
            architecture,
        };
        if sizes.coordinates == Coordinates::Tangent {
            sizes.determinant = Some(settings.determinant(sizes.dimension()));
        }
        sizes
    }

    /// Parameters below the readout in the chain's coordinates.
    pub fn inner_parameters(&self) -> usize {
        self.architecture
            .with_design_columns(self.first_rows)
            .inner_parameters()
    }

    /// Parameters of the network in the chain's coordinates.
    pub fn all_parameters(&self) -> usize {
        self.inner_parameters()
            .saturating_add(self.architecture.readout_parameters())
    }

    /// Coordinates of a position.
    pub fn dimension(&self) -> usize {
        let readout = match self.coordinates {
            Coordinates::Marginal => 0,
            _ => self.architecture.readout_parameters(),
        };
        self.inner_parameters() + self.noise_coordinates + self.scale_coordinates + readout
    }

    /// Numbers of all replicas of a chain: positions, gradients and momenta.
    pub fn replica_numbers(&self) -> usize {
        let gradients = usize::from(self.method.needs_gradients());
        let states = 1 + gradients + usize::from(self.keeps_momentum);
        self.replicas.saturating_mul(states * self.dimension())
    }

    /// Numbers of a position that is kept for `predict`.
    pub fn kept_numbers(&self) -> usize {
        let readout = if self.is_gaussian {
            0
        } else {
            self.architecture.readout_parameters()
        };
        self.inner_parameters() + self.noise_coordinates + readout
    }

    /// The same problem with another number of training rows.
    pub fn with_rows(&self, settings: &Settings, rows: usize) -> Self {
        Self::new(
            settings,
            self.method,
            self.architecture.clone(),
            [rows, self.test_rows],
        )
    }

    /// The same problem with every hidden layer of another width.
    pub fn with_width(&self, settings: &Settings, width: usize) -> Self {
        let mut architecture = self.architecture.clone();
        for layer in &mut architecture.layers {
            if let Layer::Dense(layer) = layer {
                layer.units = width;
            }
        }
        Self::new(
            settings,
            self.method,
            architecture,
            [self.rows, self.test_rows],
        )
    }

    /// Whether the first layer's inputs are reduced.
    pub fn is_reduced(&self) -> bool {
        !self.architecture.hidden_widths().is_empty()
            && self.first_rows < self.architecture.design_columns()
    }
}
