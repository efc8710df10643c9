//! Commands of a user.

use serde_json::json;

use crate::world::Store;

#[tokio::test]
async fn what_a_command_leaves_behind_may_say_what_it_likes_for_ever_and_its_end_is_told() {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    for _ in 0..3 {
        let asked = host.ask("turnd/shell", json!({ "command": "yes & yes & exit 3" })).await;
        let result = host.answer(asked).await["result"].clone();
        assert_eq!((&result["exitCode"], &result["outputTruncated"]), (&json!(3), &json!(true)), "{result:.200}");
    }
    host.close().await;
}
