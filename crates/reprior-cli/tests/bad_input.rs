//! Wrong requests: exit code 2, one line that names the thing and the way out, nothing on stdout, nothing written.

use std::io::Write;

use crate::common::{Place, SMALL, table};
use flate2::{Compression, write::GzEncoder};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Runs `sample` with these arguments, which must be refused, and leave the folder as it was.
fn refused(place: &Place, arguments: &str, parts: &[&str]) {
    let before = place.tree("");
    let out = if arguments.contains("--out") {
        ""
    } else {
        "--out run"
    };
    place
        .run(&format!("sample {arguments} {out}"))
        .assert_error(2, parts);
    assert!(place.tree("") == before, "`{arguments}` wrote something");
}

#[test]
fn flags_out_of_range() {
    let place = Place::new();
    let methods =
        "hmc-infinite, hmc, nuts, pcn, pcnl, mala, langevin, elliptical, rwm, mams, mclmc";
    let cases: &[(&str, &[&str])] = &[
        ("--chains 0", &["chains", "0", "at least 1"]),
        ("--draws 0", &["draws", "at least 1"]),
        ("--thin 0", &["thin", "at least 1"]),
        ("--threads 0", &["--threads", "at least 1"]),
        ("--chains -1", &["--chains", "-1"]),
        ("--draws many", &["--draws", "many"]),
        ("--warmup 18446744073709551615", &["warm-up"]),
        ("--draws 18446744073709551615", &["more"]),
        ("--method pcn --step-size 0", &["step size 0", "(0, 1]"]),
        (
            "--method pcn --step-size 1.01",
            &["step size 1.01", "(0, 1]"],
        ),
        (
            "--method pcn --step-size -0.1",
            &["step size -0.1", "(0, 1]"],
        ),
        ("--method pcn --step-size nan", &["step size NaN", "(0, 1]"]),
        ("--step-size 1.6", &["step size 1.6", "(0, π/2]"]),
        (
            "--method elliptical --step-size 0.1",
            &["elliptical", "leave it out"],
        ),
        (
            "--method langevin --step-size 2",
            &["step size 2", "langevin", "1.9"],
        ),
        (
            "--method langevin --damping 0",
            &["damping 0", "langevin", "(0, 1]"],
        ),
        ("--damping 1.5", &["damping 1.5", "hmc-infinite", "(0, 1]"]),
        (
            "--method pcn --damping 0.5",
            &["damping 0.5", "pcn", "leave it out"],
        ),
        (
            "--method hmc --trajectory -1",
            &["trajectory -1", "hmc", "between 0.01 and 10"],
        ),
        (
            "--method mala --trajectory 1",
            &["trajectory 1", "mala", "leave it out"],
        ),
        (
            "--method mala --max-steps 10",
            &["max steps 10", "mala", "leave it out"],
        ),
        ("--max-steps 0", &["max steps 0", "between 1 and 10000"]),
        (
            "--trajectory 0.2 --step-size 0.3",
            &["step size 0.3", "longer than the trajectory"],
        ),
        (
            "--method mclmc --target-acceptance 0.5",
            &["target acceptance 0.5", "mclmc", "energy variance"],
        ),
        (
            "--energy-variance 1e-3",
            &["energy variance 0.001", "hmc-infinite", "leave it out"],
        ),
        (
            "--method mclmc --energy-variance 2",
            &["energy variance 2", "mclmc", "between 1e-12 and 1"],
        ),
        ("--method smc --warmup 10", &["--warmup", "smc"]),
        ("--method smc --minutes 1", &["--minutes", "smc", "--draws"]),
        ("--method smc --start mode", &["--start mode", "smc"]),
        ("--method smc --replicas 2", &["--replicas", "smc"]),
        (
            "--method mclmc --replicas 2",
            &["replicas", "exact", "`mclmc`"],
        ),
        ("--replicas 1001", &["1001 replicas", "up to 1000"]),
        ("--replicas 2 --arrival 5", &["--arrival 5", "--replicas"]),
        ("--method sgld --replicas 2", &["--replicas"]),
        ("--method smc --draws 1", &["1 particles", "at least 2"]),
        (
            "--method pcnl --no-metropolis",
            &["pcnl", "Metropolis", "only langevin"],
        ),
        (
            "--method pcn --warmup 20 --arrival 20",
            &["--arrival 20", "20 transitions", "--warmup"],
        ),
        ("--method pcn --arrival -1", &["--arrival", "-1"]),
        ("--start map", &["map", "prior", "mode"]),
        ("--method sgld --start mode", &["--start"]),
        (
            "--target-acceptance 1",
            &["target acceptance 1", "between 0 and 1"],
        ),
        ("--noise 0", &["noise is 0", "positive"]),
        ("--noise -0.1", &["noise is -0.1", "positive"]),
        ("--noise nan", &["noise is NaN", "positive"]),
        ("--noise inf", &["noise is inf", "finite"]),
        ("--keep 0", &["--keep", "at least 1"]),
        ("--checkpoint-seconds -1", &["--checkpoint-seconds", "-1"]),
        (
            "--checkpoint-seconds nan",
            &["--checkpoint-seconds", "positive"],
        ),
        ("--weight-variance -1", &["variance is -1", "positive"]),
        ("--weight-variance 0", &["variance is 0", "positive"]),
        ("--bias-variance -0.5", &["variance is -0.5", "zero or"]),
        ("--readout-weight-variance -2", &["variance is -2"]),
        ("--readout-bias-variance nan", &["variance is NaN"]),
        (
            "--weight-variance 1,2,3",
            &["3 values of --weight-variance", "one per layer"],
        ),
        (
            "--network fcn:8,8 --bias-variance 1,2,3",
            &["3 values of --bias-variance", "2 hidden"],
        ),
        ("--network fcn:0", &["width", "at least 1"]),
        ("--network fcn:", &["unknown network `fcn:`", "fcn:1024"]),
        (
            "--network mlp:10",
            &["unknown network `mlp:10`", "fcn:1024", "linear"],
        ),
        ("--method gibbs", &["unknown method `gibbs`", methods]),
        (
            "--coordinates polar",
            &["polar", "marginal, repriorised, standard"],
        ),
        (
            "--activation swish",
            &[
                "swish",
                "gelu, relu, erf, tanh, identity, leaky_relu(a), sin",
            ],
        ),
        ("--precision f16", &["f16", "f32, f64"]),
        ("--likelihood binomial", &["binomial", "gaussian"]),
        ("--space time", &["time", "auto, feature, data"]),
        ("--input-reduction maybe", &["maybe", "auto, on, off"]),
        (
            "--task ranking",
            &["ranking", "auto, regression, classification"],
        ),
        ("--widht 3", &["--widht"]),
        ("--train 1", &["friedman", "at least 2"]),
        ("--train 0", &["friedman", "at least 2"]),
        ("--train 1000000", &["1500", "at most"]),
        ("--target x", &["friedman", "leave the target out"]),
        (
            "--data nowhere.csv",
            &[
                "nowhere.csv",
                "does not exist",
                "friedman, two-moons, strokes",
            ],
        ),
        (
            "--data freidman",
            &["freidman", "friedman, two-moons, strokes"],
        ),
    ];
    for (arguments, parts) in cases {
        let data = if arguments.contains("--data") {
            ""
        } else {
            "--data friedman"
        };
        refused(&place, &format!("{data} {arguments}"), parts);
    }
    refused(
        &place,
        "--draws 3",
        &["no data", "--data", "friedman, two-moons, strokes"],
    );
}

#[test]
fn larger_than_the_machine() {
    let place = Place::new();
    let fits: &[&str] = &["memory", "free", "it would fit with"];
    refused(
        &place,
        "--data strokes --train 2000 --method hmc-infinite --network fcn:1000000",
        fits,
    );
    let plan = place
        .succeed("plan --data strokes --train 2000 --method hmc-infinite --network fcn:1000000");
    assert!(
        plan.stdout.contains("It does not fit; it would fit with"),
        "{plan:?}"
    );
    let plan = place.succeed(
        "plan --data strokes --train 2000 --method hmc-infinite --network fcn:1000000 --json",
    );
    assert_eq!(plan.json()["fits"], false);
    for network in [
        "fcn:99999999999999999",
        "fcn:9999999999,9999999999",
        "fcn:4294967296,4294967296",
    ] {
        refused(
            &place,
            &format!("--data friedman --network {network}"),
            &["wid"],
        );
    }
    refused(
        &place,
        "--data friedman --projections 99999999999999",
        &["memory", "--projections"],
    );
    refused(
        &place,
        "--data friedman --chains 1000000 --network fcn:1000,1000",
        &["memory", "--chains"],
    );
    assert!(place.tree("").is_empty());
}

#[test]
fn tables() {
    let place = Place::new();
    place.write("good.csv", table(10));
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (
            "empty_cell",
            "a,b,y\n1,2,3\n4,,6\n7,8,9\n",
            "--missing error",
            &["line 3", "`b`", "empty", "fill it in"],
        ),
        (
            "na",
            "a,b,y\n1,2,3\n4,NA,6\n7,8,9\n",
            "--missing error",
            &["line 3", "`b`", "NA", "fill it in"],
        ),
        (
            "text",
            "a,b,y\n1,2,3\n4,5,6\nseven,8,9\n",
            "",
            &["line 4", "`a`", "seven", "not a number"],
        ),
        (
            "nan",
            "a,b,y\n1,nan,3\n4,5,6\n7,8,9\n",
            "--missing error",
            &["line 2", "`b`", "nan"],
        ),
        (
            "inf",
            "a,b,y\n1,2,3\n4,5,6\n7,8,inf\n",
            "--target y",
            &["line 4", "`y`", "not finite"],
        ),
        (
            "minus_inf",
            "a,b,y\n1,2,3\n4,-inf,6\n7,8,9\n",
            "",
            &["line 3", "`b`", "not finite"],
        ),
        (
            "target",
            "a,b,y\n1,2,3\n4,5,?\n7,8,9\n",
            "--missing error",
            &["line 3", "`y`"],
        ),
        (
            "some_text",
            "a,b,y\n1,2,3\n4,5,x\n7,8,9\n",
            "",
            &["line 3", "`y`", "`x` is not a number", "classification"],
        ),
        (
            "ragged",
            "a,b,y\n1,2,3\n4,5\n7,8,9\n",
            "",
            &["line 3", "2 cells", "3"],
        ),
        ("header", "a,b,y\n", "", &["no rows"]),
        ("nothing", "", "", &["nothing.csv"]),
        ("one_row", "a,b,y\n1,2,3\n", "", &["at least 2"]),
        (
            "two_rows",
            "a,b,y\n1,2,3\n4,5,6\n",
            "--train 1",
            &["at least 2"],
        ),
        (
            "few",
            "a,b,y\n1,2,3\n4,5,6\n7,8,9\n",
            "--train 2 --test 2",
            &["at most"],
        ),
        (
            "text_target",
            "a,y\n1,u\n2,v\n3,u\n",
            "--task regression",
            &["line 2", "`y`", "classification"],
        ),
    ];
    for (name, text, flags, parts) in cases {
        let file = format!("{name}.csv");
        place.write(&file, text);
        let named = [parts, &[file.as_str()][..]].concat();
        refused(&place, &format!("--data {file} {flags}"), &named);
    }
    let unknown: &[&str] = &[
        "good.csv",
        "no column `x`",
        "`a`",
        "`b`",
        "`c`",
        "`y`",
        "`z`",
    ];
    refused(&place, "--data good.csv --target x", unknown);
    refused(&place, "--data good.csv --target y,x", unknown);
    place.write("notes.txt", "text");
    refused(&place, "--data notes.txt", &["notes.txt", ".csv", ".npz"]);
    place.write("folder/readme", "text");
    refused(&place, "--data folder", &["folder", "IDX", "CIFAR"]);
}

fn idx_images(count: u32, pixels: usize) -> Vec<u8> {
    let mut bytes = [0x0803, count, 4, 4].map(u32::to_be_bytes).concat();
    bytes.extend((0..pixels).map(|pixel| (pixel * 37 % 256) as u8));
    bytes
}

fn idx_labels(count: u32, labels: usize) -> Vec<u8> {
    let mut bytes = [0x0801, count].map(u32::to_be_bytes).concat();
    bytes.extend((0..labels).map(|row| (row % 3) as u8));
    bytes
}

/// Folder, name of the images, images, labels, what the message names.
type ImageCase<'a> = (&'a str, &'a str, Vec<u8>, Vec<u8>, &'a [&'a str]);

#[test]
fn idx_files() {
    let place = Place::new();
    let (images, labels) = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&idx_images(6, 96)).unwrap();
    let gzip = gzip.finish().unwrap();
    let cases: &[ImageCase] = &[
        (
            "truncated",
            images,
            idx_images(6, 95),
            idx_labels(6, 6),
            &[images, "truncated"],
        ),
        (
            "header",
            images,
            idx_images(6, 96)[..9].to_vec(),
            idx_labels(6, 6),
            &[images],
        ),
        (
            "few_labels",
            images,
            idx_images(6, 96),
            idx_labels(6, 5),
            &[labels, "truncated"],
        ),
        (
            "mislabelled",
            images,
            idx_labels(6, 6),
            idx_labels(6, 6),
            &[images],
        ),
        (
            "swapped",
            images,
            idx_images(6, 96),
            idx_images(6, 96),
            &[labels],
        ),
        (
            "mismatch",
            images,
            idx_images(6, 96),
            idx_labels(5, 5),
            &["6", "5"],
        ),
        (
            "no_idx",
            images,
            b"<html>not found</html>".to_vec(),
            idx_labels(6, 6),
            &[images],
        ),
        (
            "gzip",
            "train-images-idx3-ubyte.gz",
            gzip[..gzip.len() / 2].to_vec(),
            idx_labels(6, 6),
            &[images],
        ),
    ];
    for (folder, name, first, second, parts) in cases {
        place.write(&format!("{folder}/{name}"), first);
        place.write(&format!("{folder}/{labels}"), second);
        refused(
            &place,
            &format!("--data {folder}"),
            &[parts, &[*folder][..]].concat(),
        );
    }
    place.write(&format!("alone/{images}"), idx_images(6, 96));
    refused(&place, "--data alone", &["alone", labels]);
}

fn cifar(labels: &[u8], records: usize) -> Vec<u8> {
    let record = [
        labels.to_vec(),
        (0..3072).map(|pixel| (pixel % 251) as u8).collect(),
    ]
    .concat();
    record.repeat(records)
}

#[test]
fn cifar_batches() {
    let place = Place::new();
    let cases: &[(&str, &str, Vec<u8>, &[&str])] = &[
        (
            "truncated",
            "data_batch_1.bin",
            cifar(&[1], 3)[..9000].to_vec(),
            &["data_batch_1.bin", "truncated"],
        ),
        (
            "hundred",
            "data_batch_1.bin",
            cifar(&[1, 40], 3),
            &["data_batch_1.bin", "CIFAR-100"],
        ),
        (
            "ten",
            "train.bin",
            cifar(&[1], 3),
            &["train.bin", "CIFAR-10 "],
        ),
        (
            "label",
            "data_batch_1.bin",
            cifar(&[10], 3),
            &["data_batch_1.bin", "10"],
        ),
        (
            "empty",
            "data_batch_1.bin",
            Vec::new(),
            &["data_batch_1.bin", "no records"],
        ),
    ];
    for (folder, name, bytes, parts) in cases {
        place.write(&format!("{folder}/{name}"), bytes);
        refused(
            &place,
            &format!("--data {folder}"),
            &[parts, &[*folder][..]].concat(),
        );
    }
}

fn archive(arrays: &[(&str, &[u64], &[f64])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, shape, values) in arrays {
        let shape: String = shape.iter().map(|length| format!("{length}, ")).collect();
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let options = SimpleFileOptions::default();
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(b"\x93NUMPY\x01\x00").unwrap();
        let length = header.len() as u16;
        archive.write_all(&length.to_le_bytes()).unwrap();
        archive.write_all(header.as_bytes()).unwrap();
        for value in *values {
            archive.write_all(&value.to_le_bytes()).unwrap();
        }
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn npz_archives() {
    let place = Place::new();
    let (x, y) = ([1.0, 2.0, 3.0, 4.0, 5.0, 7.0], [0.5, 1.5, 0.0]);
    let good = archive(&[("x_train", &[3, 2], &x), ("y_train", &[3], &y)]);
    let infinite = [1.0, 2.0, f64::INFINITY, 4.0, 5.0, 6.0];
    let nan = [0.5, f64::NAN, 0.1];
    let cases: &[(&str, Vec<u8>, &[&str])] = &[
        ("truncated", good[..good.len() / 2].to_vec(), &[]),
        ("text", b"a,b,y\n1,2,3\n".to_vec(), &[]),
        (
            "no_x",
            archive(&[("inputs", &[3, 2], &x), ("y_train", &[3], &y)]),
            &["x_train"],
        ),
        ("no_y", archive(&[("x_train", &[3, 2], &x)]), &["y_train"]),
        (
            "mismatch",
            archive(&[("x_train", &[3, 2], &x), ("y_train", &[2], &y[..2])]),
            &["3", "2"],
        ),
        (
            "one_row",
            archive(&[("x_train", &[1, 2], &x[..2]), ("y_train", &[1], &y[..1])]),
            &["at least 2"],
        ),
        (
            "infinite",
            archive(&[("x_train", &[3, 2], &infinite), ("y_train", &[3], &y)]),
            &["x_train", "finite"],
        ),
        (
            "nan",
            archive(&[("x_train", &[3, 2], &x), ("y_train", &[3], &nan)]),
            &["y_train", "finite"],
        ),
        (
            "columns",
            archive(&[
                ("x_train", &[3, 2], &x),
                ("y_train", &[3], &y),
                ("x_test", &[2, 3], &x),
                ("y_test", &[2], &y[..2]),
            ]),
            &["x_test"],
        ),
    ];
    for (name, bytes, parts) in cases {
        let file = format!("{name}.npz");
        place.write(&file, bytes);
        refused(
            &place,
            &format!("--data {file}"),
            &[parts, &[file.as_str()][..]].concat(),
        );
    }
    place.write("good.npz", good);
    place.succeed(
        "sample --data good.npz --network fcn:4 --warmup 2 --draws 4 --chains 1 --out run",
    );
}

#[test]
fn run_folders() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --out run"));
    let overwrite: &[&str] = &["run", "--overwrite", "resume"];
    refused(&place, &format!("{SMALL} --out run"), overwrite);
    place.write("other/thesis.txt", "years of work");
    refused(&place, &format!("{SMALL} --out other"), &["other"]);
    refused(
        &place,
        &format!("{SMALL} --out other --overwrite"),
        &["other", "not a run folder"],
    );
    place.write("file", "text");
    refused(&place, &format!("{SMALL} --out file"), &["file"]);
    refused(
        &place,
        &format!("{SMALL} --out file/run"),
        &["file/run", "a file, not a folder"],
    );
    place.succeed("sample --data friedman --train 30 --test 5 --network fcn:4 --warmup 4 --draws 6 --out run --overwrite");
    assert_eq!(place.summary("run")["draws"], 6);
    for command in ["resume", "summary", "predict --data friedman"] {
        let before = place.tree("");
        for folder in ["other", "nowhere", "file"] {
            place
                .run(&format!("{command} {folder}"))
                .assert_error(2, &[folder]);
        }
        assert!(place.tree("") == before, "`{command}` wrote something");
    }
}

#[test]
fn configuration_files() {
    let place = Place::new();
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "key",
            "[data]\nsource = \"friedman\"\n\n[sampler]\nstep_size = 0.1\n",
            &["line 5", "step_size", "step-size"],
        ),
        (
            "section",
            "[data]\nsource = \"friedman\"\n[smapler]\n",
            &["line 3", "smapler", "sampler"],
        ),
        (
            "type",
            "[data]\nsource = \"friedman\"\n[run]\ndraws = \"many\"\n",
            &["line 4", "many"],
        ),
        (
            "name",
            "[data]\nsource = \"friedman\"\n[sampler]\nmethod = \"gibbs\"\n",
            &["line 4", "gibbs", "hmc-infinite"],
        ),
        (
            "negative",
            "[data]\nsource = \"friedman\"\n[run]\nchains = -1\n",
            &["line 4", "-1"],
        ),
        (
            "range",
            "[data]\nsource = \"friedman\"\n[model]\nnoise = 0.0\n",
            &["noise is 0"],
        ),
        ("syntax", "[data]\nsource = friedman\n", &["line 2"]),
    ];
    for (name, text, parts) in cases {
        let file = format!("{name}.toml");
        place.write(&file, text);
        let named = if *name == "range" {
            parts.to_vec()
        } else {
            [parts, &[file.as_str()][..]].concat()
        };
        refused(&place, &format!("--config {file}"), &named);
    }
    refused(&place, "--config nowhere.toml", &["nowhere.toml"]);
}

#[test]
fn prediction_inputs() {
    let place = Place::new();
    place.write("train.csv", table(20));
    place.succeed("sample --data train.csv --target y --network fcn:4 --warmup 2 --draws 4 --chains 1 --out run");
    place.write("lacking.csv", "a,b,z\n1,2,3\n");
    place.write("text.csv", "a,b,c,z\n1,2,3,4\n1,x,3,4\n");
    place.write("empty.csv", "a,b,c,z\n");
    let cases: &[(&str, &[&str])] = &[
        ("lacking.csv", &["lacking.csv", "`c`"]),
        ("text.csv", &["text.csv", "line 3", "`b`"]),
        ("empty.csv", &["empty.csv"]),
        ("nowhere.csv", &["nowhere.csv"]),
        ("strokes", &["strokes"]),
    ];
    for (data, parts) in cases {
        place
            .run(&format!("predict run --data {data} --out p.csv"))
            .assert_error(2, parts);
        assert!(!place.path("p.csv").exists());
    }
    // nor are the inputs written over, or plain text given a name of another format
    for (flag, file, part) in [
        ("--out", "train.csv", "has the inputs"),
        ("--out", "./train.csv", "has the inputs"),
        ("--reliability", "train.csv", "has the inputs"),
        ("--out", "p.csv.gz", "plain text"),
        ("--out", "p.Parquet", "plain text"),
    ] {
        place
            .run(&format!("predict run --data train.csv {flag} {file}"))
            .assert_error(2, &[flag, file, part]);
        assert_eq!(place.read("train.csv"), table(20));
        assert!(!place.path(file).exists() || part == "has the inputs");
    }
}

#[test]
fn rows_without_a_prediction_are_refused() {
    let place = Place::new();
    let mut text = "a,b,y,class\n".to_owned();
    for row in 0..30 {
        let a = f64::from(row % 7) - 3.0;
        let class = if row % 2 == 0 { "one" } else { "two" };
        text += &format!("{a},{},{},{class}\n", row % 5, a.abs());
    }
    place.write("train.csv", text);
    place.write("far.csv", "a,b\n0.5,1\n2,1\n-1e60,1\n");
    for target in ["y", "class"] {
        let ignored = if target == "y" { "class" } else { "y" };
        place.succeed(&format!(
            "sample --data train.csv --target {target} --ignore {ignored} --network fcn:4 --warmup 5 --draws 4 --chains 1 --out {target}"
        ));
        let refused = place.run(&format!("predict {target} --data far.csv"));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert_eq!(refused.stdout, "");
        assert!(
            refused.stderr.contains("row 3 of the new inputs"),
            "{refused:?}"
        );
    }
}

#[test]
fn constant_columns_and_repeated_rows_are_allowed() {
    let place = Place::new();
    let mut text = "a,still,y\n".to_owned();
    for row in 0..30 {
        // every row three times, the target of one of them another
        let a = f64::from(row / 3);
        text += &format!("{a},7,{}\n", a.sin() + f64::from(row % 3 / 2));
    }
    place.write("table.csv", text);
    let flags = "--network fcn:8 --warmup 10 --draws 10 --chains 2";
    for space in ["feature", "data"] {
        let run = place.succeed(&format!(
            "sample --data table.csv {flags} --space {space} --out {space}"
        ));
        assert!(
            run.stderr.contains("do not vary") && run.stderr.contains("`still`"),
            "{run:?}"
        );
        let summary = place.summary(space);
        assert_eq!(
            (&summary["draws"], &summary["n_jitter"]),
            (&10.into(), &0.into())
        );
        assert!(summary["metrics"]["rmse"].as_f64().unwrap() < 10.0);
        // what other values of it do is unknown: they change nothing
        let predicted = ["0.5,7", "0.5,7e5"].map(|row| {
            place.write("new.csv", format!("a,still\n{row}\n"));
            place
                .succeed(&format!("predict {space} --data new.csv"))
                .table()
        });
        assert_eq!(predicted[0], predicted[1]);
    }
    place.write("constant.csv", "a,y\n1,5\n2,5\n3,5\n4,5\n5,5\n6,5\n");
    let run = place.succeed(&format!(
        "sample --data constant.csv {flags} --out constant"
    ));
    assert!(
        run.stderr.contains("targets that do not vary") && run.stderr.contains("`y`"),
        "{run:?}"
    );
    let (_, rows) = place
        .succeed("predict constant --data constant.csv")
        .table();
    assert!(
        (rows[0][0].parse::<f64>().unwrap() - 5.0).abs() < 1.0,
        "{rows:?}"
    );
}
