//! Windows as the bodies of requests, and answers of receivers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use serde::Serialize;
use whit_export::{Content, Delivery, ExportError, write_otlp_window, write_pprof_window};

use crate::parcel::Parcel;
use crate::settings::{Kind, Settings};

/// The metric under which Pyroscope and Parca keep profiles of CPU time.
const METRIC: &str = "process_cpu";

/// The window for a receiver.
pub(crate) fn parcel(
    settings: &Settings,
    content: &Content<'_>,
    window: &Delivery,
) -> Result<Parcel, ExportError> {
    let delivery = delivery(settings, window);
    let body = match settings.kind {
        Kind::Otlp => otlp(content, &delivery)?,
        Kind::Pyroscope => pyroscope(settings, content, &delivery)?,
        Kind::Parca => parca(settings, content, &delivery)?,
    };
    Ok(Parcel { kind: settings.kind, start_unix_ns: window.start_unix_ns, body })
}

/// The header lines that a protocol asks for.
pub(crate) fn headers(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Otlp => &[("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")],
        Kind::Pyroscope => {
            &[("Content-Type", "application/proto"), ("Connect-Protocol-Version", "1")]
        }
        Kind::Parca => &[("Content-Type", "application/json")],
    }
}

fn delivery(settings: &Settings, window: &Delivery) -> Delivery {
    let mut delivery = window.clone();
    delivery.labels = settings.labels_of_samples();
    delivery.identity.push(("service.name".to_owned(), settings.service.clone()));
    for (key, text) in &settings.labels {
        delivery.identity.retain(|(known, _)| known != key);
        delivery.identity.push((key.clone(), text.clone()));
    }
    delivery
}

fn otlp(content: &Content<'_>, delivery: &Delivery) -> Result<Vec<u8>, ExportError> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    write_otlp_window(content, delivery, &mut out)?;
    Ok(out.finish()?)
}

/// Labels of a series: words as Prometheus has them.
fn series(
    settings: &Settings,
    content: &Content<'_>,
    delivery: &Delivery,
    service: &'static str,
) -> Vec<(String, String)> {
    let host = delivery.host(content);
    let mut labels = vec![
        ("__name__".to_owned(), METRIC.to_owned()),
        (service.to_owned(), settings.service.clone()),
        ("hostname".to_owned(), host.to_owned()),
    ];
    for (key, text) in &delivery.identity {
        let key = label_name(key);
        if key != "service_name" {
            labels.retain(|(known, _)| *known != key);
            labels.push((key, text.clone()));
        }
    }
    labels.retain(|(_, text)| !text.is_empty());
    labels.sort();
    labels
}

fn label_name(key: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = key.chars().map(word).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// `push.v1.PushRequest`.
#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<RawProfileSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct RawProfileSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}

fn pyroscope(
    settings: &Settings,
    content: &Content<'_>,
    delivery: &Delivery,
) -> Result<Vec<u8>, ExportError> {
    let mut raw_profile = Vec::new();
    write_pprof_window(content, delivery, &mut raw_profile)?;
    let labels = series(settings, content, delivery, "service_name");
    let labels = labels.into_iter().map(|(name, value)| LabelPair { name, value }).collect();
    let series = RawProfileSeries { labels, samples: vec![RawSample { raw_profile }] };
    Ok(PushRequest { series: vec![series] }.encode_to_vec())
}

/// `parca.profilestore.v1alpha1.WriteRawRequest` as JSON.
#[derive(Serialize)]
struct WriteRaw {
    series: [ParcaSeries; 1],
    normalized: bool,
}

#[derive(Serialize)]
struct ParcaSeries {
    labels: ParcaLabels,
    samples: [ParcaSample; 1],
}

#[derive(Serialize)]
struct ParcaLabels {
    labels: Vec<ParcaLabel>,
}

#[derive(Serialize)]
struct ParcaLabel {
    name: String,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ParcaSample {
    raw_profile: String,
}

fn parca(
    settings: &Settings,
    content: &Content<'_>,
    delivery: &Delivery,
) -> Result<Vec<u8>, ExportError> {
    let mut pprof = Vec::new();
    write_pprof_window(content, delivery, &mut pprof)?;
    let labels = series(settings, content, delivery, "job").into_iter();
    let labels = labels.map(|(name, value)| ParcaLabel { name, value }).collect();
    let samples = [ParcaSample { raw_profile: STANDARD.encode(pprof) }];
    let series = [ParcaSeries { labels: ParcaLabels { labels }, samples }];
    Ok(serde_json::to_vec(&WriteRaw { series, normalized: true })?)
}

/// `ExportProfilesServiceResponse`.
#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_profiles: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The profiles that a receiver left out of a window, by their number, and its reason.
pub(crate) fn rejected(kind: Kind, answer: &[u8]) -> Option<(u64, String)> {
    if kind != Kind::Otlp {
        return None;
    }
    let partial = ExportResponse::decode(answer).ok()?.partial_success?;
    let count = u64::try_from(partial.rejected_profiles).unwrap_or(0);
    (count > 0).then_some((count, partial.error_message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_words() {
        assert_eq!(label_name("host.name"), "host_name");
        assert_eq!(label_name("1st"), "_1st");
    }

    #[test]
    fn profiles_that_a_collector_left_out_are_counted() {
        let partial = PartialSuccess { rejected_profiles: 2, error_message: "why".to_owned() };
        let answer = ExportResponse { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(rejected(Kind::Otlp, &answer), Some((2, "why".to_owned())));
        assert_eq!(rejected(Kind::Parca, &answer), None);
        assert_eq!(rejected(Kind::Otlp, b""), None);
        assert_eq!(rejected(Kind::Otlp, b"{\"partialSuccess\":{}}"), None);
    }
}
