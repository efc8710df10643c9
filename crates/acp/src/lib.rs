//! The Agent Client Protocol over lines: bounded, tolerant, raw where we do not author.
