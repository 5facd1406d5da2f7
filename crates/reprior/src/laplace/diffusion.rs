//! Laplace diffusions (Roy, Miani, Ek, Hennig, Pförtner, Tatzel & Hauberg 2024, section 5): T steps of size 1/T of dw = M(w)·dB from
//! trained weights, with M from the eigenpairs U, Λ of the generalised Gauss-Newton matrix G at the present w:
//!
//! | kind | M, of which a step adds T^(−1/2)·M·ε, ε ~ N(0, I) |
//! |---|---|
//! | full | (G + αI)^(−1/2) |
//! | non-kernel | U(Λ + α)^(−1/2)Uᵀ: moves that change the function |
//! | kernel | α^(−1/2)·(I − UUᵀ): moves that do not change the function on the training inputs, to first order |
//! | alternating | a kernel step and, with the eigenpairs where it ends, a non-kernel step, with noise of its own |
//!
//! One full step is the Laplace approximation; with a constant G any number of them is. Algorithm 1 of the paper prints N^(−1/2) for
//! T^(−1/2).
//!
//! The paper's algorithm is Euler's, which is Itô's integral. Along the kernel the functions on the training inputs have then no
//! noise, but the drift ½·tr(M·∇²f·M) that the second order of all steps adds up to: they do not stay as they were, however small
//! the steps. Theorem 5.1 is of the Brownian motion of the manifold, which is Stratonovich's integral of the projection; Heun's
//! steps, T^(−1/2)·½(M(w) + M(w̃))·ε with w̃ where Euler's step ends, converge to it at twice the cost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::curvature::GaussNewton;
use super::spectrum::Spectrum;
use super::{Lanczos, LaplaceError, RowCurvature};
use crate::compute::{Matrix, Purpose, Real, Stream, add_scaled, all_finite};
use crate::network::Executor;

/// Which directions a diffusion moves along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffusionKind {
    /// All of them.
    Full,
    /// Those with curvature.
    NonKernel,
    /// Those without.
    Kernel,
    /// Both in turn.
    Alternating,
}

/// Which integral steps converge to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Integrator {
    /// Itô's: the published algorithm.
    #[default]
    Euler,
    /// Stratonovich's: functions on the training inputs stay under kernel diffusions.
    Heun,
}

/// Where eigenpairs come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decomposition {
    /// All pairs above this part of the largest eigenvalue, from n·C rows of Jacobians or the matrix itself.
    Exact(f64),
    /// By Lanczos, each from the vectors of the one before.
    Lanczos(Lanczos),
}

/// A diffusion's settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Diffusion {
    /// Directions.
    pub kind: DiffusionKind,
    /// T.
    pub steps: u64,
    /// α, the prior's precision.
    pub precision: f64,
    /// Steps.
    pub integrator: Integrator,
    /// Eigenpairs.
    pub decomposition: Decomposition,
}

/// What the curvature is of.
#[derive(Debug, Clone, Copy)]
pub struct DiffusionData<'a, R> {
    /// n × d₀.
    pub inputs: Matrix<'a, R>,
    /// H of each row.
    pub curvature: &'a dyn RowCurvature<R>,
    /// N/n if the rows stand for N of them.
    pub scale: f64,
}

/// One path.
#[derive(Debug)]
pub struct DiffusionPath<R> {
    settings: Diffusion,
    /// Seed and chain of its random numbers.
    key: [u64; 2],
    position: Vec<R>,
    step: u64,
    /// Those of the next decomposition, where they are known.
    known: Option<Arc<Spectrum<R>>>,
    spectrum: Option<Arc<Spectrum<R>>>,
    /// Products with G so far.
    pub products: u64,
    /// Eigenpairs that were wanted and had not converged so far.
    pub unconverged: u64,
    /// Smallest number of eigenpairs of any step.
    pub least_rank: usize,
}

impl<R: Real> DiffusionPath<R> {
    /// A path that begins at `weights`; other `chain`s are independent of it.
    pub fn new(settings: Diffusion, weights: &[R], seed: u64, chain: u64) -> Self {
        Self {
            settings,
            key: [seed, chain],
            position: weights.to_vec(),
            step: 0,
            known: None,
            spectrum: None,
            products: 0,
            unconverged: 0,
            least_rank: usize::MAX,
        }
    }

    /// With the eigenpairs at the weights where it begins, which paths from the same weights share.
    #[must_use]
    pub fn with_eigenpairs(mut self, known: Arc<Spectrum<R>>) -> Self {
        self.known = Some(known);
        self
    }

    /// The eigenpairs at the present weights.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn eigenpairs(
        &self,
        executor: &mut Executor<R>,
        data: DiffusionData<'_, R>,
    ) -> Result<Arc<Spectrum<R>>, LaplaceError> {
        Ok(Arc::new(self.decompose(&self.position, executor, data)?))
    }

    /// The weights now.
    pub fn position(&self) -> &[R] {
        &self.position
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Whether all steps are made.
    pub fn is_over(&self) -> bool {
        self.step >= self.settings.steps
    }

    /// The eigenpairs of the last step.
    pub fn spectrum(&self) -> Option<&Spectrum<R>> {
        self.spectrum.as_deref()
    }

    /// Makes all steps that are left.
    ///
    /// # Errors
    /// A curvature that is not finite: the path has left the range where the network can be evaluated.
    pub fn run(
        &mut self,
        executor: &mut Executor<R>,
        data: DiffusionData<'_, R>,
    ) -> Result<(), LaplaceError> {
        while !self.is_over() {
            self.advance(executor, data)?;
        }
        Ok(())
    }

    /// One step.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn advance(
        &mut self,
        executor: &mut Executor<R>,
        data: DiffusionData<'_, R>,
    ) -> Result<(), LaplaceError> {
        let [seed, chain] = self.key;
        let mut stream = Stream::new(seed, chain, Purpose::Transition, self.step);
        let kinds = match self.settings.kind {
            DiffusionKind::Alternating => vec![DiffusionKind::Kernel, DiffusionKind::NonKernel],
            other => vec![other],
        };
        let mut noise = vec![R::ZERO; self.position.len()];
        for kind in kinds {
            stream.fill_normal(&mut noise);
            let before = self.position.clone();
            self.add_step(kind, 1.0, &noise, &before, executor, data)?;
            if self.settings.integrator == Integrator::Heun {
                // half of both steps: half of the first one, and half of one from its end
                let end = self.position.clone();
                for (value, start) in self.position.iter_mut().zip(&before) {
                    *value = R::from_f64(0.5) * (*value + *start);
                }
                self.add_step(kind, 0.5, &noise, &end, executor, data)?;
            }
        }
        self.step += 1;
        Ok(())
    }

    /// Adds `part` of an Euler step whose metric is that at `at`.
    fn add_step(
        &mut self,
        kind: DiffusionKind,
        part: f64,
        noise: &[R],
        at: &[R],
        executor: &mut Executor<R>,
        data: DiffusionData<'_, R>,
    ) -> Result<(), LaplaceError> {
        let spectrum = match self.known.take() {
            Some(known) => known,
            None => {
                let found = Arc::new(self.decompose(at, executor, data)?);
                self.products += found.products;
                found
            }
        };
        self.unconverged += spectrum.unconverged as u64;
        self.least_rank = self.least_rank.min(spectrum.values.len());
        let alpha = self.settings.precision;
        let time = part / (self.settings.steps as f64).sqrt();
        let prior = alpha.sqrt().recip();
        let factor = |value: f64| match kind {
            DiffusionKind::NonKernel => time / (value + alpha).sqrt(),
            DiffusionKind::Kernel => -time * prior,
            _ => time * ((value + alpha).sqrt().recip() - prior),
        };
        spectrum.add_function(factor, noise, &mut self.position);
        if kind != DiffusionKind::NonKernel {
            add_scaled(&mut self.position, time * prior, noise);
        }
        self.spectrum = Some(spectrum);
        if !all_finite(&self.position) {
            return Err(LaplaceError::NotFinite);
        }
        Ok(())
    }

    fn decompose(
        &self,
        at: &[R],
        executor: &mut Executor<R>,
        data: DiffusionData<'_, R>,
    ) -> Result<Spectrum<R>, LaplaceError> {
        let (size, rows) = (at.len(), data.inputs.nrows());
        let count = rows * data.curvature.count(executor.outputs_count());
        let mut operator = GaussNewton {
            executor,
            weights: at,
            inputs: data.inputs,
            curvature: data.curvature,
            scale: data.scale,
        };
        let found = match self.settings.decomposition {
            Decomposition::Exact(threshold) if count < size => {
                Spectrum::of_rows(&operator.rows(), count, threshold)?
            }
            Decomposition::Exact(threshold) => {
                let all: Vec<usize> = (0..size).collect();
                Spectrum::of_dense(&operator.dense(&all), size, threshold)?
            }
            Decomposition::Lanczos(settings) => {
                let [seed, chain] = self.key;
                let mut stream = Stream::new(seed, chain, Purpose::Curvature, self.step);
                let start = self.spectrum.as_deref();
                Spectrum::lanczos(&mut operator, settings, start, &mut stream)?
            }
        };
        Ok(found)
    }
}
