// SPDX-License-Identifier: Apache-2.0
// Memory of large arrays that are read at random: in huge pages where the kernel gives them on request (transparent
// huge pages), which saves most of the misses of address translation. Nothing has to be set up.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace dutperf {

template <class T>
struct HugePageAllocator {
    using value_type = T;

    HugePageAllocator() = default;
    template <class Other>
    explicit(false) HugePageAllocator(const HugePageAllocator<Other>&) {}

    T* allocate(std::size_t count) {
        constexpr std::size_t kPage = std::size_t{2} << 20U;
        const std::size_t size = (count * sizeof(T) + kPage - 1) / kPage * kPage;
        void* memory = std::aligned_alloc(kPage, size);
        if (memory == nullptr) throw std::bad_alloc();
        madvise(memory, size, MADV_HUGEPAGE);  // if it fails, small pages do
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t) { std::free(memory); }

    bool operator==(const HugePageAllocator&) const = default;
};

}  // namespace dutperf
