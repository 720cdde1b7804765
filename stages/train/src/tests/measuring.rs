use super::*;

/// What is learnt, noted and said does not depend on whether time is measured.
#[test]
fn measuring_time_changes_nothing_but_the_time() {
    let demos = with_outliers(demonstrations(300, 8), 30);
    for (method, parameters) in super::company::every_method() {
        let learn = |measure_time: bool| {
            let parameters = TrainParameters {
                measure_time,
                checkpoint_every: 3,
                ..parameters.clone()
            };
            let listener = Listener::default();
            let validation = demonstrations(40, 9).into_table().unwrap();
            let inputs = inputs(&demos).with_table("validation", validation);
            let outputs = train_with(&parameters, &inputs, &listener).unwrap();
            let learnt =
                ["policy", "history", "trust"].map(|port| outputs.get_table(port).unwrap().content());
            let timing = outputs.get_table("timing").unwrap();
            let seconds = timing.column_f64("seconds").unwrap().to_vec();
            (learnt, listener.said.into_inner().unwrap(), seconds)
        };
        let (usual, measured) = (learn(false), learn(true));
        assert_eq!(measured.0, usual.0, "{method}");
        assert_eq!(measured.1, usual.1, "{method}");
        for seconds in [usual.2, measured.2] {
            assert!(
                seconds.len() == 8 && seconds[0] > 0.0 && seconds.is_sorted(),
                "{method}: {seconds:?}"
            );
        }
    }
}
