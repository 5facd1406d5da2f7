//! Charts with their guide and table, tables, pictures, and reasons for what is left out.

use maud::{Markup, PreEscaped, html};

use crate::chart::{Chart, Colours};
use crate::sections::Item;

/// Width of charts in the units of their drawing; the page scales them.
const WIDTH: f64 = 400.0;

pub(super) fn item(item: &Item) -> Markup {
    match item {
        Item::Chart(chart) => of_chart(chart),
        Item::Table {
            title,
            columns,
            rows,
        } => html! {
            div.wide {
                h3 { (title) }
                (table(columns, rows))
            }
        },
        Item::Missing { what, why } => html! {
            p.missing.wide { strong { (what) } ": left out, because " (why) "." }
        },
        Item::Verbatim { title, text } => html! {
            details.wide.verbatim {
                summary { (title) }
                div.scroll { pre { (text) } }
            }
        },
        Item::Pictures {
            title,
            guide,
            pictures,
        } => html! {
            figure.wide {
                h3 { (title) }
                figcaption { (guide) }
                div.pictures {
                    @for picture in pictures {
                        div {
                            img src=(picture.address) width=(picture.width) height=(picture.height) alt=(picture.lines.join(", "));
                            @for line in &picture.lines {
                                span { (line) }
                            }
                        }
                    }
                }
            }
        },
    }
}

fn of_chart(chart: &Chart) -> Markup {
    let (columns, rows) = chart.table();
    html! {
        figure.chart {
            h3 { (chart.title) }
            // a number and its unit stay on one line
            figcaption { (chart.reading().replace(" %", "\u{a0}%")) }
            (PreEscaped(chart.svg(WIDTH, Colours::Page)))
            details {
                summary { "The numbers" }
                (table(&columns, &rows))
            }
        }
    }
}

/// Scrolls in its box where it is too wide or too long. Without column names it has no header.
pub(super) fn table(columns: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        // what scrolls must be reachable by keyboard
        div.scroll tabindex="0" {
            table {
                @if columns.iter().any(|name| !name.is_empty()) {
                    thead { tr { @for name in columns { th scope="col" { (name) } } } }
                }
                tbody {
                    @for row in rows {
                        tr { @for cell in row { td { (cell) } } }
                    }
                }
            }
        }
    }
}
