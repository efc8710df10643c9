//! The append-only record of what became of each prompt.
