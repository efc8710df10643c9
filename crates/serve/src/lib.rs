//! HTTP, server-sent events, the layout of files, cold load, wiring.
