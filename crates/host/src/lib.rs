//! The recording proxy between daemon and agent, and the guardian of its process tree.
