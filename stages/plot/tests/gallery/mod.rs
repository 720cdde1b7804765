//! Figures of every shape that the layout must cope with.

use provenir_api::{Digest, FigureIdentity};
use provenir_kinds::plot::{Scale, Share};
use provenir_plot::{Axis, Curve, Figure, Line, Panel, Point, Series};

/// All of them, by name.
pub(crate) fn figures() -> Vec<(&'static str, Figure)> {
    vec![
        ("quickstart", quickstart()),
        ("paper", paper()),
        (
            "free",
            Figure {
                share_y: Share::Column,
                ..paper()
            },
        ),
        (
            "paper-width",
            Figure {
                size: Some([396.0, 230.0]),
                ..paper()
            },
        ),
        ("epochs", epochs()),
        ("sizes", sizes()),
        ("many-series", many_series()),
        ("one-point", one_point()),
        ("all-equal", all_equal()),
        ("negative", negative()),
        ("long", long()),
        ("hostile", hostile()),
        ("log-log", log_log()),
        (
            "limits",
            Figure {
                y: Axis {
                    limits: Some([1000.0, 2000.0]),
                    ..axis("return")
                },
                ..quickstart()
            },
        ),
        ("empty-panel", empty_panel()),
        ("extreme", extreme()),
        ("categories", categories()),
    ]
}

fn axis(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: Scale::Linear,
        limits: None,
    }
}

fn log_axis(label: &str) -> Axis {
    Axis {
        scale: Scale::Log,
        ..axis(label)
    }
}

fn series<const N: usize>(labels: [&str; N]) -> Vec<Series> {
    let labelled = labels.iter().enumerate();
    labelled
        .map(|(style, label)| Series {
            label: (*label).to_owned(),
            style,
        })
        .collect()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn base() -> Figure {
    Figure {
        title: String::new(),
        description: "Curves.".to_owned(),
        x: axis("x"),
        categories: Vec::new(),
        y: axis("y"),
        share_y: Share::All,
        columns: texts([""]),
        rows: texts([""]),
        panels: Vec::new(),
        series: Vec::new(),
        references: Vec::new(),
        size: None,
        identity: FigureIdentity {
            action_key: "key".to_owned(),
            data: Digest::of(b"data"),
        },
    }
}

/// A curve whose points carry bands of half width `band`, where that is positive.
fn curve(series: usize, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Curve {
    let points = points.into_iter().map(|(x, y, band)| Point {
        x,
        y,
        band: (band > 0.0).then_some([y - band, y + band]),
    });
    Curve {
        series,
        points: points.collect(),
    }
}

/// A wave between −1 and 1 without a system's sine.
fn wave(at: f64) -> f64 {
    let at = at - libm::floor(at);
    4.0 * (at - 0.5).abs() - 1.0
}

/// Two series side by side in each of four categories, of which one has a name that takes several lines and one is not in
/// the second panel.
fn categories() -> Figure {
    let panel = |scale: f64, all: &[usize]| Panel {
        curves: (0..2)
            .map(|series| {
                let points = all.iter().map(|place| {
                    let (at, aside) = (*place as f64, 0.3 * series as f64 - 0.15);
                    let high = scale * (40.0 + 25.0 * at) * (1.0 + 2.0 * series as f64);
                    (at + aside, high, high * 0.2)
                });
                curve(series, points)
            })
            .collect(),
        lines: vec![Line {
            reference: 0,
            y: 60.0,
        }],
    };
    Figure {
        title: "Seconds of training to 95 % of the expert".to_owned(),
        x: axis("robot"),
        categories: texts(["Hopper", "Walker2D", "Half cheetah with a long name", "Ant"]),
        y: log_axis("seconds"),
        columns: texts(["laptop", "server"]),
        panels: vec![panel(1.0, &[0, 1, 2, 3]), panel(0.25, &[0, 2, 3])],
        series: series(["Oracle BC", "RBC"]),
        references: texts(["a minute"]),
        ..base()
    }
}

fn quickstart() -> Figure {
    Figure {
        title: "Hopper: behaviour cloning collapses, its robust variant does not".to_owned(),
        x: axis("fraction of outliers ε"),
        y: axis("return"),
        series: series(["BC", "RBC"]),
        references: texts(["Expert"]),
        panels: vec![Panel {
            curves: vec![
                curve(0, [(0.0, 2610.0, 420.0), (0.1, 122.0, 40.0), (0.2, 73.0, 22.0)]),
                curve(
                    1,
                    [(0.0, 2590.0, 450.0), (0.1, 2330.0, 610.0), (0.2, 2460.0, 505.0)],
                ),
            ],
            lines: vec![Line {
                reference: 0,
                y: 2442.0,
            }],
        }],
        ..base()
    }
}

fn paper() -> Figure {
    let epsilon = [0.0, 0.05, 0.1, 0.15, 0.2];
    let experts = [2442.0, 2111.0, 2927.0, 2873.0];
    let panels = (0..8).map(|index| {
        let expert = experts[index % 4];
        let decay = |index: usize, e: f64| match index % 4 {
            2 => expert * (1.0 - 5.0 * e).max(-0.4),
            3 => expert * (1.0 - 6.0 * e).max(0.2),
            _ => expert * (1.0 - 18.0 * e).max(0.03),
        };
        Panel {
            curves: vec![
                curve(0, epsilon.map(|e| (e, decay(index, e), expert * 0.05))),
                curve(
                    1,
                    epsilon.map(|e| (e, expert * (0.98 + 0.03 * wave(e * 7.0)), expert * 0.12)),
                ),
                curve(2, epsilon.map(|e| (e, expert * (0.95 - e), expert * 0.09))),
            ],
            lines: vec![Line {
                reference: 0,
                y: expert,
            }],
        }
    });
    Figure {
        x: axis("fraction of outliers ε"),
        y: axis("return"),
        columns: texts(["Hopper", "Walker2D", "HalfCheetah", "Ant"]),
        rows: texts(["boundary", "uniform"]),
        panels: panels.collect(),
        series: series(["BC", "RBC (ours)", "Noisy BC"]),
        references: texts(["Expert"]),
        ..base()
    }
}

fn epochs() -> Figure {
    let rise = |limit: f64, rate: f64, phase: f64| {
        (1..=40).map(move |epoch| {
            let epoch = f64::from(epoch) * 5.0;
            let done = epoch / (epoch + rate);
            (
                epoch,
                limit * done + 90.0 * wave(epoch * 0.073 + phase),
                350.0 * (1.2 - done),
            )
        })
    };
    let panel = |scale: f64| Panel {
        curves: vec![
            curve(0, rise(700.0 * scale, 30.0, 0.1)),
            curve(1, rise(2500.0 * scale, 22.0, 0.4)),
            curve(2, rise(2400.0 * scale, 45.0, 0.7)),
            curve(3, rise(2000.0 * scale, 90.0, 0.2)),
        ],
        lines: vec![Line {
            reference: 0,
            y: 2442.0,
        }],
    };
    Figure {
        title: "Return while training".to_owned(),
        x: axis("epoch"),
        y: axis("return"),
        columns: texts(["boundary", "uniform"]),
        panels: vec![panel(1.0), panel(0.9)],
        series: series(["BC", "RBC", "Noisy BC", "Direct median"]),
        references: texts(["Expert"]),
        ..base()
    }
}

fn sizes() -> Figure {
    let sizes = [5e3, 1e4, 2e4, 4e4, 8e4];
    let percents = [
        [36.0, 62.0, 83.0, 87.0, 104.0],
        [44.0, 92.0, 102.0, 97.0, 101.0],
        [103.0, 100.0, 104.0, 100.0, 105.0],
    ];
    Figure {
        x: log_axis("demonstrations N"),
        y: axis("return (% of the expert's)"),
        series: series(["RBC", "Noisy BC", "BC on clean data"]),
        panels: vec![Panel {
            curves: percents
                .iter()
                .enumerate()
                .map(|(index, row)| curve(index, sizes.iter().zip(row).map(|(x, y)| (*x, *y, 9.0))))
                .collect(),
            lines: vec![],
        }],
        ..base()
    }
}

fn many_series() -> Figure {
    let labels: Vec<String> = (0..Figure::STYLES)
        .map(|index| format!("method {index}"))
        .collect();
    let curves = (0..Figure::STYLES).map(|index| {
        let points =
            [0.0, 1.0, 2.0, 3.0].map(|x| (x, index as f64 + 0.3 * wave(x * 0.3 + index as f64 * 0.2), 0.0));
        curve(index, points)
    });
    Figure {
        panels: vec![Panel {
            curves: curves.collect(),
            lines: vec![],
        }],
        series: labels
            .into_iter()
            .enumerate()
            .map(|(style, label)| Series { label, style })
            .collect(),
        ..base()
    }
}

fn one_point() -> Figure {
    Figure {
        panels: vec![Panel {
            curves: vec![curve(0, [(0.1, 2442.0, 524.0)])],
            lines: vec![],
        }],
        series: series([""]),
        ..base()
    }
}

fn all_equal() -> Figure {
    Figure {
        panels: vec![Panel {
            curves: vec![curve(0, [(0.0, 7.0, 0.0), (1.0, 7.0, 0.0)])],
            lines: vec![],
        }],
        series: series(["constant"]),
        ..base()
    }
}

fn negative() -> Figure {
    Figure {
        x: axis("ε"),
        y: axis("return (% of the expert's)"),
        series: series(["BC, boundary", "BC, uniform"]),
        panels: vec![Panel {
            curves: vec![
                curve(
                    0,
                    [
                        (0.05, 25.0, 8.0),
                        (0.1, -16.0, 5.0),
                        (0.15, -33.0, 6.0),
                        (0.2, -33.0, 4.0),
                    ],
                ),
                curve(
                    1,
                    [
                        (0.05, 32.0, 11.0),
                        (0.1, -9.0, 5.0),
                        (0.15, -7.0, 7.0),
                        (0.2, -42.0, 3.0),
                    ],
                ),
            ],
            lines: vec![],
        }],
        ..base()
    }
}

fn long() -> Figure {
    let words = "a label that somebody wrote at length because the short one said too little about what is shown here";
    Figure {
        title: format!("{words}, and {words}"),
        x: axis(words),
        y: axis(words),
        columns: texts([words, "short"]),
        rows: texts([words, "Pneumonoultramicroscopicsilicovolcanoconiosis"]),
        series: series([words, "short", "Pneumonoultramicroscopicsilicovolcanoconiosis"]),
        references: texts([words]),
        panels: vec![quickstart().panels[0].clone(); 4],
        ..base()
    }
}

fn hostile() -> Figure {
    Figure {
        title: "<script>alert('title')</script> 🤖 & \"quotes\" ]]> \u{0} \u{202e}right".to_owned(),
        description: "</desc><script>alert('desc')</script>".to_owned(),
        x: axis("</g></svg><script>x</script>"),
        y: axis("<metadata id=\"provenir\">{}</metadata>"),
        series: vec![
            Series {
                label: "🦾🤖".to_owned(),
                style: 0,
            },
            Series {
                label: format!("\"><script>{}", "y".repeat(10_000)),
                style: 1,
            },
        ],
        identity: FigureIdentity {
            action_key: "</metadata><script>key</script>".to_owned(),
            data: Digest::of(b"hostile"),
        },
        ..quickstart()
    }
}

fn log_log() -> Figure {
    let points = [1e-4, 1e-3, 1e-2, 0.1, 1.0];
    Figure {
        x: log_axis("learning rate"),
        y: log_axis("loss"),
        series: series(["train", "validation"]),
        panels: vec![Panel {
            curves: vec![
                curve(0, points.map(|x| (x, 0.02 / (x + 0.003), 0.9 / (x + 0.3)))),
                curve(1, points.map(|x| (x, 0.05 / (x + 0.01), 0.01))),
            ],
            lines: vec![],
        }],
        ..base()
    }
}

fn empty_panel() -> Figure {
    Figure {
        columns: texts(["Hopper", "Ant"]),
        share_y: Share::None,
        panels: vec![quickstart().panels[0].clone(), Panel::default()],
        ..quickstart()
    }
}

fn extreme() -> Figure {
    Figure {
        panels: vec![Panel {
            curves: vec![curve(
                0,
                [(-1e300, -1e300, 0.0), (0.0, 5e-324, 0.0), (1e300, 1e300, 0.0)],
            )],
            lines: vec![],
        }],
        series: series(["extreme"]),
        ..base()
    }
}
