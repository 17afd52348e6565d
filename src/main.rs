//! The program: see [`alluvium::cli`].

fn main() -> std::process::ExitCode {
    alluvium::cli::main()
}
