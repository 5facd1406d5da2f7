//! Where an experiment's data come from: a folder with one folder a data set, or the built-in images.

use std::path::PathBuf;
use std::sync::Arc;

use reprior::compute::Real;
use reprior::model::dataset::{Dataset, InputKind, Split, Targets};
use reprior::model::standardisation::Standardisation;
use reprior::model::{InputReduction, Model, targets};
use reprior::network::layer::Shape;
use reprior::network::{Activation, Composition};
use reprior_io::data::{Request, load};

use crate::Failure;

/// Training and test records that the built-in images have.
const BUILT_IN: [usize; 2] = [3000, 1000];

/// σ of images' coded targets in Hron et al. (2022) and Pezzetti et al. (2024).
pub const NOISE: f64 = 0.1;

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
    /// Standardised pixels, row-major.
    pub inputs: Vec<f64>,
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
            None if name == "uci" => "a built-in table (friedman) in place of uci".to_owned(),
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
    pub(crate) fn expect(&self, name: &str) -> Result<(), Failure> {
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
        let counts = match &self.path {
            Some(_) => [None; 2],
            None => BUILT_IN.map(Some),
        };
        self.load(name, counts)
    }

    fn load(&self, name: &str, [train, test]: [Option<usize>; 2]) -> Result<Split, Failure> {
        self.expect(name)?;
        let mut request = Request::new(self.source(name));
        (request.train, request.test) = (train, test);
        Ok(load(&request)?)
    }

    /// The folder, in full; empty for built-in data.
    pub fn folder(&self) -> String {
        let full = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        self.path
            .as_ref()
            .map_or(String::new(), |path| full(path).display().to_string())
    }

    /// The first training records; of the built-in images as many as there are.
    ///
    /// # Errors
    /// Data that are not there, with the way out.
    pub fn images(&self, name: &str, count: usize) -> Result<Images, Failure> {
        let count = match &self.path {
            Some(_) => count,
            None => count.min(BUILT_IN[0]),
        };
        let train = self.load(name, [Some(count), Some(0)])?.train;
        let standardisation = Standardisation::fit(&train);
        Ok(Images {
            inputs: standardisation.standardise_inputs(&train.inputs),
            targets: targets::code(&train.targets, &standardisation),
            train,
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
        let shape = shape(&self.train);
        let places = shape.pixels();
        let mut out = Vec::with_capacity(inputs.len());
        for image in inputs.chunks_exact(self.columns()) {
            for place in 0..places {
                out.extend((0..shape.channels).map(|channel| image[channel * places + place]));
            }
        }
        out
    }

    /// A fully connected network of GELU units for them.
    pub fn network(&self, hidden: &[usize]) -> Composition {
        Composition::fully_connected(self.columns(), hidden, self.classes(), Activation::Gelu)
    }

    /// The regression by that network of the coded targets, with predictions for `test`; `reduction` says whether chains live on
    /// all weights of the first layer.
    ///
    /// # Errors
    /// Sizes that do not fit.
    pub fn model<R: Real>(
        &self,
        hidden: &[usize],
        test: &[f64],
        reduction: InputReduction,
    ) -> Result<Arc<Model<R>>, Failure> {
        let (network, targets) = (self.network(hidden), self.targets.clone());
        let model = Model::new(network, NOISE, &self.inputs, targets, test, reduction)?;
        Ok(Arc::new(model))
    }
}

/// Height, width and channels; a table is one pixel.
pub fn shape(data: &Dataset) -> Shape {
    match data.kind {
        InputKind::Image {
            height,
            width,
            channels,
        } => Shape::from([height, width, channels]),
        InputKind::Table => Shape::vector(data.columns),
    }
}

/// A one for the class of each row, n × C, column-major.
pub fn one_hot(labels: &[u32], classes: usize) -> Vec<f64> {
    let column = |class: usize| {
        let labels = labels.iter();
        labels.map(move |&label| f64::from(u8::from(label as usize == class)))
    };
    (0..classes).flat_map(column).collect()
}

/// Class labels of a data set of classes; empty for others.
pub fn labels(data: &Dataset) -> &[u32] {
    match &data.targets {
        Targets::Classes { labels, .. } => labels,
        Targets::Real { .. } => &[],
    }
}
