// fake_device.cpp: the machine that the fake runtime simulates: driver, devices, and failures.
#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

enum { RUNTIME = 13000 };

struct failure {
    std::string call; // a function's name, "launch", "any"
    int code;
    uint64_t at, n; // calls at .. at + n - 1 from now on fail
};

struct machine {
    int driver = RUNTIME, devices = 1, pools = 1;
    std::string names = "Emulated GPU", sms = "90", memories = "8G";
    std::vector<failure> failures;
    cudaError_t sticky = cudaSuccess, last = cudaSuccess;
    uint64_t calls = 0;
};

// Value `index` of a list separated by /, or its last value.
std::string nth(const std::string &list, int index) {
    size_t at = 0;
    for (size_t next; index-- > 0 && (next = list.find('/', at)) != list.npos;)
        at = next + 1;
    return list.substr(at, list.find('/', at) - at);
}

bool number(const std::string &text, uint64_t *out) {
    char *end;
    *out = strtoull(text.c_str(), &end, 10);
    if (end == text.c_str()) return false;
    const char *const units = "KMG", *unit = *end ? strchr(units, *end) : NULL;
    if (unit) *out <<= 10 * (unit - units + 1), end++;
    return !*end;
}

bool read_failure(machine *m, const std::string &text) {
    const size_t colon = text.find(':'), at = text.find('@');
    const size_t times = text.find('x', at == text.npos ? 0 : at);
    uint64_t code, first, n = 1;
    if (colon == text.npos || at == text.npos || at < colon) return false;
    if (!number(text.substr(colon + 1, at - colon - 1), &code) ||
        !number(text.substr(at + 1, times == text.npos ? times : times - at - 1), &first) ||
        (times != text.npos && !number(text.substr(times + 1), &n)))
        return false;
    m->failures.push_back({text.substr(0, colon), (int)code, first, n});
    return first > 0;
}

bool read_word(machine *m, const std::string &key, const std::string &value) {
    uint64_t n = 0;
    if (key == "name") return m->names = value, true;
    if (key == "fail") return read_failure(m, value);
    if (key == "sm") return m->sms = value, number(nth(value, 0), &n);
    if (key == "memory") return m->memories = value, number(nth(value, 0), &n);
    if (!number(value, &n)) return false;
    if (key == "driver") return m->driver = (int)n, true;
    if (key == "pools") return m->pools = (int)n, true;
    if (key == "devices") return m->devices = (int)n, true;
    return false;
}

bool read_machine(machine *m, const std::string &text) {
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find(',', at);
        if (end == text.npos) end = text.size();
        const std::string word = text.substr(at, end - at);
        const size_t eq = word.find('=');
        if (eq == word.npos || !read_word(m, word.substr(0, eq), word.substr(eq + 1))) return false;
    }
    return true;
}

machine machine_of_environment() {
    machine m;
    const char *text = getenv("RLHF_FAKE_CUDA");
    if (text && !read_machine(&m, text)) {
        fprintf(stderr, "RLHF_FAKE_CUDA=%s is not understood (fake_runtime.h says what is)\n",
                text);
        abort();
    }
    return m;
}
machine &here() {
    static machine m = machine_of_environment();
    return m;
}

thread_local int current_device;

// True for errors after which the context is lost, so that every later call returns the error
// again.
bool is_sticky(cudaError_t e) {
    return e == cudaErrorDevicesUnavailable || e == cudaErrorECCUncorrectable ||
           e == cudaErrorNvlinkUncorrectable || e == cudaErrorContained ||
           e == cudaErrorMpsClientTerminated || e == cudaErrorUnknown ||
           (e >= cudaErrorIllegalAddress && e <= cudaErrorLaunchFailure &&
            e != cudaErrorLaunchOutOfResources);
}

const struct {
    cudaError_t code;
    const char *name;
} error_names[] = {
#define NAME(name, value) {name, #name},
    FAKE_ERRORS(NAME)
#undef NAME
};

cudaError_t usable() {
    const machine &m = here();
    if (m.driver / 1000 < RUNTIME / 1000) return cudaErrorInsufficientDriver;
    return m.devices < 1 ? cudaErrorNoDevice : cudaSuccess;
}

} // namespace

namespace fake {

device device_of(int index) {
    device d;
    uint64_t n = 0;
    d.name = nth(here().names, index);
    number(nth(here().sms, index), &n);
    d.sm = (int)n;
    number(nth(here().memories, index), &d.memory);
    return d;
}
int current() { return current_device; }

cudaError_t failed(cudaError_t e) {
    machine &m = here();
    if (is_sticky(e)) m.sticky = e;
    return m.last = e;
}
cudaError_t take_last_error() {
    machine &m = here();
    const cudaError_t e = m.sticky != cudaSuccess ? m.sticky : m.last;
    m.last = cudaSuccess;
    return e;
}

cudaError_t enter(const char *call) {
    machine &m = here();
    m.calls++;
    cudaError_t e = usable();
    if (e == cudaSuccess) e = m.sticky;
    for (failure &f : m.failures)
        if ((f.call == "any" || f.call == call) && f.n && (f.at == 0 || --f.at == 0)) {
            f.n--;
            if (e == cudaSuccess) e = (cudaError_t)f.code;
        }
    return e == cudaSuccess ? e : failed(e);
}

unsigned shared_limit() { // as in the table of compute capabilities in NVIDIA's guide
    const int sm = device_of(current()).sm;
    return (sm == 80 || sm == 87 ? 163 : sm >= 86 && sm < 90 ? 99 : sm >= 120 ? 99 : 227) * 1024;
}

} // namespace fake

extern "C" {

__attribute__((visibility("default"))) bool rlhf__fake_cuda(const char *settings) {
    machine m;
    if (!read_machine(&m, settings)) return false;
    here() = m;
    current_device = 0;
    return true;
}
__attribute__((visibility("default"))) uint64_t rlhf__fake_cuda_calls(void) { return here().calls; }

cudaError_t cudaDriverGetVersion(int *out) {
    *out = here().driver;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *out) {
    *out = RUNTIME;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *out) {
    *out = 0;
    FAKE_ENTER();
    *out = here().devices;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
    FAKE_ENTER();
    if (index < 0 || index >= here().devices) return fake::failed(cudaErrorInvalidDevice);
    current_device = index;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *out) {
    FAKE_ENTER();
    *out = current_device;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int index) {
    FAKE_ENTER();
    if (index < 0 || index >= here().devices) return fake::failed(cudaErrorInvalidDevice);
    const fake::device d = fake::device_of(index);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", d.name.c_str());
    out->totalGlobalMem = d.memory;
    out->major = d.sm / 10;
    out->minor = d.sm % 10;
    out->multiProcessorCount = 4;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int index) {
    FAKE_ENTER();
    if (index < 0 || index >= here().devices) return fake::failed(cudaErrorInvalidDevice);
    const int sm = fake::device_of(index).sm;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *out = 4;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *out = sm / 10;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *out = sm % 10;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *out = (int)fake::shared_limit();
        return cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported:
        *out = here().pools;
        return cudaSuccess;
    }
    return fake::failed(cudaErrorInvalidValue);
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t none = usable();
    return none != cudaSuccess ? none : fake::take_last_error();
}
cudaError_t cudaPeekAtLastError(void) {
    const machine &m = here();
    return m.sticky != cudaSuccess ? m.sticky : m.last;
}
const char *cudaGetErrorName(cudaError_t e) {
    for (const auto &n : error_names)
        if (n.code == e) return n.name;
    return "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t e) {
    switch (e) { // NVIDIA's texts for the errors that a user may see
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorECCUncorrectable:
        return "uncorrectable ECC error encountered";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorLaunchOutOfResources:
        return "too many resources requested for launch";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    default:
        return cudaGetErrorName(e);
    }
}

} // extern "C"
