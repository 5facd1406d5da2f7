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
        return ((low / ratio).max(1e-10), (high * ratio).min(1e305));
    }
    let margin = 0.04 * (high - low);
    match has_bars {
        true if low == 0.0 => (low, high + margin),
        _ => (low - margin, high + margin),
    }
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
