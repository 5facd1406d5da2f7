use super::*;

fn chart(marks: Vec<Mark>) -> Chart {
    Chart {
        title: "A <title>".to_owned(),
        guide: "Up is more.".to_owned(),
        x: Axis::new("x"),
        y: Axis::new("y"),
        marks,
    }
}

fn line(points: Vec<(f64, f64)>) -> Mark {
    Mark::Line {
        name: "a line".to_owned(),
        points,
        is_dashed: false,
        has_points: false,
        errors: Vec::new(),
    }
}

fn points(name: &str, points: Vec<(f64, f64)>) -> Mark {
    Mark::Points {
        name: name.to_owned(),
        points,
    }
}

/// Tags are balanced and no attribute is no number.
fn check(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("an unclosed tag");
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        let name = tag.split(' ').next().expect("a name");
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None => open.push(name),
        }
        let lower = tag.to_lowercase();
        for wrong in ["=\"nan", "=\"inf", "=\"-inf", " nan", " inf"] {
            assert!(!lower.contains(wrong), "{tag}");
        }
    }
    assert!(open.is_empty());
}

fn both(chart: &Chart) -> [String; 2] {
    [Colours::Page, Colours::Standalone].map(|colours| {
        let svg = chart.svg(640.0, colours);
        check(&svg);
        svg
    })
}

#[test]
fn every_mark_is_drawn_with_its_name_and_tooltips() {
    let curve: Vec<(f64, f64)> = (0..20)
        .map(|i| (f64::from(i), f64::from(i).sin()))
        .collect();
    let marks = vec![
        Mark::Band {
            name: "a band".to_owned(),
            x: vec![0.0, 10.0, 20.0],
            lower: vec![-1.0; 3],
            upper: vec![1.0, 2.0, 1.0],
        },
        Mark::Line {
            name: "with errors".to_owned(),
            points: curve.clone(),
            is_dashed: false,
            has_points: true,
            errors: vec![0.1; 20],
        },
        points("points", curve),
    ];
    let [page, alone] = both(&chart(marks));
    for svg in [&page, &alone] {
        for name in ["a band", "with errors", "points"] {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        assert!(svg.contains("<title>points: 0, 0</title>"));
        assert!(svg.contains("<desc>Up is more.</desc>"));
        assert!(svg.contains("aria-label=\"A &lt;title&gt;\""));
    }
    assert!(page.contains("var(--series-1)") && !page.contains("xmlns"));
    assert!(!page.contains("<style>"));
    assert!(alone.contains("xmlns") && !alone.contains("var("));
    assert!(alone.contains(">A &lt;title&gt;</text>"));
}

#[test]
fn series_differ_in_more_than_colour() {
    let few = |offset: f64| line((0..9).map(|i| (f64::from(i), offset)).collect());
    let [svg, _] = both(&chart(vec![few(0.0), few(1.0), few(2.0)]));
    assert!(svg.contains("stroke-dasharray=\"8 4\""));
    assert!(svg.contains("stroke-dasharray=\"2 3\""));
    let many = |offset: f64| line((0..200).map(|i| (f64::from(i), offset)).collect());
    let [svg, _] = both(&chart(vec![many(0.0), many(1.0)]));
    assert!(!svg.contains("stroke-dasharray"));
    assert!(svg.contains("<circle") && svg.contains("<title>a line: "));
}

#[test]
fn what_cannot_be_drawn_is_left_out_and_stays_in_the_table() {
    let mut chart = chart(vec![line(vec![
        (0.0, 1.0),
        (1.0, f64::NAN),
        (2.0, f64::INFINITY),
        (3.0, -1.0),
        (4.0, 2.0),
        (5.0, 4.0),
    ])]);
    both(&chart);
    assert_eq!(
        chart.reading(),
        "Up is more. 2 values are left out: not finite."
    );
    chart.y = Axis::new("y").logarithmic();
    both(&chart);
    assert!(chart.reading().contains("3 values are left out"));
    let (names, rows) = chart.table();
    assert_eq!(names, ["x", "a line"]);
    assert_eq!(rows[1], ["1", "NaN"]);
    assert_eq!(rows[2], ["2", "inf"]);
    assert_eq!(rows.len(), 6);
}

#[test]
fn nothing_to_draw_is_said() {
    let empty = [
        Vec::new(),
        vec![line(Vec::new())],
        vec![points("", vec![(f64::NAN, 1.0)])],
        vec![Mark::Heatmap {
            rows: Vec::new(),
            columns: Vec::new(),
            values: vec![vec![f64::NAN]],
        }],
        vec![Mark::Bars {
            name: String::new(),
            edges: Vec::new(),
            heights: Vec::new(),
        }],
    ];
    for marks in empty {
        let mut chart = chart(marks);
        for svg in both(&chart) {
            assert!(svg.contains(">no data</text>"));
        }
        chart.x = Axis::new("x").logarithmic();
        chart.y = Axis::new("y").logarithmic();
        both(&chart);
        chart.table();
    }
}

#[test]
fn hostile_numbers_do_not_stop_the_drawing() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e-320,
        1e300,
        -1e300,
        1.7e308,
        1e16,
        1e16 + 2.0,
        1e-9,
        f64::NAN,
    ];
    for a in values {
        for b in values {
            let mut chart = chart(vec![
                line(vec![(a, b), (b, a)]),
                points("p", vec![(a, a)]),
                Mark::Bars {
                    name: "b".to_owned(),
                    edges: vec![a, b, a],
                    heights: vec![b, a],
                },
                Mark::Band {
                    name: "c".to_owned(),
                    x: vec![a, b],
                    lower: vec![a, a],
                    upper: vec![b, b],
                },
            ]);
            both(&chart);
            chart.x = Axis::new("x").within(a, b);
            chart.y = Axis::new("y").logarithmic();
            both(&chart);
            chart.marks = vec![Mark::Heatmap {
                rows: vec!["r".to_owned()],
                columns: Vec::new(),
                values: vec![vec![a, b], vec![b]],
            }];
            both(&chart);
            chart.table();
            chart.reading();
        }
    }
}

#[test]
fn long_series_are_thinned_and_keep_their_extremes() {
    let mut many: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), 0.0)).collect();
    many[54_321].1 = 7.0;
    let chart = chart(vec![line(many.clone()), points("p", many)]);
    let (_, rows) = chart.table();
    assert!(rows.len() <= 2 * MOST_POINTS);
    assert!(rows.iter().any(|row| row[1] == "54321" && row[2] == "7"));
    assert!(chart.reading().contains("at most 500 are drawn"));
    let [svg, _] = both(&chart);
    assert!(svg.len() < 200_000, "{}", svg.len());
}

#[test]
fn tables_take_the_shape_of_the_series() {
    let band = Mark::Band {
        name: "interval".to_owned(),
        x: vec![0.0, 1.0],
        lower: vec![1.0, 2.0],
        upper: vec![3.0, 4.0],
    };
    let truth = points("truth", vec![(0.0, 1.5), (1.0, 2.5)]);
    let (names, rows) = chart(vec![band.clone(), truth]).table();
    assert_eq!(names, ["x", "interval, from", "interval, to", "truth"]);
    assert_eq!(rows, [["0", "1", "3", "1.5"], ["1", "2", "4", "2.5"]]);
    let (names, rows) = chart(vec![band, points("other", vec![(5.0, 6.0)])]).table();
    assert_eq!(names, ["series", "x", "y", "to, or plus or minus"]);
    assert_eq!(rows[2], ["other", "5", "6", ""]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let heatmap = Mark::Heatmap {
        rows: names(&["cat", "dog"]),
        columns: names(&["as cat", "as dog"]),
        values: vec![vec![0.75, 0.25], vec![0.0, 1.0]],
    };
    let chart = chart(vec![heatmap]);
    assert_eq!(chart.table().1[0], ["cat", "0.75", "0.25"]);
    let [svg, _] = both(&chart);
    assert!(svg.contains("<title>cat, as cat: 0.75</title>"));
    // the first row is on top
    let place = |name: &str| svg.find(&format!(">{name}</text>")).expect("a label");
    let height = |name: &str| {
        let tag = &svg[svg[..place(name)].rfind("<text").expect("a tag")..place(name)];
        let y = tag.split(" y=\"").nth(1).expect("y");
        y.split('"')
            .next()
            .and_then(|y| y.parse::<f64>().ok())
            .expect("a number")
    };
    assert!(height("cat") < height("dog"));
}

#[test]
fn categories_name_the_numbers_from_zero() {
    let mut chart = chart(vec![points("", vec![(0.0, 1.0), (2.0, 3.0)])]);
    chart.x = Axis::new("method").of(["pcn", "mala", "hmc"].map(str::to_owned).to_vec());
    let [svg, _] = both(&chart);
    assert!(svg.contains(">pcn</text>") && svg.contains("<title>hmc, 3</title>"));
    assert_eq!(chart.table().1, [["pcn", "1"], ["hmc", "3"]]);
}

#[test]
fn equal_charts_have_equal_bytes_and_different_ones_different_identifiers() {
    let one = chart(vec![line(vec![(0.0, 1.0), (1.0, 2.0)])]);
    let other = chart(vec![line(vec![(0.0, 1.0), (1.0, 3.0), (2.0, 1.0)])]);
    let svg = one.svg(640.0, Colours::Page);
    assert_eq!(svg, one.svg(640.0, Colours::Page));
    let name = |svg: &str| {
        let after = svg.split("id=\"").nth(1).expect("a clipping path");
        after.split('"').next().map(str::to_owned)
    };
    assert_ne!(name(&svg), name(&other.svg(640.0, Colours::Page)));
}

#[test]
fn figures_are_short() {
    for (value, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (0.1 + 0.2, "0.3"),
        (-1234.5678, "-1234.57"),
        (123_456_789.0, "123456789"),
        (1.5e12, "1.5e12"),
        (2.5e-7, "2.5e-7"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(figure(value), text);
    }
}

#[test]
fn ticks_are_told_apart() {
    let label = |range, value| scale::ticks(range, false).format(value);
    for (range, value, text) in [
        ((0.0, 1.0), 0.75, "0.75"),
        ((0.0, 11.0), 7.5, "7.5"),
        ((0.0, 11.0), 10.0, "10"),
        ((0.0, 3000.0), 2500.0, "2500"),
        ((1000.0, 1000.01), 1000.0025, "1000.0025"),
        ((0.0, 5e7), 2.5e7, "2.5e7"),
        ((-1e-5, 1e-5), 1e-21, "0"),
    ] {
        assert_eq!(label(range, value), text);
    }
}

#[test]
fn short_logarithmic_axes_have_three_ticks() {
    let labels = |chart: &Chart, anchor: &str| -> usize {
        let [svg, _] = both(chart);
        let texts = svg.split("<text").skip(1);
        let is_number = |text: &&str| {
            let content = text
                .split('>')
                .nth(1)
                .and_then(|rest| rest.split('<').next());
            text.contains(&format!("text-anchor=\"{anchor}\""))
                && content.is_some_and(|content| content.parse::<f64>().is_ok())
        };
        texts.filter(is_number).count()
    };
    for (low, high) in [
        (0.13, 0.19),
        (0.2, 0.3),
        (64.0, 1024.0),
        (1.0, 1.0),
        (0.004, 0.7),
        (0.003, 40.0),
        (1e-4, 30.0),
        (9e9, 9.1e9),
    ] {
        let mut chart = chart(vec![line(vec![(low, low), (high, high)])]);
        chart.x = Axis::new("x").logarithmic();
        chart.y = Axis::new("y").logarithmic();
        for anchor in ["middle", "end"] {
            let count = labels(&chart, anchor);
            assert!(count >= 3, "{low} to {high}: {count} labels at {anchor}");
        }
    }
}

#[test]
fn equal_ratios_are_equal_distances_on_a_logarithmic_axis() {
    let mut chart = chart(vec![Mark::Line {
        name: String::new(),
        points: vec![(0.01, 1.0), (1.0, 10.0), (100.0, 100.0)],
        is_dashed: false,
        has_points: true,
        errors: Vec::new(),
    }]);
    let places = |chart: &Chart, name: &str| -> Vec<f64> {
        let [svg, _] = both(chart);
        let circles = svg.split("<circle").skip(1);
        let number = |circle: &str| {
            let text = circle.split(&format!(" {name}=\"")).nth(1)?;
            text.split('"').next()?.parse().ok()
        };
        circles.filter_map(number).collect()
    };
    for (is_logarithmic, is_even) in [(true, true), (false, false)] {
        chart.x.is_logarithmic = is_logarithmic;
        chart.y.is_logarithmic = is_logarithmic;
        for name in ["cx", "cy"] {
            let at = places(&chart, name);
            let (first, second) = ((at[1] - at[0]).abs(), (at[2] - at[1]).abs());
            assert_eq!((first - second).abs() < 0.1, is_even, "{at:?}");
            assert!(at.iter().all(|at| *at > 10.0 && *at < 630.0));
        }
    }
}
