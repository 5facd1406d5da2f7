//! Order of the draws: quantiles, medians and normal scores from one sort.
//!
//! The normal score of a draw is Φ⁻¹((r − 3/8)/(S + 1/4)) with r its rank among the S draws of the split chains,
//! ties sharing their average rank (Blom 1958; Vehtari et al. 2021, eq. 14). The folded draws |x − median| are ranked
//! without a second sort, by merging what lies below the median with what lies above it.
//! Cost: one sort of S pairs, then passes over S; the scores of whole ranks are computed once per S.

use super::{draws::Draws, normal};

/// A value and where its score belongs: its place in the split chains, laid end to end.
type Placed = (f64, usize);

/// Workspace that holds the sorted draws of the variable last given to [`Ranks::sort`].
#[derive(Default)]
pub(super) struct Ranks {
    /// All draws, ascending.
    all: Vec<Placed>,
    /// Those in the split chains, ascending: all but the middle draws of odd chains.
    split: Vec<Placed>,
    folded: Vec<Placed>,
    /// Scores of the ranks 1 … S.
    whole: Vec<f64>,
}

impl Ranks {
    /// Sorts the draws, which must hold no NaN.
    pub fn sort(&mut self, draws: Draws<'_>) {
        let length = draws.length();
        let half = length / 2;
        self.all.clear();
        for (c, chain) in draws.iter().enumerate() {
            let odd = length % 2;
            let place = |d: usize| match d {
                d if d < half => c * 2 * half + d,
                d if d < half + odd => usize::MAX,
                d => c * 2 * half + d - odd,
            };
            self.all
                .extend(chain.iter().enumerate().map(|(d, &x)| (x, place(d))));
        }
        self.all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.split.clear();
        let in_split = self.all.iter().filter(|(_, place)| *place != usize::MAX);
        self.split.extend(in_split);
    }

    /// Number of draws.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The draw with `index` others before it in ascending order.
    pub fn at(&self, index: usize) -> f64 {
        self.all[index].0
    }

    /// The p-quantile of all draws, p ∈ [0, 1]: R's type 7, linear between the draws of ranks ⌊1 + (S − 1)p⌋ and one more.
    pub fn quantile(&self, p: f64) -> f64 {
        let size = self.all.len();
        if size == 1 {
            return self.at(0);
        }
        let position = size as f64 * p + (1.0 - p);
        let rank = position.floor().clamp(1.0, size as f64 - 1.0);
        let weight = (position - rank).clamp(0.0, 1.0);
        let (below, above) = (self.at(rank as usize - 1), self.at(rank as usize));
        if below == above {
            // The weighted sum could round to less than either.
            return below;
        }
        (1.0 - weight) * below + weight * above
    }

    /// Writes the normal scores of the split chains, laid end to end.
    pub fn scores(&mut self, scores: &mut Vec<f64>) {
        self.tabulate();
        place_scores(&self.split, &self.whole, scores);
    }

    /// Writes the normal scores of |x − median| in the split chains, laid end to end.
    pub fn folded_scores(&mut self, scores: &mut Vec<f64>) {
        self.tabulate();
        let split = &self.split;
        let size = split.len();
        let median = 0.5 * (split[(size - 1) / 2].0 + split[size / 2].0);
        let fold = |&(x, place): &Placed| ((x - median).abs(), place);
        let middle = split.partition_point(|&(x, _)| x < median);
        let mut below = split[..middle].iter().rev().map(fold).peekable();
        let mut above = split[middle..].iter().map(fold).peekable();
        self.folded.clear();
        loop {
            let next = match (below.peek(), above.peek()) {
                (Some(b), Some(a)) if b.0 < a.0 => below.next(),
                (_, Some(_)) => above.next(),
                (_, None) => below.next(),
            };
            match next {
                Some(placed) => self.folded.push(placed),
                None => break,
            }
        }
        place_scores(&self.folded, &self.whole, scores);
    }

    fn tabulate(&mut self) {
        let size = self.split.len();
        if self.whole.len() != size {
            self.whole.clear();
            self.whole
                .extend((1..=size).map(|rank| score(rank as f64, size)));
        }
    }
}

fn score(rank: f64, size: usize) -> f64 {
    normal::quantile((rank - 0.375) / (size as f64 + 0.25))
}

/// Gives each of the ascending values the score of its rank, ties the score of their average rank.
fn place_scores(ascending: &[Placed], whole: &[f64], scores: &mut Vec<f64>) {
    scores.resize(ascending.len(), 0.0);
    let mut before = 0;
    for ties in ascending.chunk_by(|a, b| a.0 == b.0) {
        // Ranks before + 1 … before + ties.
        let twice = 2 * before + ties.len() + 1;
        let shared = if twice % 2 == 0 {
            whole[twice / 2 - 1]
        } else {
            score(0.5 * twice as f64, ascending.len())
        };
        for &(_, place) in ties {
            scores[place] = shared;
        }
        before += ties.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(values: &[f64], chains: usize) -> Ranks {
        let mut ranks = Ranks::default();
        ranks.sort(Draws::new(values, chains).unwrap());
        ranks
    }

    #[test]
    fn ties_share_their_average_rank() {
        let mut ranks = sorted(&[5.0, 1.0, 5.0, 0.0, -0.0, 7.0], 1);
        let mut scores = Vec::new();
        ranks.scores(&mut scores);
        let expected = [4.5, 3.0, 4.5, 1.5, 1.5, 6.0].map(|rank| score(rank, 6));
        assert_eq!(scores, expected);
    }

    #[test]
    fn folding_ranks_distances_from_the_median() {
        // Two chains of five: the middle draws, 100 and -100, are in neither half.
        let values = [1.0, 2.0, 100.0, 3.0, 4.0, 9.0, 8.0, -100.0, 7.0, 6.0];
        let mut ranks = sorted(&values, 2);
        let mut scores = Vec::new();
        ranks.folded_scores(&mut scores);
        // Median 5, so distances 4 3 2 1 | 4 3 2 1.
        let expected = [7.5, 5.5, 3.5, 1.5, 7.5, 5.5, 3.5, 1.5].map(|rank| score(rank, 8));
        assert_eq!(scores, expected);
        assert_eq!(ranks.len(), 10);
    }

    #[test]
    fn quantiles_interpolate() {
        let ranks = sorted(&[3.0, 1.0, 2.0, 5.0, 4.0], 1);
        assert_eq!(ranks.quantile(0.0), 1.0);
        assert_eq!(ranks.quantile(0.5), 3.0);
        assert!((ranks.quantile(0.9) - 4.6).abs() < 1e-15);
        assert_eq!(ranks.quantile(1.0), 5.0);
        assert_eq!(sorted(&[0.1; 41], 1).quantile(0.05), 0.1);
    }
}
