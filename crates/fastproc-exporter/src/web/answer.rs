//! The answer to each request.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Version,
    body::{Body, Incoming},
    header::{
        ACCEPT, ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE,
        HOST, HeaderValue, VARY, WWW_AUTHENTICATE,
    },
};
use tokio::time::timeout;

use super::{
    auth::Admission,
    connections::Client,
    selection::Selection,
    site::{Rulebook, Site},
    timed::{Activity, Phase},
};
use fastproc_metrics::exposition::Format;

const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>fastproc</title>
<h1>fastproc</h1>
<p>Process and host metrics for Prometheus, from one snapshot of the kernel's own structures a scrape.</p>
<ul>
<li><a href=\"{path}\">{path}</a>: the metrics, in the Prometheus text format or in OpenMetrics
<li><a href=\"/-/healthy\">/-/healthy</a>: whether this program runs
<li><a href=\"/-/ready\">/-/ready</a>: whether it has looked at the processes
</ul>
</html>
";

impl Site {
    /// Answers a request.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Client,
        activity: &Activity,
    ) -> Response<Full<Bytes>> {
        let rulebook = self.rulebook();
        let answer = self.answer_body(&rulebook, &request, client, activity);
        let mut response = answer.await;
        if !request.body().is_end_stream() {
            // A body that is not read must not delay the answer.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        for (name, value) in &rulebook.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        response
    }

    async fn answer_body(
        self: &Arc<Self>,
        rulebook: &Rulebook,
        request: &Request<Incoming>,
        client: Client,
        activity: &Activity,
    ) -> Response<Full<Bytes>> {
        let hosts = request.headers().get_all(HOST).iter().count();
        if request.version() == Version::HTTP_11 && hosts != 1 {
            return plain(
                StatusCode::BAD_REQUEST,
                "A request of HTTP/1.1 names one Host.\n",
            );
        }
        if !request.body().is_end_stream() {
            return plain(
                StatusCode::PAYLOAD_TOO_LARGE,
                "No request here has a body.\n",
            );
        }
        let path = request.uri().path();
        // As in Prometheus' toolkit, even the health check needs a password if there are passwords.
        let authorization = request.headers().get(AUTHORIZATION);
        let asks = rulebook.gate.asks_for_passwords();
        if asks {
            let is_doubted = rulebook.gate.doubts(client);
            activity.enter(Phase::Checking { is_doubted });
        }
        match rulebook.gate.admits(authorization, client).await {
            Admission::Granted if asks => activity.admit(),
            Admission::Granted => {}
            Admission::Denied => {
                let mut response = plain(StatusCode::UNAUTHORIZED, "Unauthorized\n");
                response.headers_mut().insert(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_static("Basic realm=\"fastproc\", charset=\"UTF-8\""),
                );
                return response;
            }
            Admission::Busy => {
                let text = "Too many passwords are being checked; try again later.\n";
                let mut response = plain(StatusCode::TOO_MANY_REQUESTS, text);
                // Its place is for others.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                return response;
            }
        }
        if path == "/-/reload" {
            return self.reload_by(request.method()).await;
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return only("GET, HEAD", "Only GET and HEAD.\n");
        }
        match path {
            path if path == self.metrics_path => {
                match Selection::of(request.uri().query().unwrap_or_default()) {
                    Ok(selection) => self.metrics(request.headers(), selection).await,
                    Err(reason) => plain(StatusCode::BAD_REQUEST, reason),
                }
            }
            "/" => {
                let page = PAGE.replace("{path}", &self.metrics_path);
                typed(StatusCode::OK, "text/html; charset=utf-8", page.into())
            }
            "/-/healthy" => plain(StatusCode::OK, "Healthy\n"),
            "/-/ready" if self.scraper.is_ready() => plain(StatusCode::OK, "Ready\n"),
            "/-/ready" => plain(StatusCode::SERVICE_UNAVAILABLE, "Not ready yet\n"),
            _ => plain(StatusCode::NOT_FOUND, "Not found\n"),
        }
    }

    /// Reloads the configuration, with the methods and answers of Prometheus.
    async fn reload_by(self: &Arc<Self>, method: &Method) -> Response<Full<Bytes>> {
        if !self.reloads_by_request() {
            return plain(
                StatusCode::FORBIDDEN,
                "Lifecycle API is not enabled: --web.enable-lifecycle allows it.\n",
            );
        }
        if !matches!(*method, Method::POST | Method::PUT) {
            return only("POST, PUT", "Only POST and PUT.\n");
        }
        // It continues if the client disconnects.
        let read = tokio::spawn(Arc::clone(self).reload()).await;
        match read.unwrap_or_else(|_| Err("it has failed".into())) {
            Ok(()) => plain(StatusCode::OK, ""),
            Err(reason) => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("failed to reload config: {reason}\n"),
            ),
        }
    }

    async fn metrics(
        &self,
        headers: &HeaderMap,
        selection: Option<Selection>,
    ) -> Response<Full<Bytes>> {
        let format = negotiate(headers);
        // A selection is made for each request, so it costs no more than a copy.
        let gzip = selection.is_none() && wants_gzip(headers);
        let scrape = self.scraper.scrape(format, gzip);
        let Ok(Ok(scraped)) = timeout(patience(headers), scrape).await else {
            return plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "No scrape can be had now\n",
            );
        };
        let selected = match selection {
            None => Ok(scraped.text),
            Some(selection) => selection
                .apply(&scraped.text, &scraped.parts)
                .map(Bytes::from),
        };
        let body = match selected {
            Ok(body) => body,
            Err(reason) => return plain(StatusCode::BAD_REQUEST, reason),
        };
        let mut response = typed(StatusCode::OK, format.content_type(), body);
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        if gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// How long a client waits for metrics: the time that Prometheus announces, or a minute. Collecting may hang, for
/// example on a file system whose server is gone.
fn patience(headers: &HeaderMap) -> Duration {
    const LONGEST: Duration = Duration::from_secs(60);
    // With shorter times a client would fill the queue without waiting for any answer.
    const SHORTEST: Duration = Duration::from_millis(100);
    let told = headers.get("x-prometheus-scrape-timeout-seconds");
    let told = told.and_then(|told| told.to_str().ok()?.parse().ok());
    let told = told.and_then(|told| Duration::try_from_secs_f64(told).ok());
    told.map_or(LONGEST, |told| told.clamp(SHORTEST, LONGEST))
}

fn typed(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", text.into())
}

/// The answer to a request with a method that the path does not have.
fn only(methods: &'static str, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text);
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods);
    response
}

/// The items of a list header, each with its parameters and its quality in thousandths.
fn items(headers: &HeaderMap, name: hyper::header::HeaderName) -> Vec<(String, Vec<String>, u32)> {
    let texts = headers.get_all(name).into_iter();
    let texts = texts.filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(','))
        .map(|item| {
            let mut words = item.split(';').map(|word| word.trim().to_ascii_lowercase());
            let value = words.next().unwrap_or_default();
            let (mut parameters, mut quality) = (Vec::new(), 1000);
            for word in words {
                match word.strip_prefix("q=") {
                    Some(q) => {
                        let q: f32 = q.trim().parse().unwrap_or(0.0);
                        quality = (q.clamp(0.0, 1.0) * 1000.0) as u32;
                    }
                    None => parameters.push(word.replace(' ', "")),
                }
            }
            (value, parameters, quality)
        })
        .collect()
}

/// `OpenMetrics` for clients that prefer it, in the version that is written here; otherwise the text format.
fn negotiate(headers: &HeaderMap) -> Format {
    let (mut open, mut text) = (0, 0);
    for (value, parameters, quality) in items(headers, ACCEPT) {
        match &*value {
            "application/openmetrics-text" => {
                let version = parameters
                    .iter()
                    .find_map(|parameter| parameter.strip_prefix("version="));
                if version.is_none_or(|version| matches!(version, "1.0.0" | "0.0.1")) {
                    open = open.max(quality);
                }
            }
            "text/plain" | "text/*" | "*/*" => text = text.max(quality),
            _ => {}
        }
    }
    if open > 0 && open >= text {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    }
}

fn wants_gzip(headers: &HeaderMap) -> bool {
    let items = items(headers, ACCEPT_ENCODING);
    let quality = |name: &str| {
        items
            .iter()
            .find(|(value, ..)| value == name)
            .map(|(.., quality)| *quality)
    };
    quality("gzip").or_else(|| quality("*")).unwrap_or(0) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn the_format_is_what_was_asked_for() {
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            (
                "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text; version=1.0.0",
                Format::OpenMetrics,
            ),
            // Prometheus 2.42
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0.1,text/plain;q=0.9",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;version=2.0.0",
                Format::Prometheus,
            ),
            ("application/openmetrics-text;q=0", Format::Prometheus),
        ] {
            assert_eq!(negotiate(&headers("accept", accept)), format, "{accept}");
        }
        assert_eq!(negotiate(&HeaderMap::new()), Format::Prometheus);
    }

    #[test]
    fn gzip_is_for_whoever_takes_it() {
        for (accept, gzip) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("*;q=0.1", true),
            ("gzip;q=0, *", false),
            ("identity", false),
        ] {
            assert_eq!(
                wants_gzip(&headers("accept-encoding", accept)),
                gzip,
                "{accept}"
            );
        }
    }
}
