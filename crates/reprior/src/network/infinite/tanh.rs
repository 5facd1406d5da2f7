//! placeholder
pub(in crate::network) fn moments(k: f64, _q: f64, _r: f64) -> (f64, f64) {
    (k, 1.0)
}
