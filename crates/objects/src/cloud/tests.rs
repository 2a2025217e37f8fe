//! A server of these tests' own that speaks enough of S3 over loopback.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a server for the tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

const SECRET: &str = "a-secret-key";

/// Objects by path, `/bucket/prefix/name`.
type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let decode = |text: &str| text.replace("%2F", "/");
    let query = query.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (!name.is_empty()).then(|| (name.to_owned(), decode(value)))
    });
    Some(Request { method, path: path.to_owned(), query: query.collect(), headers, body })
}

fn list(objects: &BTreeMap<String, Vec<u8>>, request: &Request) -> Vec<u8> {
    let bucket = format!("{}/", request.path.trim_end_matches('/'));
    let prefix = request.query.get("prefix").cloned().unwrap_or_default();
    let keys =
        objects.iter().filter_map(|(path, bytes)| Some((path.strip_prefix(&bucket)?, bytes)));
    let contents: String = keys
        .filter(|(key, _)| key.starts_with(&prefix))
        .map(|(key, bytes)| {
            format!(
                "<Contents><Key>{key}</Key><LastModified>2026-11-26T00:00:00.000Z</LastModified>\
                 <ETag>\"1\"</ETag><Size>{}</Size></Contents>",
                bytes.len()
            )
        })
        .collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>")
        .into()
}

/// Status and body, and further headers.
fn answer(objects: &Objects, request: &Request) -> (u16, Vec<u8>, String) {
    let is_signed = request.headers.get("authorization").is_some_and(|text| text.contains("a-key"));
    if !is_signed {
        return (403, b"<Error><Code>AccessDenied</Code></Error>".to_vec(), String::new());
    }
    let mut objects = objects.lock().unwrap();
    match request.method.as_str() {
        "PUT"
            if objects.contains_key(&request.path)
                && request.headers.contains_key("if-none-match") =>
        {
            (412, Vec::new(), String::new())
        }
        "PUT" => {
            objects.insert(request.path.clone(), request.body.clone());
            (200, Vec::new(), "ETag: \"1\"\r\n".to_owned())
        }
        "GET" if request.query.contains_key("list-type") => {
            (200, list(&objects, request), String::new())
        }
        "GET" => {
            let Some(bytes) = objects.get(&request.path) else {
                return (404, Vec::new(), String::new());
            };
            let common = "ETag: \"1\"\r\nLast-Modified: Thu, 26 Nov 2026 00:00:00 GMT\r\n";
            let range = request.headers.get("range").and_then(|text| {
                let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
                Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()?))
            });
            match range {
                None => (200, bytes.clone(), common.to_owned()),
                Some((from, to)) => {
                    let to = to.min(bytes.len() - 1);
                    let range = format!("Content-Range: bytes {from}-{to}/{}\r\n", bytes.len());
                    (206, bytes[from..=to].to_vec(), format!("{common}{range}"))
                }
            }
        }
        "DELETE" => {
            objects.remove(&request.path);
            (204, Vec::new(), String::new())
        }
        "POST" if request.query.contains_key("delete") => {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let mut deleted = String::new();
            for key in text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
                objects.remove(&format!("{}/{key}", request.path.trim_end_matches('/')));
                deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
            }
            let body = format!("<DeleteResult>{deleted}</DeleteResult>");
            (200, body.into_bytes(), String::new())
        }
        _ => (400, Vec::new(), String::new()),
    }
}

fn serve(stream: TcpStream, objects: &Objects) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let (status, body, headers) = answer(objects, &request);
        let head =
            format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        let stream = reader.get_mut();
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() {
            return;
        }
    }
}

/// A server, and the credentials for it.
fn server() -> (Objects, Credentials) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let objects = Objects::default();
    let served = Arc::clone(&objects);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let objects = Arc::clone(&served);
            std::thread::spawn(move || serve(stream, &objects));
        }
    });
    let settings = [
        ("AWS_ENDPOINT", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "a-key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_PAGER", "less".to_owned()),
    ];
    let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
    (objects, Credentials(settings.collect()))
}

#[test]
fn a_bucket_keeps_the_promises_of_an_object_store() {
    let (objects, credentials) = server();
    let store = CloudObjects::open("s3://bucket/some/prefix/", &credentials).unwrap();
    crate::conformance::check(&store);
    let paths: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
    assert!(paths.iter().all(|path| path.starts_with("/bucket/some/prefix/")), "{paths:?}");
}

#[test]
fn wrong_credentials_are_the_configurations_fault() {
    let (_objects, mut credentials) = server();
    credentials.0.iter_mut().filter(|(name, _)| name == "AWS_ACCESS_KEY_ID").for_each(|pair| {
        "other".clone_into(&mut pair.1);
    });
    let store = CloudObjects::open("s3://bucket", &credentials).unwrap();
    let refused = store.put("log/a", b"1").unwrap_err();
    assert!(matches!(refused, ObjectError::Refused { .. }), "{refused}");
    assert!(!refused.to_string().contains(SECRET) && !format!("{credentials:?}").contains(SECRET));
}

#[test]
fn a_server_that_is_away_is_tried_again() {
    let (_objects, mut credentials) = server();
    // Nothing listens at the discard port.
    let endpoint = credentials.0.iter_mut().find(|(name, _)| name == "AWS_ENDPOINT").unwrap();
    "http://127.0.0.1:9".clone_into(&mut endpoint.1);
    let store = CloudObjects::open("s3://bucket", &credentials).unwrap();
    let away = store.get("log/a").unwrap_err();
    assert!(matches!(away, ObjectError::Unavailable { .. }) && away.is_retryable(), "{away}");
}
