//! Charts with their guide and table, tables, pictures, and reasons for what is left out.

use maud::{Markup, PreEscaped, html};

use crate::chart::{Chart, Colours};
use crate::sections::Item;

/// Widths of charts in the units of their drawing, alone in a row, two and three side by side; the page scales them a little.
const WIDTHS: [f64; 3] = [1200.0, 600.0, 400.0];
/// On narrow pages every chart is alone and as narrow as three side by side.
const NARROW: f64 = 400.0;

/// The items of a section. Charts that follow one another share the width of the page evenly, up to three in a row.
pub(super) fn items(all: &[Item]) -> Markup {
    let is_chart = |item: &Item| matches!(item, Item::Chart(_));
    let mut markup = Vec::new();
    let mut rest = all;
    while let Some(first) = rest.first() {
        let charts = rest.iter().take_while(|item| is_chart(item)).count();
        if charts == 0 {
            markup.push(item(first, 1));
            rest = &rest[1..];
            continue;
        }
        let rows = in_rows(charts);
        for (one, in_row) in rest.iter().zip(rows) {
            markup.push(item(one, in_row));
        }
        rest = &rest[charts..];
    }
    html! { div.items { @for one in &markup { (one) } } }
}

/// For each of so many charts, how many are in its row.
fn in_rows(charts: usize) -> Vec<usize> {
    let most = match charts {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let mut all = Vec::new();
    while all.len() < charts {
        let left = charts - all.len();
        // no chart alone below three
        let row = match left {
            4 if most == 3 => 2,
            _ => left.min(most),
        };
        all.extend(std::iter::repeat_n(row, row));
    }
    all
}

fn item(item: &Item, in_row: usize) -> Markup {
    match item {
        Item::Chart(chart) => of_chart(chart, in_row),
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

fn of_chart(chart: &Chart, in_row: usize) -> Markup {
    let (columns, rows) = chart.table();
    let width = WIDTHS[in_row.clamp(1, WIDTHS.len()) - 1];
    html! {
        figure class="chart" data-row=(in_row) {
            h3 { (chart.title) }
            // a number and its unit stay on one line
            figcaption { (chart.reading().replace(" %", "\u{a0}%")) }
            // letters keep their size: what is drawn wide is drawn narrow once more
            @if width > NARROW {
                div.broad { (PreEscaped(chart.svg(width, Colours::Page))) }
                div.narrow { (PreEscaped(chart.svg(NARROW, Colours::Page))) }
            } @else {
                (PreEscaped(chart.svg(width, Colours::Page)))
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_full_and_no_chart_is_left_over() {
        assert_eq!(in_rows(1), [1]);
        assert_eq!(in_rows(2), [2, 2]);
        assert_eq!(in_rows(4), [2; 4]);
        assert_eq!(in_rows(5), [3, 3, 3, 2, 2]);
        assert_eq!(in_rows(7), [3, 3, 3, 2, 2, 2, 2]);
        for count in 2..40 {
            let rows = in_rows(count);
            assert_eq!(rows.len(), count);
            assert!(!rows.contains(&1), "{rows:?}");
        }
    }
}
