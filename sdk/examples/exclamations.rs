// exclamations.rs: a reward in Rust. The score is the number of exclamation marks in a response,
// times `factor`.
//
// The structs of rlhf/base.h, option.h, reward.h and plugin.h are written by hand; the first field
// of a sized struct is its size. score() must not let a panic escape. Built with just rustc: see
// the Makefile.
use std::os::raw::{c_char, c_void};

#[repr(C)]
pub struct Str {
    ptr: *const c_char,
    len: u64,
}

#[repr(C)]
pub struct RewardIn {
    size: u32,
    n: u32,
    phase: i64,
    prompt: *const Str,
    response: *const Str,
    meta: *const Str,
    source: *const i64,
    group: *const i32,
    finished: *const u8,
    prompt_len: *const i32,
    ids: *const i32,
    offset: *const i32,
    logp_sampled: *const f32,
    logp_ref: *const f32,
    turn: *const i32,
    messages: *const Str,
    end: *const u8,
}

#[repr(C)]
pub struct RewardOut {
    size: u32,
    reserved: u32,
    seq: *mut f32,
    token: *mut f32,
    verdict: *mut u8,
    failed: *mut u8,
}

#[repr(C)]
pub struct Opt {
    key: *const c_char,
    help: *const c_char,
    kind: i32,
    flags: u32,
    offset: u32,
    reserved: u32,
    i: [i64; 3], // default, minimum, maximum
    f: [f64; 3],
    s_def: *const c_char,
    choices: *const *const c_char,
    l_def: *const *const c_char,
    table: *const Opt,
    n_table: u64,
}

type Score = unsafe extern "C" fn(*mut c_void, *const RewardIn, *const RewardOut) -> i32;

#[repr(C)]
pub struct RewardOps {
    size: u32,
    flags: u32,
    score: Score,
    check_row: *const c_void,
}

#[repr(C)]
pub struct Plugin {
    size: u32,
    kind: u32,
    id: *const c_char,
    version: *const c_char,
    summary: *const c_char,
    vendor: *const c_char,
    url: *const c_char,
    license: *const c_char,
    host_minor_min: u32,
    flags: u32,
    opts: *const Opt,
    n_opts: u32,
    opt_stride: u32,
    config_size: u32,
    state_version: u32,
    why_unused: *const c_void,
    create_destroy_save_load: [*const c_void; 4], // none: self is the config
    ops: *const RewardOps,
    extension: *const c_void,
}

#[repr(C)]
pub struct Bundle {
    size: u32,
    abi_major: u32,
    abi_minor: u32,
    n_plugins: u32,
    plugins: *const *const Plugin,
    built_with: *const c_char,
}

#[repr(C)]
struct Config {
    factor: f64,
}

const E_INTERNAL: i32 = -8;
const KIND_REWARD: u32 = 2;
const T_F64: i32 = 3;
const ROW_ALONE: u32 = 2;

const fn text(bytes: &'static [u8]) -> *const c_char {
    assert!(bytes[bytes.len() - 1] == 0);
    bytes.as_ptr() as *const c_char
}

unsafe fn pay(config: &Config, batch: &RewardIn, out: &RewardOut) {
    for i in 0..batch.n as usize {
        let s = &*batch.response.add(i);
        let bytes = if s.len == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(s.ptr as *const u8, s.len as usize)
        };
        let marks = bytes.iter().filter(|&&b| b == b'!').count();
        *out.seq.add(i) = (config.factor * marks as f64) as f32;
    }
}

unsafe extern "C" fn score(own: *mut c_void, batch: *const RewardIn, out: *const RewardOut) -> i32 {
    let done = std::panic::catch_unwind(|| pay(&*(own as *const Config), &*batch, &*out));
    if done.is_ok() {
        0
    } else {
        E_INTERNAL
    }
}

// The descriptors are constant data, but they contain pointers. Sync allows them in a static.
#[repr(transparent)]
pub struct Shared<T>(T);
unsafe impl<T> Sync for Shared<T> {}

const fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

// The contract's minor version, which the Makefile takes from rlhf/base.h.
const fn minor() -> u32 {
    let digits = env!("RLHF_ABI_MINOR").as_bytes();
    let (mut value, mut i) = (0, 0);
    assert!(!digits.is_empty());
    while i < digits.len() {
        value = value * 10 + (digits[i] - b'0') as u32;
        i += 1;
    }
    value
}

const NONE: *const c_void = std::ptr::null();

static OPTS: Shared<[Opt; 1]> = Shared([Opt {
    key: text(b"factor\0"),
    help: text(b"what an exclamation mark is paid\0"),
    kind: T_F64,
    flags: 0,
    offset: 0,
    reserved: 0,
    i: [0; 3],
    f: [1.0, -1000.0, 1000.0],
    s_def: std::ptr::null(),
    choices: std::ptr::null(),
    l_def: std::ptr::null(),
    table: std::ptr::null(),
    n_table: 0,
}]);
static OPS: Shared<RewardOps> =
    Shared(RewardOps { size: size_of::<RewardOps>(), flags: ROW_ALONE, score, check_row: NONE });
static PLUGIN: Shared<Plugin> = Shared(Plugin {
    size: size_of::<Plugin>(),
    kind: KIND_REWARD,
    id: text(b"org.example.exclamations\0"),
    version: text(b"1.0.0\0"),
    summary: text(b"counts exclamation marks\0"),
    vendor: std::ptr::null(),
    url: std::ptr::null(),
    license: text(b"Apache-2.0\0"),
    host_minor_min: 0,
    flags: 0,
    opts: &OPTS.0 as *const [Opt; 1] as *const Opt,
    n_opts: 1,
    opt_stride: size_of::<Opt>(),
    config_size: size_of::<Config>(),
    state_version: 0,
    why_unused: NONE,
    create_destroy_save_load: [NONE; 4],
    ops: &OPS.0,
    extension: NONE,
});
static LIST: Shared<[*const Plugin; 1]> = Shared([&PLUGIN.0]);
static BUNDLE: Shared<Bundle> = Shared(Bundle {
    size: size_of::<Bundle>(),
    abi_major: 1,
    abi_minor: minor(),
    n_plugins: 1,
    plugins: &LIST.0 as *const [*const Plugin; 1] as *const *const Plugin,
    built_with: text(b"rustc\0"),
});

#[no_mangle]
pub extern "C" fn rlhf_plugin_v1() -> *const Bundle {
    &BUNDLE.0
}
