//! What each command does: one function a command.
