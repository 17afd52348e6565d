//! Several servers on one bucket: what one of them shows and deletes of what another has flushed, or flushes right now.

use super::fault_tests::{Fault, Faulty, found, numbered, once, open, push};
use crate::profile::TimeSpan;
use crate::profile::tenant::tenant_id;
use crate::store::maintenance::Work;
use crate::store::maintenance::deletion::Deletion;
use crate::store::tests::scratch;

fn deletion(service: &str) -> Work {
    let selector = format!("{{service_name=\"{service}\"}}");
    Work::Delete(Deletion::new(tenant_id("t"), selector, TimeSpan::ALL))
}

#[tokio::test]
async fn a_deletion_reaches_what_another_server_flushed_before_it_was_asked_for() {
    let (one, two, three) = (scratch(), scratch(), scratch());
    let bucket = Faulty::new(Fault::Refused);
    // Their intervals are an hour: none looks at the tables by itself.
    let asked = open(one.path(), &bucket);
    let other = open(two.path(), &bucket);
    let refused = other.append(&tenant_id("t"), vec![numbered(1, "gone")]).await;
    assert!(refused.is_empty(), "{refused:?}");
    push(&other, 2).await;
    other.flush().await.unwrap();
    asked.maintain(deletion("gone")).await.unwrap();
    assert_eq!(found(&asked, &bucket).await, once([2]));
    let seen = open(three.path(), &bucket);
    assert_eq!(found(&seen, &bucket).await, once([2]));
}
