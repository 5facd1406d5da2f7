//! Trained networks, draws of approximations of their posteriors around the trained weights, and what the draws predict.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reprior::compute::kernels::MatrixMut;
use reprior::compute::{Matrix, Purpose, Real, Stream, matrix};
use reprior::laplace::curvature::{GaussNewton, Stoppable};
use reprior::laplace::diffusion::{Diffusion, DiffusionData, DiffusionPath};
use reprior::laplace::spectrum::Spectrum;
use reprior::laplace::{
    FisherInformation, HessianStructure, Lanczos, Laplace, LaplaceData, PriorPrecision, Subset,
};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Composition, Executor};
use reprior::stochastic::data::MinibatchData;

use crate::Failure;
use crate::scores::DrawnLogits;

/// Eigenvalues below this part of the largest are rounding in single precision.
pub const ROUNDING: f64 = 1e-7;

/// A network with its trained weights, and the rows that its curvature is of.
#[derive(Debug)]
pub struct TrainedNetwork<R> {
    executor: Executor<R>,
    layout: ParameterLayout,
    /// ŵ.
    pub mode: Vec<R>,
    /// The rows, row-major.
    pub data: MinibatchData<R>,
    /// How many rows each of them stands for.
    pub scale: f64,
    /// α, of the prior that approximations have.
    pub precision: f64,
}

/// Where a diffusion ended.
#[derive(Debug, Clone)]
pub struct DiffusionEnd<R> {
    /// After all T steps.
    pub position: Vec<R>,
    /// After T − 1 of them.
    pub before: Vec<R>,
    /// Least number of eigenpairs of any step.
    pub least_rank: usize,
    /// Eigenpairs that were wanted and had not converged, of all steps.
    pub unconverged: u64,
}

impl<R: Real> TrainedNetwork<R> {
    /// A network with weights `mode`, for a prior of precision α.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub fn new(
        network: &Composition,
        mode: Vec<R>,
        data: MinibatchData<R>,
        precision: f64,
    ) -> Result<Self, Failure> {
        Ok(Self {
            executor: Executor::new(network)?,
            layout: ParameterLayout::new(network),
            mode,
            data,
            scale: 1.0,
            precision,
        })
    }

    /// With `threads` threads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.executor = self.executor.with_threads(threads);
        self
    }

    /// Outputs C.
    pub fn outputs(&self) -> usize {
        self.executor.outputs_count()
    }

    /// The mode as a draw of its own.
    pub fn at_mode(&self) -> Vec<Vec<R>> {
        vec![self.mode.clone()]
    }

    /// The Laplace approximation.
    ///
    /// # Errors
    /// A curvature that is not finite, too large or not available.
    pub fn laplace(
        &mut self,
        structure: HessianStructure,
        subset: Subset,
        seed: u64,
    ) -> Result<Laplace<R>, Failure> {
        let outputs = self.outputs();
        let by_column = |c: usize| self.data.targets.iter().skip(c).step_by(outputs);
        let targets: Vec<f64> = (0..outputs).flat_map(by_column).copied().collect();
        let data = LaplaceData {
            inputs: rows(&self.data.inputs, self.executor.inputs_count()),
            targets: &targets,
            likelihood: &*self.data.likelihood,
            scales: &self.data.scales,
            curvature: &curvature(&self.data),
            scale: self.scale,
        };
        Ok(Laplace::fit(
            &mut self.executor,
            &self.layout,
            &self.mode,
            data,
            structure,
            subset,
            &PriorPrecision::Scalar(self.precision),
            &mut Stream::new(seed, 0, Purpose::Curvature, 0),
        )?)
    }

    /// Draws of one.
    pub fn draws(&self, laplace: &Laplace<R>, seed: u64, draws: u64) -> Vec<Vec<R>> {
        let draw = |index| {
            let mut draw = self.mode.clone();
            let mut stream = Stream::new(seed, 0, Purpose::Recording, index);
            laplace.draw(&mut stream, &mut draw);
            draw
        };
        (0..draws).map(draw).collect()
    }

    /// Leading eigenpairs of the curvature at the mode: by Lanczos, or all that there are.
    ///
    /// # Errors
    /// A curvature that is not finite; `stop`, once it is set.
    pub fn spectrum(
        &mut self,
        lanczos: Option<Lanczos>,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Spectrum<R>, Failure> {
        let inputs = rows(&self.data.inputs, self.executor.inputs_count());
        let count = inputs.nrows() * self.executor.outputs_count();
        let mut operator = GaussNewton {
            executor: &mut self.executor,
            weights: &self.mode,
            inputs,
            curvature: &curvature(&self.data),
            scale: self.scale,
        };
        Ok(match lanczos {
            Some(settings) => {
                let mut stream = Stream::new(seed, 0, Purpose::Curvature, 0);
                let mut operator = Stoppable { operator, stop };
                Spectrum::lanczos(&mut operator, settings, None, &mut stream)?
            }
            None => Spectrum::of_rows(&operator.rows(), count, ROUNDING)?,
        })
    }

    /// Diffusions from the mode, where the curvature's eigenpairs are `at_mode` if they are known, to their ends; `advance` is called
    /// with the part that is done.
    ///
    /// # Errors
    /// A curvature that is not finite; what `advance` says.
    pub fn diffusions(
        &mut self,
        settings: Diffusion,
        at_mode: Option<Arc<Spectrum<R>>>,
        seed: u64,
        paths: u64,
        mut advance: impl FnMut(f64) -> Result<(), Failure>,
    ) -> Result<Vec<DiffusionEnd<R>>, Failure> {
        let data = DiffusionData {
            inputs: rows(&self.data.inputs, self.executor.inputs_count()),
            curvature: &curvature(&self.data),
            scale: self.scale,
        };
        let mut ends = Vec::new();
        let at_mode = match at_mode {
            Some(known) => known,
            None => DiffusionPath::new(settings, &self.mode, seed, 0)
                .eigenpairs(&mut self.executor, data)?,
        };
        for chain in 0..paths {
            let path = DiffusionPath::new(settings, &self.mode, seed, chain);
            let mut path = path.with_eigenpairs(Arc::clone(&at_mode));
            let mut before = self.mode.clone();
            while !path.is_over() {
                before.copy_from_slice(path.position());
                path.advance(&mut self.executor, data)?;
                let done = chain as f64 + path.steps() as f64 / settings.steps as f64;
                advance(done / paths as f64)?;
            }
            ends.push(DiffusionEnd {
                position: path.position().to_vec(),
                before,
                least_rank: path.least_rank,
                unconverged: path.unconverged,
            });
        }
        Ok(ends)
    }

    /// All eigenvalues of the curvature, the largest first.
    ///
    /// # Errors
    /// A curvature that is not finite.
    pub fn eigenvalues(&mut self) -> Result<Vec<f64>, Failure> {
        let size = self.mode.len();
        let inputs = rows(&self.data.inputs, self.executor.inputs_count());
        let mut operator = GaussNewton {
            executor: &mut self.executor,
            weights: &self.mode,
            inputs,
            curvature: &curvature(&self.data),
            scale: self.scale,
        };
        let dense = operator.dense(&(0..size).collect::<Vec<_>>());
        let mut values = Spectrum::<R>::of_dense(&dense, size, 0.0)?.values;
        values.resize(size, 0.0);
        Ok(values)
    }

    /// Outputs for `inputs` (m × d₀, row-major) of the network at each draw, or of that linearised at the mode: `take` is given m × C numbers,
    /// row after row.
    ///
    /// # Errors
    /// What `take` says.
    pub fn predict(
        &mut self,
        draws: &[Vec<R>],
        is_linearised: bool,
        inputs: &[R],
        mut take: impl FnMut(&[R]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let inputs = rows(inputs, self.executor.inputs_count());
        let (rows, outputs) = (inputs.nrows(), self.outputs());
        let mut f = vec![R::ZERO; rows * outputs];
        let mut at_mode = f.clone();
        if is_linearised {
            let out = MatrixMut::from_row_major_slice_mut(&mut at_mode, rows, outputs);
            self.executor.outputs(&self.mode, inputs, out);
        }
        for draw in draws {
            let out = MatrixMut::from_row_major_slice_mut(&mut f, rows, outputs);
            if is_linearised {
                let away = draw.iter().zip(&self.mode).map(|(w, mode)| *w - *mode);
                let away: Vec<R> = away.collect();
                self.executor
                    .jvp(&self.mode, inputs, Some(&away), None, out);
                f.iter_mut().zip(&at_mode).for_each(|(f, at)| *f += *at);
            } else {
                self.executor.outputs(draw, inputs, out);
            }
            take(&f)?;
        }
        Ok(())
    }

    /// Logits of every draw for `inputs`, as [`predict`](Self::predict); `look` is called after each draw.
    ///
    /// # Errors
    /// What `look` says.
    pub fn logits(
        &mut self,
        draws: &[Vec<R>],
        is_linearised: bool,
        inputs: &[R],
        look: impl Fn() -> Result<(), Failure>,
    ) -> Result<DrawnLogits, Failure> {
        let mut all = Vec::new();
        self.predict(draws, is_linearised, inputs, |f| {
            all.push(f.iter().map(|f| f.to_f64() as f32).collect());
            look()
        })?;
        Ok(DrawnLogits {
            classes: self.outputs(),
            draws: all,
        })
    }
}

/// Row-major values as n × `columns`.
fn rows<R: Real>(values: &[R], columns: usize) -> Matrix<'_, R> {
    matrix(values, columns, values.len() / columns).transpose()
}

/// Of the outputs, at each row.
fn curvature<R>(data: &MinibatchData<R>) -> FisherInformation<'_> {
    FisherInformation {
        likelihood: &*data.likelihood,
        scales: &data.scales,
    }
}
