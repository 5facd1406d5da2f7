//! What is refused of settings before any work, whatever the data.

use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use crate::failure::Failure;
use crate::method::{MethodFamily, family};
use crate::settings::{MOST_CHAINS, MethodName, Settings, Until};

/// Ten years.
const MOST_MINUTES: f64 = 5_000_000.0;

/// Refuses numbers of chains that no run has, and a list of them for another number of chains.
fn check_numbers(settings: &Settings) -> Result<(), Failure> {
    let run = &settings.run;
    if run.first_chain.is_some_and(|first| first > MOST_CHAINS) {
        return Err(Failure::request(format!(
            "--first-chain is out of range: it must be at most {MOST_CHAINS}"
        )));
    }
    let Some(numbers) = &run.chain_numbers else {
        return Ok(());
    };
    let rises = numbers.is_sorted_by(|one, other| one < other);
    let is_in_range = numbers.last().is_some_and(|&last| last <= 2 * MOST_CHAINS);
    if !(rises && is_in_range && run.first_chain.is_none() && run.chains == Some(numbers.len())) {
        return Err(Failure::request(
            "chain-numbers must rise, be as many as chains says, and stand without first-chain: leave them out, and the chains are 0, 1, 2, ...",
        ));
    }
    Ok(())
}

/// Refuses settings that contradict themselves or their method, which is given.
///
/// # Errors
/// A wrong request.
pub(crate) fn check(settings: &Settings) -> Result<Box<dyn MethodFamily>, Failure> {
    let family = family(settings.sampler.method());
    check_time(settings)?;
    check_numbers(settings)?;
    family.check(settings)?;
    settings.model.check()?;
    check_scales(settings)?;
    Ok(family)
}

/// Refuses learned scales of weights where they are not sampled.
fn check_scales(settings: &Settings) -> Result<(), Failure> {
    let (Some(scales), true) = (
        settings.model.scales,
        settings.model.scale_prior().is_some(),
    ) else {
        return Ok(());
    };
    let refuse = |text: String| Err(Failure::Request(text));
    let method = settings.sampler.method();
    if method.kernel().is_none() {
        return refuse(format!(
            "--scales {scales} is for chains on all data, not for {method}: choose one of them with --method, or leave it out"
        ));
    }
    if settings.coordinates() == Coordinates::Tangent {
        return refuse(format!(
            "--scales {scales} is for marginal, repriorised and standard coordinates, not for tangent ones: give another --coordinates, or leave it out"
        ));
    }
    if settings.sampler.input_reduction == InputReduction::On {
        return refuse(format!(
            "--scales {scales} needs every input by itself, and --input-reduction on mixes them: leave one of them out"
        ));
    }
    Ok(())
}

/// Refuses a limit of time that is none, or that the method does not keep to.
fn check_time(settings: &Settings) -> Result<(), Failure> {
    let run = &settings.run;
    check_more(settings.sampler.method(), run.minutes, run.until)
}

/// The same of time that a run is to have.
pub(crate) fn check_more(
    method: MethodName,
    minutes: Option<f64>,
    until: Option<Until>,
) -> Result<(), Failure> {
    if let Some(minutes) = minutes
        && !(minutes > 0.0 && minutes <= MOST_MINUTES)
    {
        return Err(Failure::request(format!(
            "--minutes {minutes} is out of range: it must be above 0 and at most {MOST_MINUTES}"
        )));
    }
    let flag = match (minutes, until) {
        (Some(_), _) => "--minutes",
        (None, Some(_)) => "--until",
        (None, None) => return Ok(()),
    };
    let way = match method {
        MethodName::Chain(_) => return Ok(()),
        MethodName::Annealed => {
            ", and give the particles by --draws, and transitions at each temperature by --thin"
        }
        MethodName::Minibatch(_) => ", and give the length by --epochs",
        MethodName::Infinite(_) => "",
    };
    Err(Failure::request(format!(
        "{flag} belongs to chains on all data, not to {method}: leave it out{way}"
    )))
}

/// The family of settings that have been checked, with the defaults that need no data.
pub(crate) fn checked(settings: &mut Settings) -> Result<Box<dyn MethodFamily>, Failure> {
    let family = check(settings)?;
    family.write_defaults(settings);
    Ok(family)
}
