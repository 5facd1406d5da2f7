//! The library's SVG made fit for pages: scales with its box, has a text for screen readers, and identifiers that depend on
//! nothing but what is drawn.

use super::{Chart, Colours};

/// How the library begins the names of its clipping paths; a counter of the process follows.
const CLIP: &str = "kuva-clip-";

pub(super) fn finish(drawn: &str, spare: f64, chart: &Chart, colours: Colours) -> String {
    let Some((head, body)) = drawn.split_once('>') else {
        return drawn.to_owned();
    };
    let size = |name: &str| {
        let after = head
            .split_once(&format!(" {name}=\""))
            .map(|(_, after)| after);
        after
            .and_then(|after| after.split('"').next())
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    let (width, height) = (size("width"), size("height") - spare);
    let body = rename(body);
    let mut text = String::with_capacity(body.len() + 400);
    text += "<svg";
    // a part of an HTML page needs no name space
    if colours == Colours::Standalone {
        text +=
            &format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"");
    }
    let (text_colour, family) = match colours {
        Colours::Page => ("var(--text)", "inherit"),
        Colours::Standalone => ("#1c2024", "system-ui,sans-serif"),
    };
    text += &format!(
        " viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" font-family=\"{family}\" fill=\"{text_colour}\">",
        escape(&chart.title)
    );
    text += &format!("<desc>{}</desc>", escape(&chart.reading()));
    // its style sheet would hold for the whole page
    text + &body.replace(
        "<style>g.tt{cursor:pointer;}g.tt:hover>*{opacity:0.75;}</style>",
        "",
    )
}

/// Names clipping paths after the drawing: equal drawings get equal bytes, and different ones different names.
fn rename(body: &str) -> String {
    let mut parts = body.split(CLIP);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = parts
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect();
    if rest.is_empty() {
        return plain;
    }
    let pieces = std::iter::once(plain.as_str()).chain(rest.iter().copied());
    // FNV-1a
    let hash = pieces
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    for part in rest {
        plain += &format!("clip-{hash:016x}");
        plain += part;
    }
    plain
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // XML has no other control characters
            c if c.is_control() && !matches!(c, '\t' | '\n' | '\r') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
