//! Runs from end to end: what `sample`, `summary` and `predict` print and write.

use crate::common::{Place, SMALL, assert_same, table};
use serde_json::Value;

/// The number at a path of keys.
fn number(json: &Value, path: &str) -> f64 {
    let value = path.split('.').fold(json, |json, key| &json[key]);
    value
        .as_f64()
        .unwrap_or_else(|| panic!("`{path}` is {value}"))
}

/// Checks that the summary has every number that is promised, `metrics` among them.
fn assert_summary(json: &Value, metrics: &[&str]) {
    let plain = [
        "chains",
        "draws",
        "steps_per_second",
        "seconds",
        "acceptance_rate",
        "rhat_max",
    ];
    plain
        .iter()
        .for_each(|key| assert!(number(json, key) > 0.0, "{key}: {json}"));
    for group in ["prediction", "weights"] {
        for key in ["mean", "min", "max", "per_step", "per_second"] {
            assert!(
                number(json, &format!("ess.{group}.{key}")) > 0.0,
                "{key}: {json}"
            );
        }
    }
    for key in metrics {
        assert!(
            number(json, &format!("metrics.{key}")).is_finite(),
            "{key}: {json}"
        );
    }
    assert!(
        json["method"].is_string() && json["coordinates"].is_string(),
        "{json}"
    );
}

fn column(rows: &[Vec<String>], at: usize) -> Vec<f64> {
    rows.iter().map(|row| row[at].parse().unwrap()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn regression() {
    let place = Place::new();
    let run = place.succeed(
        &format!("sample {SMALL} --noise 0.1 --draws 60 --keep 60 --out run").replacen(
            "--draws 30 ",
            "",
            1,
        ),
    );
    for part in [
        "rmse",
        "negative log-likelihood",
        "R-hat of predictions, maximum",
        "effective draws of predictions, minimum",
        "Verdict: ",
        "Run folder: run",
    ] {
        assert!(run.stdout.contains(part), "`{part}`: {run:?}");
    }
    // a newcomer's numbers: rows of a name and a number
    let rows = run.stdout.lines().filter(|line| line.starts_with("  "));
    assert!(rows.count() <= 6, "{run:?}");
    let verbose = place.succeed("summary run --verbose").stdout;
    for part in ["acceptance rate", "per gradient", "of tails", "Verdict: "] {
        assert!(verbose.contains(part), "`{part}`: {verbose}");
    }
    let summary = place.summary("run");
    assert_summary(&summary, &["nll", "rmse"]);
    assert_eq!(
        summary,
        serde_json::from_str::<Value>(&place.read("run/summary.json")).unwrap()
    );
    assert_eq!(
        (&summary["status"], &summary["draws"]),
        (&"complete".into(), &60.into())
    );
    assert_eq!(
        (&summary["method"], &summary["coordinates"]),
        (&"hmc-infinite".into(), &"marginal".into())
    );
    // 2 chains of 20 transitions of warm-up and 60 draws, two transitions each
    assert_eq!(number(&summary, "steps"), 280.0);
    let per_step = number(&summary, "ess.prediction.mean") / 240.0;
    assert!((number(&summary, "ess.prediction.per_step") - per_step).abs() < 1e-12);

    // the built-in's 1500 records, of which the first 60 were the run's own
    let predicted = place.succeed("predict run --data friedman");
    let (header, rows) = predicted.table();
    assert_eq!(header, ["mean", "sd", "q05", "q50", "q95"]);
    assert!(predicted.stderr.contains("rmse"), "{predicted:?}");
    // Friedman's function has mean 14.4 and standard deviation 4.9, the noise 1
    let means = column(&rows, 0);
    assert!((mean(&means) - 14.4).abs() < 2.0, "{}", mean(&means));
    for row in &rows {
        let [sd, low, middle, high] = [1, 2, 3, 4].map(|at| row[at].parse::<f64>().unwrap());
        assert!(sd > 0.0 && low < middle && middle < high, "{row:?}");
    }
    let (_, bare) = place
        .succeed("predict run --data friedman --no-noise")
        .table();
    assert_eq!(means, column(&bare, 0));
    let noisy = column(&rows, 1).into_iter().zip(column(&bare, 1));
    let differences: Vec<f64> = noisy
        .map(|(with, without)| with * with - without * without)
        .collect();
    // 0.1 standard deviations of 40 targets
    assert!(
        differences.iter().all(|d| (0.35..0.7).contains(&d.sqrt())),
        "{differences:?}"
    );
    let file = place.succeed("predict run --data friedman --out predictions.csv");
    assert_eq!(
        (file.stdout.as_str(), place.read("predictions.csv")),
        ("", predicted.stdout)
    );
}

#[test]
fn tables_with_one_and_several_targets() {
    let place = Place::new();
    place.write("table.csv", table(60));
    let flags =
        "--data table.csv --train 40 --network fcn:16 --warmup 20 --draws 40 --keep 40 --chains 2";
    place.succeed(&format!("sample {flags} --target y,z --out both"));
    assert_summary(&place.summary("both"), &["nll", "rmse"]);
    let lines: Vec<Vec<String>> = table(60)
        .lines()
        .map(|l| l.split(',').map(str::to_owned).collect())
        .collect();
    // columns in another order, one that the run does not know, no targets
    let mut text = "extra,c,a,b\n".to_owned();
    for line in &lines[41..] {
        text += &format!("junk,{},{},{}\n", line[2], line[0], line[1]);
    }
    place.write("new.csv", text);
    let (header, rows) = place.succeed("predict both --data new.csv").table();
    let names = ["mean", "sd", "q05", "q50", "q95"];
    let expected: Vec<String> = ["y", "z"]
        .iter()
        .flat_map(|y| names.map(|name| format!("{name}_{y}")))
        .collect();
    assert_eq!((header, rows.len()), (expected, 20));
    let (_, same) = place.succeed("predict both --data table.csv").table();
    assert_eq!(rows, same[40..], "the order of columns matters");
    for (at, target) in [(0, 3), (5, 4)] {
        let truth: Vec<f64> = lines[41..]
            .iter()
            .map(|line| line[target].parse().unwrap())
            .collect();
        let error: Vec<f64> = column(&rows, at)
            .iter()
            .zip(&truth)
            .map(|(a, b)| (a - b).powi(2))
            .collect();
        let spread: Vec<f64> = truth.iter().map(|y| (y - mean(&truth)).powi(2)).collect();
        assert!(
            mean(&error) < 0.5 * mean(&spread),
            "{target}: {} of {}",
            mean(&error),
            mean(&spread)
        );
    }
    // every draw is kept, so that the metrics of the test rows are those of the summary
    place.write(
        "test.csv",
        format!(
            "a,b,c,y,z\n{}\n",
            table(60).lines().skip(41).collect::<Vec<_>>().join("\n")
        ),
    );
    place.succeed(&format!("sample {flags} --target y --out one"));
    let predicted = place.succeed("predict one --data test.csv");
    assert_eq!(predicted.table().0, names);
    let truth = lines[41..]
        .iter()
        .map(|line| line[3].parse::<f64>().unwrap());
    let squares: Vec<f64> = column(&predicted.table().1, 0)
        .iter()
        .zip(truth)
        .map(|(a, b)| (a - b).powi(2))
        .collect();
    let (rmse, recorded) = (
        mean(&squares).sqrt(),
        number(&place.summary("one"), "metrics.rmse"),
    );
    assert!(
        (rmse / recorded - 1.0).abs() < 0.15,
        "predicted again {rmse}, recorded {recorded}"
    );
    // without --target the last column is one, and the others are inputs
    place.succeed(&format!("sample {flags} --out last"));
    assert!(place.read("last/config.toml").contains("target = [\"z\"]"));
}

#[test]
fn classification() {
    let place = Place::new();
    let flags =
        "--data two-moons --train 60 --test 40 --network fcn:32 --warmup 20 --draws 40 --chains 2";
    let run = place.succeed(&format!("sample {flags} --out run"));
    assert!(
        run.stdout.contains("accuracy") && run.stdout.contains("mean confidence"),
        "{run:?}"
    );
    let verbose = place.succeed("summary run --verbose").stdout;
    assert!(verbose.contains("Brier"), "{verbose}");
    let summary = place.summary("run");
    assert_summary(
        &summary,
        &["nll", "accuracy", "brier", "ece", "mce", "confidence"],
    );
    assert!(number(&summary, "metrics.accuracy") > 0.8, "{summary}");
    let predicted = place.succeed("predict run --data two-moons");
    assert!(predicted.stderr.contains("accuracy"), "{predicted:?}");
    let (header, rows) = predicted.table();
    assert_eq!(header.len(), 5);
    assert!(
        header[0].starts_with("p_") && header[1].starts_with("p_"),
        "{header:?}"
    );
    assert_eq!(header[2..], ["label", "confidence", "entropy"]);
    for row in &rows {
        let [p, q, confidence, entropy] = [0, 1, 3, 4].map(|at| row[at].parse::<f64>().unwrap());
        assert!(
            (p + q - 1.0).abs() < 1e-9 && confidence == p.max(q),
            "{row:?}"
        );
        assert!(
            (0.0..=std::f64::consts::LN_2 + 1e-12).contains(&entropy),
            "{row:?}"
        );
        assert_eq!(row[2], header[usize::from(q > p)]["p_".len()..], "{row:?}");
    }
    // text targets are classes, in a table whose targets predict does not need
    place.write(
        "text.csv",
        "a,kind\n1,cat\n2,cat\n3,cat\n-1,dog\n-2,dog\n-3,dog\n",
    );
    place.succeed("sample --data text.csv --train 6 --network fcn:8 --warmup 10 --draws 10 --chains 1 --out text");
    place.write("new.csv", "a\n2.5\n-2.5\n");
    let (header, rows) = place.succeed("predict text --data new.csv").table();
    assert_eq!(header, ["p_cat", "p_dog", "label", "confidence", "entropy"]);
    assert_eq!((rows[0][2].as_str(), rows[1][2].as_str()), ("cat", "dog"));
}

#[test]
fn every_method_in_all_coordinates_and_precisions() {
    let place = Place::new();
    let flags = "--data friedman --train 30 --test 5 --network fcn:8 --warmup 60 --draws 8 --thin 4 --chains 2 --projections 5";
    let methods = [
        "hmc-infinite",
        "hmc",
        "nuts",
        "langevin",
        "mala",
        "pcnl",
        "pcn",
        "elliptical",
        "rwm",
    ];
    for method in methods {
        let mut running = Vec::new();
        for coordinates in ["marginal", "repriorised", "standard"] {
            for precision in ["f32", "f64"] {
                let run = format!("{method}-{coordinates}-{precision}");
                let choice = format!(
                    "--method {method} --coordinates {coordinates} --precision {precision}"
                );
                running.push((
                    coordinates,
                    place.start(&format!("sample {flags} {choice} --json --out {run}")),
                ));
            }
        }
        for (coordinates, run) in running {
            let run = run.wait();
            assert_eq!(run.code, Some(0), "{run:?}");
            let summary = run.json();
            assert_eq!(
                (&summary["method"], &summary["coordinates"]),
                (&method.into(), &coordinates.into())
            );
            assert_eq!(number(&summary, "steps"), 2.0 * (60.0 + 32.0));
            assert_summary(&summary, &["nll", "rmse"]);
        }
    }
}

#[test]
fn what_a_method_can_be_told_is_written_out_and_left_behind_with_it() {
    let place = Place::new();
    let flags = "--data friedman --train 30 --test 5 --network fcn:8 --draws 8 --chains 2";
    let config = |run: &str| place.read(&format!("{run}/config.toml"));
    let has = |run: &str, lines: &[&str]| {
        for line in lines {
            let found = config(run).lines().any(|found| found == *line);
            assert!(found, "{line}: {}", config(run));
        }
    };
    let choice = "--method langevin --damping 0.2 --no-metropolis --step-size 0.05 --warmup 20";
    place.succeed(&format!("sample {flags} {choice} --out free"));
    has(
        "free",
        &["damping = 0.2", "metropolis = false", "arrival = 10"],
    );
    place.succeed(&format!(
        "sample {flags} --method hmc --trajectory 0.5 --warmup 100 --out short"
    ));
    has("short", &["trajectory = 0.5", "arrival = 30"]);
    // another method takes the file's data and network, not the other's steps
    place.succeed("sample --config free/config.toml --method pcn --arrival 4 --out other");
    has("other", &["arrival = 4", "method = \"pcn\""]);
    assert!(!config("other").contains("damping") && !config("other").contains("step-size"));
    let gradients = |run: &str| number(&place.summary(run), "n_gradients");
    assert!(gradients("other") > 0.0);
    place.succeed(&format!(
        "sample {flags} --method pcn --warmup 20 --arrival 0 --out none"
    ));
    assert_eq!(gradients("none"), 0.0);
}

#[test]
fn shapes_of_networks_and_data() {
    let place = Place::new();
    let flags = "--data friedman --train 30 --warmup 10 --draws 10 --chains 2 --out";
    place.succeed(&format!("sample {flags} linear --test 10 --network linear"));
    let (_, rows) = place.succeed("predict linear --data friedman").table();
    assert!((mean(&column(&rows, 0)) - 14.4).abs() < 3.0);
    assert!(number(&place.summary("linear"), "metrics.rmse") < 5.0);
    place.succeed(&format!("sample {flags} deep --test 10 --network fcn:8,6,4 --weight-variance 2,1.5,1 --keep-weights 3"));
    assert_eq!(place.summary("deep")["draws"], 10);
    place.succeed(&format!("sample {flags} untested --test 0 --network fcn:8"));
    let summary = place.summary("untested");
    assert_eq!(
        (&summary["metrics"], &summary["ess"]["prediction"]),
        (&Value::Null, &Value::Null)
    );
    assert!(number(&summary, "ess.weights.mean") > 0.0);
    assert!(
        !place
            .succeed("predict untested --data friedman")
            .stdout
            .is_empty()
    );
    // one draw, one chain: little can be said of it, and that is said
    let one =
        "--data friedman --train 30 --test 10 --network fcn:8 --warmup 0 --draws 1 --chains 1";
    let run = place.succeed(&format!("sample {one} --out one"));
    assert!(run.stdout.contains("too few draws to tell"), "{run:?}");
}

#[test]
fn images() {
    let place = Place::new();
    let flags =
        "--data strokes --train 60 --test 20 --network fcn:16 --warmup 10 --draws 10 --chains 2";
    // fewer training rows than pixels: the inputs are reduced
    place.succeed(&format!("sample {flags} --shuffle 1 --out run"));
    assert_summary(&place.summary("run"), &["nll", "accuracy", "brier"]);
    let (header, _) = place.succeed("predict run --data strokes").table();
    assert_eq!(header.len(), 13);
    let plan = place
        .succeed("plan --data strokes --train 60 --network fcn:16 --json")
        .json();
    for key in [
        "memory_bytes",
        "disk_bytes",
        "parameters",
        "dimension",
        "operations_per_gradient",
    ] {
        assert!(number(&plan, key) > 0.0, "{plan}");
    }
}

#[test]
fn networks_by_name_and_to_composition() {
    let place = Place::new();
    let flags = "--data strokes --train 30 --test 10 --warmup 6 --draws 6 --chains 2";
    let example = include_str!("../../../examples/network.toml");
    place.write("network.toml", example);
    place.succeed(&format!(
        "sample {flags} --out own --network network.toml --keep-weights 2"
    ));
    let run = place.run(&format!(
        "sample {flags} --network network.toml --weight-variance 1 --out no"
    ));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("have a `scale` each"), "{run:?}");
    let run = place.run(&format!(
        "sample {flags} --network network.toml --activation relu --out no"
    ));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.stderr
            .contains("--activation would change nothing: layers of a file say their own"),
        "{run:?}"
    );
    // the run has the description in its own settings
    place.write("network.toml", "");
    assert_eq!(place.summary("own")["draws"], 6);
    assert!(
        !place
            .succeed("predict own --data strokes")
            .stdout
            .is_empty()
    );
    place.succeed("sample --config own/config.toml --out again");
    let draws = |run| place.tree(&format!("{run}/draws.zarr"));
    assert_same(&draws("own"), &draws("again"));
    let draws = draws("own");
    for name in ["0.weight", "2.1.0.bias", "4.weight"] {
        let name = format!("weights/{name}/zarr.json");
        assert!(draws.keys().any(|path| path.ends_with(&name)), "{name}");
    }
    place.succeed(&format!(
        "sample {flags} --out resnet --network resnet:8,width=2 --likelihood categorical --method elliptical"
    ));
    let config = place.read("resnet/config.toml");
    assert!(
        config.contains(r#"network = "resnet:8,width=2,scaling=progressive-one""#),
        "{config}"
    );
    place.succeed("bench --data strokes --train 30 --network resnet:8,width=2 --seconds 0.01");
    for (network, reason) in [
        ("network.toml", "not understood"),
        ("nowhere.toml", "cannot be read"),
        ("resnet:9,width=2", "6·blocks + 2"),
        ("cnn", "use auto, fcn:"),
        ("lenet --weight-variance 1,2", "one --weight-variance"),
        (
            "resnet-small --bias-variance 1",
            "--bias-variance would change nothing: resnet-small has its own",
        ),
        (
            "lenet --activation relu",
            "--activation would change nothing: lenet has its own",
        ),
        ("lenet --input-reduction on", "--input-reduction"),
    ] {
        let run = place.run(&format!("sample {flags} --network {network} --out no"));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
    }
}

#[test]
fn closed_forms_of_infinitely_wide_networks() {
    let place = Place::new();
    let flags = "--data friedman --train 80 --test 40 --network fcn:32,32";
    for method in ["nngp", "ntk"] {
        let run = format!("sample {flags} --method {method} --noise auto --out {method}");
        let run = place.succeed(&run);
        assert!(
            run.stderr.contains("chosen by the marginal likelihood"),
            "{run:?}"
        );
        let summary = place.summary(method);
        assert!(number(&summary, "log_marginal_likelihood").is_finite());
        assert!(number(&summary, "metrics.rmse") < 3.0, "{summary}");
        let coverage = number(&summary, "metrics.coverage_90");
        assert!((0.7..=1.0).contains(&coverage), "{summary}");
        let (header, rows) = place
            .succeed(&format!("predict {method} --data friedman"))
            .table();
        assert_eq!(header[0], "mean");
        assert!(column(&rows, 1).iter().all(|sd| *sd > 0.0));
    }
    // chosen scales are written out as numbers, and do better by their own measure
    let scaled =
        format!("sample {flags} --method nngp --noise auto --scales evidence --out scaled");
    place.succeed(&scaled);
    let evidence = |run| number(&place.summary(run), "log_marginal_likelihood");
    assert!(evidence("scaled") > evidence("nngp"));
    let config = place.read("scaled/config.toml");
    assert!(
        !config.contains("auto = true") && !config.contains("noise = \"auto\""),
        "{config}"
    );
    place.succeed("sample --config scaled/config.toml --out again");
    assert_same(
        &place.tree("scaled/draws.zarr"),
        &place.tree("again/draws.zarr"),
    );
    // a finite network takes the same advice
    place.succeed(&format!(
        "sample {flags} --noise auto --scales evidence --warmup 10 --draws 10 --chains 2 --out finite"
    ));
    // ... so do chains that learn the noise, which begin at modes of their own
    place.succeed(&format!(
        "sample {flags} --noise learn --scales evidence --start mode --warmup 10 --draws 10 --chains 2 --out start"
    ));
    let config = std::fs::read_to_string(place.path("start/config.toml")).unwrap();
    assert!(config.contains("start = \"mode\""), "{config}");
    assert!(config.contains("input-scales"), "{config}");
    place.succeed("plan --data friedman --method ntk");
    for (wrong, reason) in [
        (
            "--method nngp --draws 5",
            "--draws belongs to methods with chains",
        ),
        ("--method nngp --noise learn", "needs a known noise"),
        (
            "--method ntk --likelihood student-t",
            "gaussian likelihood only",
        ),
        ("--noise auto --likelihood student-t", "gaussian likelihood"),
    ] {
        let run = place.run(&format!("sample {flags} {wrong} --out no"));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
    }
    let maxima = "sample --data strokes --train 20 --network lenet --method nngp --out no";
    let run = place.run(maxima);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.stderr.contains("use an average pool") && !place.path("no").exists(),
        "{run:?}"
    );
}

/// Whatever the network is called and the data are: the process with the scales and the noise that were found is as likely as was said.
#[test]
fn scales_by_evidence_are_those_of_the_run() {
    let place = Place::new();
    let dense = |units: usize| {
        format!(
            "[[layers]]\ntype = \"dense\"\nunits = {units}\nscale = {{ weight = 1.2, bias = 0.3 }}\n[[layers]]\ntype = \"activation\"\nfunction = \"tanh\"\n"
        )
    };
    place.write("one.toml", dense(16));
    place.write("two.toml", dense(16) + &dense(8));
    place.write(
        "flat.toml",
        "[[layers]]\ntype = \"flatten\"\n".to_owned() + &dense(16),
    );
    let table = "--data friedman --train 60 --test 20";
    let images = "--data strokes --train 30 --test 10 --likelihood gaussian";
    for (data, network) in [
        (table, "fcn:16,8"),
        (table, "linear"),
        (table, "one.toml"),
        (table, "two.toml"),
        (images, "fcn:16,8"),
        (images, "linear"),
        (images, "flat.toml"),
    ] {
        let own = format!("sample {data} --network {network} --scales evidence --overwrite");
        let as_likely_as_said = |flags: &str, out: &str| {
            let run = place.succeed(&format!("{flags} --out {out}"));
            let said = run.stderr.split(" rows (").nth(1).unwrap();
            let said: f64 = said.split(" nats").next().unwrap().parse().unwrap();
            let found = number(&place.summary(out), "log_marginal_likelihood");
            assert!((found - said).abs() < 0.06, "{flags}: {found} {said}");
            found
        };
        let found = as_likely_as_said(&format!("{own} --method nngp --noise auto"), "wide");
        // so are the noise, and other scales, that are looked for from there on
        for flags in ["--noise auto", "--noise auto --scales evidence"] {
            let own = format!("sample --config wide/config.toml {flags} --overwrite");
            as_likely_as_said(&own, "again");
        }
        // what was written out is read back, and finite networks have it too
        place.succeed("sample --config wide/config.toml --out again --overwrite");
        let again = number(&place.summary("again"), "log_marginal_likelihood");
        assert_eq!(found, again, "{own}");
        place.succeed(&format!(
            "{own} --warmup 10 --draws 10 --chains 2 --out finite"
        ));
        assert_eq!(place.summary("finite")["status"], "complete", "{own}");
    }
}

#[test]
fn the_same_bytes_on_any_number_of_threads_and_from_the_written_configuration() {
    let place = Place::new();
    let flags = SMALL.replace("--chains 2", "--chains 3");
    let runs = [1, 2, 3].map(|threads| {
        place.start(&format!(
            "sample {flags} --threads {threads} --out t{threads}"
        ))
    });
    runs.into_iter()
        .for_each(|run| assert_eq!(run.wait().code, Some(0)));
    place.succeed("sample --config t1/config.toml --seed 0 --out again");
    let other = place.start("sample --config t1/config.toml --seed 1 --out other");
    let first = place.tree("t1/draws.zarr");
    for run in ["t2", "t3", "again"] {
        assert_same(&first, &place.tree(&format!("{run}/draws.zarr")));
        assert_eq!(
            place.read("t1/config.toml"),
            place.read(&format!("{run}/config.toml"))
        );
        assert_eq!(
            place.read("t1/data.json"),
            place.read(&format!("{run}/data.json"))
        );
    }
    assert_eq!(other.wait().code, Some(0));
    assert!(
        place.tree("other/draws.zarr") != first,
        "the seed changes nothing"
    );
}

#[test]
fn bench_accounts_for_a_step() {
    let place = Place::new();
    for (flags, names) in [
        (
            "--network fcn:20,10 --coordinates marginal",
            &[
                "first layer",
                "layers above",
                "kernel matrix",
                "factorisation (f64)",
            ][..],
        ),
        (
            "--network fcn:20 --coordinates standard --precision f64",
            &["first layer"],
        ),
        (
            "--network linear --coordinates repriorised",
            &["kernel matrix"],
        ),
    ] {
        let flags = format!("bench --data friedman --train 40 --test 5 --seconds 0.001 {flags}");
        let text = place.succeed(&flags).stdout;
        assert!(text.contains("a step of pcn"), "{text}");
        let json = place.succeed(&format!("{flags} --json")).stdout;
        let document: Value = serde_json::from_str(&json).unwrap();
        let parts = document["parts"].as_array().unwrap();
        for name in names.iter().chain(&["normal numbers"]) {
            let part = parts.iter().find(|part| part["name"] == *name);
            let part = part.unwrap_or_else(|| panic!("{name}: {json}"));
            assert!(part["seconds"].as_f64().unwrap() > 0.0);
        }
        for name in [
            "peak",
            "peak_double",
            "seconds_per_step",
            "seconds_per_gradient",
        ] {
            assert!(document[name].as_f64().unwrap() > 0.0, "{name}");
        }
    }
    let refused = place.run("bench --data friedman --network fcn:4 --seconds 0");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--seconds"), "{refused:?}");
}

/// The same inputs are told from themselves by nothing; wrong requests are refused.
#[test]
fn detection_compares_with_the_test_rows() {
    let place = Place::new();
    let flags = "--data strokes --network fcn:32 --likelihood categorical --method map --epochs 20";
    place.succeed(&format!("sample {flags} --test 400 --out run"));
    let auroc = |score: &str| -> f64 {
        let run = place.succeed(&format!(
            "predict run --data strokes --detect {score} --out predicted.csv"
        ));
        let found = run.stderr.split("AUROC ").nth(1).unwrap();
        found.split(',').next().unwrap().parse().unwrap()
    };
    for score in ["max-probability", "entropy", "variance"] {
        // the run's test rows are among the thousand
        let found = auroc(score);
        assert!((found - 0.5).abs() < 0.1, "{score}: {found}");
    }
    for (flags, parts) in [
        ("--detect vague", ["vague", "max-probability"]),
        ("--detect", ["--detect", "value"]),
    ] {
        let run = place.run(&format!("predict run --data strokes {flags}"));
        run.assert_error(2, &parts);
    }
    place.succeed(&format!("sample {SMALL} --out table"));
    let run = place.run("predict table --data friedman --detect entropy");
    run.assert_error(2, &["--detect", "classes"]);
}

/// Half of the pairs try an exchange at a transition: after one there is no rate of the others.
#[test]
fn no_barrier_is_told_before_every_pair_has_tried() {
    let place = Place::new();
    let sample = "sample --data friedman --train 30 --test 5 --network fcn:4 --noise 0.3 --replicas 4 --warmup 20 --thin 1 --chains 1 --quiet";
    for (draws, is_told) in [(1, false), (4, true)] {
        place.succeed(&format!("{sample} --draws {draws} --out run-{draws}"));
        let summary = place.summary(&format!("run-{draws}"));
        assert_eq!(summary["exchanges"].is_object(), is_told, "{summary}");
    }
}
