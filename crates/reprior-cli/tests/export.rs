//! Draws of a run as a Zarr store somewhere else.

use crate::common::{Place, SMALL, assert_same};

#[test]
fn draws_are_the_same_elsewhere() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --quiet --out run"));
    let said = place.succeed("export run --to archive/friedman.zarr");
    assert!(said.stdout.contains("objects") && said.stdout.contains("archive/friedman.zarr"));
    let mut elsewhere = place.tree("archive/friedman.zarr");
    assert_same(&place.tree("run/draws.zarr"), &elsewhere);
    // by its address too
    let address = format!("file://{}", place.path("other.zarr").display());
    std::fs::create_dir(place.path("other.zarr")).unwrap();
    place.succeed(&format!("export run --to {address}"));
    assert_same(&place.tree("other.zarr"), &elsewhere);
    // what is there stays, unless it may be replaced
    place
        .run("export run --to archive/friedman.zarr")
        .assert_error(
            2,
            &["archive/friedman.zarr holds draws already", "--overwrite"],
        );
    place.succeed("resume run --minutes 0.002 --quiet");
    place.succeed("export run --to archive/friedman.zarr --overwrite");
    elsewhere = place.tree("archive/friedman.zarr");
    let root = std::path::Path::new("zarr.json");
    assert_eq!(elsewhere[root], place.tree("run/draws.zarr")[root]);
}

#[test]
fn places_that_are_none_are_refused() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --quiet --out run"));
    for (arguments, parts) in [
        (
            "run --to s3://bucket/place",
            &["s3://bucket/place", "--features s3"][..],
        ),
        ("run --to ftp://host/place", &["ftp://host/place"]),
        ("run --to run/draws.zarr", &["in the run itself"]),
        ("run --to run/copy/of", &["in the run itself"]),
        ("nothing --to there", &["nothing"]),
    ] {
        place
            .run(&format!("export {arguments}"))
            .assert_error(2, parts);
    }
    // a folder that cannot be written to
    place.write("file", "text");
    place
        .run("export run --to file/there")
        .assert_error(2, &["file/there"]);
}
