// SPDX-License-Identifier: Apache-2.0
// A large array of zeros, in huge pages where the kernel gives them on request. It gives each page when it is first
// written.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace dutperf {

template <class T>
class Zeros {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    explicit Zeros(std::size_t size) : size_(size) {
        void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        madvise(memory, bytes(), MADV_HUGEPAGE);  // if it fails, small pages do
        first_ = static_cast<T*>(memory);
    }
    ~Zeros() {
        if (first_ != nullptr) munmap(first_, bytes());
    }
    Zeros(const Zeros&) = delete;
    Zeros& operator=(const Zeros&) = delete;
    Zeros(Zeros&& other) noexcept : size_(other.size_), first_(std::exchange(other.first_, nullptr)) {}
    Zeros& operator=(Zeros&& other) noexcept {
        std::swap(size_, other.size_);
        std::swap(first_, other.first_);
        return *this;
    }

    // Has the kernel give all pages, on the NUMA node of this thread: one that must not wait for them later.
    void touch() { madvise(first_, bytes(), MADV_POPULATE_WRITE); }  // if it fails (before Linux 5.14), it waits

    [[nodiscard]] std::size_t size() const { return size_; }
    T& operator[](std::size_t at) { return first_[at]; }
    const T& operator[](std::size_t at) const { return first_[at]; }

private:
    [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }

    std::size_t size_;
    T* first_ = nullptr;
};

}  // namespace dutperf
