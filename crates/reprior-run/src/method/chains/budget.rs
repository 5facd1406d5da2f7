//! Memory and operations that a run takes, from its sizes alone.

use reprior::posterior::features::FeatureMap;
use reprior::posterior::readout::Readout;
use reprior::posterior::{Coordinates, Space};
use reprior::sampler::Method;

use super::sizes::ProblemSizes;
use super::tangent;
use crate::settings::Precision;

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

impl ProblemSizes {
    /// Memory and operations. Memory counts every buffer that grows with the problem.
    pub fn budget(&self) -> Budget {
        let shared = self.data_bytes() as u64;
        let chain = (self.evaluation_bytes() + self.recording_bytes()) as u64;
        let chain = chain.saturating_add(self.state_bytes() as u64);
        let (value, gradient) = self.operations();
        Budget {
            shared_bytes: shared,
            chain_bytes: chain,
            memory_bytes: shared.saturating_add(chain.saturating_mul(self.chains as u64)),
            parameters: self.architecture.parameters() as u64,
            dimension: self.dimension() as u64,
            value_operations: value,
            gradient_operations: gradient,
        }
    }

    /// Columns of test rows beyond those of the reduced training rows.
    fn residual_columns(&self) -> usize {
        let (n, t, d) = (self.rows, self.test_rows, self.architecture.inputs());
        match self.is_reduced() {
            true => (n + t).min(d + 1).saturating_sub(self.first_rows),
            false => 0,
        }
    }

    /// Data, which all chains share: records, standardised records, and while the design is made its stacked rows and their
    /// factor.
    fn data_bytes(&self) -> usize {
        let (n, t, r) = (self.rows, self.test_rows, self.first_rows);
        let d = self.architecture.inputs();
        let data = (n + t) * d * 8 * 2;
        let making = match self.is_reduced() {
            true => (n + t) * ((d + 1) * 8 * 3 + (n + t).min(d + 1) * 8),
            false => (n + t) * (d + 1) * 8,
        };
        let designs = (n * r + t * (r + self.residual_columns())) * self.precision.bytes();
        data + making + designs
    }

    fn feature_bytes(&self, rows: usize, gradients: bool) -> usize {
        match self.precision {
            Precision::Auto | Precision::F32 => {
                FeatureMap::<f32>::bytes(&self.architecture, rows, gradients)
            }
            Precision::F64 => FeatureMap::<f64>::bytes(&self.architecture, rows, gradients),
        }
    }

    fn evaluates_again(&self) -> bool {
        match self.precision {
            Precision::Auto | Precision::F32 => {
                FeatureMap::<f32>::evaluates_again(&self.architecture, self.rows)
            }
            Precision::F64 => FeatureMap::<f64>::evaluates_again(&self.architecture, self.rows),
        }
    }

    /// Features, readout and tangent kernel of one chain.
    fn evaluation_bytes(&self) -> usize {
        let (n, c, p) = (
            self.rows,
            self.architecture.outputs,
            self.architecture.readout_rows(),
        );
        let with_gradients = self.method.needs_gradients() || self.arrives || self.starts_at_mode;
        let readout_bytes = match self.precision {
            Precision::Auto | Precision::F32 => Readout::<f32>::bytes,
            Precision::F64 => Readout::<f64>::bytes,
        };
        let mut readout = (n + p) * c * 32;
        if self.is_gaussian {
            readout += readout_bytes(n, p, c, self.space, with_gradients, self.factorisations);
        }
        if self.maps_readout {
            // one more factorisation, and one more square for its derivative; of several, all factors and a sum of squares
            let size = if self.space == Space::Feature { p } else { n };
            let squares = if self.is_gaussian {
                1
            } else {
                self.factorisations
            };
            readout += readout_bytes(n, p, 2 * c, self.space, with_gradients, 1);
            readout += squares * size * size * 16;
        }
        let tangent = self.determinant.map_or(0, |determinant| {
            tangent::bytes(n, c, self.dimension(), determinant, with_gradients)
        });
        self.feature_bytes(n, with_gradients) + readout + tangent
    }

    /// Positions, gradients and momenta of one chain.
    fn state_bytes(&self) -> usize {
        let real = self.precision.bytes();
        let states = match self.method {
            Method::HmcInfinite if self.keeps_momentum => 7,
            Method::HmcInfinite | Method::Hmc | Method::Mams => 5,
            Method::Langevin => 8,
            // two of five vectors in double precision, and the momentum
            Method::Mclmc => 5 + 2 * 8 / real,
            Method::Pcnl | Method::Mala => 4,
            Method::Elliptical => 3,
            // a trajectory of ten doublings keeps up to 31 points of five vectors, in double precision
            Method::Nuts => 4 + 31 * 5 * 8 / real,
            Method::Pcn | Method::Rwm => 2,
        };
        let states = if self.arrives { states.max(5) } else { states };
        let ellipse = match self.method {
            Method::Elliptical => 2 * self.rows * self.first_width() * real,
            _ => 0,
        };
        // pairs of L-BFGS, and what its line search holds
        let search = if self.starts_at_mode { 40 * 8 } else { 0 };
        // a replica has a sampler of its own; trees are of the one that moves
        let of_replica = match self.method {
            Method::Nuts => 4,
            _ => states,
        };
        let replicas = self
            .replicas
            .saturating_mul(self.dimension() * of_replica * real);
        // a checkpoint has them once more
        let replicas = replicas.saturating_add(self.replica_numbers().saturating_mul(real));
        (self.dimension() * (states * real + search) + ellipse).saturating_add(replicas)
    }

    fn first_width(&self) -> usize {
        let widths = self.architecture.hidden_widths();
        widths.first().copied().unwrap_or(0)
    }

    /// Predictions and weights of one chain's recorded draw.
    fn recording_bytes(&self) -> usize {
        let (real, t, c) = (
            self.precision.bytes(),
            self.test_rows,
            self.architecture.outputs,
        );
        let weights = self.inner_parameters() + self.architecture.readout_rows() * c;
        // the inverse factor, where no gradient needs it, or outputs at the training rows
        let scores = match (self.is_gaussian, self.space) {
            (true, Space::Feature) => self.architecture.readout_rows() * 256 * 8,
            (true, _) => self.rows * self.rows * 8,
            (false, _) => self.rows * c * real,
        };
        self.feature_bytes(t, false)
            + scores
            + self.residual_columns() * self.first_width() * real
            + weights * (real + 16)
            + t * c * 32
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
            return tangent::operations(architecture, self.rows, dimension, forward, determinant);
        }
        let again = match self.evaluates_again() {
            true => first + above,
            false => 0.0,
        };
        if self.coordinates == Coordinates::Standard {
            let readout = 2.0 * n * p * c;
            return (
                first + above + readout,
                2.0 * first + 3.0 * (above + readout) + again,
            );
        }
        let g = self.factorisations as f64;
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
                g * 9.0 * n * n * n,
                2.0 * n * n * p + g * 4.0 * n * n * n,
            ),
        };
        (
            first + above + gram + factor,
            2.0 * first + 3.0 * above + again + gram + factor + back,
        )
    }
}
