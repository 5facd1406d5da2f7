//! Means of statistics over replicates, less what they should be.

/// Sums of named deviations, one of each in every replicate.
#[derive(Default)]
pub struct Statistics {
    names: Vec<String>,
    sums: Vec<[f64; 2]>,
    next: usize,
    count: f64,
}

/// The statistic that is off by most standard errors.
#[derive(Debug, Clone, Default)]
pub struct Largest {
    pub name: String,
    /// |z|.
    pub z: f64,
    /// How many z-scores there are.
    pub count: usize,
}

impl Statistics {
    /// Takes in one statistic of the present replicate; the same ones in the same order in each.
    pub fn add(&mut self, name: impl Fn() -> String, value: f64, expected: f64) {
        if self.next == self.sums.len() {
            self.names.push(name());
            self.sums.push([0.0; 2]);
        }
        let deviation = value - expected;
        self.sums[self.next][0] += deviation;
        self.sums[self.next][1] += deviation * deviation;
        self.next += 1;
    }

    pub fn finish_replicate(&mut self) {
        self.next = 0;
        self.count += 1.0;
    }

    /// Number of the present replicate.
    pub fn replicate(&self) -> u64 {
        self.count as u64
    }

    pub fn largest(&self) -> Largest {
        let mut largest = Largest {
            count: self.sums.len(),
            ..Default::default()
        };
        for ([sum, squares], name) in self.sums.iter().zip(&self.names) {
            let mean = sum / self.count;
            let variance = squares / self.count - mean * mean;
            let z = (mean / (variance / self.count).sqrt()).abs();
            assert!(z.is_finite(), "{name} does not vary");
            if z >= largest.z {
                largest.z = z;
                largest.name.clone_from(name);
            }
        }
        largest
    }
}
