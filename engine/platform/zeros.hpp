// SPDX-License-Identifier: Apache-2.0
// A large array of zeros. The kernel gives each page of it when it is first written, so that 1,000 streams have their
// histograms and windows in little memory: each uses a small part of them.
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
        madvise(memory, bytes(), MADV_NOHUGEPAGE);  // a huge page would be used as a whole
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

    [[nodiscard]] std::size_t size() const { return size_; }
    T& operator[](std::size_t at) { return first_[at]; }
    const T& operator[](std::size_t at) const { return first_[at]; }

private:
    [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }

    std::size_t size_;
    T* first_ = nullptr;
};

}  // namespace dutperf
