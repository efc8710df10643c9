//! What becomes of a turn, rule by rule (wire specification, section 7.3).

use super::notation::Life;
use crate::compaction::Bounds;

fn check(rows: &[(&str, &str, &str)]) {
    for (rule, said, shown) in rows {
        assert_eq!(Life::of(said, Bounds::default()).shown(), *shown, "{rule}: {said}");
    }
}

#[test]
fn pieces_of_a_text_become_one() {
    check(&[
        ("adjacent ones do", "say a, say b, say c, end", "3=say abc 4=end |"),
        ("with escapes in them", "say a\"\\, say \n\", end", "2=say a\"\\\n\" 3=end |"),
        ("thoughts do too, apart from what is said", "think a, think b, say c, end", "2=think ab 3=say c 4=end |"),
        ("nothing joins over what is shown between", "say a, plan 1, say b, end", "1=say a 2=plan 1 3=say b 4=end |"),
        ("a turn's text is its own", "say a, end, say b, end", "1=say a 2=end 3=say b 4=end |"),
        (
            "one that stands by itself is joined by none",
            "say a, notice b, notice c, say d, end",
            "1=say a 2=notice b 3=notice c 4=say d 5=end |",
        ),
        ("what it took joins it", "say a, say b, say  usage 1, end", "3=say ab usage 1 4=end |"),
        ("two accounts stay two", "say a usage 1, say b usage 2, end", "1=say a usage 1 2=say b usage 2 3=end |"),
        ("texts of two records stay two", "say a from r, say b from r, say c from q, end", "2=say ab 3=say c 4=end |"),
        ("so do one of a record and one of none", "say a, say b from r, say c, end", "1=say a 2=say b 3=say c 4=end |"),
    ]);
}

#[test]
fn what_is_said_below_a_tool_call_is_put_together_there() {
    check(&[
        (
            "each call has its own text",
            "say a below c, say b below d, say e below c, end",
            "1=say ae below c 2=say b below d 4=end |",
        ),
        ("the top's is another", "say a, say b below c, say d, end", "1=say ad 2=say b below c 4=end |"),
        (
            "nothing joins over what is shown there between",
            "say a below c, call d below c, say b below c, end",
            "1=say a below c 2=call d below c 3=say b below c 4=end |",
        ),
    ]);
}

#[test]
fn the_words_about_a_tool_call_become_one_at_its_first_place() {
    check(&[
        (
            "later words win",
            "call c title=x status=pending, update c status=running, say a, update c status=done, end",
            "2=call c title=x status=done 3=say a 5=end |",
        ),
        (
            "a null says nothing",
            "call c title=x, update c title=null status=done, end",
            "2=call c title=x status=done 3=end |",
        ),
        (
            "a text goes on over a word that moved",
            "call c, say a, update c status=done, say b, end",
            "1=call c status=done 4=say ab 5=end |",
        ),
        ("two calls stay two", "call c, call d, update c status=done, end", "1=call c status=done 2=call d 4=end |"),
        (
            "a call begun in an earlier turn does not begin again",
            "call c, end, update c status=a, update c status=b, end",
            "1=call c 2=end 4=update c status=b 5=end |",
        ),
        ("its beginning may come late", "update c status=a, call c title=x, end", "2=call c status=a title=x 3=end |"),
    ]);
}

#[test]
fn of_a_state_the_newest_word_is_kept() {
    check(&[
        (
            "within a turn",
            "commands 1, say a, commands 2, mode x, mode y, end",
            "2=say a 3=commands 2 5=mode y 6=end |",
        ),
        (
            "and over turns",
            "commands 1, mode x, end, say a, commands 2, end",
            "2=mode x 3=end 4=say a 5=commands 2 6=end |",
        ),
        (
            "another state is none of these",
            "usage_update 1, usage_update 2, end",
            "1=usage_update 1 2=usage_update 2 3=end |",
        ),
    ]);
}

#[test]
fn what_came_after_the_last_end_is_shown_as_it_came() {
    check(&[
        (
            "calls are not put together",
            "call c, update c status=a, update c status=b",
            "| 1=call c 2=update c status=a 3=update c status=b",
        ),
        ("pieces of a text are", "echo hi, say a, say b, plan 1", "| 1=echo hi 3=say ab 4=plan 1"),
        ("the ends of turns part the two", "say a, fail, say b", "1=say a 2=fail | 3=say b"),
        ("and nothing is nothing", "", "|"),
    ]);
}

#[test]
fn an_event_of_the_running_turn_stands_for_256_pieces_at_most() {
    let script = vec!["say a"; 300].join(", ");
    let life = Life::of(&script, Bounds::default());
    assert_eq!(life.shown(), format!("| 256=say {} 300=say {}", "a".repeat(256), "a".repeat(44)));
    let life = Life::of(&(script + ", end"), Bounds::default());
    assert_eq!(life.shown(), format!("300=say {} 301=end |", "a".repeat(300)));
}
