//! How good predictions are: error, likelihood, accuracy, calibration.
