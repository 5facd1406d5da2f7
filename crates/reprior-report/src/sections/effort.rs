//! What the run took, and what it was made with.

use std::fs;
use std::path::Path;

use reprior_io::run::{DrawReader, bytes_below};

use super::{Item, Section, table};
use reprior_run::Nature;
use reprior_run::words::{bytes, duration, number};

use crate::RunPage;

pub(super) fn section(run: &RunPage) -> Section {
    let summary = &run.summary;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    // parts of a merged run may have been made one after another
    let time = match run.nature.has_chains() {
        true => "wall-clock time, of the longest chain",
        false => "wall-clock time",
    };
    let mut rows = vec![row(time, duration(summary.seconds))];
    if summary.steps > 0 {
        let name = match run.nature {
            Nature::Chains => "transitions of all chains",
            _ => "updates of all chains",
        };
        rows.push(row(name, summary.steps.to_string()));
        rows.push(row("a second", number(summary.steps_per_second)));
    }
    if summary.n_gradients > 0 {
        rows.push(row("gradients", summary.n_gradients.to_string()));
    }
    if summary.n_evaluations > 0 {
        rows.push(row("other evaluations", summary.n_evaluations.to_string()));
    }
    // what cannot be read counts for nothing
    let size = |path: &Path| bytes_below(path).unwrap_or(0);
    // the run folder itself may be a link; an earlier report is no part of the run
    let folder = fs::canonicalize(&run.folder).unwrap_or_else(|_| run.folder.clone());
    let all = size(&folder).saturating_sub(size(&folder.join("report.html")));
    rows.push(row("run folder", bytes(all as f64)));
    for (name, part) in [
        ("of it, draws", "draws.zarr"),
        ("of it, checkpoints", "checkpoint"),
    ] {
        let size = size(&run.folder.join(part));
        if size > 0 {
            rows.push(row(name, bytes(size as f64)));
        }
    }
    let title = "Time and space (memory is not recorded; `reprior plan` estimates it)";
    let mut items = vec![table(title, &[""; 2], rows)];
    let blocks = [
        ("predictions", &summary.ess.prediction),
        ("noise of the rows", &summary.ess.row_noise),
        ("weights (random projections)", &summary.ess.weights),
    ];
    let rows: Vec<Vec<String>> = blocks
        .iter()
        .filter_map(|(name, block)| {
            let ess = block.as_ref()?;
            let mut row = vec![(*name).to_owned(), ess.variables.to_string()];
            row.extend([ess.mean, ess.min, ess.per_draw, ess.per_step].map(number));
            row.push(ess.per_gradient.map_or_else(|| "-".to_owned(), number));
            row.push(number(ess.per_second));
            Some(row)
        })
        .collect();
    if !rows.is_empty() {
        let columns = [
            "effective draws of",
            "variables",
            "mean",
            "minimum",
            "per draw",
            "per step",
            "per gradient",
            "per second",
        ];
        let title = "Effective draws and what they cost";
        items.push(table(title, &columns, rows));
    }
    Section::new("What it took", "", items)
}

pub(super) fn provenance(run: &RunPage, reader: &DrawReader) -> Section {
    let writer = reader.groups().find_map(|group| {
        let version = group.attributes.get("inference_library_version")?;
        version.as_str().map(str::to_owned)
    });
    let writer = writer.unwrap_or_else(|| "unknown".to_owned());
    let rows = [
        ["the run was written by reprior", writer.as_str()],
        [
            "this report was written by reprior",
            env!("CARGO_PKG_VERSION"),
        ],
    ];
    let rows = rows.map(|row| row.map(str::to_owned).to_vec());
    let configuration = Item::Verbatim {
        title: "config.toml: every setting, defaults written out".to_owned(),
        text: run.configuration.clone(),
    };
    let introduction = "`reprior sample --config` takes this file: the same seed gives the same draws on the same machine.";
    let items = vec![configuration, table("Versions", &[""; 2], rows.to_vec())];
    Section::new("How to repeat it", introduction, items)
}
