// SPDX-License-Identifier: Apache-2.0
// Compares made frames with frames that are put together bit by bit.
#include "trial/described_source.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "platform/eal.hpp"
#include "port/pool.hpp"

namespace dutperf {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Mac kSource{2, 0, 0, 0, 0, 1}, kDestination{2, 0, 0, 0, 0, 2};
constexpr std::uint16_t kTrial = 77;
constexpr std::uint64_t kSeed = 99, kFlowSeed = 98;

void put_bits(Bytes& bytes, std::uint32_t bit, std::uint32_t bits, Number128 value) {
    for (std::uint32_t i = 0; i < bits; ++i) {
        const std::uint32_t at = bit + bits - 1 - i;
        const auto mask = static_cast<std::uint8_t>(0x80U >> (at % 8));
        if (((value >> i) & 1U) != 0)
            bytes[at / 8] |= mask;
        else
            bytes[at / 8] &= static_cast<std::uint8_t>(~mask);
    }
}

// RFC 1071, word by word.
std::uint16_t plain_checksum(const Bytes& bytes, const DescribedChecksum& sum) {
    std::uint64_t total = sum.plus;
    for (const Range& range : sum.covers) {
        for (std::size_t i = range.from; i < range.to; ++i)
            total += std::uint64_t{bytes[i]} << ((i - range.from) % 2 == 0 ? 8U : 0U);
    }
    while (total > 0xFFFF) total = (total & 0xFFFFU) + (total >> 16U);
    const auto value = static_cast<std::uint16_t>(~total);
    return value == 0 && sum.zero_as_ones ? 0xFFFF : value;
}

// What the protocol says that frame k holds.
Bytes expected_frame(const DescribedFrame& frame, std::uint8_t kind, std::uint64_t k, std::uint64_t number,
                     std::uint64_t stamp) {
    Bytes bytes(frame.length());
    std::ranges::copy(frame.head, bytes.begin());
    for (std::size_t i = frame.head.size(); i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(i - frame.head.size());
    if (frame.destination != NextHop::given) std::ranges::copy(kDestination, bytes.begin());
    if (frame.source_mac_of_port) std::ranges::copy(kSource, bytes.begin() + 6);
    const std::uint64_t seed = random_bits(kSeed, kind);
    const std::uint64_t drawn = random_bits(random_bits(seed, frame.fields.size()), number) >> 32U;
    const std::uint64_t begun =
        !frame.flow_begins ? frame.flows
                           : static_cast<std::uint64_t>(std::ranges::count_if(
                                 *frame.flow_begins, [number](std::uint64_t first) { return first <= number; }));
    const std::uint64_t since = frame.flow_begins ? number - (*frame.flow_begins)[begun - 1] + begun - 1 : number;
    const std::uint64_t flow = frame.flows_at_random ? drawn * begun >> 32U : since % begun;
    for (std::size_t i = 0; i < frame.fields.size(); ++i) {
        const VaryingBits& field = frame.fields[i];
        put_bits(
            bytes, field.bit, field.bits,
            field.by_flow ? field.value(flow, random_bits(kFlowSeed, i)) : field.value(number, random_bits(seed, i)));
    }
    write_tag(&bytes[frame.tag_at], kTrial, static_cast<std::uint8_t>(kind << kStreamKindShift));
    for (int i = 0; i < 5; ++i) {
        bytes[frame.tag_at + 8 + i] = static_cast<std::uint8_t>(k >> (8 * (4 - i)));
        bytes[frame.tag_at + 13 + i] = static_cast<std::uint8_t>(stamp >> (8 * (4 - i)));
    }
    for (const DescribedChecksum& sum : frame.checksums) bytes[sum.at] = bytes[sum.at + 1] = 0;
    for (const DescribedChecksum& sum : frame.checksums) {
        const std::uint16_t value = plain_checksum(bytes, sum);
        bytes[sum.at] = static_cast<std::uint8_t>(value >> 8U);
        bytes[sum.at + 1] = static_cast<std::uint8_t>(value);
    }
    return bytes;
}

class Chance {
public:
    explicit Chance(std::uint32_t seed) : generator_(seed) {}
    std::uint32_t below(std::size_t count) { return static_cast<std::uint32_t>(generator_() % count); }
    std::uint32_t from(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
    bool one_in(std::uint32_t count) { return below(count) == 0; }
    Number128 number() { return Number128{generator_()} << 64U | generator_(); }

private:
    std::mt19937_64 generator_;
};

VaryingBits any_field(Chance& chance, std::size_t length) {
    VaryingBits field;
    field.bits = chance.one_in(3) ? chance.from(1, 128) : chance.from(1, 20);
    field.bit = chance.below(static_cast<std::uint32_t>(8 * length) - field.bits + 1);
    field.by_flow = chance.one_in(2);
    field.first = chance.number() & field.mask();
    field.step = chance.one_in(2) ? 1 : chance.number();
    field.count = chance.one_in(3) ? 0 : chance.one_in(3) ? (chance.number() >> 40U) + 1 : chance.from(1, 300);
    field.mode = std::array{FieldMode::increasing, FieldMode::decreasing, FieldMode::random}[chance.below(3)];
    for (std::uint32_t i = 0; chance.one_in(4) && i < 5; ++i) field.values.push_back(chance.number() & field.mask());
    return field;
}

// With which frames flows begin, some at once.
std::shared_ptr<const std::vector<std::uint64_t>> any_begins(Chance& chance, std::uint32_t flows) {
    std::vector<std::uint64_t> begins{0};
    while (begins.size() < flows) begins.push_back(begins.back() + (chance.one_in(3) ? 0 : chance.below(60)));
    return std::make_shared<const std::vector<std::uint64_t>>(begins);
}

// Any parts that do not contradict each other.
DescribedFrame any_frame(Chance& chance) {
    DescribedFrame frame;
    frame.size = static_cast<std::uint16_t>(chance.one_in(2) ? chance.from(64, 130) : chance.from(64, 1518));
    const auto length = static_cast<std::uint32_t>(frame.length());
    frame.head.resize(chance.from(14, length));
    for (std::uint8_t& byte : frame.head) byte = static_cast<std::uint8_t>(chance.below(256));
    frame.tag_at = static_cast<std::uint16_t>(chance.below(length - kTagSize + 1));
    frame.source_mac_of_port = chance.one_in(2);
    frame.destination = chance.one_in(2) ? NextHop::ipv4 : NextHop::given;
    frame.flows = chance.one_in(2) ? 1 : chance.from(2, 50);
    frame.flows_at_random = chance.one_in(3);
    if (chance.one_in(3)) frame.flow_begins = any_begins(chance, frame.flows);
    const auto add = [&frame](auto& list, auto one) {
        list.push_back(std::move(one));
        if (!frame.contradiction().empty()) list.pop_back();
    };
    for (std::uint32_t i = chance.below(4); i > 0; --i) {
        DescribedChecksum sum{.at = static_cast<std::uint16_t>(2 * chance.below(length / 2)),
                              .covers = {},
                              .plus = chance.below(1U << 20U),
                              .zero_as_ones = chance.one_in(2)};
        for (std::uint32_t ranges = chance.from(1, 3); ranges > 0; --ranges) {
            const std::size_t from =
                chance.one_in(4) ? chance.below(length - 1) : 2 * std::size_t{chance.below(length / 2)};
            sum.covers.push_back({from, from + 1 + chance.below(length - static_cast<std::uint32_t>(from))});
        }
        const bool apart = [&] {  // ranges that overlap would be summed twice; real checksums have none
            for (std::size_t a = 0; a < sum.covers.size(); ++a) {
                for (std::size_t b = a + 1; b < sum.covers.size(); ++b) {
                    if (sum.covers[a].from < sum.covers[b].to && sum.covers[b].from < sum.covers[a].to) return false;
                }
            }
            return std::ranges::all_of(frame.checksums, [&](const auto& other) { return other.at != sum.at; });
        }();
        if (apart) add(frame.checksums, sum);
    }
    for (std::uint32_t i = chance.below(5); i > 0; --i) add(frame.fields, any_field(chance, length));
    return frame;
}

Pool small_pool(unsigned count = 1023) {
    start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
    static int number = 0;
    return make_pool({.name = "described_" + std::to_string(number++), .count = count, .frame_size = 1518});
}

std::uint32_t generation() {
    static std::uint32_t last = 1U << 20U;
    return ++last;
}

std::vector<DescribedKind> made_of(const std::vector<DescribedFrame>& frames) {
    std::vector<DescribedKind> kinds;
    for (const DescribedFrame& frame : frames) {
        kinds.emplace_back(
            DescribedTemplate(frame, {.source = kSource,
                                      .destination = kDestination,
                                      .trial = kTrial,
                                      .stream = static_cast<std::uint8_t>(kinds.size() << kStreamKindShift),
                                      .seed = random_bits(kSeed, kinds.size()),
                                      .flow_seed = kFlowSeed}),
            generation());
    }
    return kinds;
}

void expect_frames(const std::vector<DescribedFrame>& frames, const KindOrder& order, std::uint32_t burst,
                   const Share& share) {
    constexpr std::uint64_t kFrames = 700, kStamp = 0x12'3456'789A;
    const Pool pool = small_pool();
    const DescribedFrames made(pool.get(), made_of(frames), order);
    DescribedSource<true> source({.frames = &made, .stamps = StampChoice::every(), .share = share});
    std::vector<rte_mbuf*> buffers(burst);
    for (std::uint64_t j = 0; j < kFrames; j += burst) {
        ASSERT_TRUE(source.make(j, burst, kStamp, buffers.data()));
        for (std::uint32_t i = 0; i < burst; ++i) {
            const std::uint64_t k = share.number(j + i);
            const auto [kind, number] = order.of(k);
            const std::uint8_t* bytes = begin_of_frame(buffers[i]);
            const Bytes is(bytes, bytes + rte_pktmbuf_data_len(buffers[i]));
            ASSERT_EQ(rte_pktmbuf_pkt_len(buffers[i]), is.size());
            ASSERT_EQ(is, expected_frame(frames[kind], kind, k, number, kStamp)) << "frame " << k;
            rte_pktmbuf_free(buffers[i]);
        }
    }
}

TEST(DescribedSource, MakesAnyFrameByteForByte) {
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Chance chance(seed);
        const DescribedFrame frame = any_frame(chance);
        ASSERT_EQ(frame.contradiction(), "");
        ASSERT_NO_FATAL_FAILURE(
            expect_frames({frame}, KindOrder(), chance.from(1, 64), {chance.below(3), 3 + chance.below(3)}));
    }
}

TEST(DescribedSource, MakesSeveralKindsInTurnAndAtRandom) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Chance chance(1000 + seed);
        std::vector<DescribedFrame> frames;
        std::vector<std::uint8_t> order;
        std::vector<std::uint32_t> shares;
        for (std::uint32_t kind = 0; kind < 1 + seed % 6; ++kind) {
            frames.push_back(any_frame(chance));
            shares.push_back(chance.from(1, 12));
            order.insert(order.end(), chance.from(1, 9), static_cast<std::uint8_t>(kind));
        }
        const KindOrder chosen = chance.one_in(2) ? KindOrder(order) : KindOrder(shares, seed);
        ASSERT_NO_FATAL_FAILURE(expect_frames(frames, chosen, chance.from(1, 64), {0, 1 + chance.below(3)}));
    }
}

// The same headers in several sizes, with other sums of what is in no byte, other flows and another byte here and
// there.
std::vector<DescribedFrame> any_mix(Chance& chance) {
    std::vector<DescribedFrame> mix{any_frame(chance)};
    const DescribedFrame first = mix.front();
    for (std::uint32_t more = chance.from(1, 4); more > 0; --more) {
        DescribedFrame other = first;
        other.size = static_cast<std::uint16_t>(chance.from(first.size, 1518));
        other.flows = chance.one_in(2) ? first.flows : chance.from(1, 20);
        if (other.flow_begins) other.flow_begins = any_begins(chance, other.flows);
        if (chance.one_in(2)) other.head[chance.below(other.head.size())] ^= 0x5AU;
        for (DescribedChecksum& sum : other.checksums) {
            sum.plus += static_cast<std::uint32_t>(other.size);
            Range& last = *std::ranges::max_element(sum.covers, {}, &Range::to);
            const Range before = last;
            if (chance.one_in(2)) last.to = other.length();
            if (!other.contradiction().empty()) last = before;
        }
        mix.push_back(other);
    }
    return mix;
}

TEST(DescribedSource, SharesBuffersBetweenSizes) {
    int shared = 0;
    for (std::uint32_t seed = 1; seed <= 100; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Chance chance(2000 + seed);
        const std::vector<DescribedFrame> frames = any_mix(chance);
        std::vector<std::uint8_t> order;
        std::vector<std::uint32_t> shares;
        for (std::uint32_t place = 0; place < 12; ++place)
            order.push_back(static_cast<std::uint8_t>(place < frames.size() ? place : chance.below(frames.size())));
        for (std::size_t kind = 0; kind < frames.size(); ++kind) shares.push_back(chance.from(1, 12));
        const KindOrder chosen = chance.one_in(2) ? KindOrder(order) : KindOrder(shares, seed);
        shared += FrameFamily::split(made_of(frames)).size() == 1 ? 1 : 0;
        ASSERT_NO_FATAL_FAILURE(expect_frames(frames, chosen, chance.from(1, 64), {0, 1 + chance.below(3)}));
    }
    EXPECT_GT(shared, 40);
}

// UDP over IPv4 in one size: lengths and checksums as a client gives them.
DescribedFrame udp_frame(std::uint16_t size) {
    DescribedFrame frame;
    frame.size = size;
    frame.head.resize(42);
    store_be16(&frame.head[12], 0x0800);
    frame.head[14] = 0x45;
    store_be16(&frame.head[16], static_cast<std::uint16_t>(size - 18));
    store_be16(&frame.head[38], static_cast<std::uint16_t>(size - 38));
    frame.tag_at = 42;
    const DescribedChecksum ip{.at = 24, .covers = {{14, 34}}},
        udp{.at = 40, .covers = {{26, 34}, {34, size - 4U}}, .plus = 17U + size - 38U, .zero_as_ones = true};
    frame.checksums = {ip, udp};
    return frame;
}

TEST(FrameFamily, HoldsSizesOfOneFormOnly) {
    const std::vector<DescribedFrame> imix{udp_frame(64), udp_frame(594), udp_frame(1518)};
    const std::vector<FrameFamily> one = FrameFamily::split(made_of(imix));
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one.front().image().length, 1514);
    EXPECT_TRUE(one.front().has_lengths());
    EXPECT_EQ(one.front().stretches().size(), 1U);
    expect_frames(imix, KindOrder(std::vector<std::uint8_t>{0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 2}), 32, {});

    std::vector<DescribedFrame> mixed = imix;
    mixed[1].head.resize(50);  // another place of the tag
    mixed[1].tag_at = 50;
    mixed.push_back(udp_frame(128));
    mixed.back().head.resize(60);  // the rest counts from another byte on
    mixed.push_back(mixed[1]);
    const std::vector<FrameFamily> several = FrameFamily::split(made_of(mixed));
    EXPECT_EQ(several.front().kinds().front(), 0U);
    EXPECT_EQ(several.size(), 2U);
    EXPECT_EQ(several.back().kinds(), (std::vector<std::size_t>{1, 4}));
    expect_frames(mixed, KindOrder(std::vector<std::uint8_t>{0, 1, 2, 3, 4, 4, 0, 1}), 31, {1, 2});
    expect_frames(mixed, KindOrder(std::vector<std::uint32_t>{3, 1, 4, 1, 5}, 9), 64, {});
}

// The order, its numbers and counts, against counting one by one.
TEST(KindOrder, NumbersTheFramesOfEachKind) {
    const KindOrder order(std::vector<std::uint8_t>{0, 2, 1, 0, 0, 2});
    std::map<std::uint8_t, std::uint64_t> counts;
    for (std::uint64_t k = 0; k < 100; ++k) {
        for (std::uint8_t kind = 0; kind < 4; ++kind) ASSERT_EQ(order.among(kind, k), counts[kind]) << k;
        const auto [kind, number] = order.of(k);
        ASSERT_EQ(number, counts[kind]++);
    }
    EXPECT_DOUBLE_EQ(order.share(0), 0.5);
}

TEST(KindOrder, DrawsKindsByTheirShares) {
    const KindOrder order(std::vector<std::uint32_t>{7, 4, 1}, 5);
    constexpr std::uint64_t kDraws = 120'000;
    const std::array<double, 3> shares{7 / 12.0, 4 / 12.0, 1 / 12.0};
    std::uint64_t all = 0;
    for (std::uint8_t kind = 0; kind < 3; ++kind) {
        const std::uint64_t count = order.among(kind, kDraws);
        EXPECT_NEAR(static_cast<double>(count) / kDraws, shares[kind], 0.006);  // five standard deviations and more
        all += count;
    }
    EXPECT_EQ(all, kDraws);
}

// A pool with no buffer to spare for one kind: templates are written again, and nothing is lost.
TEST(DescribedSource, RewritesBuffersOfOtherKindsWhenOneRunsShort) {
    Chance chance(7);
    const std::vector<DescribedFrame> frames{any_frame(chance), any_frame(chance)};
    const Pool pool = small_pool(511);
    {
        const DescribedFrames made(pool.get(), made_of(frames), KindOrder(std::vector<std::uint32_t>{1000, 1}, 3));
        DescribedSource<false> source({.frames = &made, .stamps = StampChoice::every()});
        std::vector<rte_mbuf*> buffers(508);
        ASSERT_TRUE(source.make(0, 508, 0, buffers.data()));
        EXPECT_FALSE(source.make(508, 60, 0, buffers.data()));  // the first ones are still held
        EXPECT_LE(rte_mempool_avail_count(pool.get()), 3U);
    }
    const DescribedFrames one(pool.get(), made_of(frames), KindOrder(std::vector<std::uint8_t>{1, 0}));
    FrameShelves shelves(one);
    std::array<rte_mbuf*, 3> left{};
    const std::array<std::uint16_t, 2> all_of_one{0, 3}, another{1, 0};
    EXPECT_TRUE(shelves.take(all_of_one.data(), 3, left.data()));
    for (rte_mbuf* buffer : left) EXPECT_TRUE(one.families()[1].image().is_in(buffer));
    EXPECT_FALSE(shelves.take(another.data(), 1, left.data()));
}

// Buffers mostly have the frame of another stream, and no stream keeps any.
TEST(DescribedSource, SharesAPoolWithOtherStreams) {
    Chance chance(11);
    const std::vector<DescribedFrame> frames{any_frame(chance), any_frame(chance)};
    const Pool pool = small_pool();
    const unsigned all = rte_mempool_avail_count(pool.get());
    std::vector<std::unique_ptr<DescribedFrames>> made;
    std::vector<std::unique_ptr<DescribedSource<false>>> streams;
    for (std::size_t stream = 0; stream < 20; ++stream) {
        const KindOrder order = stream % 2 == 0 ? KindOrder(std::vector<std::uint8_t>{0, 1, 1}) : KindOrder();
        made.push_back(std::make_unique<DescribedFrames>(
            PathPool(pool.get(), true),
            made_of(stream % 2 == 0 ? frames : std::vector{frames[stream % 4 == 1 ? 0 : 1]}), order));
        streams.push_back(std::make_unique<DescribedSource<false>>(
            DescribedParts{.frames = made.back().get(), .stamps = StampChoice::every()}));
    }
    for (std::uint64_t k = 0; k < 30; ++k) {
        for (std::size_t stream = 0; stream < streams.size(); ++stream) {
            rte_mbuf* buffer = nullptr;
            ASSERT_TRUE(streams[stream]->make(k, 1, 0, &buffer));
            const auto [kind, number] = made[stream]->order().of(k);
            const std::size_t of = stream % 2 == 0 ? kind : stream % 4 == 1 ? 0U : 1U;
            const std::uint8_t* bytes = begin_of_frame(buffer);
            ASSERT_EQ(Bytes(bytes, bytes + rte_pktmbuf_data_len(buffer)),
                      expected_frame(frames[of], kind, k, number, 0));
            rte_pktmbuf_free(buffer);
            ASSERT_EQ(rte_mempool_avail_count(pool.get()), all);
        }
    }
}

TEST(DescribedFrame, NamesWhatContradicts) {
    DescribedFrame frame;
    frame.head.resize(42);
    frame.tag_at = 42;
    ASSERT_EQ(frame.contradiction(), "");
    const auto field = [](std::uint32_t bit, std::uint32_t bits) {
        VaryingBits one;
        one.bit = bit;
        one.bits = bits;
        return one;
    };
    const auto sum = [](std::uint16_t at, const std::vector<Range>& covers) {
        DescribedChecksum one;
        one.at = at;
        one.covers = covers;
        return one;
    };
    const auto with = [frame](auto change) {
        DescribedFrame changed = frame;
        change(changed);
        return changed.contradiction();
    };
    EXPECT_EQ(with([](auto& one) { one.tag_at = 43; }), "tag_at leaves no room for the tag");
    EXPECT_EQ(with([&](auto& one) { one.fields = {field(8 * 59, 9)}; }), "fields.0 ends behind the frame");
    EXPECT_EQ(with([&](auto& one) { one.fields = {field(8 * 42 - 1, 2)}; }), "fields.0 overlaps the tag");
    EXPECT_EQ(with([&](auto& one) { one.fields = {field(0, 8), field(7, 3)}; }), "fields.0 overlaps another one");
    EXPECT_EQ(with([&](auto& one) { one.checksums = {sum(41, {})}; }),
              "checksums.0 must be at an even offset within the frame");
    EXPECT_EQ(with([&](auto& one) {
                  one.checksums = {sum(24, {{14, 61}})};
              }),
              "checksums.0 must cover ranges within the frame");
    EXPECT_EQ(with([&](auto& one) {
                  one.checksums = {sum(24, {{14, 42}}), sum(40, {{34, 60}})};
              }),
              "checksums.0 covers a later one");
    EXPECT_EQ(with([&](auto& one) {
                  one.checksums = {sum(24, {{14, 34}})};
                  one.fields = {field(8 * 25, 3)};
              }),
              "fields.0 overlaps a checksum");
}

}  // namespace
}  // namespace dutperf
