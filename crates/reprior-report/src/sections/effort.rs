//! What the run took, and what it was made with.

use std::fs;
use std::path::Path;

use reprior_io::run::DrawReader;

use super::{Item, Section};
use reprior_run::Nature;
use reprior_run::words::{bytes, duration, number};

use crate::RunPage;

pub(super) fn section(run: &RunPage) -> Section {
    let summary = &run.summary;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![row("wall-clock time", duration(summary.seconds))];
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
    // an earlier report is no part of the run
    // the run folder itself may be a link
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
    let mut items = vec![Item::Table {
        title: "Time and space (memory is not recorded; `reprior plan` estimates it)".to_owned(),
        columns: ["", ""].map(str::to_owned).to_vec(),
        rows,
    }];
    let blocks = [
        ("predictions", &summary.ess.prediction),
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
        items.push(Item::Table {
            title: "Effective draws and what they cost".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        });
    }
    Section::new("What it took", "", items)
}

/// Bytes of all files below; what cannot be read counts for nothing.
fn size(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    let Ok(entries) = fs::read_dir(path) else {
        return 0;
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

pub(super) fn provenance(run: &RunPage, reader: &DrawReader) -> Section {
    let writer = reader.groups().find_map(|group| {
        let version = group.attributes.get("inference_library_version")?;
        version.as_str().map(str::to_owned)
    });
    let rows = [
        (
            "the run was written by reprior",
            writer.unwrap_or_else(|| "unknown".to_owned()),
        ),
        (
            "this report was written by reprior",
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    Section {
        title: "How to repeat it",
        introduction: "`reprior sample --config` takes this file: the same seed gives the same draws on the same machine.".to_owned(),
        items: vec![
            Item::Verbatim {
                title: "config.toml: every setting, defaults written out".to_owned(),
                text: run.configuration.clone(),
            },
            Item::Table {
                title: "Versions".to_owned(),
                columns: ["", ""].map(str::to_owned).to_vec(),
                rows: rows.to_vec(),
            },
        ],
    }
}
