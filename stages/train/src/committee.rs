use provenir_nn::NnError;
use provenir_policy::Layer;

/// Networks of one shape as one network, which gives the mean of what they give: their layers side by side, in groups, but
/// for the first, which they share the input of, and the last, which takes the mean.
pub(crate) fn side_by_side(mut networks: Vec<Vec<Layer>>) -> Result<Vec<Layer>, NnError> {
    if networks.len() == 1 {
        return Ok(networks.remove(0));
    }
    let count = networks.len();
    let depth = networks.first().map_or(0, Vec::len);
    (0..depth)
        .map(|index| {
            let layers = || networks.iter().map(|network| &network[index]);
            let (inputs, outputs) = (networks[0][index].inputs(), networks[0][index].outputs());
            let weights = layers().flat_map(Layer::weights).copied().collect();
            let bias = layers().flat_map(Layer::bias).copied().collect();
            let last = index + 1 == depth;
            Ok(match (index, last) {
                (0, false) => Layer::new(inputs, count * outputs, weights, bias)?,
                (_, false) => Layer::grouped(count, count * inputs, count * outputs, weights, bias)?,
                (_, true) => mean(&layers().collect::<Vec<_>>(), index > 0)?,
            })
        })
        .collect()
}

/// The mean of what layers give, of an input for each, side by side, or of one for all.
fn mean(layers: &[&Layer], has_own_input: bool) -> Result<Layer, NnError> {
    let (inputs, outputs) = (layers[0].inputs(), layers[0].outputs());
    let share = |value: f64| (value / layers.len() as f64) as f32;
    let bias = (0..outputs)
        .map(|output| share(layers.iter().map(|layer| f64::from(layer.bias()[output])).sum()))
        .collect();
    let row = |layer: &Layer, output: usize| layer.weights()[output * inputs..][..inputs].to_vec();
    let mut weights = Vec::new();
    for output in 0..outputs {
        if has_own_input {
            let rows = layers.iter().flat_map(|layer| row(layer, output));
            weights.extend(rows.map(|weight| share(f64::from(weight))));
        } else {
            let rows: Vec<Vec<f32>> = layers.iter().map(|layer| row(layer, output)).collect();
            let sum = |input: usize| rows.iter().map(|row| f64::from(row[input])).sum();
            weights.extend((0..inputs).map(|input| share(sum(input))));
        }
    }
    let width = weights.len() / outputs;
    Ok(Layer::new(width, outputs, weights, bias)?)
}

#[cfg(test)]
mod tests {
    use provenir_nn::{Ensemble, Shape};
    use provenir_policy::{About, ActionMap, Activation, Policy, PolicySet, Squash};
    use provenir_random::Stream;
    use tch::Device;

    use super::*;

    fn policy(layers: Vec<Layer>, activation: Activation) -> Policy {
        let map = ActionMap {
            squash: Squash::Clip,
            low: vec![-9.0; 2],
            high: vec![9.0; 2],
        };
        Policy::new(layers, activation, None, map, About::default()).unwrap()
    }

    fn act(policy: &Policy, observations: &[f32]) -> Vec<f32> {
        let mut actions = vec![0.0; observations.len() / 5 * 2];
        policy.actor().act(observations, &mut actions);
        actions
    }

    #[test]
    fn a_committee_does_the_mean_of_what_its_networks_do() {
        let mut stream = Stream::new(3, "observations");
        let observations: Vec<f32> = (0..5 * 20).map(|_| stream.normal() as f32).collect();
        for (hidden, activation) in [
            (vec![], Activation::Relu),
            (vec![9], Activation::Tanh),
            (vec![7, 20, 6], Activation::Relu),
        ] {
            let shape = Shape {
                inputs: 5,
                hidden,
                outputs: 2,
                activation,
            };
            let streams: Vec<Stream> = (0..4).map(|seed| Stream::new(seed, "networks")).collect();
            let ensemble = Ensemble::initial(&shape, &streams, Device::Cpu).unwrap();
            let networks: Vec<Vec<Layer>> = (0..4).map(|index| ensemble.member(index).unwrap()).collect();
            let each: Vec<Vec<f32>> = networks
                .iter()
                .map(|layers| act(&policy(layers.clone(), activation), &observations))
                .collect();
            let committee = policy(side_by_side(networks.clone()).unwrap(), activation);
            for (index, found) in act(&committee, &observations).into_iter().enumerate() {
                let expected = each.iter().map(|actions| f64::from(actions[index])).sum::<f64>() / 4.0;
                assert!(
                    (f64::from(found) - expected).abs() < 1e-6,
                    "{found} for {expected}"
                );
            }
            assert_eq!(side_by_side(vec![networks[0].clone()]).unwrap(), networks[0]);
            // Files hold it.
            let set = PolicySet::new(vec![(3, committee)]).unwrap();
            assert_eq!(PolicySet::from_table(&set.to_table().unwrap()).unwrap(), set);
            assert_eq!(PolicySet::from_safetensors(&set.to_safetensors()).unwrap(), set);
        }
    }
}
