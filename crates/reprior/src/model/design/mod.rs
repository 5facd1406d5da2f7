//! Inputs as the first dense layer sees them, reduced exactly to what the training data can tell apart.
//!
//! With B = [σ_w X/√d₀, σ_b 1] (n × (d₀ + 1)) the first pre-activations are B·W. The factorisation B = L·Q with
//! orthonormal rows in Q (r ≤ n of them) gives B·W = L·V with V = Q·W ~ N(0, I) a priori: the chain lives on V
//! (r × width). The rest of W is untouched by the data, stays at its prior and is drawn only where a test input needs
//! it: B*·W = (B*Qᵀ)·V + R*·ε with R*R*ᵀ = B*(I − QᵀQ)B*ᵀ. One factorisation of the stacked rows [B; B*] gives L,
//! B*Qᵀ and R* at once, the last without any subtraction. 2·d₀·(n + n*)² operations, once.

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::compute::{
    Matrix, MatrixMut, Packed, PackedShape, Real, SparseRows, add_packed_columns, has_few_columns,
    lower_trapezoidal_factor, matrix, matrix_mut, multiply, multiply_packed, multiply_packed_rows,
    multiply_tall,
};
use crate::network::{Composition, Features, NetworkInputs, Part};

/// Whether the first layer's inputs are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputReduction {
    /// Where it makes the problem smaller: fewer training rows than inputs plus one.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: the chain lives on the network's own weights.
    Off,
}

impl InputReduction {
    /// Whether the inputs of this network are reduced for so many training rows; never without a first layer of their own.
    pub fn reduces(self, architecture: &Composition, rows: usize) -> bool {
        let is_wanted = match self {
            Self::Auto => rows < architecture.design_columns(),
            Self::On => true,
            Self::Off => false,
        };
        is_wanted && !architecture.hidden_widths().is_empty()
    }
}

/// The first layer's training inputs: L if reduced, B if not.
#[derive(Debug, Clone)]
pub struct Design<R> {
    values: Vec<R>,
    /// Instead of what is packed, where most of each column is one number: pixels of digits, levels of categories.
    sparse: Option<SparseRows<R>>,
    packed: Packed<R>,
    /// Of no rows where there are so few columns that the matrix itself is as good.
    packed_transposed: Packed<R>,
    has_few_columns: bool,
    rows: usize,
    columns: usize,
    whole_columns: usize,
    is_reduced: bool,
}

/// The first layer's test inputs in the same coordinates: B*Qᵀ, and the residual factor R* if reduced.
#[derive(Debug, Clone)]
pub struct TestDesign<R> {
    known: Vec<R>,
    rows: usize,
    columns: usize,
    /// Column-major rows × residual columns, lower-trapezoidal.
    residual: Vec<R>,
    residual_columns: usize,
}

/// Rows of B for row-major inputs, row-major.
fn extended(architecture: &Composition, inputs: &[f64]) -> Vec<f64> {
    let columns = architecture.inputs();
    let Some(hidden) = architecture.as_fully_connected() else {
        return inputs.to_vec(); // scales and biases are its layers'
    };
    let (factor, constant) = match hidden.first() {
        Some(first) => {
            let bias = first.scale.bias;
            (
                first.scale.factor(columns),
                Some(bias).filter(|&bias| bias > 0.0),
            )
        }
        // a linear model: the readout's own product has the factor, see `Readout`
        None => (1.0, Some(architecture.readout_scale.constant(columns))),
    };
    let row = |row: &[f64]| {
        row.iter()
            .map(move |x| x * factor)
            .chain(constant)
            .collect::<Vec<_>>()
    };
    inputs.chunks_exact(columns).flat_map(row).collect()
}

/// Column-major copy of part of a matrix given by its entries.
fn column_major<R: Real>(
    rows: usize,
    columns: usize,
    entry: impl Fn(usize, usize) -> f64,
) -> Vec<R> {
    let mut values = Vec::with_capacity(rows * columns);
    for column in 0..columns {
        values.extend((0..rows).map(|row| R::from_f64(entry(row, column))));
    }
    values
}

/// Training and test designs for standardised row-major inputs.
pub(super) fn designs<R: Real>(
    architecture: &Composition,
    inputs: &[f64],
    test_inputs: &[f64],
    reduction: InputReduction,
) -> (Design<R>, TestDesign<R>) {
    let whole_columns = architecture.design_columns();
    let is_fully_connected = architecture.as_fully_connected().is_some();
    let (rows, test_rows) = (
        inputs.len() / architecture.inputs(),
        test_inputs.len() / architecture.inputs(),
    );
    let mut b = extended(architecture, inputs);
    let is_reduced = reduction.reduces(architecture, rows);
    if !is_reduced {
        let test = extended(architecture, test_inputs);
        let values = column_major(rows, whole_columns, |i, j| b[i * whole_columns + j]);
        let known = column_major(test_rows, whole_columns, |i, j| test[i * whole_columns + j]);
        return (
            Design::new(
                values,
                [rows, whole_columns],
                whole_columns,
                is_reduced,
                is_fully_connected.then(|| Features::<R>::block_rows(architecture, rows)),
            ),
            TestDesign {
                known,
                rows: test_rows,
                columns: whole_columns,
                residual: Vec::new(),
                residual_columns: 0,
            },
        );
    }
    b.extend(extended(architecture, test_inputs));
    stacked_designs(&b, rows, test_rows, whole_columns)
}

/// The network's own first-layer weights W (d₀ + 1 rows) as if they were "test inputs": the rows of the identity.
/// `None` where inputs are not reduced and the chain's weights are the network's.
pub fn whole_weights<R: Real>(
    architecture: &Composition,
    design: &Design<R>,
    inputs: &[f64],
) -> Option<TestDesign<R>> {
    let whole_columns = design.whole_columns;
    design.is_reduced.then(|| {
        let mut b = extended(architecture, inputs);
        let rows = b.len() / whole_columns;
        for row in 0..whole_columns {
            b.extend((0..whole_columns).map(|column| f64::from(u8::from(row == column))));
        }
        stacked_designs(&b, rows, whole_columns, whole_columns).1
    })
}

/// Designs of the first `rows` and the last `test_rows` rows of the row-major b.
fn stacked_designs<R: Real>(
    b: &[f64],
    rows: usize,
    test_rows: usize,
    whole_columns: usize,
) -> (Design<R>, TestDesign<R>) {
    let stacked = lower_trapezoidal_factor(b, rows + test_rows, whole_columns);
    let entry = |row: usize, column: usize| stacked.factor[column * stacked.rows + row];
    let columns = rows.min(whole_columns);
    let residual_columns = stacked.columns - columns;
    let values = column_major(rows, columns, entry);
    let known = column_major(test_rows, columns, |i, j| entry(rows + i, j));
    let residual = column_major(test_rows, residual_columns, |i, j| {
        entry(rows + i, columns + j)
    });
    (
        Design::new(values, [rows, columns], whole_columns, true, Some(rows)),
        TestDesign {
            known,
            rows: test_rows,
            columns,
            residual,
            residual_columns,
        },
    )
}

impl<R: Real> Design<R> {
    /// Of a matrix that is multiplied in blocks of so many rows, if at all.
    fn new(
        values: Vec<R>,
        [rows, columns]: [usize; 2],
        whole_columns: usize,
        is_reduced: bool,
        block: Option<usize>,
    ) -> Self {
        let view = matrix(&values, rows, columns);
        let sparse = block.filter(|_| !is_reduced);
        let sparse = sparse.and_then(|block| SparseRows::new(view, block));
        let is_packed = block.is_some() && sparse.is_none();
        let view = view.subrows(0, if is_packed { rows } else { 0 });
        let (shape, transposed) = if is_reduced {
            (PackedShape::Lower, PackedShape::Upper)
        } else {
            (PackedShape::Full, PackedShape::Full)
        };
        let packed = Packed::new(view, shape);
        let has_few_columns = !is_reduced && has_few_columns(view);
        let view = match has_few_columns {
            true => view.subrows(0, 0),
            false => view,
        };
        let packed_transposed = Packed::new(view.transpose(), transposed);
        Self {
            values,
            sparse,
            packed,
            packed_transposed,
            has_few_columns,
            rows,
            columns,
            whole_columns,
            is_reduced,
        }
    }

    /// Training rows n.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows r of the chain's first-layer parameter matrix V.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows d₀ + 1 of the network's own first-layer parameter matrix W.
    pub fn whole_columns(&self) -> usize {
        self.whole_columns
    }

    /// Whether the inputs are reduced.
    pub fn is_reduced(&self) -> bool {
        self.is_reduced
    }

    /// Operations of its product with the weights of one unit.
    pub fn operations(&self) -> usize {
        let (n, r) = (self.rows, self.columns);
        match &self.sparse {
            Some(sparse) => 2 * sparse.numbers(),
            None if self.is_reduced => 2 * n * r - r * r,
            None => 2 * n * r,
        }
    }

    /// `out` (n × units) ← L·V for `weights` V (r × units), both column-major. Only of the first layer of a fully connected network.
    ///
    /// # Panics
    /// Where the lengths do not agree.
    pub fn multiply(&self, weights: &[R], out: &mut [R]) {
        let units = weights.len() / self.columns.max(1);
        let part = Part {
            rows: 0..self.rows,
            units: 0..units,
        };
        let weights = matrix(weights, self.columns, units);
        self.forward(matrix_mut(out, self.rows, units), weights, &part);
    }

    /// The matrix itself, n × r.
    pub fn matrix(&self) -> Matrix<'_, R> {
        matrix(&self.values, self.rows, self.columns)
    }
}

impl<R: Real> NetworkInputs<R> for Design<R> {
    fn matrix(&self) -> Matrix<'_, R> {
        matrix(&self.values, self.rows, self.columns)
    }

    /// L·V: n·r·width operations if reduced (half of a full product), twice that if not, or twice the numbers that its columns do not have in common.
    fn forward(&self, out: MatrixMut<'_, R>, weights: Matrix<'_, R>, part: &Part) {
        if let Some(sparse) = &self.sparse {
            return sparse.multiply(out, part.rows.clone(), weights);
        }
        multiply_packed_rows(out, &self.packed, part.rows.clone(), weights);
    }

    fn wants_all_units(&self) -> bool {
        self.sparse.is_some()
    }

    /// Lᵀ·δ.
    fn vjp_weights(
        &self,
        mut gradient: MatrixMut<'_, R>,
        cotangent: Matrix<'_, R>,
        rows: Range<usize>,
    ) {
        if let Some(sparse) = &self.sparse {
            let is_added = rows.start > 0;
            return sparse.multiply_transposed(gradient, is_added, rows, cotangent);
        }
        if self.has_few_columns {
            let own = self.matrix().subrows(rows.start, rows.len());
            return multiply_tall(gradient, rows.start > 0, 1.0, own, cotangent);
        }
        if rows.len() == self.rows {
            return multiply_packed(gradient, false, &self.packed_transposed, cotangent);
        }
        if rows.start == 0 {
            gradient.fill(R::ZERO);
        }
        add_packed_columns(gradient, &self.packed_transposed, rows, cotangent);
    }
}

/// Test inputs with noise (residual columns × width) for the weights that the training data do not touch.
pub(crate) struct TestInputs<'a, R> {
    /// The inputs.
    pub design: &'a TestDesign<R>,
    /// Column-major.
    pub noise: &'a [R],
}

impl<R: Real> NetworkInputs<R> for TestInputs<'_, R> {
    fn matrix(&self) -> Matrix<'_, R> {
        self.design.known()
    }

    fn forward(&self, out: MatrixMut<'_, R>, weights: Matrix<'_, R>, part: &Part) {
        let (rows, units) = (self.design.residual_columns, &part.units);
        let noise = &self.noise[rows * units.start..rows * units.end];
        let noise = matrix(noise, rows, units.len());
        self.design
            .forward_rows(out, weights, noise, part.rows.clone());
    }

    fn vjp_weights(
        &self,
        gradient: MatrixMut<'_, R>,
        cotangent: Matrix<'_, R>,
        rows: Range<usize>,
    ) {
        let (is_added, known) = (rows.start > 0, self.design.known());
        let known = known.subrows(rows.start, rows.len());
        multiply(gradient, is_added, 1.0, known.transpose(), cotangent);
    }
}

impl<R: Real> TestDesign<R> {
    /// Test rows n*.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows of noise that [`forward`](Self::forward) needs: 0 if inputs are not reduced.
    pub fn residual_columns(&self) -> usize {
        self.residual_columns
    }

    /// The part of the test inputs that the chain's weights see, n* × r.
    pub fn known(&self) -> Matrix<'_, R> {
        matrix(&self.known, self.rows, self.columns)
    }

    /// V = Q·W of the network's own first-layer weights W ((d₀ + 1) × width, column-major); of [`whole_weights`] alone, whose B*Qᵀ is Qᵀ.
    pub fn reduce(&self, weights: &[R]) -> Vec<R> {
        let width = weights.len() / self.rows.max(1);
        let mut reduced = vec![R::ZERO; self.columns * width];
        let out = matrix_mut(&mut reduced, self.columns, width);
        let weights = matrix(weights, self.rows, width);
        multiply(out, false, 1.0, self.known().transpose(), weights);
        reduced
    }

    /// out (n* × width) ← (B*Qᵀ)·V + R*·ε for noise ε (residual columns × width).
    pub fn forward(&self, out: MatrixMut<'_, R>, weights: Matrix<'_, R>, noise: Matrix<'_, R>) {
        self.forward_rows(out, weights, noise, 0..self.rows);
    }

    fn forward_rows(
        &self,
        mut out: MatrixMut<'_, R>,
        weights: Matrix<'_, R>,
        noise: Matrix<'_, R>,
        rows: Range<usize>,
    ) {
        let known = self.known().subrows(rows.start, rows.len());
        multiply(out.as_mut(), false, 1.0, known, weights);
        if self.residual_columns > 0 {
            let residual = matrix(&self.residual, self.rows, self.residual_columns);
            let residual = residual.subrows(rows.start, rows.len());
            multiply(out, true, 1.0, residual, noise);
        }
    }
}
