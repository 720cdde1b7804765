//! Inference of a policy: multiply–add pairs a second on one core, for the rows of a rollout and of a data set.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use provenir_policy::{About, ActionMap, Activation, Layer, Policy, Squash};
use provenir_random::Stream;

fn policy(widths: &[usize]) -> Policy {
    let mut stream = Stream::new(1, "weights");
    let layers = widths.windows(2).map(|pair| {
        let (inputs, outputs) = (pair[0], pair[1]);
        let weights = (0..inputs * outputs)
            .map(|_| stream.normal() as f32 / 16.0)
            .collect();
        Layer::new(inputs, outputs, weights, vec![0.0; outputs]).expect("sound layer")
    });
    let layers = layers.collect();
    let action = widths[widths.len() - 1];
    let action_map = ActionMap {
        squash: Squash::Clip,
        low: vec![-1.0; action],
        high: vec![1.0; action],
    };
    Policy::new(layers, Activation::Relu, None, action_map, About::default()).expect("sound policy")
}

fn inference(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("inference");
    for widths in [&[16, 256, 256, 3][..], &[15, 500, 500, 500, 3]] {
        let policy = policy(widths);
        let pairs: usize = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let mut actor = policy.actor();
        for rows in [1, 16, 32, 1024] {
            let mut stream = Stream::new(2, "observations");
            let observations: Vec<f32> = (0..rows * widths[0]).map(|_| stream.normal() as f32).collect();
            let mut actions = vec![0.0; rows * policy.action_width()];
            group.throughput(Throughput::Elements((rows * pairs) as u64));
            group.bench_function(BenchmarkId::new(format!("{widths:?}"), rows), |bencher| {
                bencher.iter(|| actor.act(&observations, &mut actions));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, inference);
criterion_main!(benches);
