//! What an experiment gave: text for people, CSV, JSON and SVG for everything else.

use std::path::Path;

use serde_json::json;

use crate::findings::results;
use crate::ledger::{FINDINGS, Kept};
use crate::{About, Failure, Figure, Finding, Size, Table};

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What it is about.
    pub about: About,
    /// How much was measured.
    pub size: Size,
    /// Which data.
    pub data: String,
    /// The program's.
    pub version: String,
    /// Time that measuring took, over all sessions.
    pub seconds: f64,
    /// Whether published algorithms that are faulty were measured too.
    pub as_published: bool,
    /// What was measured.
    pub tables: Vec<Table>,
    /// The claims.
    pub findings: Vec<Finding>,
    /// Pictures to draw.
    pub figures: Vec<Figure>,
}

impl Outcome {
    /// The results and the findings, for a terminal.
    pub fn text(&self) -> String {
        let About {
            name,
            paper,
            figure,
            what,
            ..
        } = self.about;
        let mut text = format!(
            "{name}: {paper}, {figure}\n{what}\nsize: {}, data: {}, {:.0} s\n\n{}\n",
            self.size,
            self.data,
            self.seconds,
            results(&self.tables).text()
        );
        for finding in &self.findings {
            text.push_str(&format!(
                "\n{}: {}\n    {}",
                finding.verdict, finding.claim, finding.measured
            ));
            if let Some(because) = &finding.because {
                text.push_str(&format!("\n    because {because}"));
            }
            if let Some(published) = &finding.published {
                text.push_str(&format!("\n    published: {published}"));
            }
        }
        text
    }

    /// Everything as JSON.
    pub fn json(&self) -> serde_json::Value {
        let tables = self
            .tables
            .iter()
            .map(|table| (table.name.clone(), table.json()));
        json!({
            "experiment": self.about.name,
            "paper": self.about.paper.to_string(),
            "figure": self.about.figure,
            "size": self.size,
            "data": self.data,
            "version": self.version,
            "seconds": self.seconds,
            "findings": self.findings,
            "tables": serde_json::Value::Object(tables.collect()),
        })
    }

    /// Writes `TABLE.csv`, `outcome.json` and the pictures into `folder`; returns their names.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<String>, Failure> {
        let mut written = Vec::new();
        let mut write = |name: String, text: String| {
            let path = folder.join(&name);
            written.push(name);
            std::fs::write(&path, text).map_err(Failure::io(&path))
        };
        for table in &self.tables {
            write(format!("{}.csv", table.name), table.csv())?;
        }
        write("outcome.json".to_owned(), format!("{:#}\n", self.json()))?;
        write(FINDINGS.to_owned(), Kept::new(self).text())?;
        write("outcome.txt".to_owned(), self.text() + "\n")?;
        for figure in &self.figures {
            written.extend(figure.write(&self.tables, folder)?);
        }
        Ok(written)
    }
}
