// SPDX-License-Identifier: Apache-2.0
// Gives frames of any shape to what reads received frames: `fuzz-receive SECONDS [SEED]`, built with sanitizers
// (scripts/fuzz). Nothing may crash or read outside a frame, nothing without a signature may be taken for a test frame,
// what the fast paths accept the slow one accepts too, and the receiver counts each frame once. DNS messages:
// fuzz_dns.hpp, TCP: fuzz_tcp.hpp, tunnels: fuzz_forwarder.hpp.
#include <rte_mbuf.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "frame/arrival.hpp"
#include "frame/batch_match.hpp"
#include "frame/dissect.hpp"
#include "frame/mixed_match.hpp"
#include "tests/example_frames.hpp"
#include "tests/fuzz_dns.hpp"
#include "tests/fuzz_forwarder.hpp"
#include "tests/fuzz_mutation.hpp"
#include "tests/fuzz_tcp.hpp"
#include "trial/receiver.hpp"

namespace dutperf {
namespace {

class Fuzz {
public:
    explicit Fuzz(Mutation& mutation) : mutation_(mutation) {
        for (const Example& example : kExamples) corpus_.push_back(bytes_of(example));
        reference_ = corpus_.front();
        match_.set_reference(reference_.data(), reference_.size());
        for (const Bytes& one : corpus_) mixed_.set_reference(one.data(), one.size(), {});
    }

    // A burst for a receiver, after each of its frames was looked at by itself.
    void turn() {
        std::array<Bytes, kBurst> burst;
        std::array<rte_mbuf, kBurst> buffers{};
        std::array<rte_mbuf*, kBurst> frames{};
        const auto count = static_cast<std::uint16_t>(1 + mutation_.below(kBurst));
        for (std::uint16_t i = 0; i < count; ++i) {
            burst[i] = frame_of_any_shape();
            frames[i] = &buffers[i];
            buffers[i].buf_addr = burst[i].data();
            buffers[i].data_len = static_cast<std::uint16_t>(burst[i].size());
        }
        receiver_.take(frames.data(), count, 1'000'000);
        frames_ += count;
        require(counted() == frames_, "frames that are counted twice or not at all", burst[0]);
        require(received() <= own_, "more frames received than came intact", burst[0]);
    }

    [[nodiscard]] std::uint64_t frames() const { return frames_; }
    [[nodiscard]] std::uint64_t received() const { return receiver_.counts().received; }

private:
    static constexpr std::size_t kBurst = 64;
    // Of the examples.
    static TrialMark trial() { return read_tag(bytes_of(kExamples.front()).data() + kExamples.front().tag_at).trial; }

    // Each frame is one of these; a copy of a corrupted frame is a duplicate too.
    [[nodiscard]] std::uint64_t counted() const {
        const ReceiverCounts& counts = receiver_.counts();
        const std::uint64_t own = counts.received + counts.duplicates + counts.late + counts.corrupted + counts.stale;
        return std::accumulate(counts.other.begin(), counts.other.end(), own);
    }

    Bytes frame_of_any_shape() {
        if (mutation_.below(3) == 0) {
            Bytes plain = numbered_reference();
            for (std::size_t changes = mutation_.below(3); changes > 0; --changes)
                plain[mutation_.below(plain.size())] ^= mutation_.some_bit();
            look_at(plain);
            return plain;
        }
        Bytes frame = mutation_.changed(corpus_);
        look_at(frame);
        return frame;
    }

    // Of any number of the trial, or of the burst before: runs, gaps and duplicates.
    Bytes numbered_reference() {
        Bytes plain = reference_;
        if (mutation_.below(8) == 0) number_ = static_cast<std::uint32_t>(mutation_.below(1U << 21U));
        store_be32(&plain[kIpv4Layout.tag_at() + tag::kHighAt + 1], number_++);
        std::uint8_t* udp = &plain[kIpv4Layout.transport_at()];
        store<std::uint16_t>(udp + udp::kChecksum, 0);
        const std::uint64_t sum = udp_sum(kIpv4Layout, plain.data(), load_be16(udp + udp::kLength));
        store(udp + udp::kChecksum, checksum_finish_udp(sum));
        return plain;
    }

    static bool holds_signature(const Bytes& frame) {
        for (std::size_t at = 0; at + kTagSize <= frame.size(); ++at) {
            if (has_signature(frame.data() + at)) return true;
        }
        return false;
    }

    void look_at(const Bytes& frame) {
        const std::vector<std::uint16_t> places{static_cast<std::uint16_t>(mutation_.below(100)), 18};
        const Dissected at_end = dissect(frame.data(), frame.size(), places);
        require(at_end.tag == nullptr || holds_signature(frame), "a tag without a signature", frame);
        const Dissected found = dissect(frame.data(), frame.size());
        require(found.tag == nullptr || holds_signature(frame), "a tag without a signature", frame);
        const std::uint8_t* plain = find_tag(frame.data(), frame.size());
        const bool intact = plain != nullptr && is_intact(frame.data(), frame.size());
        require(!intact || (found.tag == plain && found.intact), "only the fast path accepts it", frame);
        require(kind_of(frame.data(), frame.size()) != OtherKind::count, "a kind that is none", frame);
        match_.reader()(0, frame.data(), frame.size());
        match_.match(1);
        require(match_.run_from(0, 1).empty() || intact, "only the batch matches it", frame);
        mixed_.reader()(0, frame.data(), frame.size());
        mixed_.match(1);
        require(mixed_.run_from(0, 1).empty() || (found.tag != nullptr && found.intact), "only the batch matches it",
                frame);
        own_ += found.tag != nullptr && found.intact && read_tag(found.tag).trial == trial_ ? 1 : 0;
    }

    static Expected expected() {
        Expected some{};
        some.trial = trial();
        some.frames = 1U << 20U;
        return some;
    }

    Mutation& mutation_;
    TrialMark trial_ = trial();
    std::vector<Bytes> corpus_;
    Bytes reference_;
    BatchMatch<kIpv4Layout> match_;
    MixedMatch mixed_;
    Receiver receiver_{{.expected = {expected()}}};
    std::uint32_t number_ = 0;
    std::uint64_t frames_ = 0, own_ = 0;  // given; intact and of the trial
};

}  // namespace
}  // namespace dutperf

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 60;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device{}();
    dutperf::Mutation mutation(seed);
    dutperf::Fuzz frames(mutation);
    dutperf::DnsFuzz messages(mutation);
    dutperf::TcpFuzz segments(mutation);
    dutperf::ForwarderFuzz packets(mutation);
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end;) {
        for (int i = 0; i < 50; ++i) {
            frames.turn();
            for (int k = 0; k < 20; ++k) {
                messages.turn();
                segments.turn();
                packets.turn();
            }
        }
    }
    dutperf::require(frames.received() != 0, "no frame was taken for one of the trial", {});
    using Number = unsigned long long;
    std::printf("%llu frames of any shape, %llu of them received as the trial's own; seed %llu\n",
                Number{frames.frames()}, Number{frames.received()}, Number{seed});
    std::printf("%llu DNS messages of any shape, %llu of them answered by the name server, %llu by the resolver\n",
                Number{messages.messages()}, Number{messages.answered()}, Number{messages.resolved()});
    std::printf("%llu TCP segments of any shape, and %llu bytes of right answers between them\n",
                Number{segments.segments()}, Number{segments.answered()});
    std::printf("%llu packets of any shape for ends of tunnels, %llu of them forwarded\n", Number{packets.packets()},
                Number{packets.forwarded()});
}
