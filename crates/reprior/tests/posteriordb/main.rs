//! Reference posteriors of posteriordb (Magnusson et al.): means, standard deviations and quantiles of every parameter
//! agree with ten thousand reference draws of Stan within Monte-Carlo error.
//!
//! The data lie in `posteriordb/{data,draws}` under the folder that the variable `REPRIOR_DATA` names, or under
//! `shared/data` next to the workspace; without them the tests say so and do nothing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod eight_schools;
mod files;
mod garch;
mod model;
mod poisson_process;
mod regression;

use compare::agrees;

#[test]
fn autoregression() {
    agrees("arK", "arK-arK", regression::autoregression);
}

#[test]
fn linear_regression() {
    agrees("sblri", "sblri-blr", regression::blr);
}

#[test]
fn children_s_scores() {
    agrees("kidiq", "kidiq-kidscore_momhsiq", regression::kidscore);
}

#[test]
fn eight_schools() {
    agrees(
        "eight_schools",
        "eight_schools-eight_schools_noncentered",
        eight_schools::EightSchools::new,
    );
}

#[test]
fn conditional_variances() {
    agrees("garch", "garch-garch11", garch::Garch::new);
}

#[test]
fn poisson_process() {
    agrees(
        "gp_pois_regr",
        "gp_pois_regr-gp_pois_regr",
        poisson_process::PoissonProcess::new,
    );
}
