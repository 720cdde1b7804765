// What the bindings leave out of LibTorch's C++ interface to GPUs: CUDA graphs, to record what a step asks of a GPU, and to
// have it done again by one call; and the precision of matrix products.
//
// Loaded at run time, after LibTorch's CUDA part, against which its symbols are resolved. Every function gives 0, or 1 with
// what happened in `error`.

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdio>
#include <exception>

namespace {

template <typename Action>
int guarded(char* error, std::size_t length, Action action) {
    try {
        action();
        return 0;
    } catch (const std::exception& exception) {
        std::snprintf(error, length, "%s", exception.what());
    } catch (...) {
        std::snprintf(error, length, "an exception of unknown type");
    }
    return 1;
}

}  // namespace

extern "C" {

// What this thread asks for from here on goes to a stream of its own, the same at every call: nothing can be recorded on
// the default one. Streams do not wait for each other: what went to the default one is waited for here.
int provenir_graph_stream(char* error, std::size_t length) {
    return guarded(error, length, [] {
        const auto current = c10::cuda::getCurrentCUDAStream();
        if (current == c10::cuda::getDefaultCUDAStream()) {
            current.synchronize();
            c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool());
        }
    });
}

// Whether matrix products of the whole process may round their factors to TF32.
int provenir_allow_tf32(int allowed, char* error, std::size_t length) {
    return guarded(error, length, [allowed] { at::globalContext().setAllowTF32CuBLAS(allowed != 0); });
}

int provenir_graph_begin(void** graph, char* error, std::size_t length) {
    return guarded(error, length, [graph] {
        c10::cuda::getCurrentCUDAStream().synchronize();
        auto* recorded = new at::cuda::CUDAGraph();
        *graph = recorded;
        recorded->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    });
}

int provenir_graph_end(void* graph, char* error, std::size_t length) {
    return guarded(error, length, [graph] { static_cast<at::cuda::CUDAGraph*>(graph)->capture_end(); });
}

int provenir_graph_replay(void* graph, char* error, std::size_t length) {
    return guarded(error, length, [graph] { static_cast<at::cuda::CUDAGraph*>(graph)->replay(); });
}

// For a graph that was begun, whatever became of it.
void provenir_graph_free(void* graph) { delete static_cast<at::cuda::CUDAGraph*>(graph); }

}  // extern "C"
