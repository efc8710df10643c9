//! From evidence to a verdict, or to the named reason why there is none.
