//! Requests as receivers get them.

use std::collections::BTreeMap;

use prost::Message;
use whit_push::{Kind, Secret};

use crate::pprof::Pprof;
use crate::server::{Answer, Server, TAKEN};
use crate::support::{Run, hasty};

#[test]
fn windows_go_over_one_connection_with_their_headers() {
    let server = Server::start(|_, _| TAKEN);
    let mut settings = hasty(Kind::Otlp, &server.url());
    let headers_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(headers_file.path(), "Authorization: Bearer first\n\n").unwrap();
    settings.headers_file = Some(headers_file.path().to_owned());
    settings.headers.insert("X-Scope-OrgID".to_owned(), Secret("team".to_owned()));
    let run = Run::start(&[("one", settings)]);
    run.push([1, 2]);
    server.wait_for(2);
    // The token is renewed while the program runs.
    std::fs::write(headers_file.path(), "Authorization: Bearer second\n").unwrap();
    run.push([3]);
    let requests = server.wait_for(3);
    assert_eq!(server.connections(), 1);
    for request in &requests {
        assert_eq!(request.path, "/v1development/profiles");
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        assert_eq!(request.header("content-encoding"), Some("gzip"));
        assert_eq!(request.header("x-scope-orgid"), Some("team"));
    }
    assert_eq!(requests[1].header("authorization"), Some("Bearer first"));
    assert_eq!(requests[2].header("authorization"), Some("Bearer second"));
    let done = run.wait("one", "all are sent", |it| it.sent.windows == 3);
    assert!(done.last_success_unix_s.is_some());
    assert!(!format!("{done:?}").contains("Bearer"), "secrets are shown to nobody");
}

#[test]
fn profiles_that_a_collector_leaves_out_are_counted() {
    // partial_success { rejected_profiles: 3, error_message: "no" }
    let partial = vec![0x0a, 0x06, 0x08, 0x03, 0x12, 0x02, b'n', b'o'];
    let server = Server::start(move |_, _| Answer::Status(200, "", partial.clone()));
    let run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
    run.push([1]);
    let done = run.wait("one", "it is sent", |it| it.sent.windows == 1);
    assert_eq!((done.rejected_profiles, done.last_error.as_deref()), (3, Some("no")));
}

/// `push.v1.PushRequest`.
#[derive(Clone, PartialEq, Message)]
struct Push {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Raw>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Raw {
    #[prost(bytes = "vec", tag = "1")]
    pprof: Vec<u8>,
}

fn assert_is_the_window(pprof: &Pprof, run: &Run) {
    let types: Vec<_> = pprof.sample_type.iter().map(|it| pprof.text(it.first)).collect();
    assert_eq!(types, ["samples", "cpu"]);
    assert_eq!(pprof.text(pprof.sample_type[1].second), "nanoseconds");
    assert!(pprof.has_plain_numbers());
    let sums = run.sums();
    let wanted = |value: fn((u64, u64)) -> u64| -> BTreeMap<String, u64> {
        sums.iter().map(|(name, sum)| (name.clone(), value(*sum))).collect()
    };
    assert_eq!(pprof.sums(0), wanted(|(samples, _)| samples));
    assert_eq!(pprof.sums(1), wanted(|(_, period)| period));
    // By these, windows of several hosts and rates are added up.
    assert_eq!((pprof.time_nanos, pprof.duration_nanos), (7_000_000_000, 10_000_000_000));
    assert!(pprof.period > 0 && pprof.period_type.is_some_and(|it| pprof.text(it.first) == "cpu"));
}

#[test]
fn pyroscope_gets_series_without_a_number_in_their_labels() {
    let server = Server::start(|_, _| TAKEN);
    let mut settings = hasty(Kind::Pyroscope, &server.url());
    settings.service = "fleet".to_owned();
    settings.labels.insert("cloud.region".to_owned(), "eu".to_owned());
    let run = Run::start(&[("one", settings)]);
    run.push([7]);
    let request = server.wait_for(1).remove(0);
    assert_eq!(request.path, "/push.v1.PusherService/Push");
    assert_eq!(request.header("content-type"), Some("application/proto"));
    let push = Push::decode(&request.body[..]).expect("a request");
    let labels: Vec<_> =
        push.series[0].labels.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
    let named = |name| labels.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    assert_eq!(named("__name__"), Some("process_cpu"));
    assert_eq!((named("service_name"), named("cloud_region")), (Some("fleet"), Some("eu")));
    assert!(labels.is_sorted() && named("hostname").is_some(), "{labels:?}");
    let pprof = Pprof::from_gzip(&push.series[0].samples[0].pprof);
    assert_is_the_window(&pprof, &run);
    let labels = pprof.labels();
    let names: Vec<_> = labels.keys().copied().collect();
    assert_eq!(names, ["cgroup", "comm", "container", "pod", "unit"]);
    assert_eq!(labels["pod"], ["0d2a1b3c-1111-2222-3333-444455556666"]);
    assert!(labels["unit"].contains(&"web.service"), "{labels:?}");
}

#[test]
fn parca_gets_json_and_the_labels_that_are_asked_for() {
    let server = Server::start(|_, _| TAKEN);
    let mut settings = hasty(Kind::Parca, &server.url());
    settings.sample_labels = vec![whit_push::SampleLabel::Comm];
    let run = Run::start(&[("one", settings)]);
    run.push([7]);
    let request = server.wait_for(1).remove(0);
    assert_eq!(request.path, "/api/profiles/writeraw");
    let json: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    let series = &json["series"][0];
    let labels = series["labels"]["labels"].as_array().expect("labels");
    assert!(labels.iter().any(|it| it["name"] == "job" && it["value"] == "whit"), "{labels:?}");
    use base64::Engine;
    let raw = series["samples"][0]["rawProfile"].as_str().expect("a profile");
    let raw = base64::engine::general_purpose::STANDARD.decode(raw).expect("base64");
    let pprof = Pprof::from_gzip(&raw);
    assert_is_the_window(&pprof, &run);
    assert_eq!(pprof.labels().keys().collect::<Vec<_>>(), [&"comm"]);
}
