//! The same tries with the decoder itself, sector by sector: what the table is checked against.
//!
//! Passes that are averaged are one pass here, too, with the noise that the model gives their mean: RT1 is not checked.

use levelhead_stats::{Normal, Rng};

use super::model::{RetryError, RetryModel};
use crate::channel::{Channel, ChannelKind};
use crate::code::{Codeword, ZeroForcing};
use crate::decoder::{Decoder, Kernel};
use crate::encode::encode;
use crate::shape::{CODE_BITS, SECTOR_BYTES};

/// A drive whose every step decodes a real codeword.
#[derive(Debug)]
pub struct DecodedRetries {
    model: RetryModel,
    sigma: f64,
    forced: ZeroForcing,
    decoder: Decoder,
    levels: Vec<i8>,
}

impl DecodedRetries {
    /// The drive that this model describes, with so many zeroes at the end of each sector.
    pub fn new(model: RetryModel, forced: ZeroForcing, kernel: Kernel) -> Result<Self, RetryError> {
        let sigma = model.sigma()?;
        let decoder = Decoder::new(forced, kernel);
        Ok(Self { model, sigma, forced, decoder, levels: vec![0; CODE_BITS] })
    }

    /// Writes a sector of random data and reads it: the step that brings it back, if one does.
    pub fn read(&mut self, rng: &mut Rng) -> Option<usize> {
        let mut sector = vec![0; SECTOR_BYTES];
        rng.fill(&mut sector[..SECTOR_BYTES - self.forced.bytes()]);
        let word = encode(&sector);
        let written = gauss(rng, self.model.written_offset);
        let mut has_samples = false;
        for step in 0..self.model.steps.len() {
            if step == 0 || self.model.steps[step].revolutions > 0 {
                has_samples = self.pass(step, written, &word, rng);
            }
            if has_samples {
                let decoded = self.decoder.decode(&self.levels, self.model.steps[step].iterations);
                if decoded.converged && *self.decoder.word() == word {
                    return Some(step);
                }
            }
        }
        None
    }

    /// Takes the samples of a step's pass, if any amplitude is left of them.
    fn pass(&mut self, step: usize, written: f64, word: &Codeword, rng: &mut Rng) -> bool {
        let pass = gauss(rng, self.model.pass_offset);
        let noise = RetryModel::noise(self.model.steps[step], self.sigma, written, pass);
        // Beyond half of the amplitude the bits are as good as lost.
        let ber = noise.map_or(0.5, |noise| Normal::STANDARD.above(1.0 / noise));
        let Ok(channel) = Channel::new(ChannelKind::Soft, ber) else { return false };
        channel.transmit(word, rng, &mut self.levels);
        true
    }
}

/// A Gaussian number of mean 0.
fn gauss(rng: &mut Rng, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return 0.0;
    }
    // Neither end of the law is drawn.
    let uniform = rng.unit().clamp(f64::EPSILON / 4.0, 1.0 - f64::EPSILON / 2.0);
    Normal { mean: 0.0, deviation }.quantile(uniform)
}
