// SPDX-License-Identifier: Apache-2.0
#include "dns/questions.hpp"

#include <algorithm>

#include "frame/bytes.hpp"
#include "frame/checksum.hpp"

namespace dutperf::dns {

namespace {

constexpr std::size_t kOptSize = 11, kQuestionFixedSize = 4;
constexpr std::size_t kUdpAt = kIpv6Layout.transport_at(), kMessageAt = datagram_payload_at(true),
                      kLabelAt = kMessageAt + kHeaderSize;
// so that it is summed by itself
static_assert((kLabelAt - kUdpAt) % 2 == 0 && kTestLabelSize % 2 == 1 && kAddressLabelSize % 2 == 1);

bool asks_for(const Question& question, const TrialQuestions& questions, std::uint64_t k) {
    const std::size_t size = questions.label_size();
    const bool has_form = question.type == type::kAaaa && question.klass == kClassIn &&
                          question.name.size() == 1 + size + questions.zone.size && question.name[0] == size;
    return has_form && questions.is_label_of(k, question.name.subspan(1, size)) &&
           are_equal_names(question.name.subspan(1 + size), questions.zone.name());
}

// The worst of the AAAA records that an answer has.
class Addresses {
public:
    Addresses(const Embedding& prefix, const NameRecords& records)
        : prefix_(prefix), records_(records), right_(records.aaaa.value_or(embed(prefix, records.a))) {}

    void take(const Record& record) {
        if (record.section != Section::answer || record.type != type::kAaaa || record.klass != kClassIn) return;
        if (record.data.size() != sizeof(Ipv6)) {
            malformed_ = true;
            return;
        }
        const auto address = read_address<Ipv6>(record.data.data());
        any_ = true;
        if (address == right_ || wrong_) return;
        const bool is_embedded = !records_.aaaa && embedded(prefix_.length, address) == records_.a;
        wrong_ = is_embedded ? Wrong::wrong_prefix : Wrong::wrong_address;
    }
    [[nodiscard]] std::optional<Wrong> wrong() const {
        if (malformed_) return Wrong::malformed;
        return any_ ? wrong_ : Wrong::nodata;
    }

private:
    const Embedding& prefix_;
    NameRecords records_;
    Ipv6 right_;
    bool any_ = false, malformed_ = false;
    std::optional<Wrong> wrong_;
};

Wrong kind_of(Rcode rcode) {
    switch (rcode) {
        case Rcode::nxdomain: return Wrong::nxdomain;
        case Rcode::servfail: return Wrong::servfail;
        case Rcode::refused: return Wrong::refused;
        default: return Wrong::other_rcode;
    }
}

// Of a message whose header could be read.
std::optional<Wrong> wrong_in(const TrialQuestions& questions, std::uint64_t number, Bytes message) {
    const Header header = *read_header(message);
    // a server that could not read the question need not repeat it
    if (header.counts[0] == 0 && header.rcode() != Rcode::noerror) return kind_of(header.rcode());
    const auto question = read_question(message);
    if (!question) return Wrong::malformed;
    if (!asks_for(*question, questions, number)) return Wrong::unexpected;
    if (header.is(header::kTruncated)) return Wrong::truncated;
    Addresses addresses(questions.prefix, questions.records_of(number));
    const auto read = read_message(message, [&](const Record& record) { addresses.take(record); });
    if (!read) return Wrong::malformed;
    return read->rcode() != Rcode::noerror ? kind_of(read->rcode()) : addresses.wrong();
}

}  // namespace

std::size_t Questions::message_size() const {
    return kHeaderSize + 1 + label_size() + zone.size + kQuestionFixedSize + kOptSize;
}

bool TrialQuestions::is_label_of(std::uint64_t k, Bytes label) const {
    if (!addresses) return read_test_label(label) == name_of(k);
    std::array<std::uint8_t, kAddressLabelSize> expected{};
    write_address_label(address_of(k), expected.data());
    return std::ranges::equal(label, expected);
}

NameRecords TrialQuestions::records_of(std::uint64_t k) const {
    if (addresses) return {.a = address_of(k), .aaaa = std::nullopt};
    const TestName name = name_of(k);
    return {.a = a_record_of(name.number),
            .aaaa = name.has_aaaa ? std::optional(aaaa_record_of(name.number)) : std::nullopt};
}

Verdict check_answer(const TrialQuestions& questions, std::uint16_t port, Bytes message) {
    const auto header = read_header(message);
    if (!header || !header->is(header::kResponse)) return {.number = 0, .wrong = Wrong::malformed};
    const auto number = questions.number_of(port, header->id);
    if (!number) return {.number = 0, .wrong = Wrong::unexpected};
    return {.number = *number, .wrong = wrong_in(questions, *number, message)};
}

QueryFrame::QueryFrame(const TrialQuestions& questions, const Mac& source, const Mac& destination)
    : length_(static_cast<std::uint16_t>(questions.frame_length())),
      labelled_(1 + questions.label_size()),
      questions_(questions) {
    std::array<std::uint8_t, 1 + kTestLabelSize + sizeof(Zone::bytes)> name{
        static_cast<std::uint8_t>(questions.label_size())};
    std::ranges::copy(questions.zone.name(), name.begin() + static_cast<std::ptrdiff_t>(labelled_));
    const Query query{.id = 0, .name = Bytes(name).first(labelled_ + questions.zone.size)};
    const std::size_t size = write_query(query, Room(bytes_).subspan(kMessageAt));
    write_datagram(bytes_.data(), {.source = source, .destination = destination},
                   {.source = ip_of(questions.source),
                    .destination = ip_of(questions.destination),
                    .destination_port = questions.destination_port},
                   size);
    store<std::uint16_t>(&bytes_[kUdpAt + udp::kChecksum], 0);
    fixed_sum_ = udp_sum(kIpv6Layout, bytes_.data(), static_cast<std::uint16_t>(udp::kSize + size)) -
                 checksum_add(&bytes_[kLabelAt], labelled_);
}

void QueryFrame::write(std::uint64_t k, std::uint8_t* frame) const {
    const std::uint16_t port = swap16(questions_.port_of(k)), id = swap16(questions_.id_of(k));
    store(frame + kUdpAt + udp::kSourcePort, port);
    store(frame + kMessageAt + header::kId, id);
    questions_.write_label(k, frame + kLabelAt + 1);
    const std::uint64_t sum = fixed_sum_ + port + id + checksum_add(frame + kLabelAt, labelled_);
    store(frame + kUdpAt + udp::kChecksum, checksum_finish_udp(sum));
}

}  // namespace dutperf::dns
