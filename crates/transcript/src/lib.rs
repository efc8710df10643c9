//! The session file: append, read backward, project, classify.
