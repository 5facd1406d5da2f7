//! The draws that are plotted: those of a few variables, as many as a plot can show.

use reprior::compute::kernels::symmetric_eigen;
use reprior_io::run::{DrawReader, RunError, Selection};

/// Draws of one chain whose mixing is looked at, at most: the last ones.
pub(crate) const MOST_DRAWS: u64 = 20_000;
/// Draws of one chain in a trace, at most.
pub(crate) const MOST_TRACED: u64 = 500;

/// Consecutive draws of one variable.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub name: String,
    pub chains: usize,
    /// Draws before the first one.
    pub start: u64,
    /// Chain-major.
    pub values: Vec<f64>,
}

impl Series {
    /// Draws of each chain.
    pub fn draws(&self) -> usize {
        self.values.len() / self.chains.max(1)
    }

    /// The draws of each chain.
    pub fn of_chains(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.draws().max(1))
    }

    /// Numbers of draws and values of each chain, evenly thinned.
    pub fn traces(&self) -> Vec<Vec<(f64, f64)>> {
        let every = (self.draws() as u64).div_ceil(MOST_TRACED).max(1) as usize;
        let point =
            |(index, value): (usize, &f64)| ((self.start + index as u64 + 1) as f64, *value);
        self.of_chains()
            .map(|chain| chain.iter().enumerate().step_by(every).map(point).collect())
            .collect()
    }
}

/// Whether a group has a variable.
pub(crate) fn has(reader: &DrawReader, group: &str, variable: &str) -> bool {
    let variables = reader.variables(group);
    variables.is_ok_and(|all| all.iter().any(|one| one.name == variable))
}

/// Draws of a group that all chains have.
pub(crate) fn draws(reader: &DrawReader, group: &str) -> u64 {
    let mut groups = reader.groups();
    let found = groups.find(|one| one.name == group);
    found.and_then(|group| group.draws).unwrap_or(0)
}

/// The last draws of a variable with one number a draw, out of the first `draws`.
pub(crate) fn scalar(
    reader: &DrawReader,
    [group, variable]: [&str; 2],
    name: &str,
    draws: u64,
) -> Result<Option<Series>, RunError> {
    if draws == 0 || !has(reader, group, variable) {
        return Ok(None);
    }
    let start = draws.saturating_sub(MOST_DRAWS);
    let selection = Selection {
        draws: Some(start..draws),
        ..Selection::all()
    };
    let found = reader.read::<f64>(group, variable, &selection)?;
    // of more numbers a draw, the first
    let width = found.shape.iter().skip(2).product::<usize>().max(1);
    Ok(Some(Series {
        name: name.to_owned(),
        chains: reader.chains() as usize,
        start,
        values: found.values.into_iter().step_by(width).collect(),
    }))
}

/// Principal components of the random projections of the weights.
pub(crate) struct Components {
    /// The first two; one where there is but one direction.
    pub series: Vec<Series>,
    /// Shares of the variance of all directions.
    pub shares: Vec<f64>,
}

/// The first two principal components of the recorded projections, found from evenly spaced draws of all chains.
///
/// Cost: one pass over the draws for the covariance, one for the last of them; directions² numbers of memory.
pub(crate) fn components(
    reader: &DrawReader,
    draws: u64,
) -> Result<Result<Components, String>, RunError> {
    const PLACE: [&str; 2] = ["posterior", "projection"];
    if !has(reader, PLACE[0], PLACE[1]) {
        return Ok(Err(
            "the run recorded no projections of the weights".to_owned()
        ));
    }
    let chains = reader.chains() as usize;
    let selection = |start: u64| Selection {
        draws: Some(start..draws),
        ..Selection::all()
    };
    let every = draws.div_ceil(MOST_TRACED).max(1);
    let mut rows: Vec<Vec<f64>> = Vec::new();
    reader.for_each_draw::<f64>(PLACE[0], PLACE[1], &selection(0), |_, draw, values| {
        if draw % every == 0 {
            rows.push(values.to_vec());
        }
    })?;
    let width = rows.first().map_or(0, Vec::len);
    if rows.len() < 3 || width == 0 {
        return Ok(Err(
            "there are too few draws for principal components".to_owned()
        ));
    }
    if rows.iter().flatten().any(|value| !value.is_finite()) {
        return Ok(Err(
            "some projections of the weights are not finite".to_owned()
        ));
    }
    let count = rows.len() as f64;
    let mean: Vec<f64> = (0..width)
        .map(|at| rows.iter().map(|row| row[at]).sum::<f64>() / count)
        .collect();
    let mut covariance = vec![0.0; width * width];
    for row in &rows {
        for (a, to) in covariance.chunks_exact_mut(width).enumerate() {
            let centred = row[a] - mean[a];
            for (b, to) in to.iter_mut().enumerate() {
                *to += centred * (row[b] - mean[b]) / (count - 1.0);
            }
        }
    }
    let Ok((variances, directions)) = symmetric_eigen(&covariance, width) else {
        return Ok(Err("the principal components could not be found".to_owned()));
    };
    let total: f64 = variances.iter().sum();
    if total <= 0.0 {
        return Ok(Err("the weights do not vary from draw to draw".to_owned()));
    }
    let start = draws.saturating_sub(MOST_DRAWS);
    let shown = width.min(2);
    let mut scores = vec![Vec::new(); shown];
    reader.for_each_draw::<f64>(PLACE[0], PLACE[1], &selection(start), |_, _, values| {
        for (component, scores) in scores.iter_mut().enumerate() {
            // the greatest come last
            let at = (width - 1 - component) * width;
            let direction = &directions[at..at + width];
            let terms = direction.iter().zip(values).zip(&mean);
            scores.push(terms.map(|((d, value), mean)| d * (value - mean)).sum());
        }
    })?;
    let series = scores
        .into_iter()
        .enumerate()
        .map(|(component, values)| Series {
            name: format!("{} principal component", ["first", "second"][component]),
            chains,
            start,
            values,
        });
    Ok(Ok(Components {
        series: series.collect(),
        shares: (0..shown)
            .map(|component| variances[width - 1 - component].max(0.0) / total)
            .collect(),
    }))
}
