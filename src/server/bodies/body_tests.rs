//! Tests of the limits of bodies: on size, on time, and on the memory of all bodies together.

use std::io::{self, ErrorKind, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::server::bodies::budget::Stage;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Returns limits with 16 MiB of memory. Bodies of up to 4 KiB and of up to 96 KiB have separate shares. A body may
/// have 4 MiB, before and after decompression.
fn limits() -> ServerLimits {
    ServerLimits {
        memory_bytes: 16 * MIB,
        body_bytes: 4 * MIB,
        unpacked_body_bytes: 4 * MIB,
        memory_wait: Duration::from_millis(1),
        ..ServerLimits::default()
    }
}

fn intake() -> Intake {
    Intake::new(&limits(), MemoryPressure::default(), Workers::new())
}

fn limit(bytes: usize) -> BodyLimit {
    BodyLimit {
        bytes,
        unpacked_bytes: bytes,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads a body in parts, without a `Content-Length`.
async fn read(intake: &Intake, parts: Vec<Vec<u8>>, max: usize) -> Result<ReceivedBody, ConnectError> {
    let stream = futures::stream::iter(parts.into_iter().map(Ok::<_, std::io::Error>));
    intake
        .read(&HeaderMap::new(), Body::from_stream(stream), limit(max))
        .await
}

async fn read_gzip(intake: &Intake, plain: &[u8], max: usize) -> Result<ReceivedBody, ConnectError> {
    let headers = HeaderMap::from_iter([(http::header::CONTENT_ENCODING, "gzip".parse().unwrap())]);
    intake.read(&headers, gzip(plain).into(), limit(max)).await
}

impl Intake {
    fn free_bytes(&self) -> usize {
        let budget = &self.budget;
        [&budget.arriving, &budget.unpacked, &budget.decoded]
            .map(Stage::free_bytes)
            .iter()
            .sum()
    }
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let intake = intake();
    let two = || vec![b"ab".to_vec(), b"cd".to_vec()];
    assert_eq!(read(&intake, two(), 4).await.unwrap().bytes, "abcd");
    assert_eq!(read(&intake, two(), 3).await.unwrap_err().status, 413);
    assert_eq!(intake.free_bytes(), 16 * MIB);
}

#[tokio::test]
async fn a_body_holds_as_much_as_it_turned_out_to_have() {
    let intake = intake();
    for (length, charged_bytes) in [(1, KIB), (100 * KIB, 100 * KIB), (3 * MIB + 1, 3 * MIB + KIB)] {
        let parts = vec![0; length].chunks(50 * KIB).map(<[u8]>::to_vec).collect();
        let body = read(&intake, parts, 4 * MIB).await.unwrap();
        assert_eq!(body.bytes.len(), length);
        assert_eq!(intake.free_bytes(), 16 * MIB - charged_bytes, "{length}");
    }
    assert_eq!(intake.free_bytes(), 16 * MIB);
}

#[tokio::test]
async fn an_unpacked_body_is_counted_by_what_it_became_and_no_longer_by_what_came() {
    let intake = intake();
    for (length, charged_bytes) in [
        (10, KIB),
        (100 * KIB, 100 * KIB),
        (3 * MIB, 3 * MIB),
        (4 * MIB, 4 * MIB),
    ] {
        let body = read_gzip(&intake, &vec![7; length], 4 * MIB).await.unwrap();
        assert_eq!(body.bytes.len(), length);
        assert_eq!(intake.free_bytes(), 16 * MIB - charged_bytes, "{length}");
    }
    let error = read_gzip(&intake, &vec![7; 4 * MIB + 1], 4 * MIB).await.unwrap_err();
    assert_eq!(error.status, 413);
    assert!(error.message.contains("larger than 4194304"), "{error}");
    assert_eq!(intake.free_bytes(), 16 * MIB);
}

#[tokio::test]
async fn gzip_without_a_header_is_opened_unless_the_body_is_gzip_itself() {
    let intake = intake();
    let packed = gzip(b"abc");
    assert_eq!(read(&intake, vec![packed.clone()], 100).await.unwrap().bytes, "abc");
    let headers = HeaderMap::new();
    let unopened = intake.read_upload(&headers, packed.clone().into(), limit(100), |_| false);
    assert_eq!(unopened.await.unwrap().bytes, packed);
    let error = read(&intake, vec![gzip(&vec![7; 4 * MIB + 1])], 4 * MIB)
        .await
        .unwrap_err();
    assert_eq!(error.status, 413);
    assert_eq!(intake.free_bytes(), 16 * MIB);
}

#[tokio::test]
async fn large_bodies_that_fill_their_share_leave_that_of_the_small_ones() {
    let intake = intake();
    let held = read_gzip(&intake, &vec![7; 3 * MIB], 4 * MIB).await.unwrap();
    let refused = read_gzip(&intake, &vec![7; 3 * MIB], 4 * MIB).await.unwrap_err();
    assert_eq!((refused.status, refused.code), (503, Code::Unavailable));
    assert!(read_gzip(&intake, &[7; 100 * KIB], 4 * MIB).await.is_ok());
    drop(held);
    assert!(read_gzip(&intake, &vec![7; 3 * MIB], 4 * MIB).await.is_ok());
}

#[tokio::test]
async fn what_is_made_of_a_body_is_weighed_before_it_is_made() {
    let intake = intake();
    let body = read(&intake, vec![b"abc".to_vec()], 10).await.unwrap();
    let weigh = |bytes: Bytes| Ok((bytes, 2 * MIB));
    let body = (body.bytes, body.charge);
    let (made, mut charge) = intake.make(body, 3, weigh, |bytes| Ok(bytes.len())).await.unwrap();
    assert_eq!((made, intake.free_bytes()), (3, 14 * MIB - KIB));
    let body = read(&intake, vec![b"abc".to_vec()], 10).await.unwrap();
    let body = (body.bytes, body.charge);
    let refused = intake.make(body, 3, weigh, |_| -> Result<(), _> { panic!("made without memory") });
    assert_eq!(refused.await.unwrap_err().status, 503);
    charge.keep(KIB);
    assert_eq!(intake.free_bytes(), 16 * MIB - 2 * KIB);
    charge.release_last();
    assert_eq!(intake.free_bytes(), 16 * MIB - KIB);
    drop(charge);
    assert_eq!(intake.free_bytes(), 16 * MIB);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let limits = ServerLimits {
        body_timeout: Duration::from_millis(10),
        ..limits()
    };
    let intake = Intake::new(&limits, MemoryPressure::default(), Workers::new());
    let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let error = intake.read(&HeaderMap::new(), body, limit(10)).await.unwrap_err();
    assert_eq!(error.status, 408);
    assert_eq!(intake.free_bytes(), 16 * MIB);
}

/// Clients that send their bodies slowly do not make others wait for long.
#[tokio::test]
async fn a_slow_body_gives_way_to_those_who_wait_for_its_memory() {
    let limits = ServerLimits {
        memory_wait: Duration::from_mins(1),
        slow_body_time: Duration::from_millis(10),
        ..limits()
    };
    let intake = Intake::new(&limits, MemoryPressure::default(), Workers::new());
    // The test sends more bodies of each size than fit into the memory.
    for (announced, count) in [(None, 150), (Some(KIB), 600), (Some(90 * KIB), 30), (Some(4 * MIB), 5)] {
        let length = announced.map(|bytes| (CONTENT_LENGTH, bytes.to_string().parse().unwrap()));
        let headers = HeaderMap::from_iter(length);
        let begin = |bytes: Body| intake.read(&headers, bytes, limit(4 * MIB));
        let slow = (0..count).map(|_| {
            let drops = stream::repeat(()).then(|()| tokio::time::sleep(Duration::from_millis(5)));
            Box::pin(begin(Body::from_stream(drops.map(|()| Ok::<_, io::Error>("x")))))
        });
        let mut slow: Vec<_> = slow.collect();
        for body in &mut slow {
            assert!(futures::poll!(body).is_pending());
        }
        let honest = vec![2; announced.unwrap_or(100)];
        let mut slow = futures::future::join_all(slow);
        let body = tokio::select! {
            body = begin(honest.into()) => body.unwrap(),
            _ = &mut slow => panic!("the slow bodies ended before the honest body"),
        };
        assert_eq!(body.bytes.len(), announced.unwrap_or(100));
        drop((body, slow));
        assert_eq!(intake.free_bytes(), 16 * MIB);
    }
}

/// A client that is just fast enough for the smallest body cannot hold the memory of a large body for longer than other
/// requests wait for memory.
#[tokio::test]
async fn a_large_body_that_drips_faster_gives_way_too() {
    let limits = ServerLimits {
        memory_wait: Duration::from_secs(1),
        slow_body_time: Duration::from_millis(20),
        ..limits()
    };
    let intake = Intake::new(&limits, MemoryPressure::default(), Workers::new());
    let headers = |bytes: usize| HeaderMap::from_iter([(CONTENT_LENGTH, bytes.to_string().parse().unwrap())]);
    let (large, honest) = (headers(4 * MIB), headers(200 * KIB));
    // Each slow body alone takes some seconds, and all of them are ahead of the honest body.
    let slow = (0..8).map(|_| {
        let drops = stream::iter(0..4 * MIB / (17 * KIB)).then(|_| async {
            tokio::time::sleep(Duration::from_millis(8)).await;
            Ok::<_, io::Error>(vec![1; 17 * KIB])
        });
        Box::pin(intake.read(&large, Body::from_stream(drops), limit(4 * MIB)))
    });
    let mut slow: Vec<_> = slow.collect();
    for body in &mut slow {
        assert!(futures::poll!(body).is_pending());
    }
    let mut slow = futures::future::join_all(slow);
    let body = tokio::select! {
        body = intake.read(&honest, vec![2; 200 * KIB].into(), limit(4 * MIB)) => body.unwrap(),
        _ = &mut slow => panic!("the slow bodies ended before the honest body"),
    };
    assert_eq!(body.bytes.len(), 200 * KIB);
}

/// A client on a slow network may send its whole body while no other request waits for memory.
#[tokio::test]
async fn a_slow_body_is_read_to_its_end_when_nobody_waits_for_its_memory() {
    let limits = ServerLimits {
        slow_body_time: Duration::from_millis(1),
        ..limits()
    };
    let intake = Intake::new(&limits, MemoryPressure::default(), Workers::new());
    let drops = stream::iter(0..100).then(|_| async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok::<_, io::Error>(vec![1; 100])
    });
    let headers = HeaderMap::new();
    let body = intake.read(&headers, Body::from_stream(drops), limit(4 * MIB));
    assert_eq!(body.await.unwrap().bytes.len(), 10_000);
}

#[tokio::test]
async fn while_memory_is_short_no_body_is_begun() {
    let pressure = MemoryPressure::default();
    let intake = Intake::new(&limits(), pressure.clone(), Workers::new());
    assert!(pressure.set(true) && !pressure.set(true));
    let error = read(&intake, vec![vec![1; 10]], KIB).await.unwrap_err();
    assert_eq!((error.status, error.code), (503, Code::Unavailable));
    assert!(error.message.contains("--memory-limit"), "{error}");
    pressure.set(false);
    assert!(read(&intake, vec![vec![1; 10]], KIB).await.is_ok());
}

/// Without draining, a client that sends its whole body before it reads the response sees a broken connection.
#[tokio::test]
async fn a_body_that_finds_no_memory_is_read_to_its_end_before_it_is_refused() {
    let pressure = MemoryPressure::default();
    let intake = Intake::new(&limits(), pressure.clone(), Workers::new());
    let sent = Arc::new(AtomicUsize::new(0));
    let refused = async |announced: Option<usize>, parts: usize| {
        sent.store(0, Ordering::Relaxed);
        let count = sent.clone();
        let parts = futures::stream::iter(0..parts).map(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(vec![1; 64 * KIB])
        });
        let announced = announced.map(|bytes| (CONTENT_LENGTH, bytes.to_string().parse().unwrap()));
        let headers = HeaderMap::from_iter(announced);
        let error = intake.read(&headers, Body::from_stream(parts), limit(4 * MIB)).await;
        (error.unwrap_err().status, sent.load(Ordering::Relaxed))
    };
    let large = &intake.budget.arriving;
    let mut held = Vec::new();
    while let Ok(bytes) = large.take(MIB).await {
        held.push(bytes);
    }
    assert_eq!(refused(Some(2 * MIB), 32).await, (503, 32));
    assert_eq!(refused(None, 32).await, (503, 32), "the length is not announced");
    drop(held);
    pressure.set(true);
    assert_eq!(refused(Some(2 * MIB), 32).await, (503, 32), "memory is short");
}

#[tokio::test]
async fn a_body_of_a_wrong_form_is_invalid_and_one_that_breaks_off_has_not_come_in_time() {
    let intake = intake();
    for (kind, status) in [
        (ErrorKind::InvalidInput, 400),
        (ErrorKind::InvalidData, 400),
        (ErrorKind::UnexpectedEof, 408),
        (ErrorKind::ConnectionReset, 408),
    ] {
        let stream = futures::stream::iter([Err::<Bytes, _>(io::Error::from(kind))]);
        let headers = HeaderMap::new();
        let read = intake.read(&headers, Body::from_stream(stream), limit(10));
        assert_eq!(read.await.unwrap_err().status, status, "{kind:?}");
    }
}
