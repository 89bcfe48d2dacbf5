//! The `provision` program: parse, run, exit.

fn main() -> std::process::ExitCode {
    provision::cli::main()
}
