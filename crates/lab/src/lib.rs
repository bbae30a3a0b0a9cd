//! The cores in virtual time: worlds, replays, checkers and swarms.
