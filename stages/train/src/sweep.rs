use std::ops::Range;

use provenir_nn::{Ensemble, Forward, NnError};
use tch::Tensor;

use crate::data::Data;

/// Samples that pass through the networks together.
const ROWS: usize = 1024;

/// Passes samples of K data sets through J networks, which learn nothing from it.
pub(crate) struct Sweep<'a> {
    data: &'a Data,
    /// S: samples of each data set.
    samples: usize,
    parts: Vec<Part>,
}

struct Part {
    rows: Range<usize>,
    forward: Forward,
    /// Where the samples of each network are ([`Data::rows`]), `[J · B]`.
    places: Tensor,
}

impl<'a> Sweep<'a> {
    /// Of all samples.
    pub(crate) fn new(ensemble: &Ensemble, data: &'a Data) -> Result<Self, NnError> {
        let all: Vec<usize> = (0..data.samples).collect();
        Self::over(ensemble, data, &vec![all; data.members])
    }

    /// Of these samples of each data set, the same number of each.
    pub(crate) fn over(ensemble: &Ensemble, data: &'a Data, chosen: &[Vec<usize>]) -> Result<Self, NnError> {
        let samples = chosen.first().map_or(0, Vec::len);
        assert!(
            chosen.len() == data.members && chosen.iter().all(|chosen| chosen.len() == samples),
            "as many samples of each data set"
        );
        let committee = ensemble.members() / data.members;
        let parts = (0..samples)
            .step_by(ROWS)
            .map(|start| {
                let rows = start..(start + ROWS).min(samples);
                let index: Vec<i64> = (0..ensemble.members())
                    .flat_map(|network| {
                        let member = network / committee;
                        let chosen = &chosen[member][rows.clone()];
                        chosen
                            .iter()
                            .map(move |sample| (member * data.samples + sample) as i64)
                    })
                    .collect();
                Ok(Part {
                    forward: Forward::new(ensemble, rows.len())?,
                    places: data.rows(&Tensor::f_from_slice(&index)?.f_to_device(data.device())?)?,
                    rows,
                })
            })
            .collect::<Result<_, NnError>>()?;
        Ok(Self { data, samples, parts })
    }

    /// Calls `take` with what networks of that shape give and what was shown, `[J, B, out]` both, for each part of the
    /// samples.
    pub(crate) fn each(
        &mut self,
        ensemble: &Ensemble,
        mut take: impl FnMut(Range<usize>, &Tensor, &Tensor) -> Result<(), NnError>,
    ) -> Result<(), NnError> {
        for Part {
            rows,
            forward,
            places,
        } in &mut self.parts
        {
            self.data.observations_into(places, forward)?;
            forward.run(ensemble)?;
            let output = forward.output();
            let actions = self
                .data
                .actions
                .f_index_select(0, places)?
                .f_view(output.size().as_slice())?;
            take(rows.clone(), output, &actions)?;
        }
        Ok(())
    }

    /// Output − target, network after network and sample after sample.
    pub(crate) fn residuals(&mut self, ensemble: &Ensemble) -> Result<Residuals, NnError> {
        let columns = self.data.action_columns();
        let networks = self.data.widths_of(ensemble.members()).into_iter();
        let mut residuals: Vec<(Vec<f32>, usize)> = networks
            .map(|widths| (Vec::with_capacity(self.samples * widths.outputs), widths.outputs))
            .collect();
        self.each(ensemble, |rows, output, actions| {
            let part = output.f_sub(actions)?.f_contiguous()?;
            let mut found = vec![0.0; part.numel()];
            let count = found.len();
            part.f_copy_data(&mut found, count)?;
            for ((values, width), found) in residuals.iter_mut().zip(found.chunks(rows.len() * columns)) {
                for row in found.chunks(columns) {
                    values.extend(&row[..*width]);
                }
            }
            Ok(())
        })?;
        Ok(Residuals(residuals))
    }
}

/// What J networks are off at S samples: of each network `[S, A]`, and A.
pub(crate) struct Residuals(Vec<(Vec<f32>, usize)>);

impl Residuals {
    /// Those of a network, `[S, A]`.
    pub(crate) fn components(&self, network: usize) -> &[f32] {
        &self.0[network].0
    }

    /// Squared error of each sample, averaged over components, of a network.
    pub(crate) fn errors(&self, network: usize) -> Vec<f64> {
        let (values, width) = &self.0[network];
        let rows = values.chunks(*width);
        rows.map(|row| {
            let sum: f64 = row
                .iter()
                .map(|value| f64::from(*value) * f64::from(*value))
                .sum();
            sum / *width as f64
        })
        .collect()
    }
}
