//! The built-in scripted agent.
