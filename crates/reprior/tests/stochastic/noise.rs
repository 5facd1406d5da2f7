//! The noise of every preconditioner has the covariance C that its gradient is multiplied by.

use reprior::compute::{Purpose, Stream};
use reprior::stochastic::preconditioner::{Batch, Block, Preconditioner, Scope};

use super::{normals, preconditioners};

const ROWS: usize = 4;
const UNITS: usize = 2;

/// A block with a state that has seen three minibatches.
fn prepared(kind: &dyn Preconditioner<f64>) -> (Block, Vec<f64>) {
    let (rows, units) = match kind.scope() {
        Scope::Unit => (ROWS, 1),
        Scope::Layer => (ROWS, UNITS),
        Scope::All => (ROWS * UNITS, 1),
    };
    let block = Block {
        rows,
        units,
        has_bias: true,
    };
    let mut state = vec![0.0; kind.state_len(block)];
    kind.initialise(block, &mut state);
    let size = rows * units;
    for update in 0..3 {
        // gradients of nine rows, and their inputs and cotangents
        let g = normals(9 * size, update);
        let over = |sizes: usize, values: &[f64]| -> Vec<f64> {
            let entry = |at: usize| {
                let products = values
                    .chunks_exact(sizes)
                    .map(|v| v[at % sizes] * v[at / sizes]);
                products.sum::<f64>() / 9.0
            };
            (0..sizes * sizes).map(entry).collect()
        };
        let mean = |f: &dyn Fn(&[f64], usize) -> f64| -> Vec<f64> {
            let of = |at| g.chunks_exact(size).map(|row| f(row, at)).sum::<f64>() / 9.0;
            (0..size).map(of).collect()
        };
        let mut outer = over(rows, &g);
        if kind.scope() == Scope::Layer {
            outer.extend(over(units, &normals(9 * units, 20 + update)));
        }
        let (gradient, squares) = (mean(&|row, at| row[at]), mean(&|row, at| row[at] * row[at]));
        let cross = mean(&|row, at| row[at] * row[size - 1]);
        let batch = Batch {
            gradient: &gradient,
            squares: &squares,
            cross: &cross,
            outer: &outer,
            update,
        };
        kind.update(block, batch, 0.4, &mut state).unwrap();
    }
    (block, state)
}

/// Columns of C and of its root.
fn columns(kind: &dyn Preconditioner<f64>, block: Block, state: &[f64]) -> [Vec<Vec<f64>>; 2] {
    let size = block.rows * block.units;
    let unit = |at: usize| {
        let mut unit = vec![0.0; size];
        unit[at] = 1.0;
        unit
    };
    let mut both = [Vec::new(), Vec::new()];
    for at in 0..size {
        let (mut gradient, mut noise) = (unit(at), unit(at));
        kind.transform(block, state, &mut gradient, &mut noise);
        both[0].push(gradient);
        both[1].push(noise);
    }
    both
}

#[test]
fn exactly() {
    for kind in preconditioners::<f64>(1e-3) {
        let (block, state) = prepared(&*kind);
        let [c, a] = columns(&*kind, block, &state);
        for i in 0..c.len() {
            for j in 0..c.len() {
                let product: f64 = a.iter().map(|column| column[i] * column[j]).sum();
                assert!(
                    (product - c[j][i]).abs() < 1e-11 * (1.0 + product.abs()),
                    "{kind:?} {i} {j}: {product} {}",
                    c[j][i]
                );
            }
        }
    }
}

/// A million draws each: entries within five standard errors.
#[test]
fn by_draws() {
    let draws = 1_000_000;
    for kind in preconditioners::<f64>(1e-3) {
        let (block, state) = prepared(&*kind);
        let [c, _] = columns(&*kind, block, &state);
        let size = c.len();
        let mut sums = vec![0.0; size * size];
        let mut stream = Stream::new(62, 0, Purpose::Update, 0);
        let (mut noise, mut gradient) = (vec![0.0; size], vec![0.0; size]);
        for _ in 0..draws {
            stream.fill_normal(&mut noise);
            kind.transform(block, &state, &mut gradient, &mut noise);
            for i in 0..size {
                for j in 0..=i {
                    sums[j * size + i] += noise[i] * noise[j];
                }
            }
        }
        for i in 0..size {
            for j in 0..=i {
                let found = sums[j * size + i] / f64::from(draws);
                let variance = c[i][i] * c[j][j] + c[j][i] * c[j][i];
                let error = (variance / f64::from(draws)).sqrt();
                assert!((found - c[j][i]).abs() < 5.0 * error, "{kind:?} {i} {j}");
            }
        }
    }
}
