//! The page: one HTML file without scripts, with its style sheet in it, that loads nothing.

mod comparison;
mod item;
mod overview;
mod style;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::PAGE_VARIABLES;
use crate::sections::{self, Section};
use reprior_run::Verdict;

use crate::{ReportError, RunPage};

/// The page of one run, or of several side by side: at least one.
///
/// # Errors
/// A run folder that cannot be read.
pub fn page(runs: &[RunPage]) -> Result<String, ReportError> {
    let mut bodies = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        bodies.push((index, run, &run.summary.verdict, sections::of(run)?));
    }
    let verdicts: Vec<&Verdict> = bodies.iter().map(|(_, _, verdict, _)| *verdict).collect();
    let is_comparison = runs.len() > 1;
    let title = match runs {
        [one] => format!("{} - reprior", name(one)),
        _ => format!("{} runs - reprior", runs.len()),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(format!("reprior {}", env!("CARGO_PKG_VERSION")));
                title { (title) }
                // browsers would ask a server for one
                link rel="icon" href="data:,";
                style { (PreEscaped(PAGE_VARIABLES)) (PreEscaped(style::SHEET)) }
            }
            body {
                main {
                    @if is_comparison {
                        h1 { (runs.len()) " runs" }
                        (overview::compared(runs, &verdicts))
                    }
                    @for (index, run, verdict, sections) in &bodies {
                        (of_run(*index, run, verdict, sections, is_comparison))
                    }
                }
                footer {
                    p { "Written by reprior " (env!("CARGO_PKG_VERSION")) ". This file is complete: it loads nothing from anywhere." }
                }
            }
        }
    };
    Ok(page.into_string())
}

/// The last part of the folder's path.
fn name(run: &RunPage) -> String {
    let last = run.folder.file_name();
    last.map_or_else(
        || run.folder.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn of_run(
    index: usize,
    run: &RunPage,
    verdict: &Verdict,
    sections: &[Section],
    is_one_of_many: bool,
) -> Markup {
    let anchor = |section: usize| format!("run-{index}-{section}");
    html! {
        article id=(format!("run-{index}")) {
            @if is_one_of_many {
                h2.run { (name(run)) }
            } @else {
                h1 { (name(run)) }
            }
            (overview::first_screen(run, verdict))
            nav aria-label="Sections" {
                ul {
                    @for (section, part) in sections.iter().enumerate() {
                        li { a href=(format!("#{}", anchor(section))) { (part.title) } }
                    }
                }
            }
            @for (section, part) in sections.iter().enumerate() {
                section id=(anchor(section)) {
                    h2 { (part.title) }
                    @if !part.introduction.is_empty() {
                        p { (part.introduction) }
                    }
                    (item::items(&part.items))
                }
            }
        }
    }
}
