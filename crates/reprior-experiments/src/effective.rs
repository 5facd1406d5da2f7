//! Comparisons of effective draws, of which the estimator tells only that they are few where they are.
//!
//! An estimate below three times the estimator's floor says that there are no more than that, and not how many: what is above that bound is
//! above it. Nothing else follows from it.

use crate::sampled::Sampled;
use crate::{Estimate, Judgement, Row, Table, Value, Verdict};

/// Effective draws that were measured, and what they are at most.
#[derive(Debug, Clone)]
pub struct Effective {
    /// The estimate, in doubt where it is at the estimator's floor.
    pub estimate: Estimate,
    /// Without that doubt: the floor's upper end.
    most: Estimate,
    is_floor: bool,
}

impl Effective {
    /// Of `column` in a row that has the number of `draws` of each chain.
    pub fn of(row: &Row, column: &str) -> Self {
        let (estimate, length) = (row.estimate(column), row.count("draws"));
        Self {
            most: Sampled::at_most(&estimate, length),
            is_floor: Sampled::is_floor(estimate.value, length),
            estimate,
        }
    }

    /// Of the rows in which every named value is as given, by width.
    pub fn by_width(table: &Table, column: &str, wanted: &[(&str, Value)]) -> Vec<Self> {
        let rows = table.sorted("width", wanted).into_iter();
        rows.map(|row| Self::of(row, column)).collect()
    }

    /// A multiple.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self {
            estimate: self.estimate.times(factor),
            most: self.most.times(factor),
            is_floor: self.is_floor,
        }
    }

    /// `self` is above `other`, also where the latter is too little to be told from none; that is never told of the former.
    pub fn above(&self, other: &Self) -> Judgement {
        let judged = Judgement::above(&self.estimate, &other.most);
        match judged.verdict() {
            Verdict::Holds => judged,
            _ => Judgement::above(&self.estimate, &other.estimate),
        }
    }

    /// `self` is below a number.
    pub fn below(&self, limit: f64) -> Judgement {
        let limit = Estimate::exact(limit);
        let judged = Judgement::below(&self.most, &limit);
        match judged.verdict() {
            Verdict::Holds => judged,
            _ => Judgement::below(&self.estimate, &limit),
        }
    }

    /// How many times as large as `other` it is at the first of two widths, above the same at the last: `at_first` and `at_last` are
    /// pairs of both.
    pub fn gap_falls(at_first: [&Self; 2], at_last: [&Self; 2]) -> Judgement {
        let ln_ratio = |[a, b]: [&Estimate; 2]| a.ln().minus(&b.ln());
        let last = ln_ratio(at_last.map(|one| &one.estimate));
        let [first, floor] = [&at_first[1].estimate, &at_first[1].most]
            .map(|other| ln_ratio([&at_first[0].estimate, other]));
        let judged = Judgement::above(&floor, &last);
        match judged.verdict() {
            Verdict::Holds => judged,
            _ => Judgement::above(&first, &last),
        }
    }

    /// They grow: the last is above the first, and of those that can be told from none each is not below the one before.
    pub fn grow(values: &[Self]) -> Judgement {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return Judgement::all([]);
        };
        let told = values.iter().filter(|value| !value.is_floor);
        let mut told: Vec<Estimate> = told.map(|value| value.estimate.clone()).collect();
        // from the first to what it is at most there is nothing to fall from
        let starts_below = told
            .first()
            .is_some_and(|own| own.value >= first.most.value);
        // where the last is at it too nothing is told of the ends
        if first.is_floor && !last.is_floor && starts_below {
            told.insert(0, first.most.clone());
            return Judgement::rises(&told);
        }
        // an end that is at most the floor, below the beginning
        let falls = Judgement::above(&last.most, &first.estimate);
        if last.is_floor && falls.verdict() == Verdict::DoesNotHold {
            return falls;
        }
        match told.len() {
            0 | 1 => last.above(first),
            _ => Judgement::all([last.above(first), Judgement::rises(&told)]),
        }
    }

    /// They fall, in the same way.
    pub fn fall(values: &[Self]) -> Judgement {
        let reversed: Vec<Self> = values.iter().rev().cloned().collect();
        Self::grow(&reversed)
    }

    /// In words, those in doubt marked.
    pub fn listed(values: &[Self]) -> String {
        let word = |value: &Self| match value.estimate.doubt {
            Some(_) => format!("({})", value.estimate),
            None => value.estimate.to_string(),
        };
        values.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 draws, and in doubt if at the floor of 0.05.
    fn measured(value: f64, draws: usize) -> Effective {
        let estimate = Estimate::new(value, 0.01);
        let estimate = match Sampled::is_floor(value, draws) {
            true => estimate.doubted("floor"),
            false => estimate,
        };
        let row = Row::new()
            .with_estimate("ess", &estimate)
            .with("draws", draws);
        Effective::of(&row, "ess")
    }

    #[test]
    fn what_is_at_the_floor_is_only_known_to_be_little() {
        let [floor, more, fine] = [
            measured(0.05, 100),
            measured(0.5, 100),
            measured(0.1, 10_000),
        ];
        assert_eq!(more.above(&floor).verdict(), Verdict::Holds);
        // 0.1 is below the bound of 0.15, and yet nothing is refuted
        assert_eq!(fine.above(&floor).verdict(), Verdict::CannotBeTold);
        assert_eq!(floor.above(&more).verdict(), Verdict::CannotBeTold);
        assert_eq!(floor.below(0.2).verdict(), Verdict::Holds);
        assert_eq!(floor.below(0.1).verdict(), Verdict::CannotBeTold);
        assert_eq!(more.below(0.2).verdict(), Verdict::DoesNotHold);
    }

    #[test]
    fn growth_over_the_floor() {
        let [floor, some, more] = [measured(0.05, 100), measured(0.3, 100), measured(0.5, 100)];
        let grow = |values: &[&Effective]| {
            let values: Vec<Effective> = values.iter().copied().cloned().collect();
            [Effective::grow(&values), Effective::fall(&values)].map(|judged| judged.verdict())
        };
        let [holds, fails, open] = [Verdict::Holds, Verdict::DoesNotHold, Verdict::CannotBeTold];
        assert_eq!(grow(&[&floor, &some, &more]), [holds, fails]);
        assert_eq!(grow(&[&floor, &more, &some]), [fails, fails]);
        assert_eq!(grow(&[&floor, &floor]), [open, open]);
        assert_eq!(grow(&[&more]), [open, open]);
        assert_eq!(grow(&[&some, &floor]), [fails, holds]);
        // up from the floor and down to it again
        assert_eq!(grow(&[&floor, &some, &floor]), [open, open]);
        assert_eq!(grow(&[&floor, &some, &more, &floor]), [open, fails]);
        // the gap to what is four times as large, then twice
        let large = measured(1.2, 100);
        let gap = |first, last| Effective::gap_falls(first, last).verdict();
        assert_eq!(gap([&large, &some], [&large, &more]), holds);
        assert_eq!(gap([&large, &more], [&large, &some]), fails);
        assert_eq!(gap([&large, &floor], [&large, &more]), holds);
        assert_eq!(gap([&large, &more], [&large, &floor]), open);
    }
}
