//! HTTP/2: floods that cost the server more than the client, and malformed frames.

use tokio::task::JoinSet;

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, HEADERS, Heard, INITIAL_WINDOW, PING, SETTINGS,
    Talk, WINDOW_UPDATE, fields, frame, get, literal, post, reset, say_without_reading, setting,
};
use super::{House, SMALL, check_small};

/// Number of connections that flood concurrently.
const AT_ONCE: usize = 4;

/// Maximum increment of a window. It overflows every window that is not empty.
const OVER: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];

/// `:status: 200` in the static table.
const OK: u8 = 0x88;

/// A route that accepts a body.
const PUSH: &str = "/push.v1.PusherService/Push";

/// Returns the id of the stream of the `number`-th request.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

/// The parts that a connection sends one after the other.
type Parts = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// Opens [`AT_ONCE`] connections. Each connection sends its parts until the server accepts no more. Returns the
/// received frames of each connection once `is_enough` is true for them or the server has closed the connection.
async fn flood(house: &House, parts: impl Fn() -> Parts, is_enough: fn(&Heard) -> bool) -> Vec<Heard> {
    let mut talks = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (connection, parts) = (house.connect().await, parts());
        talks.spawn(async move {
            let mut talk = Talk::begin(connection).await;
            for part in parts {
                if !talk.say(&part).await {
                    break;
                }
            }
            talk.until(is_enough).await
        });
    }
    talks.join_all().await
}

fn is_ended(heard: &Heard) -> bool {
    heard.is_closed || heard.goaway.is_some()
}

/// Checks that at least one connection received a GOAWAY, and that every GOAWAY has the code ENHANCE_YOUR_CALM.
fn assert_calmed(name: &str, all: &[Heard]) {
    let others = all.iter().filter_map(|heard| heard.goaway);
    assert!(others.clone().all(|code| code == ENHANCE_YOUR_CALM), "{name}: {all:?}");
    assert!(others.count() > 0, "{name}: {all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_reset_at_once_or_never_end_are_bounded() {
    let mut house = House::start().await;
    let honest = house.honest();
    // Rapid reset (CVE-2023-44487): each reset costs the client two small frames.
    let resets = || -> Parts {
        let part = |part: u32| -> Vec<u8> {
            let streams = (part * 500..(part + 1) * 500).map(stream);
            streams.flat_map(|id| [get(id, "/ready"), reset(id)].concat()).collect()
        };
        Box::new((0..100).map(part))
    };
    assert_calmed("rapid reset", &flood(&house, resets, is_ended).await);
    // The client makes the server reset streams (CVE-2025-8671): if a window grows too large, the server resets its
    // stream.
    let made = || -> Parts {
        let part = |part: u32| -> Vec<u8> {
            let streams = (part * 500..(part + 1) * 500).map(stream);
            streams
                .flat_map(|id| [post(id, PUSH), frame(WINDOW_UPDATE, 0, id, &OVER)].concat())
                .collect()
        };
        Box::new((0..100).map(part))
    };
    assert_calmed("resets by the server", &flood(&house, made, is_ended).await);
    // The client never sends the bodies of its requests. The server refuses requests beyond the limit and later closes
    // the connection.
    let open = || -> Parts {
        let part = |part: u32| -> Vec<u8> {
            (part * 500..(part + 1) * 500)
                .flat_map(|number| post(stream(number), PUSH))
                .collect()
        };
        Box::new((0..20).map(part))
    };
    for heard in flood(&house, open, Heard::is_refused).await {
        assert!(heard.resets > 0 || heard.goaway == Some(ENHANCE_YOUR_CALM), "{heard:?}");
    }
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_pings_and_empty_frames_without_end_are_bounded() {
    let mut house = House::start().await;
    let honest = house.honest();
    let floods: [(&str, Vec<u8>); 4] = [
        ("settings", frame(SETTINGS, 0, 0, &[])),
        (
            "changing windows",
            [setting(INITIAL_WINDOW, 1), setting(INITIAL_WINDOW, 1 << 20)].concat(),
        ),
        ("pings", frame(PING, 0, 0, &[7; 8])),
        ("priorities", frame(2, 0, 1, &[0, 0, 0, 3, 1])),
    ];
    // The server responds to settings and pings, and the client does not read the responses.
    for (name, one) in &floods {
        let many = one.repeat(1000);
        let mut connection = house.connect().await;
        let taken = say_without_reading(&mut connection, &many, 200).await;
        println!("{name}: {} frames were accepted", taken * 1000);
        honest.is_served(1).await;
    }
    // If a client reads these responses, the server also answers its next request, or ends the connection with
    // ENHANCE_YOUR_CALM.
    for (name, one) in floods {
        let parts = move || -> Parts {
            let many = one.repeat(1000);
            let and_then = [get(1, "/ready")];
            Box::new((0..20).map(move |_| many.clone()).chain(and_then))
        };
        for heard in flood(&house, parts, |heard| heard.answers > 0 || is_ended(heard)).await {
            let is_calmed = heard.goaway.is_none_or(|code| code == ENHANCE_YOUR_CALM);
            assert!(
                is_calmed && (heard.answers > 0 || is_ended(&heard)),
                "{name}: {heard:?}"
            );
        }
    }
    // The body consists of empty DATA frames.
    let empty = || -> Parts {
        let many = frame(DATA, 0, 1, &[]).repeat(1000);
        Box::new([post(1, PUSH)].into_iter().chain((0..100).map(move |_| many.clone())))
    };
    assert_calmed("empty data", &flood(&house, empty, is_ended).await);
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_never_end_or_grow_are_bounded() {
    let mut house = House::start().await;
    let honest = house.honest();
    let field = literal(&"n".repeat(100), &"v".repeat(100));
    let block = field.repeat(80);
    // CONTINUATION without end (CVE-2024-27316 and others), with and without fields.
    for (name, block) in [("fields", block.clone()), ("nothing", Vec::new())] {
        let parts = || -> Parts {
            let begin = frame(HEADERS, END_STREAM, 1, &fields("GET", "/ready"));
            let more = frame(CONTINUATION, 0, 1, &block).repeat(16);
            Box::new([begin].into_iter().chain((0..1000).map(move |_| more.clone())))
        };
        assert_calmed(name, &flood(&house, parts, is_ended).await);
    }
    // The headers contain an indexed field of 4 KB, followed by thousands of references to this field, each of one
    // byte.
    let mut bomb = fields("GET", "/ready");
    bomb.extend([0x40, 1, b'n', 0x7f]);
    // Encodes 4,000 as a number with a prefix of seven bits: 127, followed by the difference in groups of seven bits.
    let rest: u32 = 4000 - 127;
    bomb.extend([(rest & 0x7f) as u8 | 0x80, (rest >> 7) as u8]);
    bomb.extend([b'v'; 4000]);
    bomb.extend([0xbe; 8000]);
    let parts = || -> Parts {
        let bomb = bomb.clone();
        Box::new((0..100).map(move |number| frame(HEADERS, END_STREAM | END_HEADERS, stream(number), &bomb)))
    };
    let is_enough = |heard: &Heard| heard.answers > 0 || heard.is_refused();
    for heard in flood(&house, parts, is_enough).await {
        assert!(heard.status != Some(OK), "{heard:?}");
    }
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_take_bounded_memory() {
    let mut house = House::start().await;
    let honest = house.honest();
    let mut held = Vec::new();
    // No client reads its socket. The windows of its streams are empty, or have 1 GiB.
    for window in [0, 1 << 30] {
        for _ in 0..20 {
            let mut connection = house.connect().await;
            let mut begin = setting(INITIAL_WINDOW, window);
            begin.extend(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()));
            let asks = (0..200).flat_map(|number| get(stream(number), "/api/v1/status/config"));
            begin.extend(asks);
            say_without_reading(&mut connection, &begin, 1).await;
            held.push(connection);
        }
    }
    honest.is_served(5).await;
    house.check();
    drop(held);
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_answers_that_nobody_reads_stay_within_a_small_limit() {
    let mut house = House::start_in(tempfile::tempdir().unwrap(), &["--memory-limit", SMALL]).await;
    let honest = house.honest();
    let mut held = Vec::new();
    // With a window of 0 bytes, no body can begin. With a window of 1 byte, each body begins and then waits.
    for window in [0, 1] {
        for _ in 0..40 {
            let mut connection = house.connect().await;
            let mut begin = setting(INITIAL_WINDOW, window);
            begin.extend((0..100).flat_map(|number| get(stream(number), "/metrics")));
            say_without_reading(&mut connection, &begin, 1).await;
            held.push(connection);
        }
        honest.is_served(3).await;
        check_small(&house);
    }
    house.check();
    drop(held);
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_a_wrong_form_end_their_stream_or_connection() {
    let mut house = House::start().await;
    let grow = |stream: u32| frame(WINDOW_UPDATE, 0, stream, &OVER);
    let field = |name: &str, value: &str| [fields("GET", "/ready"), literal(name, value)].concat();
    let with = |block: Vec<u8>| frame(HEADERS, END_STREAM | END_HEADERS, 1, &block);
    let cases: [(&str, Vec<u8>); 21] = [
        ("data of no stream", frame(DATA, 0, 0, b"x")),
        ("data of a stream that is not there", frame(DATA, 0, 1, b"x")),
        ("a stream with an even number", get(2, "/ready")),
        ("an older stream", [get(5, "/ready"), get(3, "/ready")].concat()),
        ("too long a frame", frame(DATA, 0, 1, &vec![0; (16 << 10) + 1])),
        ("a reset of a stream that is not there", reset(1)),
        ("a window too large", [grow(0), grow(0)].concat()),
        (
            "a stream's window too large",
            [post(1, PUSH), grow(1), grow(1)].concat(),
        ),
        ("settings of a stream", frame(SETTINGS, 0, 1, &[])),
        ("settings of a wrong length", frame(SETTINGS, 0, 0, &[0; 5])),
        ("a setting out of range", setting(INITIAL_WINDOW, u32::MAX)),
        ("a frame size out of range", setting(5, 1)),
        ("a ping of a wrong length", frame(PING, 0, 0, &[0; 7])),
        ("continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &[])),
        (
            "another frame between headers",
            [
                frame(HEADERS, END_STREAM, 1, &fields("GET", "/ready")),
                frame(PING, 0, 0, &[0; 8]),
            ]
            .concat(),
        ),
        ("a wrong reference in headers", with(vec![0xff, 0xff, 0xff, 0xff, 0x7f])),
        ("no pseudo-headers", with(literal("a", "b"))),
        (
            "a pseudo-header behind others",
            with([literal("a", "b"), fields("GET", "/ready")].concat()),
        ),
        ("a name with capitals", with(field("Upper", "x"))),
        ("a header of a connection", with(field("transfer-encoding", "chunked"))),
        (
            "more body than the length says",
            [
                frame(
                    HEADERS,
                    END_HEADERS,
                    1,
                    &[fields("POST", PUSH), literal("content-length", "1")].concat(),
                ),
                frame(DATA, END_STREAM, 1, b"many"),
            ]
            .concat(),
        ),
    ];
    for (name, bytes) in cases {
        let mut talk = Talk::begin(house.connect().await).await;
        talk.say(&bytes).await;
        let heard = talk.until(Heard::is_refused).await;
        let is_told = heard.goaway.is_some_and(|code| code != 0) || heard.resets > 0;
        assert!(is_told, "{name}: {heard:?}");
        house.program.check();
    }
    // A correct request still works.
    let mut talk = Talk::begin(house.connect().await).await;
    talk.say(&get(1, "/ready")).await;
    let heard = talk.until(|heard| heard.answers > 0).await;
    assert_eq!((heard.answers, heard.status), (1, Some(OK)), "{heard:?}");
    house.check();
}
