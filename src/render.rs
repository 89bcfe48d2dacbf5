//! Quoting and templates: the only way a value becomes shell.
