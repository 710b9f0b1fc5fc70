// SPDX-License-Identifier: Apache-2.0
#include "platform/blocks.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace dutperf {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{2} << 20U;  // a huge page
constexpr std::size_t kMostNodes = 64;

struct Block {
    Block* next = nullptr;  // among those that are free; the rest of the block is zeros
};

// The blocks of a NUMA node that no thread has.
struct Pool {
    std::mutex mutex;
    Block* first = nullptr;
    std::byte *fresh = nullptr, *end = nullptr;  // blocks that nobody has had
};

// Blocks may be given back by destructors at the end of the program.
std::array<Pool, kMostNodes> pools;
static_assert(std::is_trivially_destructible_v<Pool>);

// Of a block: a chunk begins with the number of its node, in place of its first block.
Pool& pool_of(const Block* block) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(block);
    return pools[*reinterpret_cast<const std::size_t*>(bytes - reinterpret_cast<std::uintptr_t>(bytes) % kChunkBytes)];
}

// Huge pages are quicker to get, but the first block waits for all of its page.
void add_chunk(Pool& pool, bool huge_pages) {
    auto* const chunk = static_cast<std::byte*>(std::aligned_alloc(kChunkBytes, kChunkBytes));
    if (chunk == nullptr) throw std::bad_alloc();
    madvise(chunk, kChunkBytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // if it fails, either will do
    new (chunk) std::size_t(static_cast<std::size_t>(&pool - pools.data()));
    pool.fresh = chunk + kBlockBytes;
    pool.end = chunk + kChunkBytes;
}

// Who takes a new block touches its memory, which is then on this node.
Block* take_from_node(bool huge_pages) {
    unsigned cpu = 0, node = 0;
    getcpu(&cpu, &node);
    Pool& pool = pools[node % kMostNodes];
    const std::lock_guard lock(pool.mutex);
    if (pool.first != nullptr) return std::exchange(pool.first, pool.first->next);
    if (pool.fresh == pool.end) add_chunk(pool, huge_pages);
    std::byte* const block = std::exchange(pool.fresh, pool.fresh + kBlockBytes);
    std::memset(block, 0, kBlockBytes);
    return new (block) Block;
}

void give_to_node(Block* block) {
    Pool& pool = pool_of(block);
    const std::lock_guard lock(pool.mutex);
    block->next = pool.first;
    pool.first = block;
}

// The blocks that a thread has taken and not used yet.
class Stock {
public:
    Stock() = default;
    ~Stock() {
        while (first_ != nullptr) give_to_node(take());
    }
    Stock(const Stock&) = delete;
    Stock& operator=(const Stock&) = delete;

    void add(Block* block) {
        block->next = first_;
        first_ = block;
    }
    // nullptr: there is none.
    Block* take() { return first_ != nullptr ? std::exchange(first_, first_->next) : nullptr; }

private:
    Block* first_ = nullptr;
};

thread_local Stock stock;

}  // namespace

void stock_blocks(std::size_t count) {
    for (; count > 0; --count) stock.add(take_from_node(true));
}

void* take_block() {
    Block* block = stock.take();
    if (block == nullptr) block = take_from_node(false);
    block->next = nullptr;
    return block;
}

void give_back_block(void* block) {
    std::memset(block, 0, kBlockBytes);
    give_to_node(new (block) Block);
}

}  // namespace dutperf
