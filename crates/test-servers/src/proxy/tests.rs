use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

use super::*;

/// More than a test ever waits for what does come.
const LONG: Duration = Duration::from_secs(10);
/// Long enough to see that something does not come.
const SHORT: Duration = Duration::from_millis(150);

struct Scene {
    server: TcpListener,
    proxy: Proxy,
}

/// Both ends of a connection through the proxy.
struct Ends {
    client: TcpStream,
    server: TcpStream,
}

impl Scene {
    fn new() -> Self {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = Proxy::to(&server.local_addr().unwrap().to_string()).unwrap();
        Self { server, proxy }
    }

    fn connect(&self) -> Ends {
        let client = TcpStream::connect(self.proxy.endpoint()).unwrap();
        let (server, _) = self.server.accept().unwrap();
        Ends { client, server }
    }
}

impl Ends {
    fn ask(&mut self, request: &str) {
        send(&mut self.client, request);
        assert_received(&mut self.server, request);
    }

    fn answer(&mut self, answer: &str) {
        send(&mut self.server, answer);
        assert_received(&mut self.client, answer);
    }
}

fn send(to: &mut TcpStream, text: &str) {
    to.write_all(text.as_bytes()).unwrap();
}

#[track_caller]
fn assert_received(from: &mut TcpStream, wanted: &str) {
    from.set_read_timeout(Some(LONG)).unwrap();
    let mut text = vec![0; wanted.len()];
    from.read_exact(&mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), wanted);
}

#[track_caller]
fn assert_silent(from: &mut TcpStream) {
    from.set_read_timeout(Some(SHORT)).unwrap();
    let error = from.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[track_caller]
fn assert_reset(from: &mut TcpStream) {
    from.set_read_timeout(Some(LONG)).unwrap();
    let error = from.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn without_a_fault_bytes_and_the_end_of_them_pass_both_ways() {
    let scene = Scene::new();
    let mut ends = scene.connect();
    ends.ask("hello");
    ends.answer("welcome");
    ends.client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(ends.server.read(&mut [0]).unwrap(), 0);
    ends.answer("goodbye");
    drop(ends.server);
    assert_eq!(ends.client.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_client_of_a_server_that_is_down_is_reset() {
    let Scene { server, proxy } = Scene::new();
    drop(server);
    let mut client = TcpStream::connect(proxy.endpoint()).unwrap();
    assert_reset(&mut client);
}

#[test]
fn one_way_can_be_slow_and_keeps_the_order() {
    let scene = Scene::new();
    let mut ends = scene.connect();
    scene.proxy.delay(Direction::ToClient, SHORT * 4);
    ends.ask("hello");
    send(&mut ends.server, "first");
    assert_silent(&mut ends.client);
    scene.proxy.delay(Direction::ToClient, Duration::ZERO);
    send(&mut ends.server, "second");
    assert_received(&mut ends.client, "first");
    assert_received(&mut ends.client, "second");
}

#[test]
fn a_black_hole_swallows_one_way_until_it_heals_by_a_reset() {
    for direction in [Direction::ToServer, Direction::ToClient] {
        let scene = Scene::new();
        let (mut ends, mut idle) = (scene.connect(), scene.connect());
        idle.ask("hello");
        scene.proxy.swallow(direction);
        match direction {
            Direction::ToServer => {
                ends.answer("welcome");
                send(&mut ends.client, "hello");
                assert_silent(&mut ends.server);
            }
            Direction::ToClient => {
                ends.ask("hello");
                send(&mut ends.server, "welcome");
                assert_silent(&mut ends.client);
            }
        }
        scene.proxy.heal();
        assert_reset(&mut ends.client);
        assert_reset(&mut ends.server);
        idle.ask("nothing was lost on this one");
        scene.connect().ask("and new ones pass");
    }
}

#[test]
fn all_connections_can_be_reset_and_new_ones_pass() {
    let scene = Scene::new();
    let mut all = [scene.connect(), scene.connect()];
    for ends in &mut all {
        ends.ask("hello");
    }
    scene.proxy.reset();
    for ends in &mut all {
        assert_reset(&mut ends.client);
        assert_reset(&mut ends.server);
    }
    scene.connect().ask("hello");
}

#[test]
fn cut_before_the_request_the_server_sees_no_whole_one() {
    let scene = Scene::new();
    let trap = scene.proxy.arm("put green", Cut::BeforeRequest);
    let (mut other, mut ends) = (scene.connect(), scene.connect());
    ends.ask("put red;");
    ends.ask("put gr");
    assert!(!trap.has_sprung());
    send(&mut ends.client, "een;");
    assert_reset(&mut ends.client);
    assert_reset(&mut ends.server);
    assert!(trap.has_sprung());
    other.ask("put green; springs no second time");
}

#[test]
fn cut_after_the_request_the_server_has_all_of_it_and_notices_nothing() {
    let scene = Scene::new();
    let trap = scene.proxy.arm("put green", Cut::AfterRequest);
    let mut ends = scene.connect();
    ends.ask("put green");
    assert!(trap.has_sprung());
    ends.ask(" and all that follows at once;");
    send(&mut ends.server, "done");
    assert_reset(&mut ends.client);
    assert_silent(&mut ends.server);
    send(&mut ends.server, "still there?");
    assert_silent(&mut ends.server);
    scene.proxy.reset();
    assert_reset(&mut ends.server);
}

#[test]
fn a_swallowed_answer_leaves_a_connection_on_which_none_comes_any_more() {
    let scene = Scene::new();
    let trap = scene.proxy.arm("put green", Cut::SwallowAnswer);
    let mut ends = scene.connect();
    ends.ask("put green");
    assert!(trap.has_sprung());
    for _ in 0..2 {
        send(&mut ends.server, "done");
        assert_silent(&mut ends.client);
        ends.ask("hello?");
    }
    scene.connect().answer("others are answered");
}

#[test]
fn what_is_muted_stays_open_without_answers_until_it_is_healed() {
    let scene = Scene::new();
    let mut ends = scene.connect();
    ends.ask("hello");
    scene.proxy.mute();
    // The order takes a moment to reach the connection.
    assert_silent(&mut ends.client);
    send(&mut ends.server, "welcome");
    assert_silent(&mut ends.client);
    ends.ask("hello?");
    scene.connect().answer("others are answered");
    scene.proxy.heal();
    assert_reset(&mut ends.client);
    assert_reset(&mut ends.server);
}

#[test]
fn healing_disarms_the_traps() {
    let scene = Scene::new();
    let trap = scene.proxy.arm("put green", Cut::BeforeRequest);
    scene.proxy.heal();
    scene.connect().ask("put green");
    assert!(!trap.has_sprung());
}

#[test]
fn a_dropped_proxy_resets_its_connections_and_takes_no_more() {
    let Scene { server, proxy } = Scene::new();
    let endpoint = proxy.endpoint();
    let mut client = TcpStream::connect(&endpoint).unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    drop(proxy);
    assert_reset(&mut client);
    assert_reset(&mut accepted);
    assert!(TcpStream::connect(&endpoint).is_err());
}
