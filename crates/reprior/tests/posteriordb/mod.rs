//! Reference posteriors of posteriordb (Magnusson et al.): means, standard deviations and quantiles of every parameter
//! agree with ten thousand reference draws of Stan within Monte-Carlo error.
//!
//! The data lie in `posteriordb/{data,draws}` under the folder that the variable `REPRIOR_DATA` names, or under
//! `shared/data` next to the workspace; without them the tests say so and do nothing.

mod compare;
mod eight_schools;
mod files;
mod garch;
mod model;
mod poisson_process;
mod regression;

use compare::{CURVED, Case, EASY, agrees};

#[test]
fn autoregression() {
    agrees(&Case {
        data: "arK",
        draws: "arK-arK",
        make: regression::autoregression,
        methods: EASY,
        acceptance: None,
    });
}

#[test]
fn linear_regression() {
    agrees(&Case {
        data: "sblri",
        draws: "sblri-blr",
        make: regression::blr,
        methods: EASY,
        acceptance: None,
    });
}

#[test]
fn scores_of_children() {
    agrees(&Case {
        data: "kidiq",
        draws: "kidiq-kidscore_momhsiq",
        make: regression::kidscore,
        methods: EASY,
        acceptance: None,
    });
}

#[test]
fn eight_schools() {
    agrees(&Case {
        data: "eight_schools",
        draws: "eight_schools-eight_schools_noncentered",
        make: eight_schools::EightSchools::new,
        methods: EASY,
        acceptance: None,
    });
}

#[test]
fn conditional_variances() {
    agrees(&Case {
        data: "garch",
        draws: "garch-garch11",
        make: garch::Garch::new,
        methods: EASY,
        acceptance: None,
    });
}

/// The posterior is strongly curved: at the usual acceptance a trajectory in a hundred diverges.
#[test]
fn poisson_process() {
    agrees(&Case {
        data: "gp_pois_regr",
        draws: "gp_pois_regr-gp_pois_regr",
        make: poisson_process::PoissonProcess::new,
        methods: CURVED,
        acceptance: Some(0.95),
    });
}
