//! Manifests that nobody wrote by hand: whatever the text, it is a plan or a list of problems, never a panic.

use proptest::prelude::*;

use super::{Overrides, Project};
use crate::expansion::PIPELINE;

/// Texts that mean something to the language.
const WORDS: [&str; 32] = [
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "\"",
    "\n",
    "${",
    "${env}",
    "${epsilon.x}",
    "stages",
    "axes",
    "epsilon",
    "demos",
    "policy",
    "0",
    "-1",
    "1e308",
    "nan",
    "[]",
    "{}",
    "\"\"",
    "[[",
    "exclude",
    "where",
    "at",
    "as",
    "over",
    ".",
    "../",
    "\u{0}",
];

fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    prop::collection::vec((0..PIPELINE.len(), 0_usize..12, 0..WORDS.len()), 1..6)
}

/// The text with stretches of it replaced by words.
fn edited(edits: &[(usize, usize, usize)]) -> String {
    let mut text = PIPELINE.to_owned();
    for (start, length, word) in edits {
        let start = *start.min(&text.len());
        let end = (start + length).min(text.len());
        if text.is_char_boundary(start) && text.is_char_boundary(end) {
            text.replace_range(start..end, WORDS[*word]);
        }
    }
    text
}

/// The text with its lines in another order, some of them twice, some left out.
fn shuffled(lines: &[usize]) -> String {
    let all: Vec<&str> = PIPELINE.lines().collect();
    let taken: Vec<&str> = lines.iter().map(|line| all[line % all.len()]).collect();
    format!("format = 1\n{}", taken.join("\n"))
}

fn examine(text: &str, overrides: &Overrides) -> Result<(), TestCaseError> {
    match Project::new(text).load_with(overrides) {
        Ok(plan) => {
            prop_assert!(!plan.cells.is_empty() || !plan.warnings.is_empty());
            prop_assert!(!plan.warnings.has_errors());
        }
        Err(found) => {
            prop_assert!(found.has_errors());
            prop_assert!(found.entries().all(|entry| !entry.message.is_empty()));
            let shown = format!("{found}{}", found.render(80, false));
            let steers = |char: char| char.is_control() && !matches!(char, '\n' | '\t' | '\r');
            prop_assert!(!shown.contains(steers));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn an_edited_manifest_is_a_plan_or_a_list_of_problems(edits in edits()) {
        examine(&edited(&edits), &Overrides::default())?;
    }

    #[test]
    fn shuffled_lines_are_a_plan_or_a_list_of_problems(lines in prop::collection::vec(any::<usize>(), 0..40)) {
        examine(&shuffled(&lines), &Overrides::default())?;
    }

    #[test]
    fn options_are_taken_or_refused(option in ".{0,30}", path in "(stages|axes|policy|params|env|inputs|at|\\.){0,6}") {
        let overrides = Overrides {
            axes: vec![option.clone(), format!("env={option}")],
            set: vec![option.clone(), format!("{path}={option}"), format!("stages.policy.params.robust={option}")],
            only: vec![option.clone()],
            profile: Some(option),
        };
        examine(PIPELINE, &overrides)?;
    }
}
