//! What an agent writes in other ways than it should: what can be read counts whatever is odd about it, and what cannot costs the answer.

use super::{ended, submit, told, world};

#[test]
fn an_update_that_has_an_id_is_said_all_the_same() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "numbered");
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "completed - yes", "{over}");
    assert_eq!(over["terminal"]["final_message"], "first second third");
}
