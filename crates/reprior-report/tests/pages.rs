//! Pages of runs made up for the purpose: healthy, sick, empty, hostile.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may as well stop here"
)]

use std::path::Path;

use reprior::model::dataset::InputValues;
use reprior_io::run::{DataType, DrawStore, Draws, Group, RunFolder, Schema, Values, Variable};
use reprior_report::{Images, Others, Predictions, RunPage, page};
use reprior_run::{
    Check, ColumnImportance, Dependence, Ess, EssSummary, InputEffects, Level, Metrics,
    MinibatchSummary, Nature, PitHistogram, Rise, Summary, Verdict,
};
use serde_json::Map;

/// Chains of so many draws whose log-density and projections `value(chain, draw)` gives.
fn folder(path: &Path, chains: u64, draws: u64, value: impl Fn(u64, u64) -> f64) {
    let group = |name: &str, variables: Vec<Variable>| Group {
        name: name.to_owned(),
        draws: Some(Draws::new(draws.max(1))),
        variables,
        attributes: Map::new(),
    };
    let number = |name: &str| Variable::new(name, DataType::F64, &[]);
    let schema = Schema {
        chains,
        groups: vec![
            group(
                "posterior",
                vec![Variable::new(
                    "projection",
                    DataType::F64,
                    &[("direction", 3)],
                )],
            ),
            group("sample_stats", vec![number("lp")]),
            group(
                "warmup_sample_stats",
                vec![number("step_size"), number("acceptance_rate")],
            ),
        ],
        coordinates: [].into(),
    };
    let folder = RunFolder::create(path, false).unwrap();
    let store = DrawStore::create(&folder, &schema).unwrap();
    for chain in 0..chains {
        let mut writer = store.writer(chain).unwrap();
        for draw in 0..draws {
            let x = value(chain, draw);
            let all = [x, x * x % 1.7, -x];
            writer.push("posterior", &[Values::F64(&all)]).unwrap();
            writer.push("sample_stats", &[Values::F64(&[x])]).unwrap();
            let warmup = [Values::F64(&[0.1]), Values::F64(&[x])];
            writer.push("warmup_sample_stats", &warmup).unwrap();
        }
        writer.flush().unwrap();
    }
}

fn summary(chains: usize, draws: u64) -> Summary {
    Summary {
        status: "complete",
        likelihood: "gaussian".to_owned(),
        method: "hmc-infinite".to_owned(),
        coordinates: "marginal".to_owned(),
        chains,
        chain_numbers: (0..chains).collect(),
        draws,
        draws_planned: draws,
        metrics_draws: draws,
        thin: 2,
        warmup: 20,
        steps: 100,
        seconds: 61.0,
        steps_per_second: 1.6,
        acceptance_rate: 0.8,
        step_size: vec![Some(0.1), None],
        n_gradients: 500,
        rhat_max: 1.004,
        ess: EssSummary {
            prediction: Some(Ess {
                variables: 20,
                mean: 300.0,
                min: 200.0,
                per_draw: 0.5,
                per_step: 0.2,
                per_second: 3.0,
                ..Ess::default()
            }),
            row_noise: None,
            weights: None,
        },
        metrics: Some(Metrics::Regression {
            nll: 1.25,
            rmse: f64::NAN,
            coverage_90: 0.9,
        }),
        verdict: Verdict {
            level: Level::Good,
            sentence: "believe the predictions: the chains agree".to_owned(),
            checks: Vec::new(),
        },
        ..Summary::default()
    }
}

fn effects() -> InputEffects {
    let rise = |value| Rise {
        value,
        standard_error: 0.25,
    };
    let importance = |name: &str, value| ColumnImportance {
        column: name.to_owned(),
        nll: rise(value),
        rmse: Some(rise(value / 2.0)),
        accuracy: None,
    };
    let dependence = |name: &str, levels: Option<Vec<String>>| Dependence {
        column: name.to_owned(),
        output: "y".to_owned(),
        levels,
        places: vec![0.0, 1.0],
        mean: vec![2.0, 3.0],
        quantiles: vec![[0.0, 1.0, 3.0, 4.0]; 2],
        training_values: vec![-3.0, 0.5],
    };
    InputEffects {
        columns: 2,
        draws: 60,
        test_rows: 40,
        are_watched: false,
        shifts: 4,
        train_rows: 30,
        importance: vec![
            importance("<b>age</b>", 1.5),
            importance("$colour$", -0.125),
        ],
        dependence: vec![
            dependence("<b>age</b>", None),
            dependence("$colour$", Some(["red", "blue"].map(str::to_owned).into())),
        ],
    }
}

fn run(path: &Path, summary: Summary) -> RunPage {
    RunPage {
        is_in_memory: false,
        folder: path.to_path_buf(),
        nature: Nature::Chains,
        summary,
        data: "40 training rows".to_owned(),
        notes: Vec::new(),
        configuration: "[model]\nnetwork = \"fcn:16\"\n[data]\nsource = \"friedman\"\n".to_owned(),
        outputs: vec!["y".to_owned()],
        predictions: Ok(Predictions::Regression {
            rows: 3,
            mean: vec![0.0, 2.0, 1.0],
            lower: vec![-1.0, 1.0, 0.0],
            upper: vec![1.0, 3.0, 2.0],
            truth: vec![0.5, 9.0, 1.0],
        }),
        pit: vec![PitHistogram {
            output: "y".to_owned(),
            rows: 40,
            counts: vec![8.0, 8.0, 20.0, 2.0, 2.0],
            band: [2.0, 17.0],
        }],
        effects: Some(Ok(effects())),
        images: Err("the inputs are no images".to_owned()),
        others: Vec::new(),
        left_out: Err("there are no log-likelihoods".to_owned()),
        training_targets: vec![0.0; 40],
    }
}

/// Balanced, loads nothing, and every chart has its parts.
fn check(html: &str) {
    for forbidden in ["http:", "https:", "<script", "@import", "url(//", "src=\"/"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("an unclosed tag");
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if ["meta", "link", "img", "br"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
    for chart in html.split("<figure class=\"chart\"").skip(1) {
        let chart = chart.split("</figure>").next().unwrap();
        for part in ["<h3>", "<figcaption>", "<svg", "<details>", "<table>"] {
            assert!(chart.contains(part), "{part} in {chart}");
        }
        assert!(!chart.contains("<figcaption></figcaption>"));
    }
}

fn noise(chain: u64, draw: u64) -> f64 {
    // equidistributed, and no two chains alike
    ((draw * 617 + chain * 271) as f64 * 0.618_033_988_75).fract()
}

#[test]
fn a_healthy_run_has_every_part() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 60, noise);
    let html = page(&[run(&path, summary(2, 60))]).unwrap();
    check(&html);
    for text in [
        "2 chains of hmc-infinite in marginal coordinates sampled the posterior of the network fcn:16",
        "Believe the predictions: the chains agree.",
        "Trace of the log-density",
        "Ranks of the log-density",
        "Autocorrelation of the first principal component",
        "Effective draws as the run grew",
        "Step size during warm-up",
        "y: predicted against observed",
        "66.7 ± 27.2 % of these intervals hold what was observed",
        "y: calibration",
        "here 1 bar is outside",
        "Which columns matter",
        "-0.1250 ± 0.2500",
        "y by &lt;b&gt;age&lt;/b&gt;",
        "Mean prediction for 30 training rows",
        "60 draws, evenly chosen",
        "negative log-likelihood</td><td>1.2500",
        "network = &quot;fcn:16&quot;",
        "61 s",
    ] {
        let text = text.replace("61 s", "1 min 1 s");
        assert!(html.contains(&text), "{text}");
    }
    // the same again, byte for byte
    assert_eq!(html, page(&[run(&path, summary(2, 60))]).unwrap());
}

#[test]
fn what_a_run_lacks_is_said() {
    let place = tempfile::tempdir().unwrap();
    for (name, chains, draws, text) in [
        ("empty", 2, 0, "there are no draws yet"),
        ("one", 1, 1, "they compare chains, and there is one"),
        ("few", 2, 5, "5 draws a chain are too few"),
    ] {
        let path = place.path().join(name);
        folder(&path, chains as u64, draws, noise);
        let html = page(&[run(&path, summary(chains, draws))]).unwrap();
        check(&html);
        assert!(html.contains(text), "{name}");
    }
    for value in [f64::NAN, f64::INFINITY, 0.0] {
        let path = place.path().join(format!("of-{value}"));
        folder(&path, 2, 30, |_, _| value);
        let mut run = run(&path, summary(2, 30));
        run.summary.rhat_max = f64::NAN;
        run.summary.acceptance_rate = f64::NAN;
        run.summary.metrics = None;
        run.predictions = Err("there are no draws yet".to_owned());
        let html = page(&[run]).unwrap();
        check(&html);
        assert!(html.contains("Principal components</strong>: left out"));
    }
}

#[test]
fn a_table_without_test_rows_or_positions_says_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 30, noise);
    let mut run = run(&path, summary(2, 30));
    run.pit.clear();
    run.effects = Some(Ok(InputEffects {
        importance: Vec::new(),
        ..effects()
    }));
    let html = page(std::slice::from_ref(&run)).unwrap();
    check(&html);
    assert!(
        html.contains("Which columns matter</strong>: left out, because it needs at least ten")
    );
    assert!(html.contains("The calibration histogram</strong>: left out"));
    run.effects = Some(Err("none of the kept positions".to_owned()));
    let html = page(std::slice::from_ref(&run)).unwrap();
    check(&html);
    assert!(html.contains("none of the kept positions") && html.contains("sample --keep N"));
    assert!(!html.contains("y by "));
    // of images there is nothing to say
    run.effects = None;
    assert!(!page(&[run]).unwrap().contains("What the inputs do"));
}

/// Charts side by side fill the page, and what is drawn wide is drawn for narrow pages as well.
#[test]
fn charts_share_the_width_of_the_page() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 30, noise);
    let html = page(&[run(&path, summary(2, 30))]).unwrap();
    let charts: Vec<&str> = html.split("<figure class=\"chart\"").skip(1).collect();
    for chart in &charts {
        let (row, chart) = chart.split_once('>').unwrap();
        let chart = chart.split("</figure>").next().unwrap();
        let drawings: Vec<&str> = chart.split("viewBox=\"0 0 ").skip(1).collect();
        let widths = drawings.iter().map(|one| one.split(' ').next().unwrap());
        let widths: Vec<&str> = widths.collect();
        let expected: &[&str] = match row {
            " data-row=\"1\"" => &["1200", "400"],
            " data-row=\"2\"" => &["600", "400"],
            " data-row=\"3\"" => &["400"],
            other => panic!("{other}"),
        };
        assert_eq!(widths, expected);
    }
    assert!(charts.len() > 8);
}

#[test]
fn methods_without_chains_say_so() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 30, noise);
    for (nature, text) in [
        (Nature::Draws, "are no chain&#39;s"),
        (Nature::ClosedForm, "is a closed form and draws nothing"),
    ] {
        let mut run = run(&path, summary(2, 30));
        run.summary.rhat_max = f64::NAN;
        run.nature = nature;
        let html = page(&[run]).unwrap();
        check(&html);
        assert!(html.replace('\'', "&#39;").contains(text), "{text}");
        assert!(!html.contains("Trace of"));
        assert!(!html.contains("of the longest chain"));
    }
}

/// Particles of annealing have no order: nothing is said of transitions from one to the next.
#[test]
fn particles_are_no_chain() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 30, noise);
    let mut run = run(&path, summary(2, 30));
    run.summary.method = "smc".to_owned();
    let html = page(&[run]).unwrap();
    check(&html);
    for text in [
        "2 replicates of smc in marginal coordinates",
        "30 particles each, 2 transitions at each temperature",
        "the draws of smc are no chain",
    ] {
        assert!(html.contains(text), "{text}");
    }
    for text in ["of warm-up", "Trace of", "Autocorrelation of"] {
        assert!(!html.contains(text), "{text}");
    }
}

/// What the page says of draws, intervals and places is what they are.
#[test]
fn numbers_are_said_with_their_conditions() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 60, noise);
    let of = |change: &dyn Fn(&mut RunPage)| {
        let mut run = run(&path, summary(2, 60));
        change(&mut run);
        let html = page(&[run]).unwrap();
        check(&html);
        html
    };
    let plain = of(&|_| ());
    assert!(plain.contains("wall-clock time, of the longest chain"));
    assert!(plain.contains("observed; about 90 % should") && !plain.contains("of each chain ("));
    let few = of(&|run| run.summary.metrics_draws = 5);
    assert!(few.contains("by 5 of the 60 draws of each chain (--keep-predictions)"));
    let counts = of(&|run| run.summary.likelihood = "poisson".to_owned());
    assert!(counts.contains("observed; at least 90 % should"));
    // chains have the numbers that the program gave them
    assert!(plain.contains("chain 0") && !plain.contains("chain 2"));
    let merged = of(&|run| run.summary.chain_numbers = vec![2, 5]);
    assert!(
        merged.contains("chain 2") && merged.contains("chain 5") && !merged.contains("chain 0")
    );
    let starts = of(&|run| run.nature = Nature::Draws);
    assert!(starts.contains("60 draws each from 2 starts"));
    // a folder that goes with the page is not named
    let folder = path.display().to_string();
    assert!(plain.contains(&folder));
    assert!(!of(&|run| run.is_in_memory = true).contains(&folder));
}

#[test]
fn classes_have_reliability_confusion_and_images() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    folder(&path, 2, 30, noise);
    let mut run = run(&path, summary(2, 30));
    run.summary.metrics = None;
    run.outputs = vec!["<b>cat</b>".to_owned(), "$dog$ & \"co\"".to_owned()];
    run.predictions = Ok(Predictions::Classification {
        probabilities: vec![0.9, 0.1, 0.5, 0.5],
        labels: vec![0, 1],
    });
    run.images = Ok(Images {
        height: 2,
        width: 2,
        channels: 1,
        values: InputValues::Bytes(vec![0; 8]),
    });
    run.others = vec![Others {
        name: "<i>turned</i>".to_owned(),
        confidences: vec![0.5, 0.6, 1.0],
    }];
    let html = page(std::slice::from_ref(&run)).unwrap();
    check(&html);
    for text in [
        "Reliability",
        "Confusion",
        "data:image/png;base64,",
        "test row 1: $dog$ &amp; &quot;co&quot;",
        "&lt;i&gt;turned&lt;/i&gt;",
        "Confidence of the test rows and of other inputs",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("<b>") && !html.contains("<i>"));
    // where others are predicted otherwise than the test rows, that is said
    let otherwise = "other inputs in closed form, as `predict` does";
    assert!(!html.contains(otherwise));
    let closed = Metrics::Regression {
        nll: 1.0,
        rmse: 1.0,
        coverage_90: 0.9,
    };
    run.summary.minibatch = Some(MinibatchSummary {
        metrics_in_closed_form: Some(closed),
        ..MinibatchSummary::default()
    });
    assert!(
        page(std::slice::from_ref(&run))
            .unwrap()
            .contains(otherwise)
    );
    run.summary.minibatch = None;
    run.images = Err("the data cannot be read any more: gone".to_owned());
    run.effects = None;
    let html = page(std::slice::from_ref(&run)).unwrap();
    assert!(html.contains("left out, because the data cannot be read any more: gone."));
    // of a table nobody misses them
    run.effects = Some(Ok(effects()));
    assert!(!page(&[run]).unwrap().contains("uncertain test images"));
}

#[test]
fn several_runs_are_compared_first() {
    let place = tempfile::tempdir().unwrap();
    // of one name, which the folders around them tell apart
    let paths = ["one", "two"].map(|name| place.path().join(name).join("run"));
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        folder(path, 2, 30, noise);
    }
    let bad = Summary {
        divergences: 70,
        method: "pcn".to_owned(),
        warnings: vec!["the chains do not agree yet".to_owned()],
        verdict: Verdict {
            level: Level::Bad,
            sentence: "do not believe the predictions yet".to_owned(),
            checks: vec![Check {
                name: "predictions".to_owned(),
                value: "R-hat 2".to_owned(),
                meaning: "the chains disagree".to_owned(),
                advice: String::new(),
                level: Level::Bad,
            }],
        },
        ..summary(2, 30)
    };
    let runs = [run(&paths[0], summary(2, 30)), run(&paths[1], bad)];
    let html = page(&runs).unwrap();
    check(&html);
    let table = html.find("class=\"comparison\"").unwrap();
    assert!(table < html.find("Do not believe the predictions yet.").unwrap());
    assert!(html.contains(">one/run</a>") && html.contains(">two/run</a>"));
    assert!(html.contains("href=\"#run-1\"") && html.contains("id=\"run-1\""));
    // of charts that are alike no clipping path is another's
    let mut names: Vec<&str> = html.split(" id=\"").skip(1).collect();
    names
        .iter_mut()
        .for_each(|name| *name = name.split('"').next().unwrap());
    names.retain(|name| name.starts_with("run-"));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_folder_without_draws_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let error = page(&[run(place.path(), summary(2, 30))]).unwrap_err();
    assert!(error.to_string().contains("draws.zarr"), "{error}");
}
