//! Requests to one receiver, with bounds on time and size.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::answer::{Verdict, verdict};
use crate::parcel::Parcel;
use crate::protocol;
use crate::settings::{Settings, Tls, check_header};

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Largest file of headers or certificates.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Why a destination cannot be reached with its settings.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file of the settings.
    #[error("cannot read {setting} {path}: {reason}")]
    File {
        /// Its name.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The error, in words.
        reason: String,
    },
}

/// Sends parcels; keeps its connection.
pub(crate) struct Client {
    agent: Agent,
    endpoint: String,
    headers: Vec<(String, String)>,
    headers_file: Option<PathBuf>,
}

/// The result of a request.
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// Profiles that the receiver left out, and why.
    pub(crate) rejected: Option<(u64, String)>,
}

impl Client {
    pub(crate) fn new(settings: &Settings) -> Result<Client, ClientError> {
        let timeout = settings.timeout.0;
        let config = Agent::config_builder()
            .tls_config(tls(&settings.tls)?)
            .timeout_connect(Some(settings.connect_timeout.0.min(timeout)))
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("whit/", env!("CARGO_PKG_VERSION")))
            .build();
        let headers = settings.headers.iter().map(|(name, text)| (name.clone(), text.0.clone()));
        let client = Client {
            agent: config.into(),
            endpoint: settings.endpoint(),
            headers: headers.collect(),
            headers_file: settings.headers_file.clone(),
        };
        client.further_headers()?;
        Ok(client)
    }

    /// Those of the file, as they are now.
    fn further_headers(&self) -> Result<Vec<(String, String)>, ClientError> {
        let Some(path) = &self.headers_file else { return Ok(Vec::new()) };
        let error = |reason: String| ClientError::File {
            setting: "headers-file",
            path: path.clone(),
            reason,
        };
        let text = read("headers-file", path)?;
        let text = String::from_utf8(text).map_err(|_| error("it is no text".to_owned()))?;
        let header = |(at, line): (usize, &str)| {
            let (name, text) = line.split_once(':').unwrap_or((line, ""));
            let (name, text) = (name.trim(), text.trim());
            let checked = check_header(name, text).map(|()| (name.to_owned(), text.to_owned()));
            // The line itself may be a secret.
            checked.map_err(|_| error(format!("line {} is no header", at + 1)))
        };
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(header).collect()
    }

    /// One request. It ends within the time of the settings.
    pub(crate) fn send(&self, parcel: &Parcel) -> Outcome {
        let further = match self.further_headers() {
            Ok(further) => further,
            Err(error) => return Verdict::Misconfigured { reason: error.to_string() }.into(),
        };
        let mut request = self.agent.post(&self.endpoint);
        for (name, text) in protocol::headers(parcel.kind) {
            request = request.header(*name, *text);
        }
        for (name, text) in self.headers.iter().chain(&further) {
            request = request.header(name, text);
        }
        let mut response = match request.send(&parcel.body[..]) {
            Ok(response) => response,
            Err(error) => return unanswered(&error).into(),
        };
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after").and_then(|it| it.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        // An answer that cannot be read has its status all the same.
        let body = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec()
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let verdict = verdict(status, retry_after.as_deref(), &text, SystemTime::now());
        let is_taken = verdict == Verdict::Taken;
        let rejected = is_taken.then(|| protocol::rejected(parcel.kind, &body)).flatten();
        Outcome { verdict, rejected }
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        Outcome { verdict, rejected: None }
    }
}

/// Certificates and addresses are for people; anything else may pass.
fn unanswered(error: &ureq::Error) -> Verdict {
    let reason = error.to_string();
    let is_for_people = match error {
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => true,
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => true,
        ureq::Error::Io(error) => {
            let inner = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
            matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
        }
        _ => false,
    };
    if is_for_people {
        Verdict::Misconfigured { reason }
    } else {
        Verdict::Later { after: None, reason }
    }
}

fn tls(settings: &Tls) -> Result<TlsConfig, ClientError> {
    let certificates = match &settings.ca_file {
        Some(path) => certificates("tls.ca-file", path)?,
        // Those of the system, as other programs on it use them.
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            found.iter().map(|it| Certificate::from_der(it).to_owned()).collect()
        }
    };
    let identity = match (&settings.certificate_file, &settings.key_file) {
        (Some(chain), Some(key)) => {
            let chain = certificates_of_chain(chain)?;
            Some(ClientCert::new_with_certs(&chain, private_key(key)?))
        }
        _ => None,
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .client_cert(identity)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, ClientError> {
    let error = |reason: String| ClientError::File { setting, path: path.to_owned(), reason };
    let size_bytes = fs::metadata(path).map_err(|it| error(it.to_string()))?.len();
    if size_bytes > FILE_BYTES_MAX {
        return Err(error(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    fs::read(path).map_err(|it| error(it.to_string()))
}

fn certificates_of_chain(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    certificates("tls.certificate-file", path)
}

fn certificates(
    setting: &'static str,
    path: &Path,
) -> Result<Vec<Certificate<'static>>, ClientError> {
    let error = |reason: &str| ClientError::File {
        setting,
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let bytes = read(setting, path)?;
    let mut found = Vec::new();
    for item in parse_pem(&bytes) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(error("it is no PEM file")),
        }
    }
    if found.is_empty() { Err(error("it has no certificate")) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKey<'static>, ClientError> {
    let bytes = read("tls.key-file", path)?;
    let reason = || "it has no private key".to_owned();
    let error =
        |_| ClientError::File { setting: "tls.key-file", path: path.to_owned(), reason: reason() };
    PrivateKey::from_pem(&bytes).map_err(error)
}
