//! An apt repository: its key, pinned by full fingerprint, and its `.sources` file.
