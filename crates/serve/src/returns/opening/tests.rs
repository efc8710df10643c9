use request::store::{Options, Store};

use super::*;

fn folder(scratch: &tempfile::TempDir) -> PathBuf {
    scratch.path().join("requests")
}

#[tokio::test(start_paused = true)]
async fn a_store_that_another_one_has_is_opened_as_soon_as_it_is_let_go_and_said_to_be_unavailable_until_then() {
    let scratch = tempfile::tempdir().unwrap();
    let other = Store::open(&folder(&scratch), Options::default(), 1).unwrap().0;
    let returns = Returns::new(Arc::default());
    let opening = crate::tasks::spawn({
        let (returns, folder) = (Arc::clone(&returns), folder(&scratch));
        async move { returns.open(folder).await }
    });
    returns.opened().await;
    let refusal = loop {
        match returns.store() {
            Err(refusal) if refusal.code != "store_busy" => break refusal,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!((refusal.status.as_u16(), &*refusal.code), (503, "store_unavailable"));
    assert!(refusal.fields.contains(&(refusal::REASON, "locked".into())), "{refusal:?}");
    assert_eq!(returns.health(), json!({"status": "unavailable", "code": "store_unavailable", "reason": "locked"}));
    assert!(!opening.is_finished());
    drop(other);
    assert_eq!(opening.await.unwrap(), []);
    assert!(returns.store().is_ok());
    assert_eq!(returns.health(), json!({"status": "ok"}));
    returns.drain();
    returns.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_stops_waits_for_no_store() {
    let scratch = tempfile::tempdir().unwrap();
    let _other = Store::open(&folder(&scratch), Options::default(), 1).unwrap().0;
    let returns = Returns::new(Arc::default());
    let opening = crate::tasks::spawn({
        let (returns, folder) = (Arc::clone(&returns), folder(&scratch));
        async move { returns.open(folder).await }
    });
    returns.opened().await;
    returns.drain();
    returns.close().await;
    assert_eq!(opening.await.unwrap(), []);
    assert!(returns.store().is_err());
}

#[tokio::test]
async fn a_damaged_store_and_one_of_another_version_are_not_tried_again() {
    for (bytes, code, reason) in
        [(&b"no database"[..], "store_corrupt", None), (&[], "store_unavailable", Some("newer_version"))]
    {
        let scratch = tempfile::tempdir().unwrap();
        drop(Store::open(&folder(&scratch), Options::default(), 1).unwrap());
        let file = folder(&scratch).join("requests.db");
        let mut newer = std::fs::read(&file).unwrap();
        newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
        std::fs::write(&file, if bytes.is_empty() { &newer } else { bytes }).unwrap();
        let returns = Returns::new(Arc::default());
        assert_eq!(returns.open(folder(&scratch)).await, []);
        let told = returns.health();
        assert_eq!((told["code"].as_str(), told["reason"].as_str()), (Some(code), reason));
    }
}

#[test]
fn only_what_time_may_mend_is_tried_again() {
    for (error, expected) in [
        (OpenError::Locked, true),
        (StoreError::Busy.into(), true),
        (StoreError::Full.into(), true),
        (StoreError::Io(String::new()).into(), true),
        (StoreError::Corrupt(String::new()).into(), false),
        (StoreError::Closed.into(), false),
        (OpenError::Corrupt { aside: PathBuf::new(), what: String::new() }, false),
        (OpenError::Newer { found: 2, known: 1 }, false),
        (OpenError::UnknownVersion { found: 0 }, false),
        (OpenError::Foreign, false),
        (OpenError::Remote, false),
        (OpenError::Exported, false),
    ] {
        assert_eq!(is_passing(&error), expected, "{error}");
        assert_eq!(refusal::of_opening(&error).retry, expected, "{error}");
    }
}

#[test]
fn a_clock_that_was_set_back_by_a_second_or_more_since_the_last_life_is_told_in_the_log() {
    let scratch = tempfile::tempdir().unwrap();
    let later = now_ms() + 3_600_000;
    let (store, _) = Store::open(&folder(&scratch), Options::default(), later).unwrap();
    store.close(later).unwrap();
    let (store, _) = Store::open(&folder(&scratch), Options::default(), now_ms()).unwrap();
    assert!(store.was_clean());
    for (now_ms, is_told) in
        [(later - 3_600_000, true), (later - 1_000, true), (later - 999, false), (later + 1, false)]
    {
        assert_eq!(is_set_back(store.clock_behind_ms(now_ms)), is_told, "{now_ms}");
    }
}
