// SPDX-License-Identifier: Apache-2.0
// A large array of zeros of which a small part is written: its memory comes in blocks when they are first written.
// The pages of the blocks are there before (stock_blocks), because a loop that waits for the kernel to give it a page
// is late; after a trial they serve the next one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "platform/zeros.hpp"

namespace dutperf {

inline constexpr std::size_t kBlockBytes = 1024;

// Takes so many blocks for the calling thread, on its NUMA node, so that it gets them without page faults. What it does
// not use serves others when it ends.
void stock_blocks(std::size_t count);
// A block of zeros: of the thread's stock, otherwise of its NUMA node.
void* take_block();
void give_back_block(void* block);

template <class T>
class Blocks {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
    explicit Blocks(std::size_t size) : count_((size + kEach - 1) / kEach), blocks_(std::make_unique<T*[]>(count_)) {}
    ~Blocks() {
        for (std::size_t i = 0; blocks_ && !memory_ && i < count_; ++i) {
            if (blocks_[i] != nullptr) give_back_block(blocks_[i]);
        }
    }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    Blocks(Blocks&&) noexcept = default;
    Blocks& operator=(Blocks&& other) noexcept {
        std::swap(whole_, other.whole_);
        std::swap(count_, other.count_);
        std::swap(blocks_, other.blocks_);
        std::swap(memory_, other.memory_);
        return *this;
    }

    // Takes and touches all of the memory in one piece, which is quicker to write to. To be called before anything is
    // written.
    void take_whole() {
        memory_.emplace(count_ * kEach).touch();
        whole_ = &(*memory_)[0];
        for (std::size_t i = 0; i < count_; ++i) blocks_[i] = whole_ + i * kEach;
    }

    // To be written.
    T& operator[](std::size_t at) {
        if (whole_ != nullptr) [[likely]]
            return whole_[at];
        return in_block(at);
    }
    const T& operator[](std::size_t at) const {
        static constexpr T kZero{};
        const T* block = blocks_[at / kEach];
        return block != nullptr ? block[at % kEach] : kZero;
    }
    // The first place from `at` on that may have been written, or one from `end` on.
    [[nodiscard]] std::size_t written_from(std::size_t at, std::size_t end) const {
        while (at < end && blocks_[at / kEach] == nullptr) at = (at / kEach + 1) * kEach;
        return at;
    }

private:
    // Not inline: what records a value is to stay so.
    [[gnu::noinline]] T& in_block(std::size_t at) {
        T*& block = blocks_[at / kEach];
        if (block == nullptr) [[unlikely]]
            block = static_cast<T*>(take_block());
        return block[at % kEach];
    }

    static constexpr std::size_t kEach = kBlockBytes / sizeof(T);

    T* whole_ = nullptr;  // nullptr: it is in blocks
    std::size_t count_;
    std::unique_ptr<T*[]> blocks_;
    std::optional<Zeros<T>> memory_;
};

}  // namespace dutperf
