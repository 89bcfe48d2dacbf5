//! Nodesets: `gpu[01-16],@group,!gpu07`.
