//! `reprior report`: pages of tiny runs of every kind of method, and what it refuses.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Place, SMALL};

const STROKES: &str =
    "--data strokes --train 40 --test 30 --likelihood categorical --network fcn:8";

/// A page that is whole, loads nothing, and whose charts have a guide and their numbers.
fn page(place: &Place, name: &str) -> String {
    let html = place.read(name);
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>"));
    assert!(html.contains("charset=\"utf-8\"") && html.contains("name=\"viewport\""));
    for forbidden in [
        "http:", "https:", "<script", "@import", "url(\"", "url('", "src=\"/",
    ] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    for attribute in [" src=\"", " href=\""] {
        for address in html.split(attribute).skip(1) {
            assert!(
                address.starts_with("data:") || address.starts_with('#'),
                "{attribute}"
            );
        }
    }
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let name = tag.split([' ', '\n']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if tag.starts_with('!') || tag.ends_with('/') => {}
            None if ["meta", "link", "img"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
    for chart in html.split("<figure class=\"chart\"").skip(1) {
        let chart = chart.split("</figure>").next().unwrap();
        for part in ["<figcaption>", "<svg", "<tbody><tr>"] {
            assert!(chart.contains(part), "{part} in {chart}");
        }
        assert!(!chart.contains("no data"), "{chart}");
    }
    html
}

fn has(html: &str, texts: &[&str]) {
    for text in texts {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn a_regression_by_chains() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --noise learn --out run"));
    let finished = place.succeed("report run");
    assert!(
        finished.stdout.contains("Report: run/report.html"),
        "{finished:?}"
    );
    let html = page(&place, "run/report.html");
    has(
        &html,
        &[
            "2 chains of hmc-infinite in marginal coordinates",
            "Can it be believed?",
            "y: predicted against observed",
            "Trace of the log-density",
            "Trace of the learned noise",
            "Ranks of the first principal component",
            "Draws in the plane of the first two principal components",
            "Autocorrelation of the log-density",
            "Step size during warm-up",
            "network = &quot;fcn:16&quot;",
            "the run was written by reprior",
        ],
    );
    // numbers are those of `summary`
    let summary = place.summary("run");
    let rmse = summary["metrics"]["rmse"].as_f64().unwrap();
    has(&html, &[&format!("rmse</td><td>{rmse:.4}")]);
    for warning in summary["warnings"].as_array().unwrap() {
        let text = warning.as_str().unwrap();
        has(&html, &[&text[1..]]);
    }
    // again, and elsewhere: the same bytes
    place.succeed("report run --out other.html");
    assert!(place.read("other.html") == html, "not the same bytes");
    // no temporary files are left
    assert!(
        !place
            .tree("run")
            .keys()
            .any(|name| name.to_string_lossy().contains("tmp"))
    );
}

/// Runs of which one has the log-likelihoods of fewer rows are compared over these, and what is of other rows is left out.
#[test]
fn runs_are_compared_over_the_rows_that_all_have() {
    let place = Place::new();
    for (rows, name) in [(30, "all"), (20, "few")] {
        place.succeed(&format!(
            "sample {SMALL} --keep-log-likelihood {rows} --quiet --out {name}"
        ));
    }
    place.succeed("report all few --out both.html");
    let html = page(&place, "both.html");
    has(&html, &["over the same 20 training rows"]);
    let table = html
        .split("Leave-one-out cross-validation</h3>")
        .nth(1)
        .unwrap();
    let table = table.split("</table>").next().unwrap();
    let row = |name: &str| {
        let mut rows = table.split("<tr>");
        rows.find(|row| row.contains(&format!("<td>{name}</td>")))
            .unwrap()
    };
    assert_eq!(row("all").matches("<td>-</td>").count(), 2, "{table}");
    assert!(!row("few").contains("<td>-</td>"), "{table}");
}

/// Of a table in which one column is everything, one is noise and one is text that shifts the target.
#[test]
fn the_inputs_of_a_table() {
    let place = Place::new();
    let mut table = "size,noise,colour,price\n".to_owned();
    for row in 0..120_u32 {
        let size = f64::from(row * 37 % 120) / 30.0;
        let noise = f64::from(row * 53 % 120) / 30.0;
        let (colour, more) = [("red", 0.0), ("blue", 1.5)][row as usize * 7 % 11 % 2];
        let price = 3.0 * size + more + 0.1 * f64::from(row * 29 % 7);
        table += &format!("{size},{noise},{colour},{price}\n");
    }
    place.write("houses.csv", table.as_bytes());
    place.succeed(
        "sample --data houses.csv --train 80 --test 40 --network fcn:8 --noise 0.1 --chains 2 --warmup 60 --draws 40 --out run",
    );
    let finished = place.succeed("report run --json");
    let found = finished.json();
    let inputs = &found["runs"][0]["inputs"];
    let names: Vec<&str> = inputs["importance"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["column"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["size", "colour", "noise"], "{inputs}");
    let rise =
        |column: usize, what: &str| inputs["importance"][column]["nll"][what].as_f64().unwrap();
    // what matters is beyond its error, and what does not is not
    for column in [0, 1] {
        assert!(
            rise(column, "value") > 4.0 * rise(column, "standard_error"),
            "{inputs}"
        );
    }
    assert!(rise(2, "value") < 0.05 * rise(1, "value"), "{inputs}");
    // the price rises by 3 with the size, and blue costs 1.5 more
    let of = |column: &str| {
        let mut all = inputs["dependence"].as_array().unwrap().iter();
        all.find(|own| own["column"] == column).unwrap()
    };
    let last_minus_first = |own: &serde_json::Value, key: &str| {
        let all = own[key].as_array().unwrap();
        all[all.len() - 1].as_f64().unwrap() - all[0].as_f64().unwrap()
    };
    let size = of("size");
    let slope = last_minus_first(size, "mean") / last_minus_first(size, "places");
    assert!((2.7..3.3).contains(&slope), "{slope}");
    let colour = of("colour");
    let sign = if colour["levels"][0] == "red" {
        1.0
    } else {
        -1.0
    };
    let shift = sign * last_minus_first(colour, "mean");
    assert!((1.0..2.0).contains(&shift), "{shift}");
    assert_eq!(found["runs"][0]["pit"][0]["rows"], 40);
    let html = page(&place, "run/report.html");
    has(
        &html,
        &[
            "Which columns matter",
            "price by size",
            "price by colour",
            "price: calibration",
        ],
    );
    // without the data the rest of the page is there
    std::fs::remove_file(place.path("houses.csv")).unwrap();
    place.succeed("report run");
    let html = page(&place, "run/report.html");
    has(
        &html,
        &[
            "price: predicted against observed",
            "how predictions depend on them</strong>: left out",
        ],
    );
}

#[test]
fn classes_of_images_by_chains_and_other_inputs() {
    let place = Place::new();
    place.succeed(&format!(
        "sample {STROKES} --warmup 15 --draws 25 --chains 2 --out run"
    ));
    place.succeed("predict run --data strokes --rotate 90 --out turned.csv");
    place.succeed("report run --ood turned.csv");
    let html = page(&place, "run/report.html");
    has(
        &html,
        &[
            "repriorised coordinates",
            "Reliability",
            "Confusion",
            "data:image/png;base64,",
            "Confidence of the test rows and of other inputs",
            ">turned</text>",
        ],
    );
}

#[test]
fn minibatch_methods_and_laplace() {
    let place = Place::new();
    let strokes = |rest: &str| format!("sample {STROKES} --activation relu {rest}");
    place.succeed(&strokes(
        "--method sgld --epochs 30 --batch 10 --validation 10 --draws 30 --chains 2 --out sgld",
    ));
    place.succeed(&strokes("--method map --epochs 5 --batch 10 --out map"));
    place.succeed(&strokes(
        "--method laplace --epochs 5 --batch 10 --out laplace",
    ));
    place.succeed(
        "sample --data friedman --train 30 --test 10 --network fcn:8 --method nngp --out nngp",
    );
    for run in ["sgld", "map", "laplace", "nngp"] {
        place.succeed(&format!("report {run}"));
    }
    has(
        &page(&place, "sgld/report.html"),
        &[
            "minibatches of 10 rows, 30 epochs",
            "Trace of the loss of minibatches",
            "Negative log-likelihood by epoch",
            ">validation</text>",
            "bias that is proportional to the step size",
        ],
    );
    has(
        &page(&place, "map/report.html"),
        &[
            "Map is no sampler",
            "There are no chains",
            "Negative log-likelihood by epoch",
        ],
    );
    has(
        &page(&place, "laplace/report.html"),
        &[
            "Laplace approximated the posterior",
            "in closed form",
            "Reliability",
        ],
    );
    has(
        &page(&place, "nngp/report.html"),
        &[
            "log marginal likelihood",
            "is a closed form and draws nothing",
            "y: predicted against observed",
        ],
    );
    place.succeed("report sgld map laplace nngp --out all.html");
    let html = page(&place, "all.html");
    has(
        &html,
        &[
            "4 runs",
            "class=\"comparison\"",
            "href=\"#run-3\"",
            "id=\"run-3\"",
        ],
    );
}

#[test]
fn little_to_show() {
    let place = Place::new();
    // one draw of one chain; no test rows
    let tiny = "sample --data friedman --train 20 --test 0 --network fcn:4 --warmup 0 --draws 1 --chains 1 --out one";
    place.succeed(tiny);
    place.succeed("report one");
    has(
        &page(&place, "one/report.html"),
        &[
            "too few draws",
            "no rows test them",
            "they compare chains, and there is one",
        ],
    );
    // stopped before its first draw: what a kill in the warm-up leaves
    place.succeed(&format!("sample {SMALL} --out run"));
    let config = place.read("run/config.toml");
    place.write("never/config.toml", config);
    let finished = place.run("report never");
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.contains("reprior resume never"),
        "{finished:?}"
    );
}

#[test]
fn a_run_that_goes_on_and_is_killed() {
    let place = Place::new();
    let running = place.start(
        "sample --data friedman --train 40 --test 20 --network fcn:16 --chains 2 --warmup 20 --draws 1000000 --out run \
         --checkpoint-seconds 0.2",
    );
    let start = Instant::now();
    let is_shown = |place: &Place| {
        let finished = place.run("report run");
        assert!(matches!(finished.code, Some(0 | 2)), "{finished:?}");
        finished.code == Some(0)
            && page(place, "run/report.html").contains("of 1000000 a chain</strong>")
            && page(place, "run/report.html").contains("Trace of the log-density")
    };
    while !is_shown(&place) {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no draws to show: {:?}",
            place.run("summary run")
        );
        sleep(Duration::from_millis(100));
    }
    running.signal("-KILL");
    running.wait();
    place.succeed("report run");
    let html = page(&place, "run/report.html");
    has(
        &html,
        &[
            "the run was stopped or is still going",
            "1000000 draws each",
        ],
    );
}

#[test]
fn images_that_are_gone_are_said_to_be() {
    let place = Place::new();
    // a folder of tiny images in IDX
    let idx = |dimensions: &[u32], bytes: Vec<u8>| {
        let mut file = vec![0, 0, 8, dimensions.len() as u8];
        file.extend(dimensions.iter().flat_map(|size| size.to_be_bytes()));
        file.extend(bytes);
        file
    };
    for (name, rows) in [("train", 12_u32), ("t10k", 6)] {
        let pixels = (0..rows * 16).map(|at| (at * 37 % 251) as u8).collect();
        let labels = (0..rows).map(|row| (row % 2) as u8).collect();
        let images = format!("data/{name}-images-idx3-ubyte");
        place.write(&images, idx(&[rows, 4, 4], pixels));
        place.write(
            &format!("data/{name}-labels-idx1-ubyte"),
            idx(&[rows], labels),
        );
    }
    place.succeed("sample --data data --network fcn:4 --warmup 5 --draws 10 --chains 2 --out run");
    place.succeed("report run");
    has(
        &page(&place, "run/report.html"),
        &["data:image/png;base64,"],
    );
    std::fs::remove_dir_all(place.path("data")).unwrap();
    place.succeed("report run");
    let html = page(&place, "run/report.html");
    has(
        &html,
        &["images</strong>: left out, because the data cannot be read any more"],
    );
}

#[test]
fn wrong_requests_are_refused_and_say_the_way_out() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --out run"));
    place.write("no-confidence.csv", "mean,sd\n1,2\n");
    place.write("text.csv", "confidence\nhigh\n");
    place.succeed(&format!(
        "sample {STROKES} --warmup 5 --draws 5 --chains 2 --out classes"
    ));
    for (arguments, text) in [
        ("report nowhere", "is not a run folder"),
        ("report run run", "--out FILE"),
        ("report run --ood no-confidence.csv", "predicts no classes"),
        (
            "report classes --ood no-confidence.csv",
            "no column `confidence`",
        ),
        ("report classes --ood text.csv", "`high` is no probability"),
        ("report classes --ood missing.csv", "cannot be read"),
        (
            "report classes run --ood text.csv --out a.html",
            "give one run",
        ),
        ("report", "required"),
    ] {
        let finished = place.run(arguments);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(text), "{finished:?}");
    }
    assert!(!place.path("run/report.html").exists());
    // a place that cannot be written is a failure of the work
    let finished = place.run("report run --out run/config.toml/report.html");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    // damaged draws
    std::fs::remove_dir_all(place.path("run/draws.zarr/posterior")).unwrap();
    let finished = place.run("report run");
    assert!(matches!(finished.code, Some(1 | 2)), "{finished:?}");
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
}
