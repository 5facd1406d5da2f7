//! The test images that the network is least sure of.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Item, Picture, missing};
use crate::run::most_probable;
use crate::{Images, RunPage};
use reprior_run::words::number;

/// Images that are shown.
const SHOWN: usize = 12;
const WHAT: &str = "The most uncertain test images";

pub(super) fn most_uncertain(run: &RunPage, probabilities: &[f64], labels: &[u32]) -> Item {
    let images = match &run.images {
        Ok(images) => images,
        Err(why) => return missing(WHAT, why.clone()),
    };
    let classes = run.outputs.len().max(1);
    let rows: Vec<&[f64]> = probabilities.chunks_exact(classes).collect();
    let entropy = |row: &[f64]| -> f64 {
        let terms = row.iter().filter(|p| **p > 0.0);
        terms.map(|p| -p * p.ln()).sum()
    };
    let entropies: Vec<f64> = rows.iter().map(|row| entropy(row)).collect();
    let mut order: Vec<usize> = (0..rows.len().min(labels.len())).collect();
    order.sort_by(|a, b| entropies[*b].total_cmp(&entropies[*a]));
    let name = |class: usize| run.outputs.get(class).map_or("?", String::as_str);
    let mut pictures = Vec::new();
    for row in order.into_iter().take(SHOWN) {
        let Some(address) = images.png(row) else {
            return missing(WHAT, "the images could not be drawn");
        };
        let guess = most_probable(rows[row]);
        pictures.push(Picture {
            address,
            width: images.width,
            height: images.height,
            lines: vec![
                format!("test row {row}: {}", name(labels[row] as usize)),
                format!("predicted {} ({:.2})", name(guess), rows[row][guess]),
                format!("entropy {}", number(entropies[row])),
            ],
        });
    }
    Item::Pictures {
        title: WHAT.to_owned(),
        guide: "Those with the greatest predictive entropy, each with its true class and the prediction: are they hard for you too?".to_owned(),
        pictures,
    }
}

impl Images {
    /// One image as a `data:` address; none beyond the last, or for a number of planes that is neither 1 nor 3.
    fn png(&self, row: usize) -> Option<String> {
        let pixels = self.height * self.width;
        let size = pixels * self.channels;
        let start = row.checked_mul(size)?;
        if size == 0 || start + size > self.values.len() {
            return None;
        }
        let values: Vec<f64> = (start..start + size)
            .map(|at| self.values.get(at))
            .collect();
        let is_bytes = matches!(self.values, reprior::model::dataset::InputValues::Bytes(_));
        // numbers of no known range are stretched over the greys
        let [low, high] = match is_bytes {
            true => [0.0, 255.0],
            false => [
                values.iter().copied().fold(f64::INFINITY, f64::min),
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ],
        };
        let scale = if high > low {
            255.0 / (high - low)
        } else {
            0.0
        };
        let mut bytes = Vec::with_capacity(size);
        for pixel in 0..pixels {
            for plane in 0..self.channels {
                let value = (values[plane * pixels + pixel] - low) * scale;
                bytes.push(value.round().clamp(0.0, 255.0) as u8);
            }
        }
        let mut file = Vec::new();
        let (width, height) = (self.width.try_into().ok()?, self.height.try_into().ok()?);
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(match self.channels {
            1 => png::ColorType::Grayscale,
            3 => png::ColorType::Rgb,
            _ => return None,
        });
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().ok()?;
        writer.write_image_data(&bytes).ok()?;
        writer.finish().ok()?;
        Some(format!("data:image/png;base64,{}", STANDARD.encode(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprior::model::dataset::InputValues;

    #[test]
    fn pictures_have_the_pixels_that_were_given() {
        let images = Images {
            height: 1,
            width: 2,
            channels: 3,
            values: InputValues::Bytes(vec![1, 2, 3, 4, 5, 6]),
        };
        let address = images.png(0).expect("an image");
        let bytes = STANDARD
            .decode(address.trim_start_matches("data:image/png;base64,"))
            .expect("base64");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .expect("a PNG");
        let mut pixels = [0; 6];
        reader.next_frame(&mut pixels).expect("pixels");
        assert_eq!(pixels, [1, 3, 5, 2, 4, 6]);
        assert!(images.png(1).is_none() && images.png(usize::MAX).is_none());
        let two = Images {
            channels: 2,
            ..images
        };
        assert!(two.png(0).is_none());
    }
}
