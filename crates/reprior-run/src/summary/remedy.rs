//! What to do about a finding, in the flags of the method that made the run.

use super::Summary;
use crate::settings::{DEGREES_OF_FREEDOM, MethodName, Nature, Settings};
use crate::words::number;
use reprior::model::likelihood::name::LikelihoodName;
use reprior::posterior::Coordinates;
use reprior::sampler::Method;

impl Summary {
    /// What to try where chains disagree or are too short, by the family of methods.
    pub(super) fn remedy(&self, settings: &Settings) -> String {
        let method = match settings.sampler.method() {
            MethodName::Chain(method) => method,
            MethodName::Annealed => {
                return "raise --draws (particles) or --thin (transitions at each temperature)"
                    .to_owned();
            }
            _ => return "raise --epochs and --draws".to_owned(),
        };
        let other = other_method(settings, method);
        match self.can_go_on {
            true => format!("give it more time, with `reprior resume RUN --minutes 10`{other}"),
            false => format!("raise --minutes, or --warmup and --draws (or --thin){other}"),
        }
    }
}

/// What to try in place of the method, in words.
fn other_method(settings: &Settings, method: Method) -> &'static str {
    if settings.coordinates() == Coordinates::Tangent {
        ", or try marginal coordinates"
    } else if !method.needs_gradients() {
        ", or try --method hmc-infinite"
    } else if method == Method::HmcInfinite {
        ""
    } else {
        ", or try the default --method"
    }
}

/// What to do about a test value far from where it is predicted.
pub(super) fn outliers(settings: &Settings) -> String {
    let likelihood = settings.model.likelihood();
    let is_heavy = likelihood.has_degrees_of_freedom();
    let is_done = is_heavy && settings.model.degrees_of_freedom() <= DEGREES_OF_FREEDOM;
    if !likelihood.has_scale() || is_done {
        return "look at the row: is it right, and are there training rows like it?".to_owned();
    }
    let expects = match (is_heavy, likelihood.has_row_noise()) {
        (true, _) => format!("--degrees-of-freedom {DEGREES_OF_FREEDOM}"),
        (false, true) => format!("--likelihood {}", LikelihoodName::StudentTHeteroscedastic),
        (false, false) => format!("--likelihood {}", LikelihoodName::StudentT),
    };
    format!("look at the row; if such rows belong to the data, {expects} expects them")
}

/// The likely cause of predictions that are too sure, or not sure enough, and the way out.
pub(super) fn cause(settings: &Settings, is_classes: bool, is_too_sure: bool) -> String {
    let model = &settings.model;
    if is_classes && model.likelihood().has_scale() {
        return "a likely cause is the gaussian likelihood on class codes; try --likelihood categorical".to_owned();
    }
    if model.likelihood().has_scale() && !model.learns_noise() {
        let size = match is_too_sure {
            true => "too small",
            false => "too large",
        };
        let scales = model.noise().typical(1);
        let noise = scales
            .first()
            .map_or(String::new(), |&noise| format!(" at {}", number(noise)));
        let way = match settings.sampler.method().nature() {
            Nature::ClosedForm => "auto",
            _ if settings.coordinates() == Coordinates::Tangent => "auto",
            _ => "learn",
        };
        return format!(
            "a likely cause is the noise, fixed{noise} of the target's spread, which is {size}; try --noise {way}"
        );
    }
    let shuffle = match settings.data.shuffle {
        Some(_) => "",
        None => " (try --shuffle 1)",
    };
    match is_too_sure {
        true => format!("likely causes: test rows that differ from the training rows{shuffle}, chains that do not agree yet, or a network that cannot fit"),
        false => "a likely cause is a prior that is too wide, or test rows that are easier than the training rows".to_owned(),
    }
}
