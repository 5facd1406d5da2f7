//! The page: one HTML file without scripts, with its style sheet in it, that loads nothing.

mod comparison;
mod item;
mod overview;
mod style;

use std::collections::HashSet;

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
    let names = names(runs);
    let title = match names.as_slice() {
        [one] => format!("{one} - reprior"),
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
                        (overview::compared(runs, &names, &verdicts))
                    }
                    @for (index, run, verdict, sections) in &bodies {
                        (of_run((*index, &names[*index]), run, verdict, sections, is_comparison))
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

/// What runs are called: the last part of each folder's path, or as many as tell them apart.
fn names(runs: &[RunPage]) -> Vec<String> {
    let parts = |run: &RunPage| -> Vec<String> {
        let parts = run.folder.components();
        parts
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    let all: Vec<Vec<String>> = runs.iter().map(parts).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let of = |depth: usize| -> Vec<String> {
        let last = |own: &Vec<String>| own[own.len().saturating_sub(depth)..].join("/");
        all.iter().map(last).collect()
    };
    let differ = |names: &Vec<String>| HashSet::<&String>::from_iter(names).len() == names.len();
    let found = (1..=longest).map(of).find(differ);
    // one run, twice
    found.unwrap_or_else(|| of(1))
}

fn of_run(
    (index, name): (usize, &str),
    run: &RunPage,
    verdict: &Verdict,
    sections: &[Section],
    is_one_of_many: bool,
) -> Markup {
    let anchor = |section: usize| format!("run-{index}-{section}");
    html! {
        article id=(format!("run-{index}")) {
            @if is_one_of_many {
                h2.run { (name) }
            } @else {
                h1 { (name) }
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
