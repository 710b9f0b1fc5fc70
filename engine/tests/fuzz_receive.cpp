// SPDX-License-Identifier: Apache-2.0
// Gives frames of any shape to what reads received frames: `fuzz-receive SECONDS [SEED]`, built with sanitizers
// (scripts/fuzz). Nothing may crash or read outside a frame, nothing without a signature may be taken for a test frame,
// and what the fast paths accept the slow one accepts too. DNS messages of any shape go to the name server and to the
// client: an answer can be read, and is that to its query.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <rte_mbuf.h>

#include "dns/name_server.hpp"
#include "dns/questions.hpp"
#include "frame/arrival.hpp"
#include "frame/batch_match.hpp"
#include "frame/dissect.hpp"
#include "frame/mixed_match.hpp"
#include "tests/example_frames.hpp"
#include "trial/receiver.hpp"

namespace dutperf {
namespace {

class Fuzz {
public:
    explicit Fuzz(std::uint64_t seed) : random_(seed) {
        for (const Example& example : kExamples) corpus_.push_back(bytes_of(example));
        reference_ = corpus_.front();
        match_.set_reference(reference_.data(), reference_.size());
        for (const Bytes& one : corpus_) mixed_.set_reference(one.data(), one.size(), {});
        const dns::QueryFrame query(questions_, {}, {});
        Bytes frame(query.data(), query.data() + query.length());
        for (const std::uint64_t k : {0U, 1U, 7U}) {
            query.write(k, frame.data());
            add_messages(frame);
        }
    }

    // A burst for a receiver, after each of its frames was looked at by itself.
    void turn() {
        std::array<Bytes, kBurst> burst;
        std::array<rte_mbuf, kBurst> buffers{};
        std::array<rte_mbuf*, kBurst> frames{};
        const auto count = static_cast<std::uint16_t>(1 + below(kBurst));
        for (std::uint16_t i = 0; i < count; ++i) {
            burst[i] = frame_of_any_shape();
            frames[i] = &buffers[i];
            buffers[i].buf_addr = burst[i].data();
            buffers[i].data_len = static_cast<std::uint16_t>(burst[i].size());
        }
        look_at_message();
        receiver_.take(frames.data(), count, 1'000'000);
        const ReceiverCounts& counts = receiver_.counts();
        require(counts.received + counts.duplicates + counts.late <= own_, "more frames than came", burst[0]);
        frames_ += count;
    }

    [[nodiscard]] std::uint64_t frames() const { return frames_; }
    [[nodiscard]] std::uint64_t received() const { return receiver_.counts().received; }

private:
    static constexpr std::size_t kBurst = 64;
    static constexpr std::uint16_t kTrial = 77;

    Bytes frame_of_any_shape() {
        if (below(3) == 0) {
            Bytes plain = reference_;
            for (std::size_t changes = below(3); changes > 0; --changes) plain[below(plain.size())] ^= some_bit();
            look_at(plain);
            return plain;
        }
        Bytes frame = corpus_[below(corpus_.size())];
        for (std::size_t changes = below(6); changes > 0 && !frame.empty(); --changes) change(frame);
        Bytes exact(frame.begin(), frame.end());  // a sanitizer finds reads behind it
        look_at(exact);
        return exact;
    }

    std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
    std::uint8_t some_bit() { return static_cast<std::uint8_t>(1U << below(8)); }

    void change(Bytes& frame) {
        // values that headers are told by: types, protocols, ports, sizes
        constexpr std::array<std::uint16_t, 24> kTelling{
            0x0800, 0x86DD, 0x8100, 0x88A8, 0x8847, 0x6558, 0x0806, 4789, 2152, 6635, 4754,   17,
            6,      1,      58,     47,     4,      41,     43,     44,   60,   0,    0xFFFF, 0xFF00};
        const std::size_t at = below(frame.size());
        switch (below(7)) {
            case 0: frame[at] ^= some_bit(); break;
            case 1: frame[at] = static_cast<std::uint8_t>(kTelling[below(kTelling.size())]); break;
            case 2:
                if (at + 2 <= frame.size()) store_be16(&frame[at], kTelling[below(kTelling.size())]);
                break;
            case 3: frame.resize(at); break;
            case 4: frame.insert(frame.end(), below(64), static_cast<std::uint8_t>(below(256))); break;
            case 5: {  // another frame from some byte on
                const Bytes& other = corpus_[below(corpus_.size())];
                frame.resize(at);
                frame.insert(frame.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())),
                             other.end());
                break;
            }
            default: frame[at] = static_cast<std::uint8_t>(below(256));
        }
    }

    static void require(bool condition, const char* what, const Bytes& frame) {
        if (condition) return;
        std::fprintf(stderr, "%s:", what);
        for (const std::uint8_t byte : frame) std::fprintf(stderr, " %02x", byte);
        std::fprintf(stderr, "\n");
        std::abort();
    }

    static bool holds_signature(const Bytes& frame) {
        for (std::size_t at = 0; at + kTagSize <= frame.size(); ++at) {
            if (has_signature(frame.data() + at)) return true;
        }
        return false;
    }

    void look_at(const Bytes& frame) {
        const std::vector<std::uint16_t> places{static_cast<std::uint16_t>(below(100)), 18};
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
        own_ += found.tag != nullptr && found.intact && read_tag(found.tag).trial == kTrial ? 1 : 0;
    }

    // A query, and the server's answer to it.
    void add_messages(const Bytes& query) {
        const auto datagram = dns::read_datagram(query);
        require(datagram.has_value(), "a query that is no datagram", query);
        messages_.emplace_back(datagram->payload.begin(), datagram->payload.end());
        Bytes answer(dns::NameServer::kMostAnswerSize);
        answer.resize(server_.answer(query, *datagram, answer));
        messages_.emplace_back(answer.begin() + static_cast<std::ptrdiff_t>(datagram_payload_at(true)), answer.end());
    }

    void look_at_message() {
        Bytes message = messages_[below(messages_.size())];
        for (std::size_t changes = below(6); changes > 0 && !message.empty(); --changes) change(message);
        const Bytes exact(message.begin(), message.end());
        dns::check_answer(questions_, static_cast<std::uint16_t>(questions_.first_port + below(4)), exact);
        const Bytes ethernet(ethernet::kSize);
        const dns::Datagram datagram{.between = {.source = {.is_ipv6 = true}, .destination = {.is_ipv6 = true}},
                                     .checksum = dns::Checksum::good,
                                     .payload = exact};
        Bytes answer(dns::NameServer::kMostAnswerSize);
        answer.resize(server_.answer(ethernet, datagram, answer));
        if (answer.empty()) return;
        const auto back = dns::read_datagram(answer);
        require(back && back->checksum == dns::Checksum::good, "an answer that is no datagram", exact);
        const auto header = dns::read_header(back->payload);
        require(header && header->is(dns::header::kResponse) && header->id == load_be16(exact.data()),
                "no answer to the query", exact);
        require(header->counts[0] == 0 || dns::read_message(back->payload), "an answer that cannot be read", exact);
    }

    static dns::TrialQuestions questions() {
        dns::TrialQuestions some;
        some.zone = *dns::parse_zone("fuzz.test");
        some.aaaa = {.n = 2, .m = 1};
        some.ports = 4;
        some.count = 100;
        return some;
    }

    static Expected expected() {
        Expected some{};
        some.trial = kTrial;
        some.frames = 1U << 20U;
        return some;
    }

    std::mt19937_64 random_;
    dns::TrialQuestions questions_ = questions();
    dns::NameServer server_{{.zone = questions_.zone, .ipv6 = {Ipv6{}}}};
    std::vector<Bytes> messages_;
    std::vector<Bytes> corpus_;
    Bytes reference_;
    BatchMatch<kIpv4Layout> match_;
    MixedMatch mixed_;
    Receiver receiver_{PortQueue{0}, NeighbourWatch{}, expected(), nullptr, nullptr};
    std::uint64_t frames_ = 0, own_ = 0;  // given; intact and of the trial
};

}  // namespace
}  // namespace dutperf

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 60;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device{}();
    dutperf::Fuzz fuzz(seed);
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end;) {
        for (int i = 0; i < 50; ++i) fuzz.turn();
    }
    std::printf("%llu frames of any shape, %llu of them received as the trial's own; seed %llu\n",
                static_cast<unsigned long long>(fuzz.frames()), static_cast<unsigned long long>(fuzz.received()),
                static_cast<unsigned long long>(seed));
}
