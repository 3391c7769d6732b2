//! Compiles the library and gives its functions their prefix, so that C code keeps its malloc.
use std::path::{Path, PathBuf};
use std::process::Command;

/// Without the replacement of dlopen, and without what is about another C library.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let libc = std::env::var("CARGO_CFG_TARGET_ENV").unwrap_or_default();
    let other_libc = if libc == "musl" { "glibc" } else { "musl" };
    for entry in std::fs::read_dir(folder).expect("the folder of the sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() && path.ends_with(other_libc) {
            continue;
        } else if path.is_dir() {
            sources(&path, found);
        } else if path.extension().map_or(false, |kind| kind == "c")
            && !path.ends_with("glibc/deepbind.c")
        {
            found.push(path);
        }
    }
    found.sort();
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn tool(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_string())
}

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap());
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let objects = cc::Build::new()
        .files(&files)
        .include(root.join("src"))
        .include(root.join("include"))
        .define("_GNU_SOURCE", None)
        .define("HAKMEM_CHECKED", "0")
        .opt_level(2)
        .pic(true)
        .flag("-std=c17")
        .flag("-fasm")
        .flag("-fvisibility=hidden")
        .flag("-ftls-model=initial-exec")
        .flag("-fexceptions")
        .flag("-fno-builtin-malloc")
        .flag("-fno-builtin-calloc")
        .flag("-fno-builtin-realloc")
        .flag("-fno-builtin-free")
        .flag("-fno-builtin-aligned_alloc")
        .flag("-fno-builtin-memalign")
        .flag("-fno-builtin-posix_memalign")
        .flag("-fno-builtin-valloc")
        .flag_if_supported("-fcf-protection=none")
        .compile_intermediates();
    let joined = out.join("hakmem.o");
    let prefixed = out.join("hakmem_prefixed.o");
    let archive = out.join("libhakmem_prefixed.a");
    let objcopy = tool("OBJCOPY", "objcopy");
    run(Command::new(tool("LD", "ld")).arg("-r").arg("-o").arg(&joined).args(&objects));
    run(Command::new(&objcopy).arg("--localize-hidden").arg(&joined));
    run(Command::new("bash")
        .arg(root.join("tools/prefix.sh"))
        .arg(&objcopy)
        .arg(&joined)
        .arg(root.join("include/hakmem_prefixed.h"))
        .arg(&prefixed));
    let _ = std::fs::remove_file(&archive);
    run(Command::new(tool("AR", "ar")).arg("crs").arg(&archive).arg(&prefixed));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=hakmem_prefixed");
    for watched in ["src", "include", "tools/prefix.sh", "packaging/rust/build.rs"] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
}
