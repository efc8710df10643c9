//! What `--agent` may name: the built-in agent, a preset, or a command line.

use std::path::Path;

use crate::cli::TranscriptMode;

/// An agent that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    /// The program and its arguments; never empty.
    pub(crate) argv: Vec<String>,
    /// Who writes the transcript unless the user says otherwise.
    pub(crate) mode: TranscriptMode,
}

/// Why a text names no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentError {
    /// There is no program in it.
    Empty,
    /// A quote or a backslash is left open.
    Quotes,
}

impl std::fmt::Display for AgentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "--agent names no program",
            Self::Quotes => "--agent has an open quote or a trailing backslash",
        })
    }
}

impl std::error::Error for AgentError {}

impl Agent {
    /// Reads what follows `--agent`. `own` is this program, which is the built-in agent.
    pub(crate) fn parse(text: &str, own: &Path) -> Result<Self, AgentError> {
        match text.trim() {
            "" => Err(AgentError::Empty),
            "builtin" => Ok(Self {
                argv: vec![own.to_string_lossy().into_owned(), "agent".to_owned()],
                mode: TranscriptMode::Recorded,
            }),
            "qwen" => Ok(Self { argv: vec!["qwen".to_owned(), "--acp".to_owned()], mode: TranscriptMode::Native }),
            command => {
                let argv = shlex::split(command).ok_or(AgentError::Quotes)?;
                if argv.is_empty() {
                    return Err(AgentError::Empty);
                }
                Ok(Self { argv, mode: TranscriptMode::Recorded })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(text: &str) -> Result<Vec<String>, AgentError> {
        Agent::parse(text, Path::new("/bin/turnd")).map(|agent| agent.argv)
    }

    #[test]
    fn the_builtin_agent_is_this_very_program() {
        assert_eq!(argv("builtin"), Ok(vec!["/bin/turnd".into(), "agent".into()]));
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_would() {
        assert_eq!(argv("node 'my agent.js' --acp"), Ok(vec!["node".into(), "my agent.js".into(), "--acp".into()]));
    }

    #[test]
    fn a_command_line_without_a_program_or_with_an_open_quote_is_refused() {
        assert_eq!(argv("   "), Err(AgentError::Empty));
        assert_eq!(argv("node 'my agent.js"), Err(AgentError::Quotes));
    }
}
