//! Particles: states of a sampler with where they came from, and how some take the places of others.

use crate::compute::Real;
use crate::sampler::State;

/// A particle.
#[derive(Debug, Clone, PartialEq)]
pub struct Particle<R> {
    /// Where it is. ℓ and ∇ℓ are multiplied by the β of its [`Annealing`](super::Annealing), once that has left 0.
    pub state: State<R>,
    /// Number of the draw of the prior that it descends from.
    pub ancestor: usize,
}

impl<R: Real> Particle<R> {
    /// Becomes a copy of another, in the memory that it has; momentum is not inherited.
    fn become_copy(&mut self, of: &Self) {
        self.ancestor = of.ancestor;
        self.state.log_ratio = of.state.log_ratio;
        self.state.position.clone_from(&of.state.position);
        self.state.gradient.clone_from(&of.state.gradient);
        self.state.momentum.clear();
    }

    /// Multiplies ℓ and ∇ℓ by a factor, and forgets the momentum: it was of another energy.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.state.log_ratio *= factor;
        let factor = R::from_f64(factor);
        for g in &mut self.state.gradient {
            *g *= factor;
        }
        self.state.momentum.clear();
    }
}

/// Puts copies of particles that go on more than once in the places of those that do not; `copies` adds up to their number. Those that go on once
/// stay where they are.
pub(super) fn replace<R: Real>(particles: &mut [Particle<R>], copies: &mut [usize]) {
    let mut from = 0;
    for to in 0..particles.len() {
        if copies[to] > 0 {
            continue;
        }
        while from < copies.len() && copies[from] < 2 {
            from += 1;
        }
        let Ok([source, place]) = particles.get_disjoint_mut([from, to]) else {
            return;
        };
        place.become_copy(source);
        copies[from] -= 1;
        copies[to] = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_the_places_of_what_does_not_go_on() {
        let particle = |at: usize| Particle {
            state: State {
                position: vec![at as f64],
                log_ratio: -(at as f64),
                gradient: vec![10.0 * at as f64],
                momentum: vec![1.0],
            },
            ancestor: at,
        };
        let mut particles: Vec<Particle<f64>> = (0..6).map(particle).collect();
        replace(&mut particles, &mut [0, 3, 0, 1, 0, 2]);
        let ancestors: Vec<usize> = particles.iter().map(|p| p.ancestor).collect();
        assert_eq!(ancestors, [1, 1, 1, 3, 5, 5]);
        for particle in &particles {
            let at = particle.ancestor as f64;
            assert_eq!(particle.state.position, [at]);
            assert_eq!(particle.state.gradient, [10.0 * at]);
            assert_eq!(particle.state.log_ratio, -at);
        }
        particles[0].rescale(0.5);
        assert_eq!(
            (particles[0].state.log_ratio, particles[0].state.gradient[0]),
            (-0.5, 5.0)
        );
        assert!(particles[0].state.momentum.is_empty());
    }
}
