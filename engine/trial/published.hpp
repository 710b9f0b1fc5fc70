// SPDX-License-Identifier: Apache-2.0
// A value that one thread writes occasionally and hot loops read. A reader never waits for the writer: a new value goes
// into a slot that nobody reads and becomes valid when its number is published. If the writer is preempted halfway, the
// previous value stays valid. (With one slot and a sequence lock, readers would spin until the writer runs again.)
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dutperf {

template <class T>
class Published {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0);

public:
    explicit Published(const T& first = {}) {
        prepare(first);
        publish();
    }

    // Both are called by the one writer, in this order.
    void prepare(const T& value) {
        const auto words = std::bit_cast<Words>(value);
        auto& slot = slots_[(published_.load(std::memory_order_relaxed) + 1) % kSlots];
        // a reader of this value also sees that the previous one was published
        std::atomic_thread_fence(std::memory_order_release);
        for (std::size_t i = 0; i < words.size(); ++i) slot[i].store(words[i], std::memory_order_relaxed);
    }
    void publish() { published_.store(published_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

    // Called by any thread. It retries only if several values were published meanwhile, which takes the writer tens of
    // milliseconds.
    [[nodiscard]] T read() const {
        for (;;) {
            const std::uint32_t number = published_.load(std::memory_order_acquire);
            Words words;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled here
            for (std::size_t i = 0; i < words.size(); ++i)
                words[i] = slots_[number % kSlots][i].load(std::memory_order_relaxed);
            std::atomic_thread_fence(std::memory_order_acquire);
            // the slot is reused for the value kSlots later
            if (published_.load(std::memory_order_relaxed) - number < kSlots - 1) [[likely]]
                return std::bit_cast<T>(words);
        }
    }

private:
    static constexpr std::uint32_t kSlots = 4;
    using Words = std::array<std::uint64_t, sizeof(T) / sizeof(std::uint64_t)>;

    std::atomic<std::uint32_t> published_{0};
    std::array<std::array<std::atomic<std::uint64_t>, sizeof(T) / sizeof(std::uint64_t)>, kSlots> slots_{};
};

}  // namespace dutperf
