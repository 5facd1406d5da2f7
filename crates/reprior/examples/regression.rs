//! A regression from its data to predictions with uncertainty: `cargo run --release -p reprior --example regression`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use reprior::{FitError, Regression, SampleSettings};

fn main() -> Result<(), FitError> {
    let x: Vec<f64> = (0..40).map(|i| f64::from(i) / 8.0).collect();
    let y: Vec<f64> = x.iter().map(|x| 20.0 + 5.0 * x.sin()).collect();
    let settings = SampleSettings {
        seed: 1,
        ..SampleSettings::default()
    };
    let regression = Regression::new(&x, &y).hidden([32]).noise(0.5);
    let fit = regression.sample(&settings)?;
    println!("{}", fit.summary());
    let prediction = fit.predict(&[2.0, 7.0])?;
    for (mean, sd) in prediction.mean().iter().zip(prediction.sd()) {
        println!("{mean:.2} ± {sd:.2}");
    }
    Ok(())
}
