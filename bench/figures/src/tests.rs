//! All figures of all papers, with few records: every value read is right, every claim has a figure, and the page needs
//! nothing else.

use std::path::PathBuf;

use super::*;

fn settings() -> Settings {
    let dir = PathBuf::from("/dev/shm");
    Settings {
        dir,
        segments: 4,
        systems: Vec::new(),
        pairs: 1000,
        records: 500,
        few_records: 200,
        percent: 2,
        operations: 500,
        rounds: 2,
        read_block_ns: Some(0),
        persist_ns: 0,
        cache_bytes: None,
        is_counting: false,
    }
}

/// Measures figures of a paper; returns the page and the points.
fn measured(paper: &str, figures: &[&str], settings: Settings) -> (String, Vec<serde_json::Value>) {
    // Each test probes the machine in a directory of its own.
    let (out, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in(&settings.dir).unwrap());
    let settings = Settings { dir: home.path().to_owned(), ..settings };
    let arguments = Arguments {
        paper: Some(paper.to_owned()),
        figures: figures.iter().map(|&figure| figure.to_owned()).collect(),
        list: false,
        write_counts: false,
        evaluate: None,
        settings,
        out: out.path().to_owned(),
    };
    assert_eq!(run(&arguments).unwrap(), 0);
    let page = fs::read_to_string(out.path().join(format!("{paper}.html"))).unwrap();
    let names_outside = page.replace("http://www.w3.org/2000/svg", "").contains("://");
    assert!(!names_outside, "{page}");
    let json = fs::read_to_string(out.path().join(format!("{paper}.json"))).unwrap();
    let read = Runs::read(Paper::named(paper).unwrap(), json.as_bytes()).unwrap();
    let mut again = Vec::new();
    read.write(&mut again).unwrap();
    assert!(again == json.as_bytes(), "measurements are not read as they were written");
    assert!(Runs::read(Paper::named(paper).unwrap(), json.replace("ns", "s").as_bytes()).is_err());
    let points: Vec<serde_json::Value> = json.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(points.iter().all(|point| point["wrong"] == 0));
    (page, points)
}

#[test]
fn every_figure_is_measured_and_right() {
    let (page, points) = measured("rewo", &[], settings());
    assert!(page.matches("<svg").count() >= 10, "{page}");
    assert!(points.len() > 100 && !page.contains("not built") && !page.contains("not measured"));
}

#[test]
fn ink_figures_are_measured_and_right() {
    let (page, points) = measured("ink", &["6", "8", "9", "10", "11", "12"], settings());
    assert_eq!(page.matches("<svg").count(), 3 + 3 + 3 + 6 + 6 + 2);
    assert!(page.contains("pmemkv is not built") && points.len() > 300 && !page.contains("not measured"));
    let has_rocksdb = points.iter().any(|point| point["system"] == "rocksdb");
    assert_eq!(has_rocksdb, cfg!(feature = "rocksdb"));
    assert_eq!(page.contains("rocksdb is not built"), !has_rocksdb);
}

/// Every store is measured at each place of each figure that shows it.
#[test]
fn hikv_figures_are_measured_and_right() {
    let (page, points) = measured("hikv", &[], settings());
    assert!(!page.contains("not measured"), "{page}");
    for figure in Paper::named("hikv").unwrap().figures.iter().filter(|figure| figure.name != "services") {
        let rounds = if figure.name == "13" { 1 } else { 2 };
        for (workload, system) in figure.workloads.iter().flat_map(|w| figure.systems.iter().map(move |s| (*w, *s))) {
            for at in figure.at {
                let of = |point: &&serde_json::Value| {
                    point["workload"] == workload && point["system"] == system && point["at"] == *at
                };
                let found = points.iter().filter(of).count();
                assert_eq!(found, rounds, "{} {workload} {system} {at}", figure.name);
            }
        }
    }
    // Exact counts: a get takes no fence, and a put of a tree with fingerprints more fences than one of HiKV.
    let fences = |workload: &str, system: &str| {
        let of = |point: &&serde_json::Value| point["workload"] == workload && point["system"] == system;
        points.iter().find(of).unwrap()["accesses"]["fences"].as_f64().unwrap()
    };
    assert_eq!(fences("get-latency", "fptree"), 0.0);
    assert!(fences("update-latency", "hikv") < fences("update-latency", "fptree"));
}

/// Every system that can be run is measured at each place of each table and figure, and the others are reported.
#[test]
fn pmekv_figures_are_measured_and_right() {
    let (page, points) = measured("pmekv", &[], settings());
    assert_eq!(page.matches("<svg").count(), 11, "{page}");
    assert!(page.contains("mongodb is not built") && page.contains("<td>mongodb<td>1364 / –"));
    let paper = Paper::named("pmekv").unwrap();
    let is_there = |system: &&str| {
        let lacks = paper.programs.iter().any(|program| program.system == *system && !program.is_there());
        !lacks && (cfg!(feature = "rocksdb") || *system != "rocksdb")
    };
    let systems: Vec<_> = paper.figures[0].systems.iter().copied().filter(is_there).collect();
    assert!(systems.len() >= 7, "{systems:?}");
    for figure in paper.figures {
        for (system, at) in systems.iter().flat_map(|system| figure.at.iter().map(move |at| (*system, *at))) {
            let of = |point: &&serde_json::Value| {
                figure.workloads.iter().any(|workload| point["workload"] == *workload)
                    && point["system"] == system
                    && point["at"] == at
            };
            assert_eq!(points.iter().filter(of).count(), 2, "{} {system} {at}", figure.name);
        }
    }
    for program in paper.programs {
        assert_eq!(page.contains(&format!("{} is not run", program.system)), !program.is_there());
    }
}

/// All papers together take at most two hours, and no figure is left out.
#[test]
fn plan_covers_every_figure_once() {
    let mut seconds = 0;
    for paper in paper::PAPERS {
        let mut planned: Vec<&str> = paper.plan.iter().flat_map(|part| part.figures).copied().collect();
        let mut figures: Vec<&str> = paper.figures.iter().map(|figure| figure.name).collect();
        planned.sort_unstable();
        figures.sort_unstable();
        assert_eq!(planned, figures, "{}", paper.name);
        seconds += paper.plan.iter().map(|part| part.seconds).sum::<u32>();
    }
    assert!(seconds <= 2 * 60 * 60, "{seconds}");
}

/// A second run measures nothing, and one that lacks a figure measures it.
#[test]
fn interrupted_full_run_continues() {
    let (out, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    let settings = Settings { dir: home.path().to_owned(), rounds: 1, ..settings() };
    let arguments = Arguments {
        paper: Some(ALL.to_owned()),
        figures: Vec::new(),
        list: false,
        write_counts: false,
        evaluate: None,
        settings,
        out: out.path().to_owned(),
    };
    assert_eq!(run(&arguments).unwrap(), 0);
    let saved = || paper::PAPERS.map(|paper| fs::read_to_string(arguments.path(paper, "json")).unwrap());
    let all = saved();
    assert_eq!(run(&arguments).unwrap(), 0);
    assert!(saved() == all, "measured again");
    // A run's points are lost, like those of an interrupted part.
    let path = arguments.path(paper::PAPERS[1], "json");
    let mut lines: Vec<&str> = all[1].lines().collect();
    lines.retain(|line| !line.contains("\"ycsb-"));
    fs::write(&path, lines.join("\n")).unwrap();
    assert_eq!(run(&arguments).unwrap(), 0);
    assert!(saved()[1].contains("\"ycsb-c\"") && saved()[0] == all[0]);
}

#[test]
fn systems_can_be_chosen() {
    let settings = || Settings { systems: vec!["pmekv-m".to_owned(), "pmekv-fs".to_owned()], ..settings() };
    let (page, points) = measured("pmekv", &["table-3"], settings());
    let of = |system: &str| points.iter().filter(|point| point["system"] == system).count();
    assert_eq!([of("pmekv-m"), of("pmekv-fs"), points.len()], [10, 10, 20]);
    assert!(page.contains("not measured"));
    let arguments = Arguments::try_parse_from(["figures", "pmekv", "table-3", "--systems", "pmekv-x"]).unwrap();
    assert!(run(&arguments).is_err());
}

/// Every operation has a time, which is divided into parts as far as it was sampled, and searching has a share of a
/// read.
#[test]
fn inks_operations_have_parts() {
    let settings = Settings { records: 5000, operations: 20_000, rounds: 1, ..settings() };
    let (_, points) = measured("ink", &["7"], settings);
    let ns = |workload: &str, part: &str| -> f64 {
        let of = |point: &&serde_json::Value| point["workload"] == workload && point["system"] == part;
        points.iter().filter(of).filter_map(|point| point["ns"].as_f64()).sum()
    };
    let whole = points.iter().filter(|point| point["system"] == "all");
    assert!(ns("read-parts", "searching") > 0.0 && whole.count() == 3 * 6, "{points:?}");
    assert_eq!(ns("read-parts", "logging"), 0.0);
}

#[test]
fn picture_of_several_plots_ends_once() {
    let (figure, mut points) = (&Paper::named("rewo").unwrap().figures[1], Points::default());
    for workload in figure.workloads {
        points.add(point::Point { ns: 5.0, ..point::Point::of(workload, "rewo", 0.8, 0) });
    }
    let svg = plot::all_in_one(figure, &points).unwrap().unwrap();
    assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (1, 1));
    assert!(svg.trim_end().ends_with("</svg>") && plot::all_in_one(figure, &Points::default()).unwrap().is_none());
}

#[test]
fn missing_figure_is_refused() {
    assert!(Paper::named("nobody").is_err());
    assert!(Paper::named("rewo").unwrap().chosen(&["99".to_owned()]).is_err());
    assert_eq!(Paper::named("rewo").unwrap().chosen(&["9".to_owned()]).unwrap().len(), 1);
}

#[test]
fn nothing_is_no_measurement() {
    for none in [["--segments", "1"], ["--operations", "0"], ["--rounds", "0"], ["--percent", "0"]] {
        assert!(Arguments::try_parse_from(["figures", "rewo"].into_iter().chain(none)).is_err(), "{none:?}");
    }
}

#[test]
fn wrong_value_is_noticed() {
    let value = records::value(7, 3);
    assert!(
        records::is_value_of(7, &value) && !records::is_value_of(8, &value) && !records::is_value_of(7, &value[..10])
    );
    let mut torn = records::value(7, 4);
    torn[5..].copy_from_slice(&value[5..]);
    assert!(!records::is_value_of(7, &torn));
}
