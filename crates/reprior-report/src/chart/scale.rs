//! Ranges of axes and what their ticks say.

use kuva::TickFormat;
use std::sync::Arc;

/// Widens what would be too narrow to place ticks in.
pub(super) fn widen((low, high): (f64, f64), is_logarithmic: bool) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if is_logarithmic {
        return if high / low < 1.01 {
            (low / 2.0, high * 2.0)
        } else {
            (low, high)
        };
    }
    let least = (size * 1e-9).max(1e-290);
    if high - low > least {
        return (low, high);
    }
    let middle = low + (high - low) / 2.0;
    let half = if size < 1e-280 { 1.0 } else { size * 1e-3 };
    (middle - half, middle + half)
}

/// A margin of a few hundredths, so that markers at the ends are whole; bars stand on zero and have none at their sides.
pub(super) fn pad((low, high): (f64, f64), is_logarithmic: bool, has_bars: bool) -> (f64, f64) {
    if is_logarithmic {
        // the library's logarithms end at 1e-10
        let ratio = 10_f64.powf(0.04 * (high.log10() - low.log10()));
        return with_ticks(((low / ratio).max(1e-10), (high * ratio).min(1e305)));
    }
    let margin = 0.04 * (high - low);
    match has_bars {
        true if low == 0.0 => (low, high + margin),
        _ => (low - margin, high + margin),
    }
}

/// Ticks that an axis has at least.
const LEAST_TICKS: usize = 3;

/// Widens a logarithmic range until at least three numbers of the kind 1, 2, 5, 10, ... are in it, which the drawing library labels.
fn with_ticks((mut low, mut high): (f64, f64)) -> (f64, f64) {
    let inside = |value: f64, (low, high): (f64, f64)| (low..=high).contains(&value);
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    // over three powers of ten and more the powers themselves are labelled
    if last - first > 3 {
        return (low, high);
    }
    let powers = (first - 1)..=(last + 1);
    let mut ticks: Vec<f64> = powers
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10.0_f64.powi(power)))
        .collect();
    while ticks
        .iter()
        .filter(|tick| inside(**tick, (low, high)))
        .count()
        < LEAST_TICKS
    {
        ticks.retain(|tick| *tick > 0.0 && tick.is_finite());
        let below = ticks.iter().copied().rfind(|tick| *tick < low);
        let above = ticks.iter().copied().find(|tick| *tick > high);
        // the nearer one, a little farther than it is, so that rounding does not leave it out
        match (below, above) {
            (Some(below), Some(above)) if low / below < above / high => low = below / 1.01,
            (_, Some(above)) => high = above * 1.01,
            (Some(below), None) => low = below / 1.01,
            (None, None) => break,
        }
    }
    (low, high)
}

/// Least and most of what is drawn, a little wider; `None` without anything.
pub(super) fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// As many decimals as tell ticks of this range apart.
pub(super) fn ticks((low, high): (f64, f64), is_logarithmic: bool) -> TickFormat {
    let size = low.abs().max(high.abs());
    if is_logarithmic || size == 0.0 {
        return TickFormat::Auto;
    }
    let step = (high - low) / 10.0;
    let is_extreme = !(1e-3..1e6).contains(&size);
    TickFormat::Custom(Arc::new(move |value: f64| {
        // what rounding has left of zero
        let value = if value.abs() < step * 1e-6 {
            0.0
        } else {
            value
        };
        if value == 0.0 {
            "0".to_owned()
        } else if is_extreme {
            let digits = (size / step).log10().ceil().clamp(0.0, 12.0) as usize;
            let text = format!("{value:.digits$e}");
            match text.split_once('e') {
                Some((mantissa, exponent)) if mantissa.contains('.') => {
                    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
                    format!("{mantissa}e{exponent}")
                }
                _ => text,
            }
        } else {
            // ticks may be quarters of a power of ten apart
            let decimals = (1.0 - step.log10()).ceil().clamp(0.0, 12.0) as usize;
            let text = format!("{value:.decimals$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }))
}
