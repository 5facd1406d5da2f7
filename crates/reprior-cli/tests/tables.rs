//! Tables as people have them, from file to predictions: what is made of them, recorded, said, and applied to new rows.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Place, table};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

const QUICK: &str = "--network fcn:4 --warmup 4 --draws 6 --chains 2";

/// A table with everything that tables have: numbers with holes, text, yes and no, dates, an identifier, a target with holes.
fn messy(rows: usize) -> String {
    let mut text = "id,length,colour,is_new,day,y\n".to_owned();
    for row in 0..rows {
        let t = row as f64;
        let length = match row % 7 {
            3 => "NA".to_owned(),
            _ => format!("{:.3}", (0.7 * t).sin()),
        };
        let colour = ["red", "green", "blue"][row % 3];
        let is_new = ["yes", "no"][row % 2];
        let target = match row % 11 {
            5 => String::new(),
            _ => format!("{:.3}", (0.7 * t).sin() + (row % 3) as f64),
        };
        let day = row % 28 + 1;
        text += &format!(
            "item-{row},{length},{colour},{is_new},2024-0{}-{day:02},{target}\n",
            row % 9 + 1
        );
    }
    text
}

fn description(place: &Place, run: &str) -> Value {
    serde_json::from_str(&place.read(&format!("{run}/data.json"))).unwrap()
}

/// A straight line with noise of another root mean square, for `plan`: what it says of the prior of σ.
#[test]
fn the_prior_of_a_noisy_tables_noise_is_about_its_noise() {
    let place = Place::new();
    let line = |noise: f64| {
        let rows = (0..200_u32).map(|row| {
            let x = f64::from(row) / 200.0 - 0.5;
            // what looks like noise: the fractional parts of multiples of an irrational number
            let own = (f64::from(row) * 0.618_033_988_75).fract() - 0.5;
            // an input that does not matter, too
            let other = (f64::from(row) * 0.414_213_562_37).fract();
            let y = x + noise * own;
            format!("{x:.6},{other:.6},{y:.6}\n")
        });
        "x,other,y\n".to_owned() + &rows.collect::<String>()
    };
    let sample = |noise: f64, flags: &str| {
        place.write("line.csv", line(noise));
        let run = format!(
            "sample --data line.csv {flags} --network fcn:8,8 --warmup 2 --draws 2 --chains 1 --out run --overwrite"
        );
        let said = place.succeed(&run).stderr;
        let config = place.read("run/config.toml");
        let value = config
            .lines()
            .find_map(|line| line.strip_prefix("noise-median = "));
        (value.unwrap().parse::<f64>().unwrap(), said)
    };
    let (median, said) = sample(0.01, "");
    assert_eq!(median, 0.3);
    assert!(!said.contains("--noise-median"), "{said}");
    // signal and noise of one size: σ is 1/√2 of the targets' spread
    let (median, said) = sample(1.0, "");
    assert!((median - 0.707).abs() < 0.1, "{median}");
    assert!(said.contains("--noise-median 0."), "{said}");
    let (median, _) = sample(1.0, "--noise learn");
    assert!(median > 0.6, "{median}");
    let (median, said) = sample(1.0, "--noise-median 0.2");
    assert_eq!(median, 0.2);
    assert!(!said.contains("--noise-median"), "{said}");
}

/// Noise that is larger where an input is, and the same everywhere.
#[test]
fn the_likelihood_is_heteroscedastic_where_noise_is_found_to_depend_on_inputs() {
    let place = Place::new();
    let table = |varies: f64, digits: usize| {
        let rows = (0..240_u32).map(|row| {
            let part = |step: f64| (f64::from(row) * step).fract();
            let (x, other) = (part(0.414_213_562_37), part(0.732_050_807_57));
            // nearly normal
            let own = part(0.618_033_988_75) + part(0.236_067_977_5) + part(0.645_751_311_1) - 1.5;
            let y = 3.0 * x + own * (1.0 - varies + 2.0 * varies * other);
            format!("{x:.6},{other:.6},{y:.digits$}\n")
        });
        "x,other,y\n".to_owned() + &rows.collect::<String>()
    };
    let chosen = |varies: f64, digits: usize, flags: &str| {
        place.write("table.csv", table(varies, digits));
        let run = format!(
            "sample --data table.csv --target y {flags} --network fcn:8,8 --warmup 2 --draws 2 --chains 1 --out run --overwrite"
        );
        let said = place.succeed(&run).stderr;
        let config = place.read("run/config.toml");
        let line = |key: &str| {
            let line = config.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap().trim_matches('"').to_owned()
        };
        ([line("likelihood = "), line("coordinates = ")], said)
    };
    let by_row = ["student-t-heteroscedastic", "repriorised"];
    let one = ["gaussian", "marginal"];
    let (settings, said) = chosen(0.9, 6, "");
    assert_eq!(settings, by_row, "{said}");
    assert!(
        said.contains("the noise of 192 rows depends on the inputs, p = "),
        "{said}"
    );
    let (settings, said) = chosen(0.0, 6, "");
    assert_eq!(settings, one);
    assert!(!said.contains("--likelihood"), "{said}");
    // what is asked for is not changed, and of few values nothing is asked
    assert_eq!(chosen(0.9, 6, "--coordinates marginal").0, one);
    assert_eq!(chosen(0.9, 6, "--noise 0.2").0, one);
    assert_eq!(chosen(0.9, 0, "").0, one);
}

#[test]
fn a_messy_table_is_sampled_and_predicted_from() {
    let place = Place::new();
    place.write("messy.csv", messy(60));
    let run = place.succeed(&format!("sample --data messy.csv {QUICK} --out run"));
    for note in [
        "5 of 60 rows have no value of the target `y`",
        "`colour` (3)",
        "dates became days",
        "`id` (text with a value of its own",
        "missing cells are filled with the median",
    ] {
        assert!(run.stderr.contains(note), "{note}: {run:?}");
    }
    let description = description(&place, "run");
    let columns = description["encoding"]["columns"].as_array().unwrap();
    let becomes = |column: usize| columns[column]["becomes"].as_str().unwrap();
    assert_eq!(
        (0..5).map(becomes).collect::<Vec<_>>(),
        ["left-out", "number", "levels", "boolean", "date"]
    );
    assert!(
        columns[1]["fill"].is_number() && columns[1]["has_indicator"] == true,
        "{columns:?}"
    );
    assert_eq!(description["input_ranges"].as_array().unwrap().len(), 9);
    let config = place.read("run/config.toml");
    assert!(
        config.contains("shuffle = 0") && config.contains("missing = \"median\""),
        "{config}"
    );
    let summary = place.succeed("summary run").stdout;
    assert!(
        summary.contains("4 columns as 9 inputs") && summary.contains("`colour` (3)"),
        "{summary}"
    );
    // columns in another order, without those that the run does not need
    place.write("new.csv", "day,is_new,colour,length\n2024-03-01,no,red,0.5\n2024-03-01,no,pink,\n2024-03-01,yes,blue,1000\n");
    let predicted = place.succeed("predict run --data new.csv");
    assert_eq!(predicted.table().1.len(), 3);
    for note in [
        "`length`: 1 missing cell(s)",
        "`colour`: 1 row(s) have a level",
        "`pink`",
        "1 of 3 rows are far outside",
        "(most often of `length`)",
    ] {
        assert!(predicted.stderr.contains(note), "{note}: {predicted:?}");
    }
    place.write("lacking.csv", "day,is_new,length\n2024-03-01,no,0.5\n");
    place
        .run("predict run --data lacking.csv")
        .assert_error(2, &["lacking.csv", "lacks the input columns `colour`"]);
    // the same table goes on as it was
    place.succeed("sample --config run/config.toml --draws 8 --out again");
    assert_eq!(
        description_of_rows(&place, "again"),
        description_of_rows(&place, "run")
    );
}

fn description_of_rows(place: &Place, run: &str) -> Value {
    description(place, run)["fingerprint"].clone()
}

#[test]
fn rows_are_shuffled_unless_the_first_ones_are_asked_for() {
    let place = Place::new();
    place.write("t.csv", table(40));
    let sample = |flags: &str, out: &str| {
        let run = place.succeed(&format!(
            "sample --data t.csv --target y {QUICK} {flags} --out {out}"
        ));
        let config = place.read(&format!("{out}/config.toml"));
        (run, config, description_of_rows(&place, out))
    };
    let (run, config, by_default) = sample("", "default");
    assert!(
        config.contains("shuffle = 0") && !run.stderr.contains("unshuffled"),
        "{config}"
    );
    assert_eq!(sample("--shuffle 0", "zero").2, by_default);
    assert_ne!(sample("--seed 3", "seed").2, by_default);
    let (_, config, in_order) = sample("--no-shuffle", "order");
    assert!(config.contains("no-shuffle = true"), "{config}");
    assert_ne!(in_order, by_default);
    let (run, config, first) = sample("--train 32", "first");
    assert!(
        config.contains("no-shuffle = true") && run.stderr.contains("--shuffle SEED"),
        "{run:?}"
    );
    assert_eq!(first, in_order);
    assert_eq!(sample("--train 32 --shuffle 0", "chosen").2, by_default);
    place
        .run("sample --data t.csv --shuffle 1 --no-shuffle --out no")
        .assert_error(2, &["--shuffle", "--no-shuffle"]);
    // what flags say replaces what a file says
    place.succeed("sample --config default/config.toml --no-shuffle --out file");
    assert_eq!(description_of_rows(&place, "file"), in_order);
}

#[test]
fn runs_that_took_numbers_only_are_read_as_before() {
    let place = Place::new();
    place.write("t.csv", table(40));
    place.succeed(&format!(
        "sample --data t.csv --target y --train 30 {QUICK} --out run"
    ));
    let (_, rows) = place.succeed("predict run --data t.csv").table();
    // as earlier versions wrote them
    let mut old = description(&place, "run");
    for key in ["encoding", "input_ranges", "notes"] {
        old.as_object_mut().unwrap().remove(key).unwrap();
    }
    place.write("run/data.json", old.to_string());
    let config = place.read("run/config.toml");
    let config: Vec<&str> = config
        .lines()
        .filter(|line| !line.starts_with("no-shuffle") && !line.starts_with("missing"))
        .collect();
    place.write("run/config.toml", config.join("\n"));
    assert_eq!(place.succeed("predict run --data t.csv").table().1, rows);
    place.write("hole.csv", "a,b,c,z\n1,,2,3\n");
    place
        .run("predict run --data hole.csv")
        .assert_error(2, &["line 2, column `b`", "empty"]);
    place.succeed("resume run");
}

#[test]
fn standard_input_and_compressed_tables() {
    let place = Place::new();
    let text = table(40).replace(',', "\t");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    place.write("t.tsv.gz", &packed);
    place.write("cut.csv.gz", &packed[..packed.len() / 2]);
    place
        .run("sample --data cut.csv.gz")
        .assert_error(2, &["cut.csv.gz", "truncated"]);
    place.succeed(&format!("sample --data t.tsv.gz --target y {QUICK}"));
    assert!(place.path("runs/t/data.json").exists());
    let piped = |arguments: &str| {
        let mut command = place.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    piped(&format!("sample --data - --target y {QUICK}"));
    assert_eq!(place.read("runs/stdin/stdin.csv"), text);
    let rows = |run: &str| description_of_rows(&place, run);
    assert_eq!(rows("runs/stdin"), rows("runs/t"));
    // the run needs standard input no more
    let (_, predicted) = place.succeed("predict runs/stdin --data t.tsv.gz").table();
    assert_eq!(predicted.len(), 40);
    let again = piped("predict runs/stdin --data -");
    assert_eq!(again.lines().count(), 41);
    place.succeed("resume runs/stdin");
    // the only copy of the table is not removed with the run
    place
        .run(&format!(
            "sample --data runs/stdin/stdin.csv --target y {QUICK} --overwrite"
        ))
        .assert_error(2, &["runs/stdin/stdin.csv", "choose another --out"]);
    assert_eq!(place.read("runs/stdin/stdin.csv"), text);
    place
        .run("sample --data - --out none")
        .assert_error(2, &["`stdin`", "no header"]);
}

#[test]
fn wrong_requests_name_flag_column_and_way_out() {
    let place = Place::new();
    place.write("t.csv", messy(30));
    for (flags, parts) in [
        (
            "--ignore Colour",
            &["no column `Colour` (is `colour` meant?)"][..],
        ),
        (
            "--ignore id,lenght",
            &["no column `lenght` (is `length` meant?)"],
        ),
        ("--target Y", &["is `y` meant?"]),
        ("--ignore y --target y", &["`y` is both", "--ignore"]),
        (
            "--missing median2",
            &["median2", "median, mean, drop, error"],
        ),
        (
            "--missing error",
            &["line 5, column `length`", "`NA` is a missing value"],
        ),
        ("--categorical shape", &["no column `shape`"]),
    ] {
        place
            .run(&format!("sample --data t.csv {flags} --out run"))
            .assert_error(2, parts);
    }
    for flags in ["--missing drop", "--ignore a", "--categorical a"] {
        place
            .run(&format!("sample --data friedman {flags} --out run"))
            .assert_error(2, &[".csv", "leave"]);
    }
    assert!(!place.path("run").exists());
    let dropped = place.succeed(&format!(
        "sample --data t.csv --missing drop --ignore id --ignore day {QUICK} --out run"
    ));
    assert!(dropped.stderr.contains("(--missing drop)"), "{dropped:?}");
}

#[test]
fn what_looks_wrong_is_noted() {
    let place = Place::new();
    let mut text = "a,kind,label\n".to_owned();
    for row in 0..40 {
        let a = if row == 7 {
            "1e300".to_owned()
        } else {
            (row / 2).to_string()
        };
        text += &format!(
            "{a},{},{}\n",
            if row == 39 {
                "eel"
            } else if row % 4 < 3 {
                "cat"
            } else {
                "dog"
            },
            row % 3
        );
    }
    place.write("t.csv", text);
    let notes = |flags: &str| place.succeed(&format!("plan --data t.csv {flags}")).stdout;
    let numbers = notes("--ignore kind --target label");
    for part in [
        "input `a` has 1 value(s)",
        "1e300",
        "target `label` has 3 values",
        "--task classification",
    ] {
        assert!(numbers.contains(part), "{part}: {numbers}");
    }
    let classes = notes("--ignore label --target kind --no-shuffle --likelihood categorical");
    for part in [
        "no training row has the class `eel`",
        "training rows have the same inputs",
    ] {
        assert!(classes.contains(part), "{part}: {classes}");
    }
    // as the note says
    let asked = notes("--ignore kind --target label --task classification");
    assert!(!asked.contains("has 3 values"), "{asked}");
}

#[test]
fn a_target_of_zeros_and_ones_is_two_classes_unless_something_says_otherwise() {
    let place = Place::new();
    let mut text = "a,sold\n".to_owned();
    for row in 0..60 {
        text += &format!("{},{}\n", row * 7 % 31, u8::from(row % 3 == 0));
    }
    place.write("t.csv", &text);
    let quick = format!("sample --data t.csv --target sold {QUICK} --out run --overwrite");
    let run = place.succeed(&quick);
    assert!(
        run.stderr
            .contains("0 or 1, which are taken for two classes")
            || run
                .stdout
                .contains("0 or 1, which are taken for two classes"),
        "{run:?}"
    );
    assert_eq!(place.summary("run")["likelihood"], "bernoulli");
    let config = place.read("run/config.toml");
    assert!(config.contains("task = \"classification\""), "{config}");
    let (header, rows) = place.succeed("predict run --data t.csv").table();
    assert!(header.iter().any(|name| name.contains('1')), "{header:?}");
    assert_eq!(rows.len(), 60);
    place.succeed("sample --config run/config.toml --out again");
    assert_eq!(place.read("again/config.toml"), config);
    place.succeed(&format!("{quick} --likelihood bernoulli"));
    assert_eq!(place.summary("run")["likelihood"], "bernoulli");
    for flags in ["--task regression", "--likelihood gaussian", "--noise 0.3"] {
        place.succeed(&format!("{quick} {flags}"));
        assert_eq!(place.summary("run")["likelihood"], "gaussian", "{flags}");
        assert!(
            place.summary("run")["metrics"]["rmse"].is_number(),
            "{flags}"
        );
    }
}

#[test]
fn several_targets_have_metrics_of_their_own() {
    let place = Place::new();
    place.write("t.csv", table(60));
    place.succeed(&format!(
        "sample --data t.csv --target y,z {QUICK} --keep 6 --out both"
    ));
    let summary = place.summary("both");
    let targets = summary["metrics_by_target"].as_array().unwrap();
    assert_eq!(
        (&targets[0]["target"], &targets[1]["target"]),
        (&"y".into(), &"z".into())
    );
    let squares = |of: &Value| of["rmse"].as_f64().unwrap().powi(2);
    let pooled = squares(&summary["metrics"]);
    assert!(
        (squares(&targets[0]) + squares(&targets[1]) - pooled).abs() < 1e-9 * pooled,
        "{summary}"
    );
    for target in targets {
        assert!(
            target["nll"].is_number()
                && (0.0..=1.0).contains(&target["coverage_90"].as_f64().unwrap())
        );
    }
    for command in ["summary both", "summary both --verbose"] {
        let text = place.succeed(command).stdout;
        assert!(
            text.contains("each target by itself") && text.contains("coverage of 90 %"),
            "{text}"
        );
    }
    let predicted = place.succeed("predict both --data t.csv");
    assert!(
        predicted
            .stderr
            .lines()
            .any(|line| line.trim_start().starts_with("z ")),
        "{predicted:?}"
    );
    place.succeed("report both");
    assert!(place.read("both/report.html").contains("coverage of 90 %"));
    place.succeed(&format!("sample --data t.csv --target y {QUICK} --out one"));
    assert!(place.summary("one").get("metrics_by_target").is_none());
}

/// Metres may be nanometres: a target in a unit that makes its numbers small has the same predictions, in that unit.
#[test]
fn small_numbers_have_predictions_in_their_unit() {
    let place = Place::new();
    let of_scale = |scale: f64| {
        let mut text = "a,y\n".to_owned();
        for row in 0..40 {
            let a = 0.1 * f64::from(row) - 2.0;
            let noise = 0.2 * (7.3 * f64::from(row)).sin();
            text += &format!("{a},{:e}\n", scale * ((2.0 * a).sin() + noise));
        }
        text
    };
    let (mut measured, mut predicted) = (Vec::new(), Vec::new());
    for (run, scale) in [("usual", 1.0), ("small", 1e-9)] {
        place.write(&format!("{run}.csv"), of_scale(scale));
        place.succeed(&format!(
            "sample --data {run}.csv --target y --network fcn:4 --method nngp --out {run}"
        ));
        let metrics = &place.summary(run)["metrics"];
        let number = |name: &str| metrics[name].as_f64().unwrap();
        measured.push([number("nll") - scale.ln(), number("rmse") / scale]);
        for flag in ["", "--no-noise"] {
            let found = place.succeed(&format!("predict {run} --data {run}.csv {flag}"));
            let (_, rows) = found.table();
            let numbers = rows
                .iter()
                .flatten()
                .map(|x| x.parse::<f64>().unwrap() / scale);
            predicted.extend(numbers);
        }
    }
    let (usual, small) = predicted.split_at(predicted.len() / 2);
    let near = |x: f64, y: f64| (x - y).abs() < 1e-6 * (1e-2 + y.abs());
    assert!(
        usual.iter().zip(small).all(|(&x, &y)| near(y, x)),
        "{usual:?} {small:?}"
    );
    let [usual, small] = [measured[0], measured[1]];
    assert!(
        (0..2).all(|i| near(small[i], usual[i])),
        "{usual:?} {small:?}"
    );
}

#[test]
fn targets_too_small_to_be_computed_with_are_refused() {
    let place = Place::new();
    place.write(
        "tiny.csv",
        "a,y\n1,2e-120\n2,-3e-120\n3,1e-121\n4,0\n5,1e-120\n",
    );
    place
        .run("sample --data tiny.csv --target y --out run")
        .assert_error(2, &["`y`", "tiny.csv", "3e-120", "smaller unit"]);
}
