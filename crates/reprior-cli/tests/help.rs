//! What the command line says of itself, and of numbers that are none.

use crate::common::Place;

#[test]
fn the_first_screen_is_short_and_help_has_everything() {
    let place = Place::new();
    for (command, most) in [("sample", 45), ("plan", 45), ("bench", 45)] {
        let short = place.succeed(&format!("{command} -h")).stdout;
        let long = place.succeed(&format!("{command} --help")).stdout;
        let lines = short.lines().count();
        assert!(lines <= most, "{command} -h has {lines} lines:\n{short}");
        assert!(
            short.contains("--network") && !short.contains("--swag-rank"),
            "{short}"
        );
        assert!(short.contains("see more with '--help'"), "{short}");
        for name in [
            "hmc-infinite",
            "hmc",
            "nuts",
            "pcn",
            "pcnl",
            "mala",
            "langevin",
            "elliptical",
            "rwm",
            "sgld",
            "sghmc",
            "sgnht",
            "map",
            "dropout",
            "swag",
            "ensemble",
            "laplace",
            "laplace-diffusion",
            "nngp",
            "ntk",
        ] {
            let method = long
                .split("--method")
                .nth(1)
                .unwrap()
                .split("--coordinates")
                .next()
                .unwrap();
            let words: Vec<&str> = method
                .split(|c: char| !(c.is_alphanumeric() || c == '-'))
                .collect();
            assert!(words.contains(&name), "`{name}` is missing: {method}");
        }
        let noise = long
            .split("--noise <")
            .nth(1)
            .unwrap()
            .split("--scales")
            .next()
            .unwrap();
        assert!(
            noise.contains("`auto`") && noise.contains("`learn`"),
            "{noise}"
        );
        for flag in ["--swag-rank", "--rank", "--keep-mb", "--determinant"] {
            assert!(long.contains(flag), "{flag}");
        }
    }
}

#[test]
fn numbers_are_asked_for_in_plain_words() {
    let place = Place::new();
    for (flags, parts) in [
        (
            "--train 0.8",
            ["--train takes a number of rows", "four fifths"],
        ),
        ("--draws 1e3", ["--draws takes a whole number", "`1e3`"]),
        ("--chains -2", ["--chains takes a whole number", "`-2`"]),
        (
            "--seed 99999999999999999999",
            ["--seed takes a whole number", "too large"],
        ),
        ("--step-size fast", ["--step-size takes a number", "`fast`"]),
        (
            "--weight-variance 1,x",
            ["--weight-variance takes a number", "`x`"],
        ),
        ("--batch ten", ["--batch takes a whole number", "`ten`"]),
    ] {
        let run = place.run(&format!("sample --data friedman {flags} --out run"));
        run.assert_error(2, &parts);
        for words in ["invalid digit", "invalid float", "literal", "target type"] {
            assert!(!run.stderr.contains(words), "{run:?}");
        }
    }
    assert!(!place.path("run").exists());
}

#[test]
fn a_noise_greater_than_the_targets_and_constant_columns_are_said_once() {
    let place = Place::new();
    let mut table = "a,b,y\n".to_owned();
    for row in 0..40 {
        table += &format!(
            "{},7,{}\n",
            (0.7 * f64::from(row)).sin(),
            (0.3 * f64::from(row)).cos()
        );
    }
    place.write("table.csv", table);
    let run = place.succeed(
        "sample --data table.csv --network fcn:8 --warmup 4 --draws 6 --chains 1 --noise 10 --out run",
    );
    let all = format!("{}{}", run.stderr, run.stdout);
    assert_eq!(all.matches("do not vary").count(), 1, "{all}");
    assert!(
        run.stderr.contains("note: --noise 10 is in units of"),
        "{run:?}"
    );
    assert_eq!(
        place
            .succeed("summary run")
            .stdout
            .matches("do not vary")
            .count(),
        1
    );
    let wrong = place.run("sample --data table.csv --target Y --out no");
    wrong.assert_error(2, &["is `y` meant?", "`a`, `b`, `y`"]);
}

#[test]
fn predictions_have_exponents_where_there_would_be_many_zeros() {
    let place = Place::new();
    let mut table = "a,label\n".to_owned();
    for row in 0..40 {
        let side = if row % 2 == 0 { -1 } else { 1 };
        let label = if side < 0 { "no" } else { "yes" };
        table += &format!(
            "{},{label}\n",
            f64::from(side) * (3.0 + 0.01 * f64::from(row))
        );
    }
    place.write("table.csv", table);
    place.succeed(
        "sample --data table.csv --network fcn:8 --warmup 10 --draws 10 --chains 1 --likelihood gaussian --noise 0.15 --out run",
    );
    let (_, rows) = place.succeed("predict run --data table.csv").table();
    let cells: Vec<&String> = rows.iter().flatten().collect();
    assert!(cells.iter().all(|cell| cell.len() <= 25), "{cells:?}");
    assert!(cells.iter().any(|cell| cell.contains("e-")), "{cells:?}");
}

#[test]
fn shells_and_manual_pages_know_every_command_and_flag() {
    let place = Place::new();
    let long = place.succeed("sample --help").stdout;
    let flags: Vec<&str> = long
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--"))
        .map(|line| line.split([' ', '=']).next().unwrap())
        .collect();
    assert!(flags.len() > 60, "{flags:?}");
    let commands = [
        "sample",
        "resume",
        "merge",
        "export",
        "summary",
        "predict",
        "report",
        "plan",
        "bench",
        "reproduce",
    ];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.succeed(&format!("completions {shell}")).stdout;
        for word in commands.iter().chain(&flags) {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let refused = place.run("completions tcsh").stderr;
    assert!(refused.contains("possible values: bash"), "{refused}");

    place.succeed("man --out pages/man1");
    let page = |name: &str| std::fs::read_to_string(place.path("pages/man1").join(name)).unwrap();
    let own = page("reprior-sample.1").replace('\\', "");
    for flag in flags {
        assert!(own.contains(&format!("--{flag}")), "{flag}");
    }
    let whole = page("reprior.1").replace('\\', "");
    for command in commands {
        assert!(
            whole.contains(&format!("reprior-{command}(1)")),
            "{command}"
        );
        assert!(page(&format!("reprior-{command}.1")).starts_with(".ie"));
    }
    std::fs::write(place.path("file"), "").unwrap();
    let refused = place.run("man --out file").stderr;
    assert!(
        refused.contains("Give another folder by --out"),
        "{refused}"
    );
}
