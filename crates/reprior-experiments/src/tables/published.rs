//! What is published of regressions of the UCI repository.
//!
//! Gal's repository DropoutUncertaintyExps (dropout with a grid search), Lakshminarayanan, Pritzel & Blundell 2017, Table 1
//! (probabilistic backpropagation, ensembles of five), the baselines of google/uncertainty-baselines (ensembles of ten, variational
//! inference), and the benchmark of sklearn-contrib-bde for airfoil, whose targets are standardised. A published mean without a standard
//! error counts as exact.

/// A data set, and what is published of it: whose, root mean squared error, negative log-likelihood and its standard error.
pub struct Set {
    pub name: &'static str,
    pub target: &'static str,
    /// Whether published numbers are of targets in units of their standard deviation.
    pub is_standardised: bool,
    pub published: &'static [(&'static str, f64, f64, f64)],
}

const NONE: f64 = f64::NAN;
const DROPOUT: &str = "dropout, grid search (Gal)";
const PBP: &str = "probabilistic backpropagation";
const ENSEMBLE: &str = "ensemble of five (Lakshminarayanan et al.)";
const TEN: &str = "ensemble of ten (uncertainty-baselines)";
const VI: &str = "refined variational inference";
const MATRIX_GAUSSIAN: &str = "matrix-Gaussian variational inference";
const PBP_MV: &str = "PBP-MV";

impl Set {
    /// Whether there is one split, sampled with several seeds: airfoil's, whose published numbers are of its test rows as well.
    pub fn is_one_split(&self) -> bool {
        self.is_standardised
    }
}

/// All sets.
pub const SETS: [Set; 7] = [
    Set {
        name: "concrete",
        target: "strength",
        is_standardised: false,
        published: &[
            (DROPOUT, 4.82, 2.93, 0.02),
            (PBP, 5.67, 3.16, 0.0),
            (ENSEMBLE, 6.03, 3.06, 0.0),
            (TEN, NONE, 3.20, 0.0),
            (VI, NONE, 3.08, 0.0),
            (MATRIX_GAUSSIAN, NONE, 3.01, 0.0),
            (PBP_MV, NONE, 3.04, 0.0),
        ],
    },
    Set {
        name: "energy",
        target: "heating_load",
        is_standardised: false,
        published: &[
            (DROPOUT, 0.54, 1.21, 0.01),
            (PBP, 1.80, 2.04, 0.0),
            (ENSEMBLE, 2.09, 1.38, 0.0),
            (TEN, NONE, 0.61, 0.0),
            (VI, NONE, 0.75, 0.0),
            (MATRIX_GAUSSIAN, NONE, 1.06, 0.0),
            (PBP_MV, NONE, 1.01, 0.0),
        ],
    },
    Set {
        name: "kin8nm",
        target: "y",
        is_standardised: false,
        published: &[
            (DROPOUT, 0.08, -1.14, 0.01),
            (PBP, 0.10, -0.90, 0.0),
            (ENSEMBLE, 0.09, -1.20, 0.0),
            (TEN, NONE, -1.17, 0.0),
            (VI, NONE, -1.06, 0.0),
            (MATRIX_GAUSSIAN, NONE, -1.10, 0.0),
            (PBP_MV, NONE, -1.28, 0.0),
        ],
    },
    Set {
        name: "naval",
        target: "compressor_decay",
        is_standardised: false,
        published: &[
            (DROPOUT, NONE, -4.45, 0.0),
            (TEN, NONE, -5.17, 0.0),
            (VI, NONE, -6.33, 0.0),
            (MATRIX_GAUSSIAN, NONE, -2.46, 0.0),
            (PBP_MV, NONE, -4.85, 0.0),
        ],
    },
    Set {
        name: "power_plant",
        target: "PE",
        is_standardised: false,
        published: &[
            (DROPOUT, 4.01, 2.80, 0.01),
            (PBP, 4.12, 2.84, 0.0),
            (ENSEMBLE, 4.11, 2.79, 0.0),
            (TEN, NONE, 3.18, 0.0),
            (VI, NONE, 2.83, 0.0),
            (MATRIX_GAUSSIAN, NONE, 2.82, 0.0),
            (PBP_MV, NONE, 2.78, 0.0),
        ],
    },
    Set {
        name: "wine_red",
        target: "quality",
        is_standardised: false,
        published: &[
            (DROPOUT, 0.62, 0.93, 0.01),
            (PBP, 0.64, 0.97, 0.0),
            (ENSEMBLE, 0.64, 0.94, 0.0),
            (TEN, NONE, 0.97, 0.0),
            (VI, NONE, 0.97, 0.0),
            (MATRIX_GAUSSIAN, NONE, 0.95, 0.0),
            (PBP_MV, NONE, 0.97, 0.0),
        ],
    },
    Set {
        name: "airfoil",
        target: "sound_pressure",
        is_standardised: true,
        published: &[
            ("random forest", 0.2560, 0.0567, 0.0),
            ("XGBoost, one σ", 0.2025, -0.1782, 0.0),
            ("CatBoost", 0.2393, 0.1479, 0.0),
            ("ensemble of ten", 0.3650, 0.1760, 0.0),
            ("TabPFN v2", 0.1359, -0.9338, 0.0),
            ("sklearn-contrib-bde, σ of the inputs", 0.1215, -0.9126, 0.0),
        ],
    },
];

/// The set of that name.
pub fn set(name: &str) -> Option<&'static Set> {
    SETS.iter().find(|set| set.name == name)
}
