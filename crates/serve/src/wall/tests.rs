//! The wall, as a table: what is bound, what is asked, what answers.

use super::*;

/// Asks `METHOD path` with header lines at a wall described as `address [token=T] [auth] [allow=ORIGIN]`; the status, or 200 for a
/// request that passes.
fn check(wall: &str, request: &str) -> u16 {
    let mut words = wall.split(' ');
    let address = words.next().unwrap().parse().unwrap();
    let (mut token, mut auth, mut allow) = (None, false, Vec::new());
    for word in words {
        match word.split_once('=') {
            Some(("token", value)) => token = Some(Token::new(value).unwrap()),
            Some(("allow", value)) => allow.push(value.to_owned()),
            _ => auth = true,
        }
    }
    let wall = Wall::new(address, &allow, token, auth);
    let (line, rest) = request.split_once(" | ").unwrap_or((request, ""));
    let (method, path) = line.split_once(' ').unwrap();
    let mut head = head(method, path);
    for header in rest.split(" | ").filter(|header| !header.is_empty()) {
        let (name, value) = header.split_once(": ").unwrap();
        head.headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    match wall.check(&head) {
        Passage::Pass(_) => 200,
        Passage::Stop(reply) => reply.status().as_u16(),
    }
}

fn head(method: &str, target: &str) -> Parts {
    hyper::Request::builder().method(method).uri(target).body(()).unwrap().into_parts().0
}

#[test]
fn a_loopback_bind_answers_only_to_its_own_names() {
    let cases = [
        ("Host: 127.0.0.1:4170", 200),
        ("Host: LOCALHOST:4170", 200),
        ("Host: [::1]:4170", 200),
        ("Host: host.docker.internal:4170", 200),
        ("Host: 127.0.0.1", 403),
        ("Host: 127.0.0.1:4171", 403),
        ("Host: evil.example", 403),
        ("Host: evil.example:4170", 403),
        ("Host: localhost:4170 | Host: evil.example", 403),
        ("X-Nothing: 1", 403),
    ];
    for (header, status) in cases {
        assert_eq!(check("127.0.0.1:4170", &format!("GET /health | {header}")), status, "{header}");
    }
    assert_eq!(check("127.0.0.1:80", "GET /health | Host: localhost"), 200);
    assert_eq!(check("127.0.0.1:443", "GET /health | Host: 127.0.0.1"), 200);
}

#[test]
fn a_bind_to_the_world_takes_any_host() {
    assert_eq!(check("0.0.0.0:4170 token=t", "GET /x | Host: any.example | Authorization: Bearer t"), 200);
    assert_eq!(check("0.0.0.0:4170 token=t", "GET /x | Authorization: Bearer t"), 200, "HTTP/1.0 has none");
}

#[test]
fn no_request_names_two_hosts() {
    let cases = [
        ("127.0.0.1:4170", "GET http://localhost:4170/x | Host: localhost:4170", 200),
        ("127.0.0.1:4170", "GET http://LOCALHOST:4170/x | Host: localhost:4170", 200),
        ("127.0.0.1:4170", "GET http://evil.example/x | Host: localhost:4170", 403),
        ("127.0.0.1:4170", "GET http://127.0.0.1:4170/x | Host: localhost:4170", 403),
        ("127.0.0.1:4170", "GET http://evil.example:4170/x | Host: evil.example:4170", 403),
        ("127.0.0.1:4170", "GET http://user@localhost:4170/x | Host: localhost:4170", 403),
        ("127.0.0.1:4170", "GET http://localhost:4170/x", 403),
        ("127.0.0.1:4170", "CONNECT evil.example:443 | Host: localhost:4170", 403),
        ("0.0.0.0:4170 token=t", "GET http://evil.example/x | Host: any.example | Authorization: Bearer t", 403),
        ("0.0.0.0:4170 token=t", "GET http://evil.example/x | Authorization: Bearer t", 403),
        ("0.0.0.0:4170 token=t", "GET /x | Host: any.example | Host: any.example | Authorization: Bearer t", 403),
        ("0.0.0.0:4170 token=t", "GET /x | Host: \u{fc}.example | Authorization: Bearer t", 403),
    ];
    for (wall, request, status) in cases {
        assert_eq!(check(wall, request), status, "{wall}: {request}");
    }
}

/// A picture, a link or a form of a foreign page may come without an origin.
#[test]
fn what_a_browser_sends_for_a_foreign_page_is_stopped_without_an_origin_too() {
    let cases = [
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Sec-Fetch-Site: none | Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-origin", 200),
        ("Sec-Fetch-Site: none", 200),
        ("Sec-Fetch-Site: same-origin | Origin: http://localhost:4170", 200),
        ("Sec-Fetch-Site: cross-site | Origin: http://app.example", 200),
    ];
    for (headers, status) in cases {
        let request = format!("GET /health | Host: localhost:4170 | {headers}");
        assert_eq!(check("127.0.0.1:4170 allow=http://app.example", &request), status, "{headers}");
    }
}

#[test]
fn a_foreign_origin_is_stopped_before_the_token_is_looked_at() {
    let host = "Host: localhost:4170";
    let cases = [
        ("GET /health", "Origin: http://evil.example", 403),
        ("GET /health", "Origin: null", 403),
        ("GET /health", "Origin: http://127.0.0.1:4170", 200),
        ("GET /health", "Origin: https://localhost:4170", 200),
        ("GET /health", "Origin: http://127.0.0.1:4171", 403),
        ("GET /health", "Origin: http://app.example | Origin: http://evil.example", 403),
        ("OPTIONS /session", "Origin: http://evil.example | Access-Control-Request-Method: POST", 403),
        ("OPTIONS /session", "Origin: http://app.example | Access-Control-Request-Method: POST", 204),
        ("OPTIONS /session", "Origin: http://app.example | Access-Control-Request-Headers: authorization", 204),
        ("OPTIONS /session", "Origin: http://app.example", 401),
        ("GET /capabilities", "Origin: http://app.example", 401),
        ("GET /capabilities", "Origin: http://APP.example | Authorization: Bearer t", 200),
    ];
    for (line, headers, status) in cases {
        let got = check("127.0.0.1:4170 token=t allow=http://app.example/", &format!("{line} | {host} | {headers}"));
        assert_eq!(got, status, "{line} {headers}");
    }
}

#[test]
fn the_token_is_asked_for_everywhere_but_on_the_health_of_a_loopback_bind() {
    let cases = [
        ("127.0.0.1:4170", "GET /x | Authorization: Bearer whatever", 200),
        ("127.0.0.1:4170 token=t", "GET /health", 200),
        ("127.0.0.1:4170 token=t auth", "GET /health", 401),
        ("0.0.0.0:4170 token=t", "GET /health", 401),
        ("127.0.0.1:4170 token=t", "GET /x", 401),
        ("127.0.0.1:4170 token=t", "GET /x?token=t", 401),
        ("127.0.0.1:4170 token=t", "GET /x | Authorization: Bearer wrong", 401),
        ("127.0.0.1:4170 token=t", "GET /x | Authorization: Basic t", 401),
        ("127.0.0.1:4170 token=t", "GET /x | Authorization: Bearert", 401),
        ("127.0.0.1:4170 token=t", "GET /x | Authorization: Bearer", 401),
        ("127.0.0.1:4170 token=t", "GET /x | Authorization: bEaReR \t t", 200),
        ("127.0.0.1:4170 token=t", "GET /x | Authorization: Bearer t | Authorization: Bearer u", 401),
    ];
    for (wall, request, status) in cases {
        assert_eq!(check(wall, &format!("{request} | Host: localhost:4170")), status, "{wall}: {request}");
    }
}

#[test]
fn an_allowed_origin_can_read_what_it_is_refused() {
    let wall =
        Wall::new("127.0.0.1:1".parse().unwrap(), &["http://app.example".to_owned()], Token::new("t").ok(), false);
    let mut head = head("GET", "/x");
    head.headers.insert(HOST, HeaderValue::from_static("localhost:1"));
    head.headers.insert(ORIGIN, HeaderValue::from_static("http://app.example"));
    let Passage::Stop(reply) = wall.check(&head) else { panic!("passed") };
    assert_eq!(reply.headers()["access-control-allow-origin"], "http://app.example");
    assert_eq!(reply.headers()["vary"], "Origin");
    assert_eq!(reply.headers()["access-control-max-age"], "86400");
}
