//! Compiles the library and gives its functions their prefix, so that C code keeps its malloc.
//! It calls the C compiler itself, so that the crate needs no other crate and no recent compiler.
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const FLAGS: &[&str] = &[
    "-std=c17",
    "-O2",
    "-fPIC",
    "-fasm",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fexceptions",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    "-fno-builtin-aligned_alloc",
    "-fno-builtin-memalign",
    "-fno-builtin-posix_memalign",
    "-fno-builtin-valloc",
    "-D_GNU_SOURCE",
    "-DHAKMEM_CHECKED=0",
];

/// Without the replacement of dlopen, and without what is about another C library.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let other_libc = if variable("CARGO_CFG_TARGET_ENV") == "musl" { "glibc" } else { "musl" };
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

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// CC_aarch64_unknown_linux_gnu, then CC, then what Debian calls the tool: aarch64-linux-gnu-gcc.
fn tool(name: &str, native: &str, cross: &str) -> Vec<String> {
    let (target, host) = (variable("TARGET"), variable("HOST"));
    let (processor, libc) = (variable("CARGO_CFG_TARGET_ARCH"), variable("CARGO_CFG_TARGET_ENV"));
    let default = if target.split('-').next() != host.split('-').next() {
        format!("{processor}-linux-{libc}-{cross}")
    } else if name == "CC" && libc == "musl" && !host.contains("musl") {
        "musl-gcc".to_string()
    } else {
        native.to_string()
    };
    let names = [format!("{name}_{}", target.replace('-', "_")), name.to_string()];
    for name in &names {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let told = names.iter().map(|name| variable(name)).find(|words| !words.trim().is_empty());
    told.unwrap_or(default).split_whitespace().map(String::from).collect()
}

/// A command of the tool, which may be several words: CC="ccache gcc".
fn command(tool: &[String]) -> Command {
    let mut command = Command::new(&tool[0]);
    command.args(&tool[1..]);
    command
}

fn start(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        fail(&format!("{program}: {error}: the crate hakmem needs a C compiler, binutils and bash"))
    })
}

fn finish(mut child: Child, what: &str) {
    let status = child.wait().expect("a child that was started");
    if !status.success() {
        fail(&format!("{what}: {status}"));
    }
}

fn run(command: &mut Command) {
    let what = format!("{command:?}");
    finish(start(command), &what);
}

fn fail(why: &str) -> ! {
    eprintln!("hakmem: {why}");
    std::process::exit(1)
}

fn compile(root: &Path, out: &Path) -> Vec<PathBuf> {
    let compiler = tool("CC", "cc", "gcc");
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| flag.to_string()).collect();
    if variable("CARGO_CFG_TARGET_ARCH") == "x86_64" {
        flags.push("-fcf-protection=none".to_string());
    }
    for folder in ["src", "include"] {
        flags.push(format!("-I{}", root.join(folder).display()));
    }
    flags.extend(variable("CFLAGS").split_whitespace().map(String::from));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let at_once = variable("NUM_JOBS").parse().unwrap_or(1).max(1);
    let mut objects = Vec::new();
    for group in files.chunks(at_once) {
        let mut running = Vec::new();
        for file in group {
            let object = out.join(format!("{}.o", objects.len()));
            let mut one = command(&compiler);
            one.args(&flags).arg("-c").arg(file).arg("-o").arg(&object);
            running.push((start(&mut one), file));
            objects.push(object);
        }
        for (child, file) in running {
            finish(child, &file.display().to_string());
        }
    }
    objects
}

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let objects = compile(&root, &out);
    let joined = out.join("hakmem.o");
    let prefixed = out.join("hakmem_prefixed.o");
    let archive = out.join("libhakmem_prefixed.a");
    let objcopy = tool("OBJCOPY", "objcopy", "objcopy");
    run(command(&tool("LD", "ld", "ld")).arg("-r").arg("-o").arg(&joined).args(&objects));
    run(command(&objcopy).arg("--localize-hidden").arg(&joined));
    run(Command::new("bash")
        .arg(root.join("tools/prefix.sh"))
        .arg(&objcopy[0])
        .arg(&joined)
        .arg(root.join("include/hakmem_prefixed.h"))
        .arg(&prefixed));
    let _ = std::fs::remove_file(&archive);
    run(command(&tool("AR", "ar", "ar")).arg("crs").arg(&archive).arg(&prefixed));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=hakmem_prefixed");
    for watched in ["src", "include", "tools/prefix.sh", "packaging/rust/build.rs"] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
}
