// lt_header.cpp: compares kernels/cuda/product/lt_api.h with NVIDIA's cublasLt.h at compile time.
// Built if that header is available; it is not run.
#include "product/lt_api.h"
#include <cublasLt.h>
#include <type_traits>

#define SAME(ours, theirs, value)                                                                  \
    static_assert((unsigned long long)ours == (unsigned long long)theirs &&                        \
                      (unsigned long long)ours == (value),                                         \
                  #theirs);
RLHF__LT_VALUES(SAME)

static_assert(sizeof(rlhf__lt_algo) == sizeof(cublasLtMatmulAlgo_t), "algo");
static_assert(sizeof(rlhf__lt_found) == sizeof(cublasLtMatmulHeuristicResult_t), "found");
#define AT(ours, theirs)                                                                           \
    static_assert(                                                                                 \
        offsetof(rlhf__lt_found, ours) == offsetof(cublasLtMatmulHeuristicResult_t, theirs) &&     \
            sizeof(rlhf__lt_found::ours) == sizeof(cublasLtMatmulHeuristicResult_t::theirs),       \
        #ours);
AT(algo, algo)
AT(workspace, workspaceSize)
AT(state, state)
AT(waves, wavesCount)
AT(reserved, reserved)

// True if both types are passed the same way: pointers as pointers, and integers and enums of one
// size.
template <class A, class B>
constexpr bool
    alike = (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
            (std::is_void_v<A> && std::is_void_v<B>) ||
            ((std::is_integral_v<A> || std::is_enum_v<A>)&&(
                 std::is_integral_v<B> ||
                 std::is_enum_v<B>)&&sizeof(std::conditional_t<std::is_void_v<A>, int, A>) ==
             sizeof(std::conditional_t<std::is_void_v<B>, int, B>));

template <class A, class B> struct calls_alike : std::false_type {};
template <class R, class S, class... P, class... Q> struct calls_alike<R (*)(P...), S (*)(Q...)> {
    template <bool same, class Dummy> struct each { static constexpr bool value = false; };
    template <class Dummy> struct each<true, Dummy> {
        static constexpr bool value = alike<R, S> && (alike<P, Q> && ...);
    };
    static constexpr bool value = each<sizeof...(P) == sizeof...(Q), void>::value;
};

#define CALL(name, result, params)                                                                 \
    static_assert(calls_alike<decltype(rlhf__lt_api::name), decltype(&::name)>::value, #name);
RLHF__LT_FUNCTIONS(CALL)
