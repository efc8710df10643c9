//! Live sessions: the pure machine that decides and the thin shell that does.
