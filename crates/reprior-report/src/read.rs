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
    /// The numbers of the chains.
    pub chains: Vec<usize>,
    /// Draws before the first one.
    pub start: u64,
    /// Chain-major.
    pub values: Vec<f64>,
}

impl Series {
    /// Draws of each chain.
    pub fn draws(&self) -> usize {
        self.values.len() / self.chains.len().max(1)
    }

    /// Whether any draw is finite.
    pub fn is_anywhere_finite(&self) -> bool {
        self.values.iter().any(|value| value.is_finite())
    }

    /// The draws of each chain.
    pub fn of_chains(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.draws().max(1))
    }

    /// What a chain is called in legends.
    pub fn name_of(&self, chain: usize) -> String {
        format!("chain {}", self.chains[chain])
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
    chains: &[usize],
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
        chains: chains.to_vec(),
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

/// Directions in which draws vary, of which the greatest come last.
struct PrincipalDirections {
    mean: Vec<f64>,
    variances: Vec<f64>,
    /// One after another.
    vectors: Vec<f64>,
}

impl PrincipalDirections {
    fn of(rows: &[Vec<f64>]) -> Result<Self, String> {
        let width = rows.first().map_or(0, Vec::len);
        if rows.len() < 3 || width == 0 {
            return Err("there are too few draws for principal components".to_owned());
        }
        if rows.iter().flatten().any(|value| !value.is_finite()) {
            return Err("some projections of the weights are not finite".to_owned());
        }
        let count = rows.len() as f64;
        let mean: Vec<f64> = (0..width)
            .map(|at| rows.iter().map(|row| row[at]).sum::<f64>() / count)
            .collect();
        let mut covariance = vec![0.0; width * width];
        for row in rows {
            for (a, to) in covariance.chunks_exact_mut(width).enumerate() {
                let centred = row[a] - mean[a];
                for (b, to) in to.iter_mut().enumerate() {
                    *to += centred * (row[b] - mean[b]) / (count - 1.0);
                }
            }
        }
        let (variances, vectors) = symmetric_eigen(&covariance, width)
            .map_err(|_| "the principal components could not be found")?;
        if variances.iter().sum::<f64>() <= 0.0 {
            return Err("the weights do not vary from draw to draw".to_owned());
        }
        Ok(Self {
            mean,
            variances,
            vectors,
        })
    }

    /// The share of the variance along component `rank`, counted from 0.
    fn share(&self, rank: usize) -> f64 {
        let variance = self.variances[self.variances.len() - 1 - rank];
        variance.max(0.0) / self.variances.iter().sum::<f64>()
    }

    /// The component of a draw.
    fn score(&self, rank: usize, values: &[f64]) -> f64 {
        let width = self.mean.len();
        let direction = &self.vectors[(width - 1 - rank) * width..][..width];
        let terms = direction.iter().zip(values).zip(&self.mean);
        terms.map(|((d, value), mean)| d * (value - mean)).sum()
    }
}

/// The first two principal components of the recorded projections, found from evenly spaced draws of all chains; or why there
/// are none.
///
/// Cost: one pass over the draws for the covariance, one for the last of them; directions² numbers of memory.
pub(crate) fn components(
    reader: &DrawReader,
    draws: u64,
    chains: &[usize],
) -> Result<Result<Components, String>, RunError> {
    const NAMES: [&str; 2] = ["first", "second"];
    let (group, variable) = ("posterior", "projection");
    if !has(reader, group, variable) {
        return Ok(Err(
            "the run recorded no projections of the weights".to_owned()
        ));
    }
    let selection = |start: u64| Selection {
        draws: Some(start..draws),
        ..Selection::all()
    };
    let every = draws.div_ceil(MOST_TRACED).max(1);
    let mut rows: Vec<Vec<f64>> = Vec::new();
    reader.for_each_draw::<f64>(group, variable, &selection(0), |_, draw, values| {
        if draw % every == 0 {
            rows.push(values.to_vec());
        }
    })?;
    let directions = match PrincipalDirections::of(&rows) {
        Ok(directions) => directions,
        Err(why) => return Ok(Err(why)),
    };
    let start = draws.saturating_sub(MOST_DRAWS);
    let series = |name: &&str| Series {
        name: format!("{name} principal component"),
        chains: chains.to_vec(),
        start,
        values: Vec::new(),
    };
    let shown = NAMES.iter().take(directions.mean.len());
    let mut series: Vec<Series> = shown.map(series).collect();
    reader.for_each_draw::<f64>(group, variable, &selection(start), |_, _, values| {
        for (rank, series) in series.iter_mut().enumerate() {
            series.values.push(directions.score(rank, values));
        }
    })?;
    let shares = (0..series.len()).map(|rank| directions.share(rank));
    Ok(Ok(Components {
        shares: shares.collect(),
        series,
    }))
}
