//! Effective sample size, R-hat and Monte-Carlo standard errors of draws.
