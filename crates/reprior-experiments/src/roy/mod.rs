//! Roy, Miani et al. (2024): Laplace approximations underfit by reparametrisations; diffusions do not.

mod diagonal;
mod eigenvalues;
mod fit_by_rank;
mod kernel;
mod lenet;
mod low_rank;
mod methods;
mod mixture;
mod rank;
mod resnet;
mod rotation;
mod sine;
mod small;
mod table1;
mod table1_rank;
mod table2;
mod toy;

use crate::Experiment;

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[
    &sine::Sine,
    &rank::Rank,
    &rotation::MNIST,
    &eigenvalues::Eigenvalues,
    &mixture::Mixture,
    &rotation::ALL,
    &diagonal::Diagonal,
    &kernel::Kernel,
    &table1::Table1,
    &table1_rank::Table1Rank,
    &table2::Table2,
];
