// context.cu: error texts of the CUDA backend, faults, and reading the caller's structs.
#include "context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__cuda_fail(struct rlhf__cuda *cu, rlhf_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(cu->error, sizeof cu->error, fmt, ap);
    va_end(ap);
    if (cu->recordings.now && cu->recordings.status == RLHF_OK) cu->recordings.status = code;
    return cu->messages ? (cu->messages->fail)(cu->messages, code, cu->error) : code;
}

// Returns a description of e if every further CUDA call of the process will return e too. Otherwise
// returns NULL.
static const char *lost_by(cudaError_t e) {
    enum { CONTAINED = 226 }; // cudaErrorContained, which CUDA 12.0 does not have
    switch ((int)e) {
    case cudaErrorECCUncorrectable:
        return "the GPU's memory has an error that it cannot correct (ECC)";
    case cudaErrorNvlinkUncorrectable:
        return "the GPU's links have an error that they cannot correct (NVLink)";
    case cudaErrorDevicesUnavailable:
        return "the GPU was lost, or another process has it for itself";
    case cudaErrorUnknown:
        return "the GPU was lost";
    case cudaErrorMpsClientTerminated:
        return "the MPS server has ended this process's work";
    case CONTAINED:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return "a kernel broke off, and the GPU's state with it";
    default:
        return NULL;
    }
}

rlhf_status rlhf__cuda_check(struct rlhf__cuda *cu, const char *what, cudaError_t e) {
    if (e == cudaSuccess) return RLHF_OK;
    cudaGetLastError(); // so that the next launch does not report it again
    const char *lost = lost_by(e);
    if (lost)
        return rlhf__cuda_fail(cu, RLHF_E_DEVICE,
                               "%s: %s: %s (CUDA error %d); nothing more can be done on it in this "
                               "process",
                               what, lost, cudaGetErrorString(e), (int)e);
    return rlhf__cuda_fail(cu, e == cudaErrorMemoryAllocation ? RLHF_E_NOMEM : RLHF_E_DEVICE,
                           "%s: %s (CUDA error %d)", what, cudaGetErrorString(e), (int)e);
}

rlhf_status rlhf__cuda_copy_in(struct rlhf__cuda *cu, const char *op, void *dst, uint32_t own,
                               const void *src, uint32_t first) {
    uint32_t size;
    memcpy(&size, src, sizeof size);
    rlhf_status st = rlhf_copy_in(dst, own, src, first);
    if (st == RLHF_E_UNSUPPORTED)
        return rlhf__cuda_fail(cu, st,
                               "%s: the arguments set a field that this backend does not know (%u "
                               "bytes, known are %u)",
                               op, size, own);
    if (st < 0)
        return rlhf__cuda_fail(cu, st, "%s: the arguments say %u bytes, at least %u are needed", op,
                               size, first);
    return RLHF_OK;
}

rlhf_status rlhf__cuda_check_dtype(struct rlhf__cuda *cu, const char *op, int32_t dtype) {
    if (dtype == RLHF_F32 || dtype == RLHF_BF16) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED, "%s: dtype %d, allowed are f32 and bf16", op,
                           dtype);
}

rlhf_status rlhf__cuda_check_d(struct rlhf__cuda *cu, const char *op, int32_t d) {
    if (d >= 1) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: width %d, must be at least 1", op, d);
}

// ---- faults ----

rlhf_status rlhf__cuda_fault_report(struct rlhf__cuda *cu, const struct rlhf__fault *from) {
    static const struct {
        rlhf_status status;
        const char *text;
    } known[] = {{RLHF_OK, ""},
#define RLHF__FAULT_ROW(name, status, text) {status, text},
                 RLHF__FAULT_MAP(RLHF__FAULT_ROW)
#undef RLHF__FAULT_ROW
    };
    const struct rlhf__fault f = *from;
    if (!f.code) return RLHF_OK;
    cu->marks.reported = cu->marks.given; // all marks so far have this fault
    RLHF_TRY(rlhf__cuda_check(cu, "clearing a fault",
                              cudaMemsetAsync(cu->fault, 0, sizeof f, cu->stream)));
    if (f.code < 0 || f.code >= RLHF__FAULT_COUNT)
        return rlhf__cuda_fail(cu, RLHF_E_INTERNAL, "a kernel raised fault %d", f.code);
    return rlhf__cuda_fail(cu, known[f.code].status, known[f.code].text, f.index, f.value, f.limit);
}

rlhf_status rlhf__cuda_not_recording(struct rlhf__cuda *cu, const char *what) {
    if (!cu->recordings.now) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s between record and record_end", what);
}

rlhf_status rlhf__cuda_not_capturing(struct rlhf__cuda *cu, const char *what) {
    return cu->recordings.what == RLHF_RECORD_CAPTURE ? rlhf__cuda_not_recording(cu, what)
                                                      : RLHF_OK;
}

static rlhf_status wait_now(struct rlhf__cuda *cu) {
    RLHF_TRY(rlhf__cuda_check(cu, "reading faults",
                              cudaMemcpyAsync(cu->fault_host, cu->fault, sizeof *cu->fault,
                                              cudaMemcpyDeviceToHost, cu->stream)));
    RLHF_TRY(rlhf__cuda_check(cu, "waiting for the GPU", cudaStreamSynchronize(cu->stream)));
    return rlhf__cuda_fault_report(cu, cu->fault_host);
}

rlhf_status rlhf__cuda_wait(struct rlhf__cuda *cu) {
    RLHF_TRY(rlhf__cuda_not_recording(cu, "a wait for results"));
    return wait_now(cu);
}

rlhf_status rlhf__cuda_done(struct rlhf__cuda *cu) { return cu->guard ? wait_now(cu) : RLHF_OK; }

void rlhf__cuda_wrote(struct rlhf__cuda *cu, const void *p, uint64_t bytes) {
    const char *at = (const char *)p;
    for (const rlhf__cuda_range &r : cu->kept.from)
        if (at < r.at + r.bytes && r.at < at + bytes) cu->kept.valid = 0;
}
