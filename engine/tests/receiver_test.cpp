// SPDX-License-Identifier: Apache-2.0
// Compares the statistics of bursts, which are batch-matched, with those of the same frames taken one by one.
#include "trial/receiver.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "platform/eal.hpp"
#include "port/pool.hpp"
#include "tests/example_frames.hpp"
#include "tests/test_frame.hpp"

namespace dutperf {
namespace {

constexpr TrialMark kTrial = mark_of_trial(0x1234, 9), kStale = mark_of_trial(0x1234, 8),
                    kOtherRun = mark_of_trial(0x1235, 9);
constexpr std::uint64_t kFrames = 30'000;
constexpr std::uint64_t kDelayRing = std::uint64_t{1} << 17U;

struct Conditions {
    Stamping stamping = Stamping::every;
    Ticks frame_timeout = 0;
    bool shared = false;
    bool of_a_queue = false;      // only every third frame; other receivers take the others
    bool mixed = false;           // every fourth frame is a background frame, and IPv6
    std::uint8_t kinds = 1;       // of sizes in turn, every second one behind a VLAN tag; or 1: plain frames
    unsigned faults_in_1000 = 0;  // frames that are lost, duplicated, late, corrupted, or not test frames
};

// A frame in a driver's buffer.
class Buffer {
public:
    explicit Buffer(Bytes bytes) : bytes_(std::move(bytes)), mbuf_(std::make_unique<rte_mbuf>()) {
        mbuf_->buf_addr = bytes_.data();
        mbuf_->data_len = static_cast<std::uint16_t>(bytes_.size());
    }
    [[nodiscard]] rte_mbuf* mbuf() const { return mbuf_.get(); }

private:
    Bytes bytes_;
    std::unique_ptr<rte_mbuf> mbuf_;
};

class Side {
public:
    // `parts`: beside the path.
    explicit Side(const Conditions& conditions, ReceiverParts parts = {}) : ring_(kDelayRing) {
        MissingFrames::Bounds bounds{};
        for (std::size_t bin = 0; bin < bounds.size(); ++bin) bounds[bin] = kFrames * (bin + 1) / bounds.size();
        parts.expected = {Expected{kTrial, Direction::forward, kFrames, bounds, conditions.stamping,
                                   conditions.frame_timeout, &ring_, conditions.shared}};
        receiver_ = std::make_unique<Receiver>(std::move(parts));
    }
    [[nodiscard]] Receiver& receiver() { return *receiver_; }
    [[nodiscard]] RxStatistics& statistics() { return receiver_->statistics(); }
    [[nodiscard]] const DelayRing& delays() const { return ring_; }

private:
    DelayRing ring_;
    std::unique_ptr<Receiver> receiver_;
};

// Makes arriving frames in bursts of every size. Consecutive frames often have the same stamp, like frames that were
// sent together.
class Arrivals {
public:
    Arrivals(const Conditions& conditions, std::uint64_t seed) : conditions_(conditions), random_(seed) {}

    [[nodiscard]] bool over() const { return next_ >= kFrames + 5; }
    std::vector<Buffer> burst() {
        now_ += 1 + random_() % 10'000;
        std::vector<Buffer> frames;
        for (std::uint64_t wanted = 1 + random_() % 64; frames.size() < wanted && !over();) {
            if (random_() % 20 == 0) stamp_ = now_ - random_() % 5'000;
            if (random_() % 1000 < conditions_.faults_in_1000) {
                frames.emplace_back(faulty_frame());
            } else {
                frames.emplace_back(frame(next_));
                next_ += conditions_.of_a_queue ? 3 : 1;
            }
        }
        return frames;
    }
    [[nodiscard]] Ticks now() const { return now_; }

private:
    [[nodiscard]] TestFrame of(std::uint64_t number) {
        const bool background = conditions_.mixed && number % 4 == 3;
        const bool stamped =
            conditions_.stamping == Stamping::every || (conditions_.stamping == Stamping::tagged && number % 50 == 0);
        const auto kind = static_cast<std::uint8_t>(number % 11 % conditions_.kinds);
        return {.ipv6 = background,
                .size = static_cast<std::uint16_t>(84 + 130 * (kind / 2U)),
                .trial = kTrial,
                .stream = static_cast<std::uint8_t>((background ? kStreamBackground : 0) | kind << kStreamKindShift),
                .sequence = number,
                .stamp = stamped ? stamp_ : 0,
                .ports = static_cast<std::uint32_t>(random_())};
    }
    static Bytes made(const TestFrame& one) {
        const bool behind_tag = (one.stream >> kStreamKindShift) % 2 != 0;
        return behind_tag ? tagged(test_frame(one)) : test_frame(one);
    }
    Bytes frame(std::uint64_t number) { return made(of(number)); }

    Bytes faulty_frame() {
        TestFrame one = of(next_ - std::min<std::uint64_t>(next_, random_() % 100));
        switch (random_() % 10) {
            case 0: next_ += random_() % 100; return frame(next_++);  // after a loss
            case 1: one.trial = random_() % 2 == 0 ? kStale : kOtherRun; break;
            case 2: one.stream |= kStreamReverse; break;
            case 3: one.sequence = kFrames + random_() % 3; break;
            case 4: one.size = 90; break;
            case 5: return corrupted(made(one));
            case 6: return tagged(made(one));
            case 7: return bytes_of(kExamples[random_() % kExamples.size()]);
            default: break;  // reordered, or a duplicate
        }
        return made(one);
    }
    static Bytes tagged(Bytes bytes) {
        bytes.insert(bytes.begin() + ethernet::kType, {0x81, 0x00, 0x00, 0x64});
        return bytes;
    }
    Bytes corrupted(Bytes bytes) {
        bytes[ethernet::kType + random_() % (bytes.size() - ethernet::kType)] ^=
            static_cast<std::uint8_t>(1U << (random_() % 8));
        return bytes;
    }

    Conditions conditions_;
    std::mt19937_64 random_;
    std::uint64_t next_ = 0;
    Ticks now_ = 1'000'000, stamp_ = 1'000'000;
};

void expect_same_counts(const ReceiverCounts& some, const ReceiverCounts& expected) {
    EXPECT_EQ(some.received, expected.received);
    EXPECT_EQ(some.background, expected.background);
    EXPECT_EQ(some.duplicates, expected.duplicates);
    EXPECT_EQ(some.out_of_order, expected.out_of_order);
    EXPECT_EQ(some.stale, expected.stale);
    EXPECT_EQ(some.corrupted, expected.corrupted);
    EXPECT_EQ(some.stamped, expected.stamped);
    EXPECT_EQ(some.late, expected.late);
    EXPECT_EQ(some.other, expected.other);
}

template <class Distribution>
void expect_same_distribution(const std::optional<Distribution>& some, const std::optional<Distribution>& expected) {
    ASSERT_EQ(some.has_value(), expected.has_value());
    if (!expected) return;
    EXPECT_EQ(some->total(), expected->total());
    EXPECT_EQ(some->min(), expected->min());
    EXPECT_EQ(some->max(), expected->max());
    for (int percent = 1; percent <= 100; ++percent)
        EXPECT_EQ(some->quantile(percent / 100.0), expected->quantile(percent / 100.0)) << percent;
}

void expect_same_missing(SequenceWindow& some, SequenceWindow& expected) {
    const MissingFrames &missing = some.missing_of(kFrames), &others = expected.missing_of(kFrames);
    EXPECT_EQ(missing.total(), others.total());
    EXPECT_EQ(missing.bins(), others.bins());
    EXPECT_EQ(missing.longest_run(), others.longest_run());
}

void expect_same_delays(const DelayRing& some, const DelayRing& expected) {
    const auto taken = some.waiting(), others = expected.waiting();
    const auto same = [](const DelayRing::Taken& a, const DelayRing::Taken& b) {
        return a.sequence == b.sequence && a.delay == b.delay;
    };
    EXPECT_TRUE(std::ranges::equal(taken, others, same));
}

// Frames without a NIC time, or with one long after the poll: both have the time of the poll.
TEST(Receiving, WithNicStampsCountsTheSame) {
    const TimeField field{.offset = offsetof(rte_mbuf, dynfield1), .flag = std::uint64_t{1} << 23U};
    FollowedClock clock(dpdk_clock("the clock", [] { return std::optional(now_ticks()); }), 2'000'000'000);
    for (const Conditions& conditions : {Conditions{.frame_timeout = 8'000, .faults_in_1000 = 50},
                                         Conditions{.stamping = Stamping::tagged, .faults_in_1000 = 50}}) {
        Side by_nic(conditions, {.nic = {&clock, field}}), plain(conditions);
        for (Arrivals arrivals(conditions, 1); !arrivals.over();) {
            std::vector<rte_mbuf*> burst;
            const std::vector<Buffer> frames = arrivals.burst();
            for (const Buffer& frame : frames) {
                burst.push_back(frame.mbuf());
                if (burst.size() % 3 != 0) field.set(frame.mbuf(), clock.mapping().nic + (std::uint64_t{1} << 40U));
            }
            const auto count = static_cast<std::uint16_t>(burst.size());
            for (Side* side : {&by_nic, &plain}) side->receiver().take(burst.data(), count, arrivals.now());
        }
        const RxStatistics &some = by_nic.statistics(), &expected = plain.statistics();
        expect_same_counts(some.counts(), expected.counts());
        expect_same_distribution(some.delay(), expected.delay());
        expect_same_delays(by_nic.delays(), plain.delays());
        const StampCounts& stamps = by_nic.receiver().stamp_counts(Direction::forward);
        EXPECT_GT(expected.counts().duplicates + expected.counts().stale, 0);
        EXPECT_EQ(stamps.by_nic + stamps.by_poll, expected.counts().stamped);
        EXPECT_EQ(stamps.impossible, stamps.by_nic);
        EXPECT_GT(stamps.by_poll, expected.counts().stamped / 5);
        EXPECT_GT(stamps.by_nic, expected.counts().stamped / 3);
    }
}

Expected expected_of(std::size_t path) {
    return Expected{kTrial, direction_at(path), kFrames, {}, Stamping::every, 0, nullptr};
}

// A DUT may corrupt a frame and then copy it.
TEST(Receiving, CountsCopiesOfACorruptedFrameAsDuplicates) {
    Receiver receiver({.expected = {expected_of(0)}});
    for (const std::uint64_t number : {3, 3, 4, 3, 4}) {
        Bytes bytes = test_frame({.size = 100, .trial = kTrial, .sequence = number});
        bytes.back() ^= 1U;
        const Buffer corrupted(bytes);
        rte_mbuf* const frame = corrupted.mbuf();
        receiver.take(&frame, 1, 1);
    }
    EXPECT_EQ(receiver.counts().corrupted, 2U);
    EXPECT_EQ(receiver.counts().duplicates, 3U);
    EXPECT_EQ(receiver.counts().received.load(), 0U);
}

TEST(Receiving, CountsUnfinishedChecksumsWhereALinkMayHaveThem) {
    for (const bool virtual_link : {false, true}) {
        Receiver receiver({.expected = {expected_of(0)}, .accepts_unfinished = virtual_link});
        std::vector<Buffer> frames;
        std::vector<rte_mbuf*> burst;
        for (std::uint64_t number = 0; number < 8; ++number) {
            Bytes bytes = test_frame({.size = 100, .trial = kTrial, .sequence = number});
            std::uint8_t* const udp = &bytes[kIpv4Layout.transport_at()];
            const std::uint64_t addresses = checksum_add(&bytes[kIpv4Layout.ip_at() + ipv4::kSource], 8);
            const std::uint64_t protocol = swap16(kProtocolUdp);
            store(udp + udp::kChecksum, checksum_fold(addresses + protocol + load<std::uint16_t>(udp + udp::kLength)));
            if (number == 7) bytes[kIpv4Layout.ip_at() + ipv4::kChecksum] ^= 1U;
            frames.emplace_back(bytes);
        }
        for (const Buffer& frame : frames) burst.push_back(frame.mbuf());
        receiver.take(burst.data(), static_cast<std::uint16_t>(burst.size()), 1);
        EXPECT_EQ(receiver.counts().received.load(), virtual_link ? 7U : 0U);
        EXPECT_EQ(receiver.counts().unfinished, virtual_link ? 7U : 0U);
        EXPECT_EQ(receiver.counts().corrupted, virtual_link ? 1U : 8U);
    }
}

TEST(Receiving, CountsUdpChecksumsOfZeroOverIpv6) {
    for (const bool ipv6 : {false, true}) {
        Receiver receiver({.expected = {expected_of(0)}});
        std::vector<Buffer> frames;
        std::vector<rte_mbuf*> burst;
        for (std::uint64_t number = 0; number < 8; ++number) {
            Bytes bytes = test_frame({.ipv6 = ipv6, .size = 100, .trial = kTrial, .sequence = number});
            std::uint8_t* const udp = &bytes[ipv6 ? kIpv6Layout.transport_at() : kIpv4Layout.transport_at()];
            const std::uint64_t sum =
                load<std::uint16_t>(udp) + std::uint64_t{load<std::uint16_t>(udp + udp::kChecksum)};
            store(udp, checksum_fold(sum));  // now the right checksum is all ones
            store<std::uint16_t>(udp + udp::kChecksum, number % 2 == 0 ? 0xFFFF : 0);
            if (number == 7) udp[udp::kSize + kTagSize] ^= 1U;
            frames.emplace_back(bytes);
        }
        for (const Buffer& frame : frames) burst.push_back(frame.mbuf());
        receiver.take(burst.data(), static_cast<std::uint16_t>(burst.size()), 1);
        EXPECT_EQ(receiver.counts().received.load(), ipv6 ? 7U : 8U);  // over IPv4 it is no checksum
        EXPECT_EQ(receiver.counts().zero_checksums, ipv6 ? 3U : 0U);
        EXPECT_EQ(receiver.counts().corrupted, ipv6 ? 1U : 0U);
    }
}

// RFC 6935 lets tunnels leave it out. A random port may be a tunnel's.
TEST(Receiving, RequiresUdpChecksumsOverIpv6WhateverThePort) {
    Receiver receiver({.expected = {expected_of(0)}});
    std::vector<Buffer> frames;
    std::vector<rte_mbuf*> burst;
    for (const std::uint16_t port : {udp::kVxlan, udp::kGtpU, udp::kMpls, udp::kGre, std::uint16_t{53}}) {
        Bytes bytes = test_frame({.ipv6 = true, .size = 100, .trial = kTrial, .sequence = frames.size()});
        std::uint8_t* const udp = &bytes[kIpv6Layout.transport_at()];
        store_be16(udp + udp::kDestinationPort, port);
        store<std::uint16_t>(udp + udp::kChecksum, 0);
        frames.emplace_back(bytes);
    }
    for (const Buffer& frame : frames) burst.push_back(frame.mbuf());
    receiver.take(burst.data(), static_cast<std::uint16_t>(burst.size()), 1);
    EXPECT_EQ(receiver.counts().received.load(), 0U);
    EXPECT_EQ(receiver.counts().corrupted, 5U);
    EXPECT_EQ(receiver.counts().corrupted_by[static_cast<std::size_t>(Corruption::no_sum)], 5U);
}

Bytes in_vlans(Bytes bytes, const std::vector<std::uint32_t>& tags) {
    for (std::size_t i = tags.size(); i-- > 0;) {
        std::array<std::uint8_t, ethernet::kVlanTagSize> tag{};
        store_be16(tag.data(), static_cast<std::uint16_t>(tags[i] >> 16U));
        store_be16(&tag[2], static_cast<std::uint16_t>(tags[i]));
        bytes.insert(bytes.begin() + ethernet::kType, tag.begin(), tag.end());
    }
    return bytes;
}

Bytes readdressed(Bytes bytes, const Ipv4& destination) {
    std::uint8_t* const ip = &bytes[kIpv4Layout.ip_at()];
    std::copy(destination.begin(), destination.end(), ip + ipv4::kDestination);
    store<std::uint16_t>(ip + ipv4::kChecksum, 0);
    store(ip + ipv4::kChecksum, static_cast<std::uint16_t>(~checksum_fold(ip_sum(kIpv4Layout, bytes.data()))));
    std::uint8_t* const udp = &bytes[kIpv4Layout.transport_at()];
    store<std::uint16_t>(udp + udp::kChecksum, 0);
    const std::uint16_t length = load_be16(udp + udp::kLength);
    store(udp + udp::kChecksum, checksum_finish_udp(udp_sum(kIpv4Layout, bytes.data(), length)));
    return bytes;
}

Bytes with_ports(Bytes bytes, std::uint16_t source, std::uint16_t destination) {
    std::uint8_t* const udp = &bytes[kIpv4Layout.transport_at()];
    store_be16(udp + udp::kSourcePort, source);
    store_be16(udp + udp::kDestinationPort, destination);
    return bytes;
}

constexpr Ipv4 kSentTo{198, 19, 0, 2}, kInNetwork{198, 19, 77, 2}, kOfPort{198, 19, 9, 9}, kElsewhere{198, 19, 0, 3};

// Of frames to hosts with one address in each of many networks; the port answers for one address more.
std::unique_ptr<Receiver> receiver_of_addresses() {
    Expected expected = expected_of(0);
    ArrivingKind kind{.payloads = {100 - kFcsSize - kIpv4Layout.tag_at()}};
    kind.sent_to.ipv4 = {{.first = {198, 19, 0, 2}, .last = {198, 19, 255, 2}, .mask = {0, 0, 255, 0}}};
    expected.arriving.kinds = {kind};
    expected.arriving.of_port.ipv4 = {{.first = kOfPort, .last = kOfPort, .mask = {255, 255, 255, 255}}};
    return std::make_unique<Receiver>(ReceiverParts{.expected = {expected}});
}

void take_all(Receiver& receiver, const std::vector<Bytes>& frames) {
    std::vector<Buffer> buffers(frames.begin(), frames.end());
    std::vector<rte_mbuf*> burst;
    for (const Buffer& frame : buffers) burst.push_back(frame.mbuf());
    receiver.take(burst.data(), static_cast<std::uint16_t>(burst.size()), 2);
}

// One by one, in batches of plain frames, and in mixed batches.
TEST(Receiving, CountsFramesThatArriveForOtherAddresses) {
    for (const auto& [at_once, tags] : std::vector<std::pair<std::size_t, std::vector<std::uint32_t>>>{
             {1, {}}, {40, {}}, {1, {0x81000064}}, {40, {0x81000064}}}) {
        const auto receiver = receiver_of_addresses();
        std::uint64_t number = 0, others = 0;
        for (int round = 0; round < 30; ++round) {
            std::vector<Bytes> frames;
            for (std::size_t i = 0; i < at_once; ++i) {
                const std::array all{kSentTo, kInNetwork, kOfPort, kSentTo, kElsewhere};
                const Ipv4& destination = all[number % all.size()];
                others += destination == kElsewhere ? 1 : 0;
                const Bytes sent = test_frame({.size = 100, .trial = kTrial, .sequence = number++, .stamp = 1});
                frames.push_back(in_vlans(readdressed(sent, destination), tags));
            }
            take_all(*receiver, frames);
            EXPECT_EQ(receiver->statistics().other_destinations().frames, others);
        }
        EXPECT_EQ(receiver->counts().received.load(), number);
        EXPECT_EQ(receiver->counts().corrupted, 0U);
        ASSERT_EQ(receiver->statistics().other_destinations().seen.size(), 1U);
        EXPECT_EQ(receiver->statistics().other_destinations().seen[0].value, ip_of(kElsewhere));
    }
}

// Those of a long outage are counted after the trial: nobody polls meanwhile.
TEST(Receiving, CountsTheLossesOfALongOutageByGroup) {
    constexpr std::uint64_t kOf = 400'000'000, kOutage = 300'000'000;
    const FrameGroups groups(KindOrder({0, 1, 0}), {FlowChoice{.flows = 3}, FlowChoice{}});
    Expected expected = expected_of(0);
    expected.frames = kOf;
    expected.groups = &groups;
    std::uint64_t missing = 0;
    expected.on_missing = [&missing](std::uint64_t /*number*/, std::uint64_t count) { missing += count; };
    Receiver receiver({.expected = {expected}});
    constexpr std::uint64_t kFirst = 10;
    for (const std::uint64_t from : {std::uint64_t{0}, kOutage}) {
        std::vector<Bytes> frames;
        for (std::uint64_t number = from; number < from + kFirst; ++number)
            frames.push_back(test_frame({.size = 64, .trial = kTrial, .sequence = number, .stamp = 1}));
        take_all(receiver, frames);
    }
    EXPECT_LT(missing, 64U);
    receiver.statistics().window().missing_of(kOutage + kFirst);
    receiver.statistics().count_long_losses({});
    EXPECT_EQ(missing, kOutage - kFirst);
    std::vector<std::uint64_t> lost = groups.among(kOutage), came = groups.among(kFirst);
    for (std::size_t group = 0; group < lost.size(); ++group) lost[group] -= came[group];
    EXPECT_EQ(receiver.statistics().group_losses(), lost);
}

// Of connections, each number of which costs an access to a large table.
TEST(Receiving, SaysThatItIsAliveWhileItReportsALongLoss) {
    constexpr std::uint64_t kLost = (std::uint64_t{1} << 28U) - 1, kOfWindow = std::uint64_t{1} << 26U;
    Expected expected = expected_of(0);
    expected.frames = kLost + 1;
    std::uint64_t missing = 0, at_once = 0, alive = 0;
    expected.on_missing = [&](std::uint64_t /*number*/, std::uint64_t count) {
        missing += count;
        at_once = std::max(at_once, count);
    };
    Receiver receiver({.expected = {expected}});
    take_all(receiver, {test_frame({.size = 64, .trial = kTrial, .sequence = kLost})});
    receiver.statistics().window().missing_of(kLost + 1);
    receiver.statistics().count_long_losses([&] { ++alive; });
    EXPECT_EQ(missing, kLost);
    EXPECT_LE(at_once, kOfWindow / 4);
    EXPECT_GE(alive, 11U);
}

// A phase without a drain leaves them in the DUT.
TEST(Receiving, AMarkedFrameFromBeforeTheStartIsOfAnEarlierTrial) {
    const Bytes marked(60, 0x11);
    Receiver receiver({.expected = {expected_of(0)},
                       .marks = {{{.at = 0, .bytes = {marked.begin(), marked.begin() + ethernet::kType}}}}});
    receiver.start(3);
    take_all(receiver, {marked, marked, marked});  // at 2
    EXPECT_EQ(receiver.recognised(0).frames, 0U);
    EXPECT_EQ(receiver.counts().stale, 3U);
    receiver.start(2);
    take_all(receiver, {marked});
    EXPECT_EQ(receiver.recognised(0).frames, 1U);
    EXPECT_EQ(receiver.counts().stale, 3U);
}

TEST(Receiving, CapturesTheQueriesOfATrialToo) {
    start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
    const Pool pool = make_pool({.name = "answers", .count = 1023, .frame_size = 2560});
    dns::TcpConnections connections(1);
    Answering answering({.zone = *dns::parse_zone("zone"), .ipv4 = Ipv4{198, 19, 0, 2}}, connections, pool.get(), 1);
    CaptureBuffer capture({.path = "", .most = {1}}, 2048);
    Receiver receiver({.expected = {expected_of(0)}, .capture = &capture, .answering = &answering});
    const Bytes query =
        readdressed(with_ports(test_frame({.size = 100, .trial = kTrial}), 1024, dns::kServerPort), {198, 19, 0, 2});
    take_all(receiver, {query});
    EXPECT_EQ(receiver.counts().received.load(), 0U) << "the name server took it";
    ASSERT_EQ(capture.kept().size(), 1U);
    EXPECT_EQ(capture.kept()[0].size, query.size());
}

// Those of a batch are compared with the one before.
TEST(Receiving, AnAddressThatThePortAnswersForHidesNoOthers) {
    for (const std::vector<std::uint32_t>& tags : {std::vector<std::uint32_t>{}, {0x81000064}}) {
        const auto receiver = receiver_of_addresses();
        std::uint64_t number = 0;
        for (const Ipv4& destination : {kOfPort, kElsewhere, kOfPort, kElsewhere}) {
            std::vector<Bytes> frames;
            for (int i = 0; i < 40; ++i) {
                const Bytes sent = test_frame({.size = 100, .trial = kTrial, .sequence = number++, .stamp = 1});
                frames.push_back(in_vlans(readdressed(sent, destination), tags));
            }
            take_all(*receiver, frames);
        }
        EXPECT_EQ(receiver->counts().received.load(), 160U);
        EXPECT_EQ(receiver->statistics().other_destinations().frames, 80U);
    }
}

Bytes in_tunnel(Bytes bytes) {
    const Bytes packet(bytes.begin() + ethernet::kSize, bytes.end());
    Bytes outer(bytes.begin(), bytes.begin() + ethernet::kSize);
    outer.resize(ethernet::kSize + ipv4::kSize);
    std::uint8_t* const ip = &outer[ethernet::kSize];
    ip[0] = 0x45;
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(ipv4::kSize + packet.size()));
    ip[ipv4::kProtocol] = kProtocolIpv4;
    store(ip + ipv4::kChecksum, static_cast<std::uint16_t>(~checksum_fold(checksum_add(ip, ipv4::kSize))));
    outer.insert(outer.end(), packet.begin(), packet.end());
    return outer;
}

// One by one, and in batches.
TEST(Receiving, CountsFramesThatArriveInOrOutsideOfATunnel) {
    for (const std::size_t at_once : {1U, 40U}) {
        for (const std::optional<bool> wanted : {std::optional<bool>{}, {false}, {true}}) {
            Expected expected = expected_of(0);
            expected.arriving.kinds = {{.encapsulated = wanted}};
            Receiver receiver({.expected = {expected}});
            std::uint64_t number = 0, inside = 0;
            for (int round = 0; round < 30; ++round) {
                std::vector<Bytes> frames;
                for (std::size_t i = 0; i < at_once; ++i) {
                    Bytes sent = test_frame({.size = 100, .trial = kTrial, .sequence = number++, .stamp = 1});
                    const bool tunnelled = number % 3 == 0;
                    inside += tunnelled ? 1 : 0;
                    frames.push_back(tunnelled ? in_tunnel(std::move(sent)) : std::move(sent));
                }
                take_all(receiver, frames);
            }
            EXPECT_EQ(receiver.counts().received.load(), number);
            EXPECT_EQ(receiver.counts().corrupted, 0U);
            EXPECT_EQ(receiver.counts().not_decapsulated, wanted == false ? inside : 0);
            EXPECT_EQ(receiver.counts().not_encapsulated, wanted == true ? number - inside : 0);
        }
    }
}

// Bytes are missing, or too many, and all lengths and checksums agree.
TEST(Receiving, CountsFramesOfAnotherLengthAsCorrupted) {
    for (const auto& tags : std::vector<std::vector<std::uint32_t>>{{}, {0x81000064}}) {
        const auto receiver = receiver_of_addresses();
        std::uint64_t number = 0;
        for (const std::uint16_t size : {std::uint16_t{100}, std::uint16_t{90}, std::uint16_t{110}}) {
            for (int round = 0; round < 10; ++round) {
                std::vector<Bytes> frames;
                for (int i = 0; i < 40; ++i) {
                    const Bytes sent = test_frame({.size = size, .trial = kTrial, .sequence = number++, .stamp = 1});
                    frames.push_back(in_vlans(sent, tags));
                }
                take_all(*receiver, frames);
            }
        }
        EXPECT_EQ(receiver->counts().received.load(), 400U);
        EXPECT_EQ(receiver->counts().corrupted, 800U);
        EXPECT_EQ(receiver->counts().corrupted_by[static_cast<std::size_t>(Corruption::length)], 800U);
    }
}

// Frames of kinds that may arrive without a tag, in VLAN 100, in any VLANs, and with either of two pairs of tags.
class OfVlans {
public:
    explicit OfVlans(bool any_outer_type = false) {
        const VlanTag hundred{0x8100, 100}, service{0x88A8, 7};
        Expected expected{kTrial, Direction::forward, kFrames, {}, Stamping::every, 0, nullptr};
        for (const std::vector<VlanTags>& choices :
             std::vector<std::vector<VlanTags>>{{{}}, {{hundred}}, {}, {{service, hundred}, {hundred, hundred}}})
            expected.arriving.kinds.push_back({.vlan_tags = {choices, any_outer_type}});
        receiver_ = std::make_unique<Receiver>(ReceiverParts{.expected = {expected}});
    }

    // As many frames at once as there are in the list.
    void take(std::uint8_t kind, const std::vector<std::vector<std::uint32_t>>& tags) {
        std::vector<Buffer> frames;
        std::vector<rte_mbuf*> burst;
        for (const auto& each : tags) {
            const auto stream = static_cast<std::uint8_t>(kind << kStreamKindShift);
            frames.emplace_back(in_vlans(
                test_frame({.size = 100, .trial = kTrial, .stream = stream, .sequence = next_++, .stamp = 1}), each));
        }
        for (const Buffer& frame : frames) burst.push_back(frame.mbuf());
        receiver_->take(burst.data(), static_cast<std::uint16_t>(burst.size()), 2);
    }
    // Whether so many of all frames so far had other tags than they may have. All were received.
    void expect_others(std::uint64_t frames) {
        EXPECT_EQ(receiver_->statistics().other_tags().frames, frames);
        EXPECT_EQ(receiver_->counts().received.load(), next_);
    }
    [[nodiscard]] const OtherTags& others() { return receiver_->statistics().other_tags(); }

private:
    std::unique_ptr<Receiver> receiver_;
    std::uint64_t next_ = 0;
};

constexpr std::uint32_t kHundred = 0x81000064, kHundredOfPriority5 = 0x8100A064, kOther = 0x81000065,
                        kUpper = 0x81000164, kServiceHundred = 0x88A80064, kService = 0x88A80007;

TEST(Receiving, CountsFramesThatArriveWithOtherVlanTags) {
    for (const std::size_t at_once : {1U, 40U}) {
        const auto all = [&](const std::vector<std::uint32_t>& tags) {
            return std::vector<std::vector<std::uint32_t>>(at_once, tags);
        };
        OfVlans port;
        for (int burst = 0; burst < 20; ++burst) {  // after which frames are compared with those before
            for (const std::uint32_t right : {kHundred, kHundredOfPriority5}) port.take(1, all({right}));
            port.take(0, all({}));
            port.take(2, all({burst % 2 == 0 ? kHundred : kOther}));
            port.take(3, all({kService, kHundred}));
            port.take(3, all({kHundred, kHundredOfPriority5}));
            port.expect_others(0);
        }
        std::uint64_t others = 0;
        for (const auto& wrong :
             std::vector<std::vector<std::uint32_t>>{{}, {kOther}, {kUpper}, {kServiceHundred}, {kHundred, kHundred}}) {
            port.take(1, all(wrong));
            port.expect_others(others += at_once);
            port.take(1, all({kHundred}));
        }
        port.take(0, all({kHundred}));
        port.take(3, all({kService, kOther}));
        port.take(3, all({kServiceHundred, kHundred}));
        port.expect_others(others += 3 * at_once);
        EXPECT_EQ(port.others().seen.size(), 8U);
        EXPECT_EQ(port.others().seen[2].value, (VlanTags{{0x8100, 0x164}}));
        EXPECT_EQ(port.others().seen[2].frames, at_once);
        port.take(0, all({kUpper, kUpper}));  // no place is left for its name
        port.expect_others(others + at_once);
        EXPECT_EQ(port.others().seen.size(), 8U);
    }
}

// One after the other in the same burst, and from the first frame on.
TEST(Receiving, ComparesNoFrameWithOneOfOtherVlanTags) {
    OfVlans port;
    for (std::uint64_t burst = 1; burst <= 20; ++burst) {
        port.take(1, {{}, {kHundred}, {}, {kOther}, {kHundred}, {kOther}, {}, {kHundred}});
        port.expect_others(5 * burst);
    }
}

TEST(Receiving, ComparesNoTypeThatThePortDoesNotSee) {
    OfVlans port(true);
    port.take(1, {{kServiceHundred}, {kHundred}, {kOther}});
    port.take(3, {{kHundred, kServiceHundred}, {0x81000007, kHundred}});
    port.expect_others(2);
}

// Of a capture some frames may have wrong checksums: those of a sender that leaves them to its card.
TEST(Receiving, TakesFramesOfAListThatWereCapturedWithWrongChecksums) {
    const auto captured = [](std::uint64_t number) {
        Bytes bytes = test_frame({.size = 200, .sequence = number});
        std::fill(bytes.begin() + kIpv4Layout.tag_at(), bytes.end(), std::uint8_t{0x5A});
        return bytes;  // the checksum is that of the tag, and so wrong
    };
    constexpr std::uint16_t kTagAt = 176;
    FrameList list;
    Bytes right = captured(0);
    store(&right[kIpv4Layout.transport_at() + udp::kChecksum], std::uint16_t{0});
    ASSERT_EQ(list.add({.bytes = right, .tag_at = kTagAt}), "");
    ASSERT_EQ(list.add({.bytes = captured(1), .tag_at = kTagAt}), "");
    EXPECT_TRUE(list.is_tag_checked(0));
    EXPECT_FALSE(list.is_tag_checked(1));
    Expected expected = expected_of(0);
    expected.frames = 4;
    expected.list = &list;
    expected.tags_from_end = {20};
    Receiver receiver({.expected = {expected}});
    for (const std::uint64_t number : {0, 1, 2, 3, 2}) {
        const FrameList::Frame& frame = list.frame(number % 2);
        Bytes bytes(list.data(frame), list.data(frame) + frame.length);
        FrameList::write_balanced_tag(&bytes[kTagAt], kTrial, mark_of_path(0), number, frame.balance);
        if (receiver.counts().received == 4) bytes[kIpv4Layout.ip_at() + ipv4::kChecksum] ^= 1U;  // by the DUT
        const Buffer arrived(bytes);
        rte_mbuf* const buffer = arrived.mbuf();
        receiver.take(&buffer, 1, 1);
    }
    EXPECT_EQ(receiver.counts().received.load(), 4U);
    EXPECT_EQ(receiver.counts().corrupted, 1U);
}

// A port at which several paths end, and one receiver for each of them: both count the same of each path.
TEST(Receiving, TellsPathsApart) {
    constexpr std::array<std::size_t, 6> kPaths{0, 3, 239, kHalfOfPaths + 3, kBankOfPaths, kMostPaths - 1};
    constexpr std::size_t kElsewhere = 2;
    const auto make = [](auto... paths) {
        return std::make_unique<Receiver>(ReceiverParts{.expected = {expected_of(paths)...}});
    };
    for (const bool mixed : {false, true}) {
        const auto all = std::apply(make, kPaths);
        std::vector<std::unique_ptr<Receiver>> each;
        for (const std::size_t path : kPaths) each.push_back(make(path));
        std::mt19937_64 random(7);
        std::array<std::uint64_t, kPaths.size()> next{};
        std::uint64_t elsewhere = 0, stale = 0, other_run = 0, corrupted = 0;
        for (Ticks now = 1'000'000; now < 1'300'000; now += 100) {
            std::vector<Buffer> frames;
            std::vector<std::size_t> of;
            for (std::uint64_t wanted = 1 + random() % 64; frames.size() < wanted;) {
                const std::size_t i = random() % (kPaths.size() + 1);
                const bool is_elsewhere = i == kPaths.size(), is_stale = !is_elsewhere && random() % 50 == 0;
                const bool is_of_other_run = !is_stale && random() % 50 == 0;
                const bool is_corrupted = !is_elsewhere && !is_stale && !is_of_other_run && random() % 50 == 0;
                const PathMark mark = mark_of_path(is_elsewhere ? kElsewhere : kPaths[i]);
                if (random() % 30 == 0 && !is_elsewhere) ++next[i];  // a loss
                Bytes bytes = test_frame({.ipv6 = mixed && i % 2 == 0,
                                          .size = static_cast<std::uint16_t>(mixed ? 84 + 40 * i : 64),
                                          .trial = is_stale          ? kStale
                                                   : is_of_other_run ? kOtherRun
                                                                     : kTrial,
                                          .stream = mark.stream,
                                          .sequence = is_elsewhere ? elsewhere : next[i]++,
                                          .stamp = now - random() % 3,
                                          .pair = mark.pair});
                if (is_corrupted) bytes.back() ^= 1U;
                frames.emplace_back(std::move(bytes));
                of.push_back(i);
                elsewhere += is_elsewhere && !is_of_other_run ? 1 : 0;
                other_run += is_of_other_run ? 1 : 0;
                stale += is_stale ? 1 : 0;
                corrupted += is_corrupted ? 1 : 0;
            }
            std::vector<rte_mbuf*> burst;
            for (const Buffer& frame : frames) burst.push_back(frame.mbuf());
            all->take(burst.data(), static_cast<std::uint16_t>(burst.size()), now);
            for (std::size_t i = 0; i < burst.size(); ++i) {
                if (of[i] < kPaths.size()) each[of[i]]->take(&burst[i], 1, now);
            }
        }
        EXPECT_EQ(all->misdelivered(direction_at(kElsewhere)), elsewhere);
        EXPECT_EQ(all->counts().other[static_cast<std::size_t>(OtherKind::wrong_direction)], elsewhere);
        EXPECT_EQ(all->counts().other[static_cast<std::size_t>(OtherKind::other_run)], other_run);
        EXPECT_GT(other_run, 100U);
        std::uint64_t all_stale = 0, all_corrupted = 0;
        for (std::size_t i = 0; i < kPaths.size(); ++i) {
            RxStatistics &some = all->statistics(direction_at(kPaths[i])), &expected = each[i]->statistics();
            EXPECT_GT(expected.counts().received, 1000U);
            EXPECT_EQ(some.counts().received, expected.counts().received) << kPaths[i];
            EXPECT_EQ(some.counts().stamped, expected.counts().stamped) << kPaths[i];
            EXPECT_EQ(some.counts().out_of_order, 0U);
            EXPECT_EQ(some.counts().stale, expected.counts().stale) << kPaths[i];
            EXPECT_EQ(some.counts().corrupted, expected.counts().corrupted) << kPaths[i];
            expect_same_distribution(some.delay(), expected.delay());
            expect_same_missing(some.window(), expected.window());
            all_stale += some.counts().stale;
            all_corrupted += some.counts().corrupted;
        }
        EXPECT_EQ(all_stale, stale);
        EXPECT_EQ(all_corrupted, corrupted);
    }
}

// The gaps are those between polls: the times of NICs go back where a burst began before the last poll.
TEST(Receiving, WithNicStampsSeveralPathsHaveTheArrivalsOfThePolls) {
    const TimeField field{.offset = offsetof(rte_mbuf, dynfield1), .flag = std::uint64_t{1} << 23U};
    FollowedClock clock(dpdk_clock("the clock", [] { return std::optional(now_ticks()); }), 2'000'000'000);
    const std::vector<Expected> paths{expected_of(0), expected_of(3)};
    Receiver by_nic({.expected = paths, .nic = {&clock, field}}), plain({.expected = paths});
    const Ticks begin = now_ticks();
    for (std::uint64_t number = 0; number < 100; ++number) {
        const Ticks polled = begin + 10'000 * number + (number > 50 ? 1'000'000 : 0);
        std::vector<Buffer> frames;
        std::vector<rte_mbuf*> burst;
        for (const std::size_t path : {std::size_t{0}, std::size_t{3}}) {
            const PathMark mark = mark_of_path(path);
            frames.emplace_back(test_frame({.size = 64,
                                            .trial = kTrial,
                                            .stream = mark.stream,
                                            .sequence = number,
                                            .stamp = polled - 30'000,
                                            .pair = mark.pair}));
        }
        for (const Buffer& frame : frames) {
            burst.push_back(frame.mbuf());
            field.set(frame.mbuf(), polled - 20'000 + 5'000 * burst.size());
        }
        for (Receiver* one : {&by_nic, &plain}) one->take(burst.data(), 2, polled);
    }
    for (const std::size_t path : {0U, 3U}) {
        const ArrivalGaps& some = by_nic.statistics(direction_at(path)).arrival_gaps();
        const ArrivalGaps& expected = plain.statistics(direction_at(path)).arrival_gaps();
        EXPECT_EQ(some.first(), expected.first());
        EXPECT_EQ(some.last(), expected.last());
        ASSERT_EQ(some.kept().size(), 1U);
        EXPECT_EQ(some.kept()[0].length(), 1'010'000U);
        EXPECT_LT(by_nic.statistics(direction_at(path)).delay()->max(), 30'000U);
    }
}

// What the state table must have of a frame: its address, and its ports in the other order.
std::uint64_t entry_of(const std::uint8_t* frame) {
    const std::uint8_t* const ip = frame + (load_be16(frame + ethernet::kType) == ethernet::kTypeVlan ? 18 : 14);
    const auto ports = load<std::uint32_t>(ip + ipv4::kSize);
    return std::uint64_t{ports << 16U | ports >> 16U} << 32U | load<std::uint32_t>(ip + ipv4::kSource);
}

TEST(Receiving, LearnsConnectionsOfKindsThatHaveThem) {
    constexpr std::uint32_t kConnections = 500;
    for (const std::uint8_t kinds : {std::uint8_t{1}, std::uint8_t{6}}) {
        const Conditions conditions{.kinds = kinds};
        const std::uint32_t connected = kinds == 1 ? ~0U : 0b101101;
        StateTable table({}, kConnections, false);
        const ConnectionChoice choice = ConnectionChoice::in_order(kConnections);
        const ConnectionLearner learner(
            table, choice,
            {.trial = kTrial, .direction = Direction::forward, .frames = 2 * kFrames, .kinds = connected});
        Side side(conditions, {.learner = learner});
        std::vector<std::uint64_t> expected(kConnections);
        for (Arrivals arrivals(conditions, 1); !arrivals.over();) {
            const std::vector<Buffer> frames = arrivals.burst();
            std::vector<rte_mbuf*> burst;
            for (const Buffer& frame : frames) {
                burst.push_back(frame.mbuf());
                const std::uint8_t* bytes = rte_pktmbuf_mtod(frame.mbuf(), const std::uint8_t*);
                const bool plain = load_be16(bytes + ethernet::kType) == ethernet::kTypeIpv4;
                const Tag tag = read_tag(bytes + (plain ? 42 : 46));
                if ((connected >> (tag.stream >> kStreamKindShift) & 1U) != 0)
                    expected[choice.of(tag.sequence)] = entry_of(bytes);
            }
            side.receiver().take(burst.data(), static_cast<std::uint16_t>(burst.size()), arrivals.now());
        }
        EXPECT_EQ(table.learned(), kConnections);
        for (std::uint32_t connection = 0; connection < kConnections; ++connection)
            ASSERT_EQ(*table.entry(connection), expected[connection]) << connection;
    }
}

class ReceivingBursts : public testing::TestWithParam<Conditions> {};

TEST_P(ReceivingBursts, CountsLikeOneByOne) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        Side together(GetParam()), alone(GetParam());
        for (Arrivals arrivals(GetParam(), seed); !arrivals.over();) {
            const std::vector<Buffer> frames = arrivals.burst();
            std::vector<rte_mbuf*> burst;
            for (const Buffer& frame : frames) burst.push_back(frame.mbuf());
            together.receiver().take(burst.data(), static_cast<std::uint16_t>(burst.size()), arrivals.now());
            for (rte_mbuf* const one : burst) alone.receiver().take(&one, 1, arrivals.now());
        }
        RxStatistics &some = together.statistics(), &expected = alone.statistics();
        EXPECT_GT(expected.counts().received, kFrames / (GetParam().of_a_queue ? 18 : 6));
        expect_same_counts(some.counts(), expected.counts());
        expect_same_distribution(some.delay(), expected.delay());
        ASSERT_EQ(some.delay_changes().has_value(), expected.delay_changes().has_value());
        if (expected.delay_changes())
            expect_same_distribution(std::optional(some.delay_changes()->changes()),
                                     std::optional(expected.delay_changes()->changes()));
        expect_same_missing(some.window(), expected.window());
        ASSERT_EQ(some.in_time().has_value(), expected.in_time().has_value());
        if (expected.in_time()) expect_same_missing(*some.in_time(), *expected.in_time());
        EXPECT_EQ(some.arrival_gaps().first(), expected.arrival_gaps().first());
        EXPECT_EQ(some.arrival_gaps().last(), expected.arrival_gaps().last());
        EXPECT_EQ(some.arrival_gaps().kept().size(), expected.arrival_gaps().kept().size());
        expect_same_delays(together.delays(), alone.delays());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Conditions, ReceivingBursts,
    testing::Values(Conditions{}, Conditions{.stamping = Stamping::none, .faults_in_1000 = 1},
                    Conditions{.faults_in_1000 = 20}, Conditions{.stamping = Stamping::tagged, .faults_in_1000 = 20},
                    Conditions{.frame_timeout = 8'000, .faults_in_1000 = 50},
                    Conditions{.frame_timeout = 8'000, .shared = true, .faults_in_1000 = 20},
                    Conditions{.frame_timeout = 8'000, .shared = true, .of_a_queue = true, .faults_in_1000 = 20},
                    Conditions{.of_a_queue = true}, Conditions{.mixed = true, .faults_in_1000 = 20},
                    Conditions{.kinds = 2}, Conditions{.kinds = 6, .faults_in_1000 = 20},
                    Conditions{.mixed = true, .kinds = 11, .faults_in_1000 = 200},
                    Conditions{.stamping = Stamping::none, .kinds = 6, .faults_in_1000 = 100},
                    Conditions{
                        .frame_timeout = 8'000, .shared = true, .of_a_queue = true, .kinds = 4, .faults_in_1000 = 50},
                    Conditions{.faults_in_1000 = 500}));

}  // namespace
}  // namespace dutperf
