//! Memory and operations that a run takes, from its sizes alone.

use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::Composition;
use reprior::network::layer::Layer;
use reprior::posterior::features::FeatureMap;
use reprior::posterior::readout::Readout;
use reprior::posterior::{Coordinates, Space, TangentDeterminant};
use reprior::sampler::Method;

use super::{sampler_settings, tangent};
use crate::settings::{Precision, Settings};

/// The sizes that decide everything.
#[derive(Debug, Clone)]
pub struct Sizes {
    pub architecture: Composition,
    pub rows: usize,
    pub test_rows: usize,
    pub chains: usize,
    pub coordinates: Coordinates,
    /// How the determinant of tangent coordinates is computed; none in others.
    pub determinant: Option<TangentDeterminant>,
    pub method: Method,
    /// Whether a momentum persists.
    pub keeps_momentum: bool,
    /// Whether the first transitions are made by `hmc-infinite`.
    pub arrives: bool,
    pub space: Space,
    pub precision: Precision,
    /// Rows of the first layer's parameter matrix in the chain's coordinates.
    pub first_rows: usize,
    /// Whether the readout is integrated out or solved for in closed form at each draw.
    pub is_gaussian: bool,
    /// Whether T is evaluated with each ℓ rather than for draws alone.
    pub maps_readout: bool,
    /// Coordinates of learned noise scales, and noise scales that may differ.
    pub noise_coordinates: usize,
    pub noise_scales: usize,
}

/// What a run takes.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Bytes for data and designs, shared by all chains.
    pub shared_bytes: u64,
    /// Bytes for each chain.
    pub chain_bytes: u64,
    /// Both, for all chains.
    pub memory_bytes: u64,
    /// Parameters of the network.
    pub parameters: u64,
    /// Coordinates of a chain.
    pub dimension: u64,
    /// Floating-point operations of one evaluation of the log-density.
    pub value_operations: f64,
    /// The same with its gradient.
    pub gradient_operations: f64,
}

impl Sizes {
    /// Sizes for data of this many rows.
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
        let is_gaussian = settings.model.likelihood == LikelihoodName::Gaussian;
        let noise = settings.model.noise();
        let mut sizes = Self {
            is_gaussian,
            maps_readout: settings.posterior().maps_readout(is_gaussian),
            noise_coordinates: if settings.model.likelihood.has_scale() {
                noise.coordinates(outputs)
            } else {
                0
            },
            noise_scales: noise.count(outputs).max(1),
            keeps_momentum: sampler.keeps_momentum(),
            arrives: sampler.arrival_transitions(schedule.warmup) > 0,
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
        self.inner_parameters() + self.noise_coordinates + readout
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

    /// Memory and operations. Memory counts every buffer that grows with the problem.
    pub fn budget(&self) -> Budget {
        let real = self.precision.bytes();
        let architecture = &self.architecture;
        let (n, t, r) = (self.rows, self.test_rows, self.first_rows);
        let (d, c, p) = (
            architecture.inputs(),
            architecture.outputs,
            architecture.readout_rows(),
        );
        let inner = self.inner_parameters();
        let dimension = self.dimension();
        let with_gradients = self.method.needs_gradients() || self.arrives;
        let residual = if self.is_reduced() {
            (n + t).min(d + 1).saturating_sub(r)
        } else {
            0
        };
        // records, standardised records, and while the design is made its stacked rows and their factor
        let data = (n + t) * d * 8 * 2;
        let making = if self.is_reduced() {
            (n + t) * ((d + 1) * 8 * 3 + (n + t).min(d + 1) * 8)
        } else {
            (n + t) * (d + 1) * 8
        };
        let designs = (n * r + t * (r + residual)) * real;
        let feature_bytes = match self.precision {
            Precision::Auto | Precision::F32 => FeatureMap::<f32>::bytes,
            Precision::F64 => FeatureMap::<f64>::bytes,
        };
        let features = |rows, gradients| feature_bytes(architecture, rows, gradients);
        let groups = self.noise_scales;
        let bytes = match self.precision {
            Precision::Auto | Precision::F32 => Readout::<f32>::bytes,
            Precision::F64 => Readout::<f64>::bytes,
        };
        let mut readout = (n + p) * c * 32;
        if self.is_gaussian {
            readout += bytes(n, p, c, self.space, with_gradients, groups);
        }
        if self.maps_readout {
            // one more factorisation, and one more square for its derivative
            let size = if self.space == Space::Feature { p } else { n };
            readout += bytes(n, p, 2 * c, self.space, with_gradients, 1) + size * size * 16;
        }
        let states = match self.method {
            Method::HmcInfinite if self.keeps_momentum => 7,
            Method::HmcInfinite | Method::Hmc => 5,
            Method::Langevin => 8,
            Method::Pcnl | Method::Mala => 4,
            Method::Elliptical => 3,
            // a trajectory of ten doublings keeps up to 31 points of five vectors, in double precision
            Method::Nuts => 4 + 31 * 5 * 8 / real,
            Method::Pcn | Method::Rwm => 2,
        };
        let states = if self.arrives { states.max(5) } else { states };
        let first_width = architecture.hidden_widths().first().copied().unwrap_or(0);
        let recording = features(t, false)
            + residual * first_width * real
            + (inner + p * c) * (real + 16)
            + t * c * 32;
        let ellipse = match self.method {
            Method::Elliptical => 2 * n * first_width * real,
            _ => 0,
        };
        let tangent = match self.determinant {
            Some(determinant) => tangent::bytes(n, c, dimension, determinant),
            None => 0,
        };
        let chain = features(n, with_gradients)
            + ellipse
            + readout
            + states * dimension * real
            + recording
            + tangent;
        let shared = data + making + designs;
        let (value, gradient) = self.operations();
        Budget {
            shared_bytes: shared as u64,
            chain_bytes: chain as u64,
            memory_bytes: (shared as u64)
                .saturating_add((chain as u64).saturating_mul(self.chains as u64)),
            parameters: architecture.parameters() as u64,
            dimension: dimension as u64,
            value_operations: value,
            gradient_operations: gradient,
        }
    }

    /// Operations of ℓ and of ℓ with its gradient: products, symmetric and triangular halves counted once.
    fn operations(&self) -> (f64, f64) {
        let architecture = &self.architecture;
        let (n, r, c) = (
            self.rows as f64,
            self.first_rows as f64,
            architecture.outputs as f64,
        );
        let p = architecture.readout_rows() as f64;
        let layers = match architecture.as_fully_connected() {
            Some(_) => 0.0,
            None => n * architecture.operations(),
        };
        let widths = architecture.hidden_widths();
        let widths: Vec<f64> = widths.iter().map(|&w| w as f64).collect();
        let first = widths.first().map_or(0.0, |w| {
            if self.is_reduced() {
                n * r * w
            } else {
                2.0 * n * r * w
            }
        });
        let above: f64 = widths
            .windows(2)
            .map(|pair| 2.0 * n * (pair[0] + 1.0) * pair[1])
            .sum();
        let above = above + layers;
        if let Some(determinant) = self.determinant {
            let forward = first + above + 2.0 * n * p * c;
            let (architecture, dimension) = (&self.architecture, self.dimension());
            let value =
                tangent::operations(architecture, self.rows, dimension, forward, determinant);
            return (value, f64::NAN);
        }
        if self.coordinates == Coordinates::Standard {
            let readout = 2.0 * n * p * c;
            return (
                first + above + readout,
                2.0 * first + 3.0 * (above + readout),
            );
        }
        let g = self.noise_scales as f64;
        let (gram, factor, back) = match self.space {
            Space::Data => (
                n * n * p,
                g * n * n * n / 3.0,
                2.0 * n * n * p + g * 2.0 * n * n * n / 3.0,
            ),
            Space::Feature => (
                n * p * p,
                g * p * p * p / 3.0,
                2.0 * n * p * p + g * 2.0 * p * p * p / 3.0,
            ),
            Space::DataSymmetric => (
                n * n * p,
                9.0 * n * n * n,
                2.0 * n * n * p + 4.0 * n * n * n,
            ),
        };
        (
            first + above + gram + factor,
            2.0 * first + 3.0 * above + gram + factor + back,
        )
    }
}
