//! Figures 4 to 6: traces of the first two principal components, one method a figure.
//!
//! Components are those of 50 projections of the weights, of all chains together: by the first half of their draws, so that the second can be
//! judged. The paper has those of all draws. Kept results of before have them too, of which the first is the direction in which chains happen to
//! differ most: that they are apart there refutes nothing. The paper names neither the widths of these figures nor their steps: they are
//! those of its Figure 3 here.

use super::mixing::{CHOICES, Length, THIN, cells, chains};
use super::{METHODS, PUBLISHED};
use crate::findings::{estimates, results};
use crate::sampled::MOST_RHAT;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// One of the three figures.
pub(super) struct Traces {
    name: &'static str,
    figure: &'static str,
    what: &'static str,
    method: &'static str,
}

/// Figure 4.
pub(super) const LANGEVIN: Traces = Traces {
    name: "pezzetti2024-fig4",
    figure: "Figure 4",
    what: "traces of the first two principal components of the weights: Langevin steps at β = 0.01, 0.1, 0.2 (default: without 0.01; quick: 0.2), below the full size on the weights that the data touch",
    method: METHODS[2],
};

/// Figure 5.
pub(super) const PCN: Traces = Traces {
    name: "pezzetti2024-fig5",
    figure: "Figure 5",
    what: "traces of the first two principal components of the weights: pCN at β = 0.01, 0.1, 0.2 (default: without 0.01; quick: 0.2), below the full size on the weights that the data touch",
    method: METHODS[0],
};

/// Figure 6.
pub(super) const PCNL: Traces = Traces {
    name: "pezzetti2024-fig6",
    figure: "Figure 6",
    what: "traces of the first two principal components of the weights: pCNL at β = 0.01, 0.1, 0.2 (default: without 0.01; quick: 0.2), below the full size on the weights that the data touch",
    method: METHODS[1],
};

/// Chains whose traces are drawn.
const DRAWN: usize = 2;
const COMPONENTS: [&str; 2] = ["R-hat of 1st", "R-hat of 2nd"];
/// Draws of each chain that are judged, none of which chose the components; of kept results of before there is no such column.
const JUDGED: &str = "judged draws";
/// Why components that the judged draws have chosen refute nothing.
const CHOSEN: &str = "components are of the draws that are judged: the directions in which chains happen to differ most";

impl Experiment for Traces {
    fn about(&self) -> About {
        About {
            name: self.name,
            paper: Paper::Pezzetti,
            figure: self.figure,
            what: self.what,
            data: Some("cifar10"),
            cost: match self.method {
                "pcn" => ["10 s", "5 min", "40 min", "a week"],
                _ => ["10 s", "35 min", "4 h", "2 weeks"],
            },
        }
    }

    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[32, 256],
            &[512, 1024],
            &[512, 1024, 2096, 4192],
            &[512, 1024, 2096, 4192],
        );
        let betas: &[f64] = size.pick(&[0.2], &[0.1, 0.2], &[0.01, 0.1, 0.2], &[0.01, 0.1, 0.2]);
        let length = Length {
            warmup: 0,
            steps: size.pick(4000, 5000, 10_000, 20_000),
            chains: size.pick(10, 6, 6, 6),
        };
        let published = (as_published && self.method == "pcnl").then_some(PUBLISHED);
        let methods: Vec<&str> = [self.method].into_iter().chain(published).collect();
        cells(widths, betas, &methods, length)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 0)?;
        let length = sampled.length();
        let components = sampled.principal_components(2);
        let mut row = cell.choices(CHOICES).with("acceptance", sampled.acceptance);
        row = row.with(JUDGED, length - length / 2);
        for (name, component) in COMPONENTS.into_iter().zip(&components) {
            // in the second half: the first holds the way from the prior
            let [rhat, _] =
                sampled.scale_reduction(std::slice::from_ref(component), length / 2..length);
            row = row.with_estimate(name, &rhat);
        }
        let mut rows = vec![row];
        let panel = format!(
            "{} beta {} width {}",
            cell.text("method"),
            cell.number("beta"),
            cell.count("width")
        );
        for (rank, component) in ["1st", "2nd"].into_iter().zip(&components) {
            for (chain, values) in component.chunks_exact(length).take(DRAWN).enumerate() {
                let line = cell
                    .choices(CHOICES)
                    .in_table("traces")
                    .with("panel", panel.as_str())
                    .with("component", format!("{rank} component"))
                    .with("chain", chain);
                let point = |(draw, value): (usize, &f64)| {
                    let step = (draw as u64 + 1) * THIN;
                    line.clone().with("step", step).with("value", *value)
                };
                rows.extend(values.iter().enumerate().map(point));
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for (method, beta) in table.distinct("method").into_iter().flat_map(|method| {
            let betas = table.distinct("beta").into_iter();
            betas.map(move |beta| (method.clone(), beta))
        }) {
            for (column, rank) in COMPONENTS.into_iter().zip(["first", "second"]) {
                let wanted = [("method", method.clone()), ("beta", beta.clone())];
                let rows = table.sorted("width", &wanted);
                let by_width: Vec<Estimate> = rows.iter().map(|row| row.estimate(column)).collect();
                let draws: Vec<f64> = rows.iter().map(|row| row.number(JUDGED)).collect();
                findings.push(self.finding(&method, &beta, rank, &by_width, &draws));
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "trace",
                "First two principal components",
                "Chains that mix cross one another again and again; lines that keep apart have not found the posterior.",
                ("step", "step"),
                ("value", "principal component"),
                &["component", "chain"],
            )
            .of("traces")
            .panels("panel"),
        ]
    }
}

impl Traces {
    /// The claim of the figure, by width, of so many draws that are judged.
    fn finding(
        &self,
        method: &Value,
        beta: &Value,
        rank: &str,
        by_width: &[Estimate],
        draws: &[f64],
    ) -> Finding {
        // of one direction R-hat is far from normal, its logarithm less so
        let logarithms: Vec<Estimate> = by_width.iter().map(Estimate::ln).collect();
        let (claim, judged, published) = match self.method {
            "langevin" => (
                "chains mix worse the wider the network",
                Judgement::rises(&logarithms),
                "mixing gets worse with width (Appendix B.2)",
            ),
            "pcn" => (
                "chains mix better the wider the network",
                Judgement::falls(&logarithms),
                "traces get more stable with width (Appendix B.2)",
            ),
            _ => {
                let below = by_width.iter().zip(draws).map(|(rhat, &draws)| {
                    let length = if draws.is_nan() { f64::INFINITY } else { draws };
                    Judgement::is_shrunk_below(rhat, MOST_RHAT, length)
                });
                let judged = Judgement::all(below);
                let is_chosen_by_them = draws.iter().any(|draws| draws.is_nan());
                (
                    "chains mix at every width (R-hat below 1.2)",
                    match is_chosen_by_them {
                        true => judged.not_refuted(CHOSEN),
                        false => judged,
                    },
                    "mixing is good on narrow networks too (Appendix B.2)",
                )
            }
        };
        Finding::new(
            format!("{method}, β = {beta}: {claim}, {rank} component"),
            &judged,
            format!("R-hat by width: {}", estimates(by_width)),
        )
        .published(published)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// Chains that are far apart in components of other draws do not mix; in components of the judged draws, which nothing says how many
    /// they are, that shows nothing.
    #[test]
    fn components_of_the_judged_draws_refute_nothing() {
        let verdict = |rhat: f64, draws: Option<usize>| {
            let estimate = Estimate {
                degrees: 5.0,
                ..Estimate::new(rhat, 0.1)
            };
            let row = Row::new()
                .with("method", "pcnl")
                .with("beta", 0.1)
                .with("width", 512_usize);
            let mut row = COMPONENTS
                .iter()
                .fold(row, |row, name| row.with_estimate(name, &estimate));
            if let Some(draws) = draws {
                row = row.with(JUDGED, draws);
            }
            PCNL.findings(&Table::all(vec![row]))[0].verdict
        };
        assert_eq!(verdict(9.0, Some(100)), Verdict::DoesNotHold);
        assert_eq!(verdict(9.0, None), Verdict::CannotBeTold);
        assert_eq!(verdict(1.003, Some(1000)), Verdict::Holds);
        assert_eq!(verdict(1.003, None), Verdict::Holds);
    }
}
