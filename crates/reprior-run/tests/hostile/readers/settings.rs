//! What is written by hand: a network layer by layer, and the settings of a run.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::OnceLock;

use reprior::model::InputReduction;
use reprior::model::dataset::InputKind;
use reprior_io::data::{Given, GivenColumn, GivenValues};
use reprior_io::weights::read_state_dict_bytes;
use reprior_run::{ModelSettings, Settings, plan, prepare_given};

use super::in_scratch;

/// What stands in descriptions of networks.
pub const LAYER_WORDS: &[&str] = &[
    "[[layers]]\n",
    "type = \"dense\"\n",
    "units = 3\n",
    "type = \"convolution\"\n",
    "channels = 2\n",
    "size = [3, 3]\n",
    "stride = [2, 2]\n",
    "padding = \"circular\"\n",
    "scale = { weight = 1.0, bias = 0.1 }\n",
    "type = \"activation\"\n",
    "function = \"gelu\"\n",
    "type = \"parallel\"\n",
    "combination = \"concatenate\"\n",
    "[[layers.branches]]\n",
    "factor = 0.5\n",
    "type = \"flatten\"\n",
    "type = \"batch-norm\"\n",
    "type = \"average-pool\"\n",
    "type = \"max-pool\"\n",
    "9223372036854775807",
    "type = \"global-average-pool\"\n",
    "0",
    "nan",
    "inf",
    "1e308",
    "layers = []\n",
];

/// What stands in settings.
pub const WORDS: &[&str] = &[
    "[data]\n",
    "[model]\n",
    "[sampler]\n",
    "[minibatch]\n",
    "[laplace]\n",
    "[run]\n",
    "[record]\n",
    "auto",
    "\"learn\"",
    "0",
    "-1",
    "18446744073709551615",
    "9223372036854775807",
    "1e308",
    "nan",
    "inf",
    "true",
    "[]",
    "\"fcn:8\"",
    "\"linear\"",
    "\"hmc\"",
    "\"pcn\"",
    "\"nngp\"",
    "\"sgld\"",
    "\"laplace\"",
    "\"smc\"",
    "chains = ",
    "draws = ",
    "thin = ",
    "\"categorical\"",
    "\"poisson\"",
];

/// The most weights of a network whose settings are gone on with: what is wanted to be large may be.
const MOST_WEIGHTS: usize = 100_000;

/// The description of a network, for a table, for images, and for a file of weights.
pub fn network(bytes: &[u8]) {
    let image = |height, width, channels| InputKind::Image {
        height,
        width,
        channels,
    };
    in_scratch(|folder| {
        let path = folder.join("network.toml");
        fs::write(&path, bytes).unwrap();
        let mut model = ModelSettings {
            network: path.to_string_lossy().into_owned(),
            ..ModelSettings::default()
        };
        if model.read_network().is_err() || model.check_network().is_err() {
            return;
        }
        for (kind, inputs) in [
            (InputKind::Table, 3),
            (image(6, 6, 1), 36),
            (image(5, 4, 3), 60),
        ] {
            let network = model.architecture(kind, inputs, 2, InputReduction::Auto);
            if let Ok(network) = network {
                let none = Cursor::new(&b""[..]);
                let read = read_state_dict_bytes(none, Path::new("net.safetensors"), &network);
                assert!(read.is_err());
            }
        }
    });
}

/// Settings, and the plan of the run that they ask for of a small table.
pub fn config(bytes: &[u8]) {
    let settings = in_scratch(|folder| {
        let path = folder.join("config.toml");
        fs::write(&path, bytes).unwrap();
        Settings::from_file(&path)
    });
    let Ok(mut settings) = settings else {
        return;
    };
    let written = settings.to_toml().unwrap();
    assert_eq!(
        toml::from_str::<Settings>(&written).map(|again| again.to_toml().unwrap()),
        Ok(written)
    );
    settings.data.source.clear();
    // no other files
    settings.minibatch.weights = None;
    if settings.model.check_network().is_err() {
        return;
    }
    let model = &settings.model;
    let network = model.architecture(InputKind::Table, 3, 1, InputReduction::Auto);
    let is_small =
        model.network == "auto" || network.is_ok_and(|network| network.parameters() < MOST_WEIGHTS);
    if is_small && let Ok(problem) = prepare_given(settings, table()) {
        // refused or not
        let _ = plan(&problem);
    }
}

/// Ten rows of three inputs, one of them text.
fn table() -> &'static Given {
    static TABLE: OnceLock<Given> = OnceLock::new();
    TABLE.get_or_init(|| {
        let numbers = |factor: f64| (0..10).map(move |row| (f64::from(row) * factor).sin());
        let column = |name: &str, values| GivenColumn {
            name: name.to_owned(),
            values,
        };
        let kinds = (0..10).map(|row| Some(["a", "b"][row % 2].to_owned()));
        let columns = [
            column("size", GivenValues::Numbers(numbers(1.0).collect())),
            column("area", GivenValues::Numbers(numbers(2.0).collect())),
            column("kind", GivenValues::Texts(kinds.collect())),
            column("y", GivenValues::Numbers(numbers(3.0).collect())),
        ];
        Given::table(&columns).unwrap()
    })
}
