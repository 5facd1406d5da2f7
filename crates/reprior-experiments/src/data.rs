//! Where an experiment's data come from: a folder with one folder a data set, or the built-in images.

use std::path::PathBuf;

use reprior::model::dataset::{Dataset, InputKind, Split, Targets};
use reprior::model::standardisation::Standardisation;
use reprior::model::targets;
use reprior_io::data::{Request, load};

use crate::Failure;

/// Training and test records that the built-in images have.
const BUILT_IN: [usize; 2] = [3000, 1000];

/// A folder with `mnist/`, `cifar10/` and so on, or none.
#[derive(Debug, Clone, Default)]
pub struct DataFolder {
    /// The folder; without it, built-in data are used instead.
    pub path: Option<PathBuf>,
}

/// Images and their classes.
#[derive(Debug, Clone)]
pub struct Images {
    /// Records as they came.
    pub train: Dataset,
    /// Records as they came.
    pub test: Dataset,
    /// Standardised pixels, row-major.
    pub inputs: Vec<f64>,
    /// Standardised pixels, row-major.
    pub test_inputs: Vec<f64>,
    /// Coded targets, column-major n × C: 1 − 1/C for the class, −1/C for the others.
    pub targets: Vec<f64>,
}

impl DataFolder {
    /// What stands for the data set `name`.
    pub fn source(&self, name: &str) -> String {
        match &self.path {
            Some(path) => path.join(name).display().to_string(),
            None => "strokes".to_owned(),
        }
    }

    /// What it is called in tables: `strokes` for the built-in images.
    pub fn shown<'a>(&self, name: &'a str) -> &'a str {
        match &self.path {
            Some(_) => name,
            None => "strokes",
        }
    }

    /// What stands for it, without the folder.
    pub fn described(&self, name: &str) -> String {
        match &self.path {
            Some(_) => name.to_owned(),
            None => format!("built-in images (strokes) in place of {name}"),
        }
    }

    /// Whether there is a folder `name`; without any folder there are the built-in images.
    pub fn has(&self, name: &str) -> bool {
        self.path
            .as_ref()
            .is_none_or(|path| path.join(name).is_dir())
    }

    /// # Errors
    /// That there is no folder `name`, with the way out.
    fn expect(&self, name: &str) -> Result<(), Failure> {
        match &self.path {
            Some(path) if !self.has(name) => Err(Failure::Request(format!(
                "{} has no folder {name}: give --data a folder that has it, or leave --data out for the built-in images",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// All training and test records as they came.
    ///
    /// # Errors
    /// Data that are not there, with the way out.
    pub fn split(&self, name: &str) -> Result<Split, Failure> {
        let mut request = Request::new(self.source(name));
        self.expect(name)?;
        if self.path.is_none() {
            (request.train, request.test) = (Some(BUILT_IN[0]), Some(BUILT_IN[1]));
        }
        Ok(load(&request)?)
    }

    /// The folder, in full; empty for built-in data.
    pub fn folder(&self) -> String {
        let full = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        self.path
            .as_ref()
            .map_or(String::new(), |path| full(path).display().to_string())
    }

    /// The first training and test records; of the built-in images as many as there are.
    ///
    /// # Errors
    /// Data that are not there, with the way out.
    pub fn images(&self, name: &str, train: usize, test: usize) -> Result<Images, Failure> {
        let mut request = Request::new(self.source(name));
        self.expect(name)?;
        let (train, test) = match &self.path {
            Some(_) => (train, test),
            None => (train.min(BUILT_IN[0]), test.min(BUILT_IN[1])),
        };
        (request.train, request.test) = (Some(train), Some(test));
        let split = load(&request)?;
        let standardisation = Standardisation::fit(&split.train);
        Ok(Images {
            inputs: standardisation.standardise_inputs(&split.train.inputs),
            test_inputs: standardisation.standardise_inputs(&split.test.inputs),
            targets: targets::code(&split.train.targets, &standardisation),
            train: split.train,
            test: split.test,
        })
    }
}

impl Images {
    /// Training rows.
    pub fn rows(&self) -> usize {
        self.train.rows
    }

    /// Pixels of an image, all channels.
    pub fn columns(&self) -> usize {
        self.train.columns
    }

    /// Classes.
    pub fn classes(&self) -> usize {
        self.train.targets.outputs()
    }

    /// `count` inputs to predict for: halfway between one training image and the next.
    ///
    /// The first layer at these is a function of the weights that the data touch. At any other input it also depends on weights
    /// that reduced inputs leave out and that are drawn afresh, so that predictions would seem to mix better than the chain.
    pub fn midpoints(&self, count: usize) -> Vec<f64> {
        let images: Vec<&[f64]> = self.inputs.chunks_exact(self.columns()).collect();
        let pairs = images.windows(2).take(count);
        let middle = |pair: &[&[f64]]| -> Vec<f64> {
            pair[0]
                .iter()
                .zip(pair[1])
                .map(|(a, b)| 0.5 * (a + b))
                .collect()
        };
        pairs.flat_map(middle).collect()
    }

    /// Inputs in the order that convolutions take them: pixel by pixel, where data come plane by plane.
    pub fn by_pixels(&self, inputs: &[f64]) -> Vec<f64> {
        let [height, width, channels] = self.shape();
        let places = height * width;
        let mut out = Vec::with_capacity(inputs.len());
        for image in inputs.chunks_exact(places * channels) {
            for place in 0..places {
                out.extend((0..channels).map(|channel| image[channel * places + place]));
            }
        }
        out
    }

    /// Height, width and channels.
    pub fn shape(&self) -> [usize; 3] {
        match self.train.kind {
            InputKind::Image {
                height,
                width,
                channels,
            } => [height, width, channels],
            InputKind::Table => [1, self.train.columns, 1],
        }
    }
}

/// Class labels of a data set of classes; empty for others.
pub fn labels(data: &Dataset) -> &[u32] {
    match &data.targets {
        Targets::Classes { labels, .. } => labels,
        Targets::Real { .. } => &[],
    }
}
