//! Elementwise nonlinearities as layers; the functions themselves are in [`Activation`](crate::network::Activation).
